"""A draft is made from the header alone, and says what is left to state."""

import io
import os
import tomllib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from taciturn import InvalidInput
from taciturn.contract.contract import contract_of, read_contract
from taciturn.readers.draft_contract import (
    Draft,
    ask,
    by_column,
    columns_of,
    kind_of,
    range_of,
    stated_columns,
    toml,
    toml_key,
    values_of,
)

NAMES = ["age", "town", "hours per week", "bought"]


class Guarded(io.RawIOBase):
    """A file that raises as soon as a byte past its header is asked for."""

    def __init__(self, header):
        self.left = header

    def read(self, size=-1):
        assert size == 1, "more was asked for than the next byte"
        assert self.left, "a row was read"
        byte, self.left = self.left[:1], self.left[1:]
        return byte


def test_not_a_byte_of_a_row_is_read():
    assert columns_of(Guarded(b"age,town\r\n"))[0] == ["age", "town"]


def test_a_header_is_enough_of_a_pipe():
    """No row is ever written, and the pipe stays open."""
    read, write = os.pipe()
    os.write(write, b"age;town\n")
    with os.fdopen(read, "rb", buffering=0) as pipe:
        assert columns_of(pipe)[0] == ["age", "town"]
    os.close(write)


def test_a_file_is_read_to_the_end_of_its_header(tmp_path, monkeypatch):
    """Nothing is fetched ahead: the file stands at its second line when it is closed."""
    (tmp_path / "rows.csv").write_text("age,town\n1,Oslo\n")
    ends = []

    class Watched(io.FileIO):
        def close(self):
            if not self.closed:
                ends.append(self.tell())
            super().close()

    def opened(path, mode, buffering):
        assert buffering == 0
        return Watched(path, mode)

    monkeypatch.setattr("builtins.open", opened)
    assert columns_of(tmp_path / "rows.csv")[0] == ["age", "town"]
    assert ends == [len("age,town\n")]


def test_of_parquet_the_schema_is_read(tmp_path):
    parquet.write_table(pa.table({"age": [1.5], "town": ["Oslo"]}), tmp_path / "rows.parquet")
    assert columns_of(tmp_path / "rows.parquet") == (["age", "town"], {"age": "double", "town": "string"})
    text = Draft("rows.parquet", ["age"], {"age": "double"}).text()
    assert text.endswith('age = "?"  # double\n')


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.jsonl", b"{}", "JSON lines have no header"),
        ("a.csv", b"39,State-gov,77516,Bachelors\n", "If it is a row, add a line of names before it"),
        ("a.csv", b"age,1e3\n", "numbers instead of names"),
        ("a.csv", b"age,age\n", "two columns have the name 'age'"),
        ("a.csv", b"age,,\n", "two columns have the name ''"),
        ("a.csv", b"", "must be a header"),
        ("a.csv.gz", b"x", "is not a complete gzip file"),
    ],
)
def test_headers_that_name_no_columns_are_rejected(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInput, match=words):
        columns_of(tmp_path / name)


def test_an_empty_draft_is_rejected_by_what_is_open(tmp_path):
    draft = Draft("sales.csv", NAMES)
    assert draft.open == ["privacy.epsilon", "target.column", "target.classes", *(f"columns.{name}" for name in NAMES)]
    (tmp_path / "taciturn.toml").write_text(draft.text())
    with pytest.raises(
        InvalidInput, match=r"privacy\.epsilon is still .* Open as well: target\.column, .*columns\.age"
    ):
        read_contract(tmp_path / "taciturn.toml")


def test_a_filled_in_draft_is_a_contract(tmp_path):
    draft = Draft(
        "sales.csv",
        NAMES,
        privacy={"epsilon": 0.5, "delta": 1e-7},
        target={"column": "bought", "classes": ["no", "yes"]},
        learning={"horizon": 900},
        columns={"age": {"range": [0, 100]}, "town": {"hash": 8}, "hours per week": {"ignore": True}},
    )
    assert draft.open == []
    (tmp_path / "taciturn.toml").write_text(draft.text(), encoding="utf-8")
    made = read_contract(tmp_path / "taciturn.toml")
    assert (made.epsilon, made.delta, made.horizon, made.dimension) == (0.5, 1e-7, 900, 9)


