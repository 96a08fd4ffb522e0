"""`tacit learn`: files and sentences, what is secret and what is not, and its refusals."""

import json
import sys
from html import escape
from types import SimpleNamespace

import pytest

from small_run import rows_of, write_case
from tacit import cli
from tacit.accounting import ledger as books
from tacit.contract.contract import read_contract
from tacit.contract.explain import public
from tacit.contract.model_file import read_model
from tacit.report.learnt import NOT_PRIVATE, SIMULATION

PUBLIC = ("models.jsonl", "model.json")


@pytest.fixture
def tacit(capsys, monkeypatch):
    """The command as the shell has it: status, output and complaints."""

    def run(*arguments):
        books._start_anew()
        monkeypatch.setattr(sys, "argv", ["tacit", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return SimpleNamespace(status=ended.value.code or 0, out=said.out, complaints=said.err)

    return run


def test_learning_writes_what_it_says(tacit, tmp_path):
    """A model that can be read, a line for each release, a page, and a secret that only its owner reads."""
    toml, data = write_case(tmp_path, 50)
    done = tacit("learn", toml, data, "--out", tmp_path / "run")
    assert (done.status, done.complaints) == (0, "")
    assert "Complete: all 50 rows" in done.out
    assert "25 models released; spent epsilon" in done.out
    place = tmp_path / "run"
    assert sorted(path.name for path in place.iterdir()) == sorted([".lock", *PUBLIC, "report.html", "state.npz"])
    assert (place / "state.npz").stat().st_mode & 0o777 == 0o600
    model = read_model(place / "model.json")
    assert (model.round, model.releases, model.simulated) == (50, 25, False)
    lines = [json.loads(line) for line in (place / "models.jsonl").read_text().splitlines()]
    assert list(lines[-1])[:4] == ["k", "t", "noise_sd", "model"]
    assert lines[-1]["model"] == model.point.tolist()
    page = (place / "report.html").read_text()
    assert "differentially private" in page
    assert all(f"<li>{escape(fact)}</li>" in page for fact in public(read_contract(toml)))
    assert NOT_PRIVATE not in page
    assert SIMULATION not in page


def test_as_json_it_says_the_same(tacit, tmp_path):
    toml, data = write_case(tmp_path, 50, horizon=80)
    said = json.loads(tacit("learn", toml, data, "--out", tmp_path / "run", "--json", "--seed", 1).out)
    assert (said["outcome"], said["rows"], said["releases"], said["rounds_left"]) == ("end", 50, 25, 30)
    assert said["spent"]["epsilon"] <= said["budget"]["epsilon"] == 1.0
    assert said["simulated"]
    assert "30 of the horizon remain" in said["sentence"]


def test_quiet_says_nothing(tacit, tmp_path):
    toml, data = write_case(tmp_path, 50)
    done = tacit("learn", toml, data, "--out", tmp_path / "run", "--quiet")
    assert (done.status, done.out, done.complaints) == (0, "", "")


def test_diagnostics_are_labelled_kept_from_others_and_in_no_public_file(tacit, tmp_path):
    """Seeded runs with and without them have the same public files, to the byte."""
    toml, data = write_case(tmp_path, 600)
    assert tacit("learn", toml, data, "--out", tmp_path / "without", "--seed", 1).status == 0
    assert tacit("learn", toml, data, "--out", tmp_path / "with", "--seed", 1, "--diagnostics").status == 0
    for name in PUBLIC:
        assert (tmp_path / "with" / name).read_bytes() == (tmp_path / "without" / name).read_bytes()
    page = tmp_path / "with" / "report.html"
    assert NOT_PRIVATE in page.read_text()
    assert "progressive accuracy" in page.read_text()
    assert page.stat().st_mode & 0o777 == 0o600
    assert NOT_PRIVATE not in (tmp_path / "without" / "report.html").read_text()


def test_diagnostics_survive_an_interruption(tacit, tmp_path):
    """They lie in the secret state."""
    toml, data = write_case(tmp_path, 600)
    text = data.read_text()
    data.write_text("\n".join(text.splitlines()[:301]) + "\n")
    tacit("learn", toml, data, "--out", tmp_path / "run", "--seed", 1, "--diagnostics")
    data.write_text(text)
    tacit("learn", toml, data, "--out", tmp_path / "run", "--seed", 1, "--diagnostics", "--resume")
    assert "Rows 1 to 600" in (tmp_path / "run" / "report.html").read_text()


def test_a_bad_row_stops_with_its_line_and_the_run_goes_on_when_it_is_mended(tacit, tmp_path):
    """Or when bad rows may pass: the state does not mind which."""
    toml, data = write_case(tmp_path, 50)
    lines = data.read_text().splitlines()
    good = lines[17]
    lines[17] = "abc,Oslo,yes"
    data.write_text("\n".join(lines) + "\n")
    for name in ("mended", "zero"):
        done = tacit("learn", toml, data, "--out", tmp_path / name)
        assert done.status == 2
        assert "line 18: age" in done.complaints
        assert "Stopped after 16 rows" in done.out
        assert "abc" not in (tmp_path / name / "report.html").read_text()
    assert tacit("learn", toml, data, "--out", tmp_path / "zero", "--resume", "--bad-rows", "zero").status == 0
    lines[17] = good
    data.write_text("\n".join(lines) + "\n")
    assert tacit("learn", toml, data, "--out", tmp_path / "mended", "--resume").status == 0
    for name in ("mended", "zero"):
        assert read_model(tmp_path / name / "model.json").releases == 25


def test_more_rows_than_the_horizon_are_refused_and_the_rest_is_there(tacit, tmp_path):
    toml, data = write_case(tmp_path, 50, horizon=40)
    for again in ((), ("--resume",)):
        done = tacit("learn", toml, data, "--out", tmp_path / "run", *again)
        assert done.status == 2
        assert "more rows than the 40 of the contract's horizon" in done.complaints
        assert read_model(tmp_path / "run" / "model.json").round == 40


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "holds a run that learnt already"),
        (["--resume", "--seed", "3"], "goes on with its own --seed"),
    ],
)
def test_a_run_that_cannot_go_on_so_is_refused_in_one_sentence(tacit, tmp_path, arguments, words):
    toml, data = write_case(tmp_path, 50)
    tacit("learn", toml, data, "--out", tmp_path / "run")
    before = (tmp_path / "run" / "state.npz").read_bytes()
    done = tacit("learn", toml, data, "--out", tmp_path / "run", *arguments)
    assert done.status == 2
    assert words in done.complaints
    assert done.complaints.count("\n") == 1
    assert (tmp_path / "run" / "state.npz").read_bytes() == before


