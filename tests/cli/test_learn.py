"""`taciturn learn`: files and sentences, what is secret and what is not, and its errors."""

import errno
import io
import json
import os
import sys
import threading
import time
from dataclasses import replace
from html import escape
from types import SimpleNamespace

import pytest

from small_run import check, rows_of, shown, write_case
from taciturn import Ledger, Privacy, SquareRoot
from taciturn.cli import app as cli
from taciturn.contract.contract import read_contract
from taciturn.contract.explain import public
from taciturn.contract.model_file import read_model
from taciturn.datasets import customers
from taciturn.errors import BudgetExhausted, InvalidInput
from taciturn.kernel.accounting.cost import total
from taciturn.kernel.accounting.rounding import rounded_up
from taciturn.kernel.stream.state import read_extra, read_state
from taciturn.readers.rows import Position, open_rows
from taciturn.runs.files import Folder, locked
from taciturn.runs.report import NOT_PRIVATE, SIMULATION
from taciturn.runs.resume import BLOCK, FIRST, Checkpoint, Link, RowChain
from taciturn.runs.run import begin
from taciturn.store import Chunk, Store
from taciturn.store.encryption import new_key

PUBLIC = ("models.jsonl", "model.json")


@pytest.fixture
def taciturn(capsys, monkeypatch):
    """The command as the shell has it: status, output, and err without the warning of the plan, which is in plan."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["taciturn", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        lines = said.err.splitlines(keepends=True)
        plan = "".join(line for line in lines if "can be learnt" in line)
        err = "".join(line for line in lines if "can be learnt" not in line)
        return SimpleNamespace(status=ended.value.code or 0, out=said.out, err=err, plan=plan)

    return run


def test_learning_writes_what_it_says(taciturn, tmp_path):
    """A model that can be read, a line for each release, a page, and a secret that only its owner reads."""
    toml, data = write_case(tmp_path, 50)
    done = taciturn("learn", toml, data, "--out", tmp_path / "run")
    assert (done.status, done.err) == (0, "")
    assert "Complete: all 50 rows" in done.out
    assert "25 models released; spent epsilon" in done.out
    place = tmp_path / "run"
    assert sorted(path.name for path in place.iterdir()) == sorted([".lock", *PUBLIC, "report.html", "stream.db"])
    assert (place / "stream.db").stat().st_mode & 0o777 == 0o600
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


def test_a_plan_of_which_little_can_be_learnt_is_warned_of_before_anything_is_spent(
    taciturn, tmp_path, monkeypatch, capsys
):
    """By the sentence of taciturn check, which depends on settings only; once, and not if only errors are printed."""
    toml, data = write_case(tmp_path, 50)
    warning = read_contract(toml).plan().warning
    assert warning.startswith("Little can be learnt")
    monkeypatch.setattr(Store, "create", lambda *_, **__: pytest.fail("reserved"))
    with pytest.raises(pytest.fail.Exception):
        taciturn("learn", toml, data, "--out", tmp_path / "run")
    assert capsys.readouterr().err == f"taciturn: warning: {warning}\n"
    monkeypatch.undo()
    done = taciturn("learn", toml, data, "--out", tmp_path / "run")
    assert done.plan == f"taciturn: warning: {warning}\n"
    assert taciturn("learn", toml, data, "--out", tmp_path / "run", "--resume").plan == ""
    assert taciturn("learn", toml, data, "--out", tmp_path / "quiet", "--quiet").plan == ""


@pytest.mark.parametrize("bad_rows", ["stop", "zero"])
@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ('positive = ["Yes"]', "spelt as in target.positive"),
        ('positive = ["yes "]', None),
        ('positive = ["YES", "ja"]', "spelt as in target.positive"),
        ('classes = ["no", "Yes"]', "spelt as in target.classes"),
    ],
)
def test_a_misspelt_label_keeps_a_run_from_starting(taciturn, tmp_path, declared, words, bad_rows):
    """If it never occurs in the first rows, and another one differs by case or blanks only."""
    toml, data = write_case(tmp_path, 50)
    toml.write_text(toml.read_text().replace('classes = ["no", "yes"]', declared))
    done = taciturn("learn", toml, data, "--out", tmp_path / "run", "--bad-rows", bad_rows)
    assert (done.status, (tmp_path / "run").exists()) == ((0, True) if words is None else (2, False))
    if words is not None:
        assert "nothing was learnt or spent" in done.err
        assert "taciturn check" in done.err


@pytest.mark.parametrize("rows", [50, 1_200])
def test_a_label_that_never_occurs_is_warned_of(taciturn, tmp_path, rows):
    """It may be rare, so that the run starts; without another spelling nothing is certain."""
    toml, data = write_case(tmp_path, rows)
    toml.write_text(toml.read_text().replace('classes = ["no", "yes"]', 'positive = ["perhaps"]'))
    done = taciturn("learn", toml, data, "--out", tmp_path / "run")
    assert done.status == 0
    which = "the rows" if rows == 50 else "the first 1,000 rows"
    assert f"NOT PRIVATE: none of {which} of the data has a label of target.positive" in done.err
    assert done.err.count("\n") == 1
    toml, data = write_case(tmp_path, 50)
    data.write_text(data.read_text().replace(",yes", ",no"))
    assert "has another class than one" in taciturn("learn", toml, data, "--out", tmp_path / "one").err
    assert taciturn("learn", toml, data, "--out", tmp_path / "quiet", "--quiet").err == ""


def test_as_json_it_says_the_same(taciturn, tmp_path):
    toml, data = write_case(tmp_path, 50, horizon=80)
    said = json.loads(taciturn("learn", toml, data, "--out", tmp_path / "run", "--json", "--seed", 1).out)
    assert (said["outcome"], said["rows"], said["releases"], said["rounds_left"]) == ("end", 50, 25, 30)
    assert said["spent"]["epsilon"] <= said["budget"]["epsilon"] == 1.0
    assert said["simulated"]
    assert "30 remain until the horizon" in said["sentence"]


def test_quiet_says_nothing(taciturn, tmp_path):
    toml, data = write_case(tmp_path, 50)
    done = taciturn("learn", toml, data, "--out", tmp_path / "run", "--quiet")
    assert (done.status, done.out, done.err) == (0, "", "")


def test_diagnostics_are_labelled_private_to_the_owner_and_in_no_public_file(taciturn, tmp_path):
    """Seeded runs with and without them have the same public files, to the byte."""
    toml, data = write_case(tmp_path, 600)
    assert taciturn("learn", toml, data, "--out", tmp_path / "without", "--seed", 1).status == 0
    assert taciturn("learn", toml, data, "--out", tmp_path / "with", "--seed", 1, "--diagnostics").status == 0
    for name in PUBLIC:
        assert (tmp_path / "with" / name).read_bytes() == (tmp_path / "without" / name).read_bytes()
    page = tmp_path / "with" / "report.html"
    assert NOT_PRIVATE in page.read_text()
    assert "progressive accuracy" in page.read_text()
    assert page.stat().st_mode & 0o777 == 0o600
    assert NOT_PRIVATE not in (tmp_path / "without" / "report.html").read_text()


def test_diagnostics_survive_an_interruption(taciturn, tmp_path):
    """They lie in the secret state."""
    toml, data = write_case(tmp_path, 600)
    text = data.read_text()
    data.write_text("\n".join(text.splitlines()[:301]) + "\n")
    taciturn("learn", toml, data, "--out", tmp_path / "run", "--seed", 1, "--diagnostics")
    data.write_text(text)
    taciturn("learn", toml, data, "--out", tmp_path / "run", "--seed", 1, "--diagnostics", "--resume")
    assert "Rows 1 to 600" in (tmp_path / "run" / "report.html").read_text()


def test_a_bad_row_stops_with_its_line_and_the_run_goes_on_when_it_is_mended(taciturn, tmp_path):
    """Or when bad rows may pass: the state does not mind which."""
    toml, data = write_case(tmp_path, 50)
    lines = data.read_text().splitlines()
    good = lines[17]
    lines[17] = "abc,Oslo,yes"
    data.write_text("\n".join(lines) + "\n")
    for name in ("mended", "zero"):
        done = taciturn("learn", toml, data, "--out", tmp_path / name)
        assert done.status == 2
        assert "line 18: age" in done.err
        assert "Stopped after 16 rows" in done.out
        assert "abc" not in (tmp_path / name / "report.html").read_text()
        assert "report.html is NOT PRIVATE" in done.out
    resumed = taciturn("learn", toml, data, "--out", tmp_path / "zero", "--resume", "--bad-rows", "zero")
    assert (resumed.status, "report.html is NOT PRIVATE" in resumed.out) == (0, True)
    lines[17] = good
    data.write_text("\n".join(lines) + "\n")
    resumed = taciturn("learn", toml, data, "--out", tmp_path / "mended", "--resume")
    assert (resumed.status, "models.jsonl, report.html; " in resumed.out) == (0, True)
    for name in ("mended", "zero"):
        assert read_model(tmp_path / name / "model.json").releases == 25


@pytest.mark.parametrize("more", [(), ("--check-input",)])
def test_a_run_with_bad_rows_is_resumed_with_the_other_option(taciturn, tmp_path, more):
    """Rows that were learnt are compared and not validated again; a new bad row stops, and says how to go on."""
    toml, data = write_case(tmp_path, 60)
    lines = data.read_text().splitlines()
    lines[17] = "abc,Oslo,yes"
    data.write_text("\n".join(lines[:41]) + "\n")
    run = ("--out", tmp_path / "run")
    done = taciturn("learn", toml, data, *run, "--bad-rows", "zero")
    assert done.status == 0
    assert "NOT PRIVATE: 1 of the 40 rows read now are bad, and have no influence." in done.err
    data.write_text("\n".join([*lines[:51], "abc,Oslo,yes", *lines[51:60]]) + "\n")
    done = taciturn("learn", toml, data, *run, "--resume", *more)
    assert (done.status, "Stopped after 50 rows" in done.out) == (2, True)
    assert "line 52: age" in done.err
    assert "--bad-rows zero" in done.err
    assert done.err.rstrip().endswith("in either case with --resume.")
    data.write_text("\n".join(lines) + "\n")
    assert "Complete" in taciturn("learn", toml, data, *run, "--resume", *more).out
    again = taciturn("learn", toml, data, *run, "--resume", *more)
    assert (again.status, "Complete" in again.out) == (0, True)


def test_a_bad_row_that_was_not_learnt_from_is_another_row(taciturn, tmp_path):
    """It is not those that were learnt, which is said, and not how to correct it."""
    toml, data = write_case(tmp_path, 60)
    lines = data.read_text().splitlines()
    data.write_text("\n".join(lines[:41]) + "\n")
    assert taciturn("learn", toml, data, "--out", tmp_path / "run").status == 0
    lines[17] = "abc,Oslo,yes"
    data.write_text("\n".join(lines) + "\n")
    done = taciturn("learn", toml, data, "--out", tmp_path / "run", "--resume")
    assert (done.status, "are not those that this run learnt from" in done.err) == (2, True)


def test_more_rows_than_the_horizon_are_rejected_and_the_rest_is_there(taciturn, tmp_path):
    toml, data = write_case(tmp_path, 50, horizon=40)
    for again in ((), ("--resume",)):
        done = taciturn("learn", toml, data, "--out", tmp_path / "run", *again)
        assert done.status == 2
        assert "more rows than the 40 of the contract's horizon" in done.err
        assert read_model(tmp_path / "run" / "model.json").round == 40


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "holds a run that has learnt from rows"),
        (["--resume", "--seed", "3"], "is resumed with its --seed"),
    ],
)
def test_a_run_that_cannot_resume_is_rejected_in_one_sentence(taciturn, tmp_path, arguments, words):
    toml, data = write_case(tmp_path, 50)
    taciturn("learn", toml, data, "--out", tmp_path / "run")
    before = (tmp_path / "run" / "stream.db").read_bytes()
    done = taciturn("learn", toml, data, "--out", tmp_path / "run", *arguments)
    assert done.status == 2
    assert words in done.err
    assert done.err.count("\n") == 1
    assert (tmp_path / "run" / "stream.db").read_bytes() == before


def test_a_run_without_a_release_has_no_file_of_releases(taciturn, tmp_path):
    """What is listed is there."""
    toml, data = write_case(tmp_path, 5, release="10", horizon=50)
    done = taciturn("learn", toml, data, "--out", tmp_path / "run")
    assert (done.status, "models.jsonl" in done.out) == (0, False)
    assert "0 models released" in done.out
    assert not (tmp_path / "run" / "models.jsonl").exists()
    files = json.loads(taciturn("learn", toml, data, "--out", tmp_path / "run", "--resume", "--json").out)["files"]
    assert "models.jsonl" not in files


def test_a_run_that_began_by_another_plan_is_named(taciturn, tmp_path):
    """As one for workers, begun in Python: its contract's plan cannot resume it."""
    toml, data = write_case(tmp_path, 50)
    contract = read_contract(toml)
    place = tmp_path / "run"
    place.mkdir()
    other = replace(contract, release=5).plan()
    with locked(place) as handle:
        run = begin(Folder(place, handle), Store(place / "stream.db"), other, contract.digest)
        [batch] = open_rows(contract, data)
        run.learn(batch.X[:20], batch.y[:20])
        run.commit()
    done = taciturn("learn", toml, data, "--out", place, "--resume")
    assert (done.status, "began by another plan than that of its contract" in done.err) == (2, True)


