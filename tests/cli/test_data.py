"""`taciturn init`, `check` and `predict`, from a header to predictions; errors are one sentence."""

import json
import os
import subprocess
import sys
import tomllib
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from taciturn.cli.app import app
from taciturn.contract.contract import read_contract
from taciturn.contract.model_file import write_model
from taciturn.errors import InvalidInput
from taciturn.estimators.stream import Stream
from taciturn.readers.rows import open_rows

STATED = [
    *["--target", "bought", "--classes", "no,yes", "--epsilon", "2", "--horizon", "40"],
    *["--range", "age=0:100", "--categories", "town=Oslo,Rome", "--hash", "ip=4", "--ignore", "note"],
]
ROWS = [f"{i},{['Oslo', 'Rome'][i % 2]},10.0.0.{i % 3},hi,{['no', 'yes'][i > 20]}" for i in range(40)]


def run(*arguments, **options):
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "120"}, **options)


def taciturn(*arguments, **options):
    """Through the real entry point."""
    code = "from taciturn.cli.app import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False, **options
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with data, a contract and a model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sales.csv").write_text("\n".join(["age,town,ip,note,bought", *ROWS, ""]))
    assert run("init", "sales.csv", *STATED).exit_code == 0
    made = read_contract("taciturn.toml")
    stream = Stream(made.plan(seed=1))
    for batch in open_rows(made, "sales.csv"):
        stream.learn(batch.X, batch.y)
    write_model("model.json", made, stream)
    return tmp_path


def test_options_make_a_complete_contract(folder):
    made = read_contract("taciturn.toml")
    assert (made.epsilon, made.horizon, made.target.names) == (2.0, 40, ("no", "yes"))
    assert made.feature_names == ("age", "town=Oslo", "town=Rome", "ip#0", "ip#1", "ip#2", "ip#3")


def test_init_reads_no_row(tmp_path, monkeypatch):
    """Only the header is ever written to the pipe, and the command ends."""
    monkeypatch.chdir(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "taciturn", "init", "-", "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        process.stdin.write(b"age,bought\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.read())
    assert answer == {
        "written": "taciturn.toml",
        "open": ["privacy.epsilon", "target.column", "target.classes", "columns.age", "columns.bought"],
    }


def test_an_open_contract_is_rejected_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sales.csv").write_text("Elevation,bought\n")
    done = run("init", "sales.csv", "--target", "bought", "--positive", "yes", "--epsilon", "1")
    assert 'Fill in what is "?" (columns.Elevation), then: taciturn check taciturn.toml' in done.stdout
    done = taciturn("check", "taciturn.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "state the range of Elevation" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_init_overwrites_nothing_unless_it_is_told_to(folder):
    before = (folder / "taciturn.toml").read_text()
    done = run("init", "sales.csv")
    assert isinstance(done.exception, InvalidInput)
    assert "--force to overwrite" in str(done.exception)
    assert (folder / "taciturn.toml").read_text() == before
    assert run("init", "sales.csv", "--force").exit_code == 0
    assert (folder / "taciturn.toml").read_text() != before


def test_init_takes_names_where_there_is_no_header(folder):
    done = run("init", "rows.jsonl", "--columns", "age,bought", "--out", "b.toml", "--target", "bought", "--json")
    assert json.loads(done.stdout)["open"] == ["privacy.epsilon", "target.classes", "columns.age"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--classes", "no,yes", "--positive", "yes"), "State one of them"),
        (("--positive", "yes", "--target-range", "0:1"), "State one of them"),
        (("--rows-per-user", "4"), "as in --user customer_id"),
        (("--epsilon", "0"), "epsilon must be positive"),
        (("--classes", ">50K"), "For one against the rest, use --positive"),
        (("--range", "bought=0:1"), "bought is the target, and no feature"),
    ],
)
def test_init_rejects_what_check_would_reject(folder, options, words):
    done = run("init", "sales.csv", "--out", "c.toml", "--target", "bought", *options)
    assert isinstance(done.exception, InvalidInput)
    assert words in str(done.exception)
    assert not (folder / "c.toml").exists()