def test_only_what_is_open_is_named_for_one_column():
    data = tomllib.loads(
        Draft("s", ["x", "y"], privacy={"epsilon": 1.0}, target={"column": "y", "range": [0, 1]}).text()
    )
    with pytest.raises(InvalidInput, match="state the range of x"):
        contract_of(data)


@given(st.text(min_size=1, max_size=8), st.one_of(st.text(max_size=8), st.floats(allow_nan=False), st.booleans()))
def test_names_and_values_survive_toml(name, value):
    try:
        name.encode()
        str(value).encode()
    except UnicodeEncodeError:
        return
    if value in (float("inf"), float("-inf")):
        return
    assert tomllib.loads(f"{toml_key(name)} = {toml({'v': [value]})}") == {name: {"v": [value]}}


NAME = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["a\nepsilon = 9", 'a"', "a\\", "\r\n[privacy]", "a # b", "\x00", "\x7f", "\x85", "\u2028", "\ufeffa", "a.b", "#"]
)
HEADERS = st.lists(NAME, min_size=1, max_size=4, unique=True)
BLANK_DRAFT = {
    "privacy": {"epsilon": "?", "delta": 1e-6, "neighbours": "replace"},
    "target": {"column": "?", "classes": "?"},
    "learning": {},
}


def drafted(path):
    """What `taciturn init` writes for a file, as plain data, without the columns, and these in order."""
    names, kinds = columns_of(path)
    data = tomllib.loads(Draft(path.name, names, kinds).text())
    return list(data.pop("columns")), data


def in_csv(name):
    """Whether a header of CSV can have this name: a line ends its header, blanks about names are dropped."""
    try:
        float(name)
    except ValueError:
        return name == name.strip() and "\n" not in name
    return False


@pytest.mark.parametrize("delimiter", [",", ";"])
@given(names=HEADERS.map(lambda names: [name for name in names if in_csv(name)]).filter(any))
def test_any_header_of_csv_is_drafted_by_its_names(tmp_path_factory, names, delimiter):
    path = tmp_path_factory.mktemp("draft") / "rows.csv"
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    path.write_bytes(delimiter.join(quoted).encode() + b"\r\n")
    assert drafted(path) == (names, BLANK_DRAFT)


@given(names=HEADERS)
def test_any_schema_of_parquet_is_drafted_by_its_names(tmp_path_factory, names):
    """Types may hold names too: those of a struct's fields, and of time zones."""
    path = tmp_path_factory.mktemp("draft") / "rows.parquet"
    kinds = [pa.struct([(name, pa.int64())]) if i % 2 else pa.int64() for i, name in enumerate(reversed(names), 1)]
    schema = pa.schema([*zip(names, kinds, strict=True)])
    parquet.write_table(schema.empty_table(), path)
    assert drafted(path) == (names, BLANK_DRAFT)


@given(names=HEADERS, source=NAME, kind=NAME)
def test_any_names_of_json_lines_are_drafted(names, source, kind):
    """They are stated, whatever the file is called; one of them is the target."""
    draft = Draft(source, names, {names[0]: kind}, target={"column": names[-1], "positive": list(names)})
    data = tomllib.loads(draft.text())
    assert list(data["columns"]) == names[:-1]
    assert data["target"] == {"column": names[-1], "positive": list(names)}
    assert data["privacy"] == BLANK_DRAFT["privacy"]


def test_what_no_contract_can_hold_is_rejected():
    with pytest.raises(InvalidInput, match=r"'\\ud800' is not valid Unicode"):
        Draft("rows.jsonl", ["\ud800"]).text()


def test_numbers_of_any_size_are_written_as_toml():
    assert tomllib.loads(f"v = {toml([float('inf'), float('-inf'), 1e300])}") == {
        "v": [float("inf"), float("-inf"), 1e300]
    }


def test_a_column_without_a_name_may_be_ignored(tmp_path):
    """As the index is that pandas writes first."""
    draft = Draft("s.csv", ["", "x", "y"], privacy={"epsilon": 1.0}, target={"column": "y", "range": [0, 1]})
    draft.columns |= {"": {"ignore": True}, "x": {"hash": 2}}
    assert contract_of(tomllib.loads(draft.text())).feature_names == ("x#0", "x#1")