def test_more_workers_than_cores_are_warned_of(taciturn, tmp_path, monkeypatch, capsys):
    toml, data = write_case(tmp_path, 50)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    monkeypatch.setattr("taciturn.cli.learn._check_workers", lambda *_: None)
    monkeypatch.setattr("taciturn.runs.run.find", lambda *_, **__: pytest.fail("far enough"))
    with pytest.raises(pytest.fail.Exception):
        taciturn("learn", toml, data, "--out", tmp_path / "run", "--workers", 200)
    assert "--workers 200 are more than the 2 cores here, and slower. Use at most 2." in capsys.readouterr().err


def test_another_contract_is_rejected(taciturn, tmp_path):
    toml, data = write_case(tmp_path, 50, horizon=90)
    taciturn("learn", toml, data, "--out", tmp_path / "run")
    toml.write_text(toml.read_text().replace("[0, 100]", "[0, 99]"))
    done = taciturn("learn", toml, data, "--out", tmp_path / "run", "--resume")
    assert done.status == 2
    assert "the contract is not the one" in done.err


def test_a_missing_file_leaves_no_folder(taciturn, tmp_path):
    toml, _ = write_case(tmp_path, 5)
    assert taciturn("learn", toml, tmp_path / "nowhere.csv", "--out", tmp_path / "run").status == 2
    assert not (tmp_path / "run").exists()