def test_files_in_the_wrong_place_are_named(folder):
    said = str(run("check", "sales.csv").exception)
    assert said.startswith("sales.csv is data, by its name, and not a contract. The contract comes first")
    assert str(run("predict", ".", "sales.csv").exception) == ". is a folder. Pass the model in it, as in model.json."


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_init_asks_at_a_terminal(tmp_path):
    """Questions go to the side, and answers into the contract; --yes asks none."""
    import pty

    (tmp_path / "sales.csv").write_text("age,bought\n")
    for arguments, answers in ((["--yes"], b""), (["--force"], b"5\nback\n1\n\nbought\nno,yes\ndate\n0:100\n\n\n")):
        ours, theirs = pty.openpty()
        os.write(ours, answers)
        done = subprocess.run(
            [sys.executable, "-m", "taciturn", "init", "sales.csv", *arguments],
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            cwd=tmp_path,
        )
        os.close(ours)
        os.close(theirs)
        for words in (
            "epsilon, the total budget",
            "No row is read",
            "understood: age = { range = [0, 100] }",
            "date needs more",
            "Write this contract?",
        ):
            assert (words in done.stderr) == bool(answers)
    assert read_contract(tmp_path / "taciturn.toml").epsilon == 1.0
    assert read_contract(tmp_path / "taciturn.toml").feature_names == ("age",)


def test_check_explains_the_guarantee_for_people(folder):
    text = " ".join(run("check", "taciturn.toml").stdout.split())
    for words in (
        "(2, 1e-06)-differentially private",
        "An adversary sees every published model, knows all rows but one, and guesses of that row",
        "What is public - every published model, when it was published",
        "7 features predict bought, one of no, yes.",
        "Rows longer than 1.713 are scaled down to that",
        "a number from 0 to 100",
        "anything, hashed into 4",
        "pftrl",
        "burn-in",
        "noise on an entry of a sum",
    ):
        assert words in text, words


def test_check_warns_where_nothing_can_be_learnt(folder):
    run("init", "sales.csv", *STATED, "--epsilon", "0.01", "--force")
    text = " ".join(run("check").stdout.split())
    assert "Nothing useful can be learnt at this budget in 40 rounds" in text


def test_check_for_machines(folder):
    answer = json.loads(run("check", "taciturn.toml", "--json").stdout)
    made = read_contract("taciturn.toml")
    assert answer["digest"] == made.digest
    assert answer["plan"] == json.loads(json.dumps(made.plan().as_data()))
    assert [c["features"] for c in answer["columns"]] == [1, 2, 4, 0]
    assert answer["dimension"] == 7


def test_names_that_look_like_markup_are_shown(folder):
    text = (folder / "taciturn.toml").read_text().replace("age =", '"[red]age" =')
    (folder / "markup.toml").write_text(text)
    assert "[red]age" in run("check", "markup.toml").stdout


def test_predictions_of_a_file_a_pipe_and_for_machines_agree(folder):
    """And are those of the library; labels are not needed."""
    done = run("predict", "model.json", "sales.csv", "--out", "p.csv")
    assert (done.exit_code, done.stdout) == (0, "")
    head, *lines = (folder / "p.csv").read_text().splitlines()
    assert (head, len(lines), set(lines) <= {"no", "yes"}) == ("prediction", 40, True)
    made = read_contract("taciturn.toml")
    [batch] = open_rows(made, "sales.csv", labelled=False)
    stream = Stream(made.plan(seed=1))
    [labelled] = open_rows(made, "sales.csv")
    stream.learn(labelled.X, labelled.y)
    scores = stream.plan.private.problem.predict(stream.model, batch.X)
    assert lines == made.decode_predictions(scores).tolist()
    unlabelled = "\n".join(["age,town,ip", *(",".join(row.split(",")[:3]) for row in ROWS)])
    piped = taciturn("predict", "model.json", "-", input=unlabelled)
    assert piped.stdout.splitlines() == [head, *lines]
    machines = run("predict", "model.json", "sales.csv", "--json", "--proba").stdout.splitlines()
    assert [json.loads(line)["prediction"] for line in machines] == lines
    chances = np.array([list(json.loads(line)["probabilities"].values()) for line in machines])
    assert np.allclose(chances.sum(axis=1), 1.0)
    assert ((chances[:, 1] > 0.5) == (np.array(lines) == "yes")).all()
    assert run("predict", "model.json", "sales.csv", "--proba").stdout.startswith("prediction,probability_no,")