def test_columns_that_are_not_there_are_rejected():
    with pytest.raises(InvalidInput, match=r"agee is not a column of sales\.csv, which has age, town"):
        Draft("sales.csv", NAMES, columns={"agee": {"ignore": True}})
    with pytest.raises(InvalidInput, match="bougth is not a column"):
        Draft("sales.csv", NAMES, target={"column": "bougth"})


def test_questions_are_asked_until_they_are_answered_or_left_open():
    draft, asked = Draft("sales.csv", NAMES), []
    answers = iter(["-1", "2", "", "nobody", "bought", "hash 8", "no,yes", "100:0", "0:100", "Oslo,Rome", "", "5e3"])

    def question(about):
        asked.append(about)
        return next(answers)

    ask(draft, question)
    assert draft.privacy == {"epsilon": 2.0}
    assert draft.target == {"column": "bought", "classes": ["no", "yes"]}
    assert draft.columns == {"age": {"range": [0, 100]}, "town": {"categories": ["Oslo", "Rome"]}}
    assert draft.learning == {"horizon": 5000}
    assert draft.open == ["columns.hours per week"]
    assert "one class against all others" in asked[6]
    assert asked[1].startswith("epsilon must be positive")
    assert "the lower first" in asked[8]


def test_one_class_is_against_all_others_and_a_target_may_have_a_scale():
    for answer, target in (
        ("yes", {"positive": ["yes"]}),
        ("2", {"positive": [2]}),
        ("0:1e5 symlog threshold=100", {"range": [0, 100000], "scale": "symlog", "threshold": 100}),
        ("private", {"range": "private"}),
    ):
        draft = Draft("s.csv", ["x", "y"], privacy={"epsilon": 1.0, "user": "x", "rows_per_user": 1})
        answers = iter(["y", "ignore", "yes,no", "back", answer, "many", "1000"])
        ask(draft, lambda about, answers=answers: next(answers))
        assert draft.target == {"column": "y"} | target
        assert draft.learning == {"horizon": 1000}
        assert draft.open == []


def test_an_answer_that_is_no_number_is_quoted():
    """It was reported as nan."""
    draft, asked = Draft("s.csv", ["x"]), []
    answers = iter(["left", "1", *[""] * 9])
    ask(draft, lambda about: asked.append(about) or next(answers))
    assert asked[1].startswith("epsilon must be a number, as in 1; got 'left'.")
    answers, asked = iter(["0", "1", *[""] * 9]), []
    ask(draft := Draft("s.csv", ["x"]), lambda about: asked.append(about) or next(answers))
    assert "got 0." in asked[1]
    assert "0.0" not in asked[1]


def test_a_column_of_ids_is_asked_for_and_how_many_rows_count():
    draft = Draft("sales.csv", [*NAMES, "who"], target={"column": "bought", "classes": ["no", "yes"]})
    answers = iter(["1", "whom", "who", "many", "4", *[""] * 9])
    ask(draft, lambda about: next(answers))
    assert draft.privacy == {"epsilon": 1.0, "user": "who", "rows_per_user": 4}
    assert "who" not in draft.features


def test_answers_say_a_kind():
    assert kind_of("ignore", "x") == {"ignore": True}
    assert kind_of("hash 16", "x") == {"hash": 16}
    assert kind_of("-1.5:2", "x") == {"range": [-1.5, 2]}
    assert kind_of("10:30,12:00", "x") == {"categories": ["10:30", "12:00"]}
    assert values_of("1,2.5", "x") == [1, 2.5]
    for text, words in (("1-2", "separated by a colon"), ("a:b", "separated by a colon"), ("2:1", "lower first")):
        with pytest.raises(InvalidInput, match=words):
            range_of(text, "x")
    with pytest.raises(InvalidInput, match="an integer"):
        kind_of("hash many", "x")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("1:1e6 log", {"range": [1, 1000000], "scale": "log"}),
        ("range 0:5", {"range": [0, 5]}),
        ("private indicator", {"range": "private", "indicator": True}),
        ("bins 0,10,100 missing=category", {"bins": [0, 10, 100], "missing": "category"}),
        ("date 2015-01-01:2030-01-01 month", {"date": ["2015-01-01", "2030-01-01"], "cycle": ["month"]}),
        ("categories no,yes", {"categories": ["no", "yes"]}),
        ("text 64", {"text": {"hash": 64}}),
        ("0:10 missing=3", {"range": [0, 10], "missing": 3}),
        (
            "0:1e6 symlog threshold=1000 indicator",
            {"range": [0, 1000000], "scale": "symlog", "threshold": 1000, "indicator": True},
        ),
        ("2015-01-01:2030-01-01 month", {"date": ["2015-01-01", "2030-01-01"], "cycle": ["month"]}),
    ],
)
def test_answers_say_every_kind(answer, expected):
    assert kind_of(answer, "x") == expected