def test_json_lines_give_the_same_models(taciturn, tmp_path):
    """As CSV does, for the same seed: an encoded row is an encoded row."""
    toml, data = write_case(tmp_path, 50)
    rows = [dict(zip(("age", "town", "bought"), row.split(","), strict=True)) for row in rows_of(50)]
    lines = [json.dumps({**row, "age": int(row["age"])}) for row in rows]
    (tmp_path / "data.jsonl").write_text("\n".join(lines) + "\n")
    taciturn("learn", toml, data, "--out", tmp_path / "csv", "--seed", 1)
    taciturn("learn", toml, tmp_path / "data.jsonl", "--out", tmp_path / "json", "--seed", 1)
    for name in PUBLIC:
        assert (tmp_path / "csv" / name).read_bytes() == (tmp_path / "json" / name).read_bytes()


def test_a_messy_table_gives_the_same_models_in_every_format(taciturn, tmp_path):
    """Dates, gaps, misspelt categories, texts with newlines: CSV, Parquet and JSON lines, byte by byte."""
    pandas, columns = pytest.importorskip("pandas"), [name for name in CUSTOMERS if name != "spend_next_year"]
    pytest.importorskip("pyarrow")
    table = customers(600, as_frame=True)[["customer_id", *columns, "churned"]]
    table.to_csv(tmp_path / "data.csv", index=False)
    read = pandas.read_csv(tmp_path / "data.csv")
    read.to_parquet(tmp_path / "data.parquet", index=False)
    records = [
        {name: None if pandas.isna(value) else value for name, value in row.items()} for row in read.to_dict("records")
    ]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    declared = "\n".join(f"{name} = {kind}" for name, kind in CUSTOMERS.items())
    (tmp_path / "messy.toml").write_text(
        '[privacy]\nepsilon = 1.0\ndelta = 1e-6\nuser = "customer_id"\nrows_per_user = 4\n'
        '[target]\ncolumn = "churned"\nclasses = ["no", "yes"]\n[learning]\nhorizon = 600\n'
        f"[columns]\n{declared}\n"
    )
    for kind in ("csv", "parquet", "jsonl"):
        made = taciturn(
            "learn", tmp_path / "messy.toml", tmp_path / f"data.{kind}", "--out", tmp_path / kind, "--seed", 1
        )
        assert made.status == 0, made.err
    for name in PUBLIC:
        assert len({(tmp_path / kind / name).read_bytes() for kind in ("csv", "parquet", "jsonl")}) == 1