def test_a_bad_row_stops_and_leaves_no_half_file_or_is_left_blank(folder):
    (folder / "bad.csv").write_text("age,town,ip\n1,Oslo,a\nold,Rome,b\n2,Oslo,a\n")
    done = taciturn("predict", "model.json", "bad.csv", "--out", "p.csv")
    assert done.returncode == 2
    assert "line 3: age is not a number" in done.stderr
    assert "--bad-rows blank" in done.stderr
    assert not [name for name in os.listdir(folder) if "p.csv" in name]
    assert run("predict", "model.json", "bad.csv", "--out", "p.csv", "--bad-rows", "blank").exit_code == 0
    lines = (folder / "p.csv").read_text().splitlines()
    assert (len(lines), lines[2]) == (4, '""')
    said = taciturn("predict", "model.json", "bad.csv", "--bad-rows", "blank")
    assert "1 of 3 rows are bad, and their predictions are blank: age is not a number (1)." in said.stderr
    assert taciturn("predict", "model.json", "sales.csv", "--bad-rows", "blank").stderr == ""
    blank = run("predict", "model.json", "bad.csv", "--json", "--proba", "--bad-rows", "blank").stdout.splitlines()[1]
    assert json.loads(blank) == {"prediction": None, "probabilities": {"no": None, "yes": None}}


def test_columns_are_carried_through_as_they_are_spelt(folder):
    """Also one that is a number of the contract, and one that is in no contract."""
    (folder / "new.csv").write_text('who,age,town,ip\n" a, 1",012,Oslo,x\n007,,Rome,y\n,old,Rome,y\n')
    plain = run("predict", "model.json", "new.csv", "--bad-rows", "blank").stdout.splitlines()
    arguments = ["predict", "model.json", "new.csv", "--bad-rows", "blank", "--keep", "who", "--keep", "age"]
    kept = run(*arguments).stdout.splitlines()
    assert kept == [
        "who,age,prediction",
        f'" a, 1",012,{plain[1]}',
        f"007,,{plain[2]}",
        ",old,",
    ]
    lines = [json.loads(line) for line in run(*arguments, "--json").stdout.splitlines()]
    assert lines[1] == {"who": "007", "age": "", "prediction": plain[2]}
    assert lines[2] == {"who": "", "age": "old", "prediction": None}


def test_columns_are_carried_through_from_every_format(folder):
    table = {"who": [7, 8], "when": [datetime(2024, 5, 1, 12), None], "age": [1.5, 30.0], "town": ["Oslo", "Rome"]}
    parquet.write_table(pa.table({**table, "ip": ["a", "b"]}), folder / "new.parquet")
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    lines = [json.dumps({**row, "when": row["when"] and str(row["when"])}) for row in rows]
    (folder / "new.jsonl").write_text("\n".join([*lines, ""]))
    keep = ["--keep", "who", "--keep", "when", "--keep", "age"]
    for options in ([], ["--json"]):
        first, second = (run("predict", "model.json", f"new.{kind}", *keep, *options) for kind in ("parquet", "jsonl"))
        assert first.stdout == second.stdout
    assert run("predict", "model.json", "new.parquet", *keep).stdout.splitlines()[2].startswith("8,,30,")
    assert json.loads(second.stdout.splitlines()[0])["age"] == 1.5


def test_a_row_that_cannot_be_parsed_keeps_its_line(folder):
    (folder / "new.csv").write_text("who,age,town,ip\na,1,Oslo,x\nb,1\n")
    done = run("predict", "model.json", "new.csv", "--keep", "who", "--bad-rows", "blank")
    assert done.stdout.splitlines()[2] == ","


@pytest.mark.parametrize(
    ("header", "keep", "words"),
    [
        ("age,town,ip", "who", "column who, which is to be kept, is not in the header"),
        ("who,who,age,town,ip", "who", "is twice in the header"),
        ("prediction,age,town,ip", "prediction", "column prediction cannot be kept"),
    ],
)
def test_columns_that_cannot_be_kept_are_rejected(folder, header, keep, words):
    (folder / "new.csv").write_text(f"{header}\n")
    assert words in str(run("predict", "model.json", "new.csv", "--keep", keep).exception)