@pytest.mark.parametrize("answer", ["date", "hash", "text", "bins", "range", "categories", "Oslo"])
def test_a_word_of_the_prompt_is_no_category(answer):
    with pytest.raises(InvalidInput, match="as in one of these"):
        kind_of(answer, "x")


def test_a_threshold_is_written_by_its_name():
    with pytest.raises(InvalidInput, match="as in 0:1e6 symlog threshold=1000; got '0:1e6 symlog 1000'"):
        kind_of("0:1e6 symlog 1000", "x")


def test_back_returns_to_the_question_before():
    draft, said = Draft("sales.csv", ["age", "bought"]), []
    answers = iter(["back", "5", "back", "1", "", "age", "back", "bought", "no,yes", "back", "yes,no", "0:9", ""])
    ask(draft, lambda about: next(answers), said.append)
    assert draft.privacy == {"epsilon": 1.0}
    assert draft.target == {"column": "bought", "classes": ["yes", "no"]}
    assert draft.columns == {"age": {"range": [0, 9]}}
    assert said[-1] == "  understood: age = { range = [0, 9] }"


def test_the_column_of_ids_is_not_taken_for_the_target():
    """Also not the other way round, if the target was stated as an option."""
    for stated, answers, last in (
        ({}, ["1", "id", "4", "id", "bought", "no,yes", "0:9", ""], "column to predict (id, age, bought)"),
        ({"column": "id"}, ["1", "id", "bought", "4", "no,yes", "0:9", ""], "column of users' ids"),
    ):
        draft, asked, given = Draft("sales.csv", ["id", "age", "bought"], target=dict(stated)), [], iter(answers)

        def question(about, asked=asked, given=given):
            asked.append(about)
            return next(given)

        ask(draft, question)
        again = "id cannot be both the column of ids and the target. Name another column for one of them. Again"
        assert asked.count(again) == 1
        assert asked[asked.index(again) - 1].startswith(last)
        assert draft.target["column"] != draft.privacy["user"]


def test_the_longest_column_that_fits_is_meant():
    assert by_column(["a=b=1:2"], ["a", "a=b"], "") == {"a=b": "1:2"}
    with pytest.raises(InvalidInput, match="names no column"):
        by_column(["c=1:2"], ["a"], "--range a=0:1")


def test_options_declare_a_column_once():
    with pytest.raises(InvalidInput, match="column a is declared twice"):
        stated_columns(["a"], ["a=0:1"], [], ["a=4"], [])
    with pytest.raises(InvalidInput, match="the hash of a must be an integer"):
        stated_columns(["a"], [], [], ["a=x"], [])


@pytest.mark.parametrize("answer", ["50,000", "1,050", "-12,000,500"])
def test_a_number_with_separators_is_no_list(answer):
    with pytest.raises(InvalidInput, match=f"Write one as {answer.replace(',', '')}, and several with blanks"):
        kind_of(answer, "income")
    assert kind_of("50, 000", "income") == {"categories": [50, 0]}
    assert kind_of("200,404,500", "code") == {"categories": [200, 404, 500]}


def test_a_target_is_not_declared_as_a_feature():
    """It was dropped without a word."""
    declared = {"income": {"range": [0, 1]}}
    with pytest.raises(InvalidInput, match=r"income is the target, and no feature. State what it is by --target-range"):
        Draft("x.csv", ["income", "age"], target={"column": "income"}, columns=declared)
    with pytest.raises(InvalidInput, match="income is the column of ids"):
        Draft("x.csv", ["income", "age"], privacy={"user": "income"}, columns=declared)


def test_the_draft_says_where_a_stream_without_a_horizon_ends():
    assert "many streams end at 2^23" in Draft("x.csv", ["age"]).text()