CUSTOMERS = {
    "signed_up": '{ date = ["2018-01-01", "2025-12-31"], cycle = ["month"] }',
    "country": '{ categories = ["DE", "FR", "NL", "PL", "other"], missing = "category" }',
    "plan": '{ categories = ["free", "basic", "plus"] }',
    "age": "{ range = [18, 99], indicator = true }",
    "income": '{ range = [0, 1e6], scale = "symlog", threshold = 1000 }',
    "visits": "{ bins = [0, 5, 10, 20, 60] }",
    "tickets": "{ range = [0, 20] }",
    "note": "{ text = { hash = 16 } }",
}


@pytest.mark.privacy
def test_where_a_bad_row_stopped_a_run_is_in_no_public_file(taciturn, tmp_path):
    """The models are the same for rows that are bad at different places between two releases, but for their noise."""
    shown = []
    for bad in (17, 18):
        toml, data = write_case(tmp_path, 50, release=16)
        lines = data.read_text().splitlines()
        lines[bad + 1] = "Jane Doe," + lines[bad + 1].partition(",")[2]
        data.write_text("\n".join([*lines, ""]))
        place = tmp_path / f"run{bad}"
        done = taciturn("learn", toml, data, "--out", place, "--json", "--seed", 1)
        assert (done.status, json.loads(done.out)["rows"]) == (2, 16)
        assert f"line {bad + 2}" in done.err
        assert "Jane" not in done.out + done.err  # no message shows a row
        assert (place / "report.html").stat().st_mode & 0o777 == 0o600
        assert "do not publish" in (place / "report.html").read_text()
        shown.append([(place / name).read_text() for name in PUBLIC])
        again = taciturn("learn", toml, data, "--out", place, "--resume", "--bad-rows", "zero", "--seed", 1)
        assert again.status == 0
        page = (place / "report.html").read_text()
        assert "NOT PRIVATE" in page
        assert "1 are bad" in page
        assert (place / "report.html").stat().st_mode & 0o777 == 0o600  # it has the number of bad rows
    assert shown[0] == shown[1]


@pytest.mark.parametrize("bad_rows", ["stop", "zero"])
@pytest.mark.parametrize(("rows", "which"), [(20, "all rows"), (1_200, "the first 1,000 rows")])
def test_a_run_does_not_start_if_all_rows_are_bad(taciturn, tmp_path, bad_rows, rows, which):
    """Nothing is reserved or written; one good row among the first thousand is enough."""
    toml, data = write_case(tmp_path, rows)
    good = data.read_text().splitlines()
    bad = ["SECRETAGE," + row.partition(",")[2] for row in good[1:]]
    data.write_text("\n".join([good[0], *bad[:1_000], *good[1_001:]]))
    done = taciturn("learn", toml, data, "--out", tmp_path / "run", "--bad-rows", bad_rows)
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert which in done.err
    assert "taciturn check" in done.err
    assert "SECRET" not in done.out + done.err
    assert not (tmp_path / "run").exists()
    data.write_text("\n".join([good[0], *bad[:9], *good[10:]]))
    done = taciturn("learn", toml, data, "--out", tmp_path / "run", "--bad-rows", bad_rows)
    assert done.status == (0 if bad_rows == "zero" else 2)
    assert (tmp_path / "run").exists()


@pytest.mark.parametrize("error", [InvalidInput("too many rows"), MemoryError()])
def test_a_strategy_that_cannot_be_calibrated_is_left_out_of_the_report(taciturn, tmp_path, monkeypatch, error):
    """The run uses none of the others: what they cannot do is no failure of it."""

    def fails(*_):
        raise error

    monkeypatch.setattr(SquareRoot, "calibrate", fails)
    toml, data = write_case(tmp_path, 60)
    assert taciturn("check", toml).status == 0
    checked = json.loads(taciturn("check", toml, "--json").out)["plan"]
    done = taciturn("learn", toml, data, "--out", tmp_path / "run")
    assert (done.status, done.err) == (0, "")
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Left out" in page
    assert checked["mechanism"] in checked["noise_of_last_release"]
    assert checked["not_compared"] == {"SquareRoot()": str(error) or "it does not fit into memory"}
    assert escape("SquareRoot()") in page