def test_the_draft_is_toml_that_explains_itself(folder):
    run("init", "sales.csv", "--out", "draft.toml")
    text = (folder / "draft.toml").read_text()
    assert tomllib.loads(text)["columns"]["age"] == "?"
    for words in ("No row was read to write it", "range = [low, high]", "horizon", "feature_bound"):
        assert words in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["init", "sales.csv", "--out", "nowhere/taciturn.toml"], "nowhere/taciturn.toml: No such file or directory."),
        (["learn", "taciturn.toml", "sales.csv", "--out", "sales.csv"], "sales.csv: File exists."),
        (["lern", "taciturn.toml"], "Did you mean 'learn'? Try taciturn --help."),
        (["init", "-", "--columns", "age,age", "--force"], "two columns have the name 'age'. Rename one of them."),
    ],
)
def test_places_and_names_that_cannot_be_are_rejected_in_one_line(folder, arguments, words):
    done = taciturn(*arguments, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert words in done.stderr


def test_a_first_row_is_not_taken_for_names_into_a_public_file(folder):
    """Nor is a header of numbers, unless it is said that they are names."""
    (folder / "bare.csv").write_text("39,State-gov,yes\n")
    assert isinstance(run("init", "bare.csv", "--out", "bare.toml").exception, InvalidInput)
    assert not (folder / "bare.toml").exists()
    assert run("init", "bare.csv", "--out", "bare.toml", "--columns", "39,State-gov,yes").exit_code == 0
    assert '39 = "?"' in (folder / "bare.toml").read_text()


@pytest.mark.parametrize(
    ("epsilon", "neighbours", "words"),
    [
        (
            1.0,
            "replace",
            "equally likely beforehand. The guess is correct at most 73.2 % of",
        ),
        (
            0.1,
            "zero-out",
            "equally likely beforehand. The guess is correct at most 52.5 % of",
        ),
        (10.0, "replace", "is correct up to nearly 100 % of the time"),
        (
            1.0,
            "label",
            "knows all features and all labels but one, and guesses of that one which of two given labels it",
        ),
    ],
)
def test_a_contract_says_how_often_a_guess_is_right(folder, epsilon, neighbours, words):
    text = (folder / "taciturn.toml").read_text().replace("epsilon = 2.0", f"epsilon = {epsilon}")
    (folder / "taciturn.toml").write_text(text.replace('"replace"', f'"{neighbours}"'))
    assert words in json.loads(run("check", "taciturn.toml", "--json").stdout)["in_plain_words"]


@pytest.mark.parametrize("positive", ["rest", "rest,sun"])
def test_a_label_may_have_the_name_of_the_other_values(tmp_path, monkeypatch, positive):
    """From the header to predictions and their probabilities."""
    monkeypatch.chdir(tmp_path)
    first = positive.split(",")[0]
    rows = [f"{i % 101},{first if i % 101 > 50 else 'work'}" for i in range(3_000)]
    (tmp_path / "days.csv").write_text("\n".join(["age,day", *rows, ""]))
    aim = ["--target", "day", "--positive", positive, "--range", "age=0:100"]
    assert run("init", "days.csv", *aim, "--epsilon", "4", "--horizon", "3000").exit_code == 0
    assert run("learn", "taciturn.toml", "days.csv", "--out", "run", "--seed", "1").exit_code == 0
    (tmp_path / "new.csv").write_text("age\n0\n100\n")
    other, one = {"rest": ("not rest", "rest"), "rest,sun": ("neither rest nor sun", "rest or sun")}[positive]
    done = run("predict", "run/model.json", "new.csv", "--proba")
    assert done.stdout.splitlines()[0] == f"prediction,probability_{other},probability_{one}"
    assert [line.split(",")[0] for line in done.stdout.splitlines()[1:]] == [other, one]
    done = run("predict", "run/model.json", "new.csv", "--proba", "--json")
    low, high = (json.loads(line) for line in done.stdout.splitlines())
    assert (low["prediction"], high["prediction"]) == (other, one)
    for line in (low, high):
        assert sum(line["probabilities"].values()) == pytest.approx(1.0)
        assert max(line["probabilities"], key=line["probabilities"].get) == line["prediction"]


@pytest.mark.skipif(sys.platform == "win32", reason="file names have no control characters there")
@pytest.mark.parametrize("name", ["a\nepsilon = 9\n.csv", "a\x7fb.csv", 'a"\\.csv', "a\x1b[31m.csv", "a\r\u2028.csv"])
def test_a_file_name_stays_in_its_comment(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("age,bought\n")
    assert run("init", name, "--json").exit_code == 0
    data = tomllib.loads((tmp_path / "taciturn.toml").read_text(encoding="utf-8"))
    assert data == {
        "privacy": {"epsilon": "?", "delta": 1e-6, "neighbours": "replace"},
        "target": {"column": "?", "classes": "?"},
        "learning": {},
        "columns": {"age": "?", "bought": "?"},
    }


def test_a_name_that_is_no_unicode_is_rejected(tmp_path, monkeypatch):
    """As bytes of the command line that are no UTF-8 are: TOML cannot hold them."""
    monkeypatch.chdir(tmp_path)
    done = run("init", "rows.jsonl", "--columns", "age,\udcff")
    assert isinstance(done.exception, InvalidInput)
    assert "is not valid Unicode" in str(done.exception)
    assert not (tmp_path / "taciturn.toml").exists()