def test_another_contract_is_refused(tacit, tmp_path):
    toml, data = write_case(tmp_path, 50, horizon=90)
    tacit("learn", toml, data, "--out", tmp_path / "run")
    toml.write_text(toml.read_text().replace("[0, 100]", "[0, 99]"))
    done = tacit("learn", toml, data, "--out", tmp_path / "run", "--resume")
    assert done.status == 2
    assert "the contract is not the one" in done.complaints


def test_a_missing_file_leaves_no_folder(tacit, tmp_path):
    toml, _ = write_case(tmp_path, 5)
    assert tacit("learn", toml, tmp_path / "nowhere.csv", "--out", tmp_path / "run").status == 2
    assert not (tmp_path / "run").exists()


def test_json_lines_give_the_same_models(tacit, tmp_path):
    """As CSV does, for the same seed: an encoded row is an encoded row."""
    toml, data = write_case(tmp_path, 50)
    rows = [dict(zip(("age", "town", "bought"), row.split(","), strict=True)) for row in rows_of(50)]
    lines = [json.dumps({**row, "age": int(row["age"])}) for row in rows]
    (tmp_path / "data.jsonl").write_text("\n".join(lines) + "\n")
    tacit("learn", toml, data, "--out", tmp_path / "csv", "--seed", 1)
    tacit("learn", toml, tmp_path / "data.jsonl", "--out", tmp_path / "json", "--seed", 1)
    for name in PUBLIC:
        assert (tmp_path / "csv" / name).read_bytes() == (tmp_path / "json" / name).read_bytes()


@pytest.mark.privacy
def test_where_a_bad_row_stopped_a_run_is_in_no_public_file(tacit, tmp_path):
    """The models are the same for rows that are bad at different places between two releases, but for their noise."""
    shown = []
    for bad in (17, 18):
        toml, data = write_case(tmp_path, 50, release=16)
        lines = data.read_text().splitlines()
        lines[bad + 1] = "Jane Doe," + lines[bad + 1].partition(",")[2]
        data.write_text("\n".join([*lines, ""]))
        place = tmp_path / f"run{bad}"
        done = tacit("learn", toml, data, "--out", place, "--json", "--seed", 1)
        assert (done.status, json.loads(done.out)["rows"]) == (2, bad)
        assert "Jane" in done.complaints
        assert "Jane" not in done.out
        assert (place / "report.html").stat().st_mode & 0o777 == 0o600
        assert "for you alone" in (place / "report.html").read_text()
        shown.append([(place / name).read_text() for name in PUBLIC])
        again = tacit("learn", toml, data, "--out", place, "--resume", "--bad-rows", "zero", "--seed", 1)
        assert again.status == 0
        assert (place / "report.html").stat().st_mode & 0o077
    assert shown[0] == shown[1]