@pytest.mark.parametrize("error", [RuntimeError("no ink"), BudgetExhausted("no ink"), OSError(28, "No space left")])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_report_that_fails_is_a_warning_after_the_result(taciturn, tmp_path, monkeypatch, error, form):
    """The models are published and paid for; a status of 2 would have people spend again."""
    from taciturn.runs import summary as account

    def fails(*_):
        raise error

    monkeypatch.setattr(account, "learnt_page", fails)
    toml, data = write_case(tmp_path, 50)
    done = taciturn("learn", toml, data, "--out", tmp_path / "run", *form)
    assert done.status == 0
    assert done.err.startswith("taciturn: warning: report.html could not be written")
    said = type(error).__name__ if isinstance(error, RuntimeError) else str(error)
    assert said in done.err
    assert (str(error) in done.err) == (said == str(error))  # other texts may hold a value of the data
    assert done.err.count("\n") == 1
    if form:
        said = json.loads(done.out)
        assert said["releases"] == 25
        assert "report.html" not in said["files"]
    else:
        assert "25 models released" in done.out
        assert "report.html" not in done.out
    assert not (tmp_path / "run" / "report.html").exists()
    assert read_model(tmp_path / "run" / "model.json").releases == 25


def test_a_rejected_row_is_said_although_the_report_fails_too(taciturn, tmp_path, monkeypatch):
    from taciturn.runs import summary as account

    monkeypatch.delattr(account, "learnt_page")
    toml, data = write_case(tmp_path, 50, horizon=40)
    done = taciturn("learn", toml, data, "--out", tmp_path / "run")
    assert done.status == 2
    assert "report.html could not be written" in done.err
    assert "more rows than the 40" in done.err


@pytest.mark.parametrize("name", ["model.json", "report.html", "models.jsonl", "stream.db", "state.npz"])
@pytest.mark.parametrize("resume", [(), ("--resume",)])
def test_a_folder_with_files_of_others_is_rejected_before_anything_is_read(taciturn, tmp_path, name, resume):
    """They are named, they stay as they are, and nothing is left beside them."""
    toml, _ = write_case(tmp_path, 50)
    place = tmp_path / "theirs"
    place.mkdir()
    (place / name).write_text("somebody's work")
    done = taciturn("learn", toml, tmp_path / "not-even-read.csv", "--out", place, *resume)
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert name in done.err or resume
    assert "--out" in done.err or "--resume" in done.err
    assert [path.name for path in place.iterdir()] == [name]
    assert (place / name).read_text() == "somebody's work"


def test_a_run_of_another_contract_is_rejected_even_if_it_learnt_nothing(taciturn, tmp_path):
    toml, data = write_case(tmp_path, 50)
    empty = tmp_path / "empty.csv"
    empty.write_text("age,town,bought\n")
    assert taciturn("learn", toml, empty, "--out", tmp_path / "run").status == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    toml.write_text(toml.read_text().replace("[0, 100]", "[0, 99]"))
    done = taciturn("learn", toml, data, "--out", tmp_path / "run")
    assert done.status == 2
    assert "stream.db" in done.err
    assert "--out" in done.err
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_an_empty_folder_and_files_of_other_names_are_no_obstacle(taciturn, tmp_path):
    """An editor's file beside a model is not a half-written one."""
    toml, data = write_case(tmp_path, 50)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".model.json.swp").write_text("an editor's")
    assert taciturn("learn", toml, data, "--out", tmp_path / "run").status == 0
    assert (tmp_path / "run" / ".model.json.swp").read_text() == "an editor's"
    assert taciturn("learn", toml, data, "--out", tmp_path / "run", "--resume").status == 0


@pytest.mark.privacy
def test_where_a_bad_row_stopped_a_run_is_not_in_its_json(taciturn, tmp_path):
    """All of it is the same for rows that are bad at different places between two releases."""
    said = []
    for bad in (17, 30):
        toml, data = write_case(tmp_path, 50, release=16)
        lines = data.read_text().splitlines()
        lines[bad + 1] = "abc,Oslo,yes"
        data.write_text("\n".join([*lines, ""]))
        done = taciturn("learn", toml, data, "--out", tmp_path / f"run{bad}", "--json", "--seed", 1)
        said.append(json.loads(done.out.replace(f"run{bad}", "run")))
    assert said[0] == said[1]
    assert (said[0]["rows"], said[0]["releases"], said[0]["rounds_left"]) == (16, 1, 34)


@pytest.mark.parametrize("horizon", [2**26 + 1, 10**12])
@pytest.mark.parametrize("command", ["check", "learn"])
def test_a_horizon_past_what_sums_can_hold_is_named_with_its_limit(taciturn, tmp_path, command, horizon):
    toml, data = write_case(tmp_path, 5, horizon=horizon, release='"auto"')
    arguments = [toml, data, "--out", tmp_path / "run"] if command == "learn" else [toml]
    done = taciturn(command, *arguments)
    assert done.status == 2
    for words in (f"learning.horizon is {horizon:,}", "67,108,864", 'method = "giga"'):
        assert words in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "run").exists()
    toml.write_text(toml.read_text().replace('release = "auto"', 'release = "geometric"\nmethod = "giga"'))
    assert taciturn("check", toml).status == 0


@pytest.mark.privacy
@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_full_disk_is_called_by_its_name_and_the_run_goes_on(taciturn, tmp_path, monkeypatch, call):
    """At each such call of a commit in its turn; no number of a release is repeated or lost."""
    toml, data = write_case(tmp_path, 50)
    text = data.read_text()
    real, at, stopped = getattr(os, call), 0, True
    while stopped:
        place, calls = tmp_path / f"run{at}", iter(range(1000))
        data.write_text("\n".join(text.splitlines()[:21]) + "\n")
        assert taciturn("learn", toml, data, "--out", place).status == 0
        data.write_text(text)
        seen = shown(place)

        def full(*arguments, at=at, calls=calls, **options):
            if next(calls) >= at:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*arguments, **options)

        with monkeypatch.context() as patched:
            patched.setattr(os, call, full)
            done = taciturn("learn", toml, data, "--out", place, "--resume")
        stopped = done.status != 0
        if stopped:
            assert done.status == 2
            for words in (
                "the disk is full",
                "nothing was published after the last commit",
                "--resume",
                "Free some space",
            ):
                assert words in done.err
            assert done.err.count("\n") == 1
        check(place, read_contract(toml))
        assert taciturn("learn", toml, data, "--out", place, "--resume").status == 0
        check(place, read_contract(toml))
        assert shown(place).startswith(seen)
        assert shown(place).count(b"\n") == 25
        at += 1
    assert at > 1  # each call was hit at least once in a commit


def test_after_a_disk_that_is_full_from_the_start_the_same_command_begins(taciturn, tmp_path, monkeypatch):
    toml, data = write_case(tmp_path, 50)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        done = taciturn("learn", toml, data, "--out", tmp_path / "run")
    assert done.status == 2
    assert "the disk is full" in done.err
    assert taciturn("learn", toml, data, "--out", tmp_path / "run").status == 0


def test_a_first_release_may_be_far_away(taciturn, tmp_path):
    """Beyond the rounds that a plan looks ahead."""
    toml, data = write_case(tmp_path, 50, horizon=-1, release="200_000")
    done = taciturn("learn", toml, data, "--out", tmp_path / "run")
    assert (done.status, done.err) == (0, "")
    assert "0 models released" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["data.csv", "--check-input"], "--check-input needs --resume"),
        (["-", "--continue"], "--continue needs --resume"),
        (["-", "--resume", "--continue", "--check-input"], "Pass one of them"),
        (["data.csv", "--resume", "--continue"], "--continue is for the standard input"),
    ],
)
def test_options_of_resuming_that_make_no_sense_are_rejected(taciturn, tmp_path, monkeypatch, arguments, words):
    toml, _ = write_case(tmp_path, 5)
    monkeypatch.chdir(tmp_path)
    done = taciturn("learn", toml, *arguments, "--out", "run")
    assert done.status == 2
    assert words in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_file_goes_on_without_its_beginning_unless_that_is_asked_for(taciturn, tmp_path):
    """An early row is edited: the rows at the end are compared, and all of them with --check-input."""
    toml, data = write_case(tmp_path, 20_000, horizon=40_000, release='"geometric"')
    assert taciturn("learn", toml, data, "--out", tmp_path / "run", "--seed", 1).status == 0
    lines = [*data.read_text().splitlines(), *rows_of(10)]
    early = lines[5]
    lines[5] = ("1" if early[0] != "1" else "2") + early[1:]
    data.write_text("\n".join([*lines, ""]))
    again = ["learn", toml, data, "--out", tmp_path / "run", "--seed", 1, "--resume"]
    done = taciturn(*again, "--check-input")
    assert done.status == 2
    assert "the first 20,000 rows are not those that this run learnt from" in done.err
    assert taciturn(*again, "--json").status == 0
    lines[5] = early
    data.write_text("\n".join([*lines, ""]))
    assert json.loads(taciturn(*again, "--check-input", "--json").out)["rows"] == 20_010


def test_the_standard_input_goes_on_from_its_beginning_or_on_the_users_word(taciturn, tmp_path, monkeypatch):
    toml, data = write_case(tmp_path, 50)
    lines = data.read_text().splitlines(keepends=True)

    def piped(text, *options):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
        return taciturn("learn", toml, "-", "--out", tmp_path / "run", "--seed", 1, *options)

    assert piped("".join(lines[:21])).status == 0
    done = piped("".join([lines[0], *lines[21:31]]), "--resume")
    assert "learnt from 20 rows, but the input ends after 10" in done.err
    assert piped("".join([lines[0], *lines[21:31]]), "--resume", "--continue").status == 0
    assert piped("".join(lines), "--resume").status == 0
    assert taciturn("learn", toml, data, "--out", tmp_path / "whole", "--seed", 1).status == 0
    for name in PUBLIC:
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_runs_share_a_store_a_ledger_and_a_witness(taciturn, tmp_path):
    """Each run has its folder, and its name in the store; the ledger admits those that fit."""
    toml, data = write_case(tmp_path, 50)
    Ledger.create(tmp_path / "budget.db", Privacy(1.2, 2e-6), population="customers")
    shared = ["--store", tmp_path / "all.db", "--ledger", tmp_path / "budget.db", "--witness", tmp_path / "witness.db"]
    done = taciturn("learn", toml, data, "--out", tmp_path / "one", *shared)
    assert done.status == 0
    assert [line[:50] for line in done.err.splitlines()] == ["taciturn: warning: the witness is on the same disk"]
    assert f"{tmp_path / 'all.db'} is secret" in done.out
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == sorted([".lock", *PUBLIC, "report.html"])
    assert "all.db" not in (tmp_path / "one" / "report.html").read_text()
    done = taciturn("learn", toml, data, "--out", tmp_path / "two", *shared)
    assert done.status == 2
    assert "would reserve" in done.err
    for out, other in (("two", []), ("three", ["--name", "first"])):
        done = taciturn("learn", toml, data, "--out", tmp_path / out, *shared[:2], *other, "--json")
        assert done.err == ""
        assert json.loads(done.out)["files"]["store"] == str(tmp_path / "all.db")
    assert sorted(Store(tmp_path / "all.db", witness=tmp_path / "witness.db").names()) == ["first", "one", "two"]
    assert taciturn("learn", toml, data, "--out", tmp_path / "one", *shared, "--resume").status == 0
    assert Ledger(tmp_path / "budget.db").spent == Store(tmp_path / "all.db").load("one").spent


@pytest.mark.privacy
def test_the_report_is_refreshed_while_a_run_goes_on(taciturn, tmp_path, monkeypatch):
    """And says that it goes on; with diagnostics it is for its owner only."""
    from taciturn.runs import summary

    pages = []
    real = summary.write_report

    def seen(run, *arguments):
        real(run, *arguments)
        page = run.folder.path / "report.html"
        pages.append((page.read_text(), page.stat().st_mode & 0o777))

    monkeypatch.setattr(summary, "write_report", seen)
    monkeypatch.setattr(summary.ReportFile.__init__, "__defaults__", (None, None, 0.0))
    toml, data = write_case(tmp_path, 600)
    for options, mode in (((), 0o644), (("--diagnostics",), 0o600)):
        pages.clear()
        place = tmp_path / f"run{mode}"
        assert taciturn("learn", toml, data, "--out", place, "--commit-every", 0, *options).status == 0
        assert len(pages) > 1
        assert all("Running: " in page for page, _ in pages[:-1])
        assert "Complete" in pages[-1][0]
        assert {found for _, found in pages} == {mode}


def test_a_pipe_with_a_name_is_read_from_its_beginning(taciturn, tmp_path):
    """As a shell's `<(...)` is one."""
    toml, data = write_case(tmp_path, 50)
    content = data.read_bytes()
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    for lines, resume in ((21, ()), (51, ("--resume",))):
        part = b"".join(content.splitlines(keepends=True)[:lines])
        writer = threading.Thread(target=pipe.write_bytes, args=(part,))
        writer.start()
        assert taciturn("learn", toml, pipe, "--out", tmp_path / "run", *resume).status == 0
        writer.join()
    assert read_model(tmp_path / "run" / "model.json").round == 50


FAR = 10**8


def far_into_a_file(folder, toml, rows=10):
    """A run and its file as they would be after a hundred million rows; the file is a hole but for its ends."""
    declared, place = read_contract(toml), folder / "run"
    stored = Store(place / "stream.db").load("stream")
    private = declared.plan(on_bad="zero").private
    state, extra = read_state(stored.state), read_extra(stored.state)
    k = len(private.timetable.following(0, FAR, 10**6))
    line = json.loads(shown(place).splitlines()[-1])
    new = [{**line, "k": i, "t": private.timetable.due(i)} for i in range(state.k + 1, k + 1)]
    content = "".join(json.dumps(each) + "\n" for each in new).encode()
    far = replace(state, t=FAR, k=k, generation=99, token="far", spent=private.calibrated.cost(k))
    start = FAR // BLOCK * BLOCK - BLOCK
    position = Position(start, start + 2, 13 * start)
    with open(folder / "far.csv", "wb") as file:
        file.write(b"age,town,bought\n")
        file.seek(position.offset)
        file.write("\n".join([*rows_of(FAR - start + rows), ""]).encode())
    window = Link(start, b"x" * 32)
    chain = RowChain(b"key", window)
    [batch] = open_rows(declared, folder / "far.csv", start=position)
    chain.add(batch.X[:-rows], batch.y[:-rows])
    Store(place / "stream.db").commit(
        stored,
        position=far.position,
        spent=far.spent,
        state=far.to_bytes(extra),
        input=Checkpoint(b"key", Link(FAR, chain.value), window, FIRST, position, "csv").to_bytes(),
        releases=[Chunk(state.k + 1, k, new[-1]["t"], content)],
    )


def test_a_run_of_a_hundred_million_rows_is_resumed_by_two_seconds_of_work(taciturn, tmp_path):
    toml, data = write_case(tmp_path, 50, horizon=2 * FAR, release='"geometric"\nmethod = "giga"')
    toml.write_text(toml.read_text().replace("delta = 1e-6", "delta = 1e-10"))
    assert taciturn("learn", toml, data, "--out", tmp_path / "run").status == 0
    far_into_a_file(tmp_path, toml)
    seconds = []
    for _ in range(3):
        began = time.process_time()
        done = taciturn("learn", toml, tmp_path / "far.csv", "--out", tmp_path / "run", "--resume", "--json")
        seconds.append(time.process_time() - began)
        assert (done.err, json.loads(done.out)["rows"]) == ("", FAR + 10)
    assert min(seconds) < 2.0


def test_a_run_that_was_adopted_goes_on_in_another_folder(taciturn, tmp_path):
    """As a second stream, which has the releases of the first and goes on from where that stood."""
    toml, data = write_case(tmp_path, 30, horizon=50)
    assert taciturn("learn", toml, data, "--out", tmp_path / "run").status == 0
    write_case(tmp_path, 50)
    address = tmp_path / "run" / "stream.db"
    first = Store(address).load("stream")
    Store(address).adopt("stream")
    again = ["--store", address, "--name", "stream", "--resume"]
    assert taciturn("learn", toml, data, "--out", tmp_path / "second", *again).status == 0
    lines = [json.loads(line)["k"] for line in shown(tmp_path / "second").splitlines()]
    assert lines == list(range(1, 26))
    assert taciturn("learn", toml, data, "--out", tmp_path / "second", *again).status == 0
    closed = ["--store", address, "--name", f"stream, closed {first.lineage[:8]}", "--resume"]
    done = taciturn("learn", toml, data, "--out", tmp_path / "run", *closed)
    assert done.status == 2
    assert "closed" in done.err


@pytest.mark.privacy
def test_after_an_adoption_the_cost_of_both_streams_is_told(taciturn, tmp_path):
    """In the summary, model.json and the report: the published sequence holds the releases of both."""
    toml, data = write_case(tmp_path, 30, horizon=50)
    assert taciturn("learn", toml, data, "--out", tmp_path / "run").status == 0
    write_case(tmp_path, 50)
    store = Store(tmp_path / "run" / "stream.db")
    first = store.load("stream")
    store.adopt("stream")
    again = ["learn", toml, data, "--out", tmp_path / "run", "--resume"]
    told = json.loads(taciturn(*again, "--json").out)
    second = store.load("stream")
    spent = total([first.reserved, second.spent]).epsilon(1e-6)
    both = total([first.reserved, second.reserved]).epsilon(1e-6)
    assert spent > 1.2 * second.spent.epsilon(1e-6)
    model = json.loads((tmp_path / "run" / "model.json").read_text())
    for data in (told, model):
        assert data["spent"] == {"epsilon": spent, "delta": 1e-6}
        assert f"together is epsilon = {rounded_up(both, 4)} at" in data["guarantee"]
    assert (told["budget"]["epsilon"], told["adopted"]) == (both, True)
    report = (tmp_path / "run" / "report.html").read_text()
    for text in (report, taciturn(*again).out):
        assert f"epsilon = {spent:.4g} of {both:.4g}" in text
        assert "adopted from" in text


def test_a_key_may_be_named_and_a_wrong_one_is_said(taciturn, tmp_path, monkeypatch):
    toml, data = write_case(tmp_path, 20, horizon=50)
    for name in ("right", "wrong"):
        new_key(tmp_path / name)
    run = ["learn", toml, data, "--out", tmp_path / "run"]
    assert taciturn(*run, "--key", tmp_path / "right").status == 0
    write_case(tmp_path, 50)
    assert "encrypted, and no key is given" in taciturn(*run, "--resume").err
    assert "Give the key that it was encrypted with" in taciturn(*run, "--resume", "--key", tmp_path / "wrong").err
    assert "the key " in (missing := taciturn(*run, "--resume", "--key", tmp_path / "none").err)
    assert "not the store" not in missing
    monkeypatch.setenv("TACITURN_KEY", "not a key")
    assert "TACITURN_KEY must hold 64" in (unread := taciturn(*run, "--resume").err)
    assert "not the store" not in unread
    monkeypatch.delenv("TACITURN_KEY")
    assert taciturn(*run, "--resume", "--key", tmp_path / "right").status == 0


def test_a_ledger_of_several_populations_is_chosen_by_name(taciturn, tmp_path):
    toml, data = write_case(tmp_path, 20, horizon=50)
    address = tmp_path / "budget.db"
    for people in ("customers", "staff"):
        Ledger.create(address, Privacy(1.2, 2e-6), population=people)
    run = ["learn", toml, data, "--out", tmp_path / "run"]
    assert "several ledgers" in taciturn(*run, "--ledger", address).err
    assert "no ledger of 'guests'" in taciturn(*run, "--ledger", address, "--population", "guests").err
    assert "Add --ledger" in taciturn(*run, "--population", "staff").err
    assert not (tmp_path / "run").exists()
    assert taciturn(*run, "--ledger", address, "--population", "staff").status == 0
    assert [len(Ledger(address, population=people).lines) for people in ("customers", "staff")] == [0, 1]
    write_case(tmp_path, 50)
    assert "reserved its cost in the ledger of 'staff'" in taciturn(*run, "--resume", "--population", "customers").err
    assert taciturn(*run, "--resume", "--population", "staff").status == 0


def test_files_are_made_from_the_store_alone(taciturn, tmp_path):
    """Those that were lost, and those of a second folder; nothing is learnt or spent."""
    toml, data = write_case(tmp_path, 50)
    place, copy, address = tmp_path / "run", tmp_path / "copy", tmp_path / "run" / "stream.db"
    assert taciturn("learn", toml, data, "--out", place).status == 0
    made = {name: (place / name).read_bytes() for name in PUBLIC}
    state = Store(address).load("stream").state
    for name in PUBLIC:
        (place / name).unlink()
    done = taciturn("export", place)
    assert (done.status, done.err) == (0, "")
    assert "25 models of stream" in done.out
    done = taciturn("export", copy, "--store", address, "--name", "stream", "--json")
    assert json.loads(done.out)["releases"] == 25
    for name in PUBLIC:
        assert made[name] == (place / name).read_bytes() == (copy / name).read_bytes()
    assert Store(address).load("stream").state == state
    assert not (copy / "stream.db").exists()


@pytest.mark.privacy
def test_export_shows_nothing_of_another_run_and_needs_its_folder_alone(taciturn, tmp_path):
    """Nor while a run learns there, nor a file whose releases the store does not have."""
    toml, data = write_case(tmp_path, 50)
    place, other = tmp_path / "run", tmp_path / "other"
    for each in (place, other):
        assert taciturn("learn", toml, data, "--out", each).status == 0
    for arguments, why in (
        ([tmp_path / "none"], "holds no run"),
        ([place, "--store", other / "stream.db", "--name", "stream"], "holds a run of its own"),
        ([tmp_path / "none", "--store", tmp_path / "none.db"], "none.db"),
    ):
        done = taciturn("export", *arguments)
        assert done.status == 2
        assert why in done.err
        assert not (tmp_path / "none").exists()
    with locked(place):
        assert "another process is learning" in taciturn("export", place).err
    (place / "models.jsonl").write_bytes((other / "models.jsonl").read_bytes())
    done = taciturn("export", place)
    assert done.status == 2
    assert "holds releases that this run has not made" in done.err
    assert (place / "models.jsonl").read_bytes() == (other / "models.jsonl").read_bytes()
