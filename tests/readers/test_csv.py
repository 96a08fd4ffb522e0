"""A record is a row, whatever stands in it; the fast reader and the definition agree wherever the fast one answers."""

import csv as python_csv
import io
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from contract.declared import HEADER, STRICT, contract, csv, read
from taciturn import InvalidInput
from taciturn.contract.contract import contract_of
from taciturn.readers import csv as csv_rows
from taciturn.readers import rows
from taciturn.readers.csv import DELIMITERS, CsvRows, header_ends, header_of, read_fast, record_ends, split
from taciturn.readers.lines import LONGEST, Lines, line_ends

COMPLETE = [
    "50,Oslo,1,10.0.0.1,hi,yes",
    "25,Rome,7.0,,,no",
    "1e1,Paris,x,b,c,yes",
    "100,Oslo,2,10.0.0.1,Ø,maybe",
]
FIELDS = st.one_of(
    st.sampled_from(
        ["1", "2.5", "-3e2", " 4 ", "inf", "nan", "1_0", "Oslo", "", '"', '""', '"a"', '5" x', "Ø", "\r", "NA"]
    ),
    st.text(st.characters(exclude_characters="\n,", exclude_categories=["Cs"]), max_size=5),
)
LINES = st.one_of(
    st.lists(FIELDS, min_size=6, max_size=6).map(lambda f: ",".join(f).encode()),
    st.sampled_from([line.encode() for line in COMPLETE]),
    st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")),
    st.sampled_from([b"", b"\r", b",,,,,", b'"', b'1,"a', b"1,2", b"\xff\xfe,1,2,3,4,5", b'1,"Oslo",1,"a""b",x,"yes"']),
)
ROWS = CsvRows(header_of(HEADER.encode()), ("age", "town", "floor", "ip", "bought"), frozenset(["age"]))


def encoded(parts, made):
    parts = [part.encode(made, labelled=True) for part in parts]
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))


@given(st.lists(LINES, min_size=1, max_size=8), st.sampled_from([b"\n", b"\r\n"]), st.booleans())
@example([b"1,2,3,4,5,6", b"\r"], b"\n", False)
@example([b"\xef\xbb\xbf50,Oslo,1,a,b,yes"], b"\n", True)
def test_the_fast_reader_agrees_with_the_definition(lines, newline, ended):
    """Also when it takes a whole block, which it does if nothing in it is unusual."""
    block = newline.join(lines) + (newline if ended else b"")
    assume(block)
    made = contract()
    for fast, slow in zip(
        encoded(ROWS.parse(block, 2), made), encoded(ROWS.parse(block, 2, fast=False), made), strict=True
    ):
        assert np.array_equal(fast, slow, equal_nan=True)


def test_the_fast_reader_takes_plain_blocks():
    """Else the test above would compare the definition with itself."""
    for newline in ("\n", "\r\n"):
        block = (newline.join(COMPLETE) + newline).encode()
        assert read_fast(block, line_ends(block), ROWS.header, ROWS.columns, ROWS.floats) is not None


@given(st.lists(FIELDS, min_size=6, max_size=6), st.sampled_from(DELIMITERS))
def test_fields_are_those_of_python_s_reader(fields, delimiter):
    """What its writer writes is read back; what `split` takes, its strict reader takes alike."""
    assume(not any("\r" in field or delimiter in field for field in fields))
    file = io.StringIO()
    python_csv.writer(file, delimiter=delimiter, lineterminator="").writerow(fields)
    assert split(file.getvalue(), delimiter) == fields
    line = delimiter.join(fields)
    result = split(line, delimiter)
    try:
        theirs = next(python_csv.reader([line], delimiter=delimiter, strict=True))
    except python_csv.Error:
        assert result is None
    else:
        assert result == (theirs or [""])


TEXTS = st.one_of(
    st.sampled_from(["", "a", "\n", "\r\n", '"', '""', '"\n', '\n"', ',"', '",', ";", "\t", '"a"', '5" pipe\n', " "]),
    st.text(st.sampled_from('\n\r",;\tab '), max_size=6),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
)
TABLES = st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=7)
QUOTING = st.sampled_from([python_csv.QUOTE_MINIMAL, python_csv.QUOTE_ALL])


def written(table, delimiter, newline, quoting, header=("a", "b", "c")):
    """A table by Python's own writer."""
    file = io.StringIO(newline="")
    python_csv.writer(file, delimiter=delimiter, lineterminator=newline, quoting=quoting).writerows([header, *table])
    return file.getvalue().encode()


def lines_and_fields(data, most, chunk):
    """The line and the fields of each row, read in chunks and in blocks of at most so many rows."""
    result = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("taciturn.readers.lines._CHUNK", chunk)
        lines = Lines(io.BytesIO(data))
        header = header_of(lines.first(header_ends))
        made = CsvRows(header, header.names, frozenset())
        line = 2
        for block, _ in lines.parts(most, made.ends):
            for part in made.parse(block, line):
                assert not part.broken
                fields = zip(*(part.values[name].listed() for name in header.names), strict=True)
                result += zip(part.lines.tolist(), fields, strict=True)
            line += block.count(b"\n")
    return result


@given(TABLES, st.sampled_from(DELIMITERS), st.sampled_from(["\n", "\r\n"]), QUOTING, st.integers(1, 4), st.booleans())
def test_what_a_writer_writes_is_read_back(table, delimiter, newline, quoting, most, small):
    """Newlines within quotes too, however the file arrives; Python's strict reader is the oracle."""
    returns = any("\r" in text for row in table for text in row)
    if returns:
        quoting = python_csv.QUOTE_ALL  # the writer quotes them only where they end a line
    data = written(table, delimiter, newline, quoting)
    text = io.StringIO(data.decode(), newline="")
    theirs = python_csv.reader(text, delimiter=delimiter, strict=True)
    expected = [(theirs.line_num, tuple(row)) for row in theirs][1:]
    result = lines_and_fields(data, most, 3 if small else 2**22)
    assert [fields for _, fields in result] == [fields for _, fields in expected] == table
    if not returns:  # which the oracle counts as ends of lines
        ends = [line - 1 for line, _ in result[1:]]
        assert ends == [line for line, _ in expected][: len(ends)]


@given(
    st.lists(st.tuples(*[st.text('\n",;ab', max_size=4)] * 3), min_size=1, max_size=7),
    st.sampled_from(DELIMITERS),
    QUOTING,
)
def test_what_a_writer_writes_is_read_as_pandas_reads_it(table, delimiter, quoting):
    pandas = pytest.importorskip("pandas")
    data = written(table, delimiter, "\n", quoting)
    frame = pandas.read_csv(io.BytesIO(data), sep=delimiter, dtype=str, keep_default_na=False, skip_blank_lines=False)
    assert [fields for _, fields in lines_and_fields(data, 3, 2**22)] == list(frame.itertuples(index=False, name=None))


@pytest.mark.privacy
@given(TEXTS, st.integers(0, 3), QUOTING, st.sampled_from([2**22, 7]))
def test_no_text_adds_a_row_or_takes_one_away(text, place, quoting, chunk):
    """If a writer quotes it, any text changes its own row only: a newline and a quote, too."""
    table = [(f"a{i}", "b\n" * i, f"c{i}") for i in range(4)]
    changed = [*table[:place], (table[place][0], text, table[place][2]), *table[place + 1 :]]
    data = written(changed, ",", "\n", python_csv.QUOTE_ALL if "\r" in text else quoting)
    rows = [fields for _, fields in lines_and_fields(data, 2, chunk)]
    assert rows == changed


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'1,"a\nb"\n2,c\n', ['1,"a\nb"', "2,c"]),
        (b'1,"a\r\nb"\r\n2,c', ['1,"a\r\nb"\r', "2,c"]),
        (b'"\n\n""\n",2\n3,4\n', ['"\n\n""\n",2', "3,4"]),
        (b'1,"a\n2,b\n3,c\n', ['1,"a', "2,b", "3,c"]),  # never closed
        (b'1,"a\n2,"b"\n3,c\n', ['1,"a', '2,"b"', "3,c"]),  # closed in the middle of a field
        (b'1,5" pipe\n2,6" pipe\n', ['1,5" pipe', '2,6" pipe']),
        (b'1,"a\n2,"\n3,c\n', ['1,"a\n2,"', "3,c"]),  # as every reader of CSV does
        (b'1,"' + b"a\n" * LONGEST + b'",2\n', None),  # too long
    ],
)
def test_a_row_is_the_shortest_run_of_lines_that_is_a_record(data, expected):
    ends = record_ends(data, ",").tolist()
    rows = [data[start:end].decode().removesuffix("\n") for start, end in zip([0, *ends], ends, strict=False)]
    assert rows == (data.decode().split("\n")[:-1] if expected is None else expected)


def test_quotes_take_linear_time():
    """Rows that begin a quote each, and lines of quotes."""
    for line in (b'1,"a\n', b'"""\n', b'1,""\n', b',"""x\n', b'"\n', b'"""",\n', b'x""x\n'):
        began = time.process_time()
        record_ends(line * 30_000, ",", final=False)
        assert time.process_time() - began < 2.0


CORRUPTION = st.one_of(
    st.binary(max_size=40).map(lambda b: b.replace(b"\n", b" ")),
    st.sampled_from(
        [b'"', b'50,"Oslo', b'"50,Oslo\r', b"\x00", b'a"b"c', b",,,,,,,,", b"\r\r", b"\xef\xbb\xbf", b"\xc3"]
    ),
    st.lists(FIELDS, max_size=8).map(lambda f: ",".join(f).encode()),
)


@pytest.mark.privacy
@given(CORRUPTION, st.integers(0, 3), st.integers(1, 5), st.sampled_from([2**22, 7]))
def test_a_corrupt_row_changes_no_other_and_takes_one_round(corrupt, place, most, chunk):
    """However the row is corrupted, but for a newline, if no other row has quotes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("taciturn.readers.lines._CHUNK", chunk)
        lines = [line.encode() for line in COMPLETE]
        changed = [*lines[:place], corrupt, *lines[place + 1 :]]
        made = contract()
        before, after = (
            read(made, b"\n".join([HEADER.encode(), *which, b""]), bad_rows="zero", block=most)
            for which in (lines, changed)
        )
    X, changed_X = (np.concatenate([batch.X for batch in batches]) for batches in (before, after))
    y, changed_y = (np.concatenate([batch.y for batch in batches]) for batches in (before, after))
    rest = np.arange(4) != place
    assert len(X) == len(changed_X) == 4
    assert np.array_equal(X[rest], changed_X[rest], equal_nan=True)
    assert np.array_equal(y[rest], changed_y[rest], equal_nan=True)
    assert np.concatenate([batch.lines for batch in after]).tolist() == [2, 3, 4, 5]


@pytest.mark.privacy
def test_a_quote_does_not_change_how_a_mark_far_below_it_is_read():
    """A byte order mark is part of its row's text, also where a quote elsewhere cuts the block just before it."""
    columns = {"town": {"hash": 64}}
    marked = ["\ufeffRome,yes" if row == 256 else "Rome,yes" for row in range(512)]
    quoted = ['"Rome",yes', *marked[1:]]
    result = [
        np.concatenate([b.X for b in read(contract(columns=columns), "\n".join(["town,bought", *rows, ""]))])
        for rows in (marked, quoted)
    ]
    assert np.array_equal(*result)
    assert not np.array_equal(result[0][255], result[0][256])


def test_a_reader_that_lets_quotes_run_on_is_caught(monkeypatch):
    """The planted fault: Python's own reader over all lines, which a quote makes into fewer rows."""

    def run_on(self, block, first, size=0, fast=True):
        records = list(python_csv.reader(io.StringIO(block.decode("utf-8", "replace"))))
        columns = {
            name: csv_rows.PlainValues([(r + [""] * 6)[self.header.places[name]] for r in records])
            for name in self.columns
        }
        yield csv_rows.Parsed(columns, np.arange(first, first + len(records)))

    monkeypatch.setattr(CsvRows, "parse", run_on)
    with pytest.raises(AssertionError):
        test_a_corrupt_row_changes_no_other_and_takes_one_round.hypothesis.inner_test(b'50,"Oslo', 1, 5, 2**22)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("abc,Oslo,1,a,b,yes", "line 3: age is not a number. Correct the row, or pass --bad-rows zero"),
        (",Oslo,1,a,b,yes", "line 3: age is missing"),
        ("1,Oslo,1,a,b,", "line 3: bought is missing"),
        ("1,Oslo,1,a,b", "line 3: it has 5 fields instead of 6"),
        ("1,Oslo,1,a,b,yes,no", "line 3: it has 7 fields"),
        ('1,"Oslo,1,a,b,yes', "line 3: a quote is not balanced"),
        ("", "line 3: it is empty"),
        (b"1,\xff,1,a,b,yes", "line 3: town is not UTF-8"),
        ("1,Oslo,1,a,b," + "x" * LONGEST, "line 3: it is longer than 1,048,576 bytes"),
    ],
)
def test_the_first_bad_row_is_named_after_the_rows_before_it(row, words):
    row = row.encode() if isinstance(row, str) else row
    data = b"\n".join([HEADER.encode(), COMPLETE[0].encode(), row, b"worse", b""])
    batches = rows.open_rows(contract(columns=STRICT), io.BytesIO(data))
    first = next(batches)
    assert (len(first.X), first.first, first.lines.tolist()) == (1, 0, [2])
    with pytest.raises(InvalidInput, match=words):
        next(batches)
    zeroed = read(contract(columns=STRICT), data, bad_rows="zero")
    X = np.concatenate([batch.X for batch in zeroed])
    assert np.isnan(X[1:]).all()
    assert np.isfinite(X[0]).all()


def test_rare_bad_rows_keep_the_rest_fast():
    """A block that the fast reader rejects is halved, so a bad row slows its neighbours and not the file."""
    lines = [COMPLETE[0]] * 5_000
    lines[1_234] = "abc,Oslo,1,a,b,yes"
    parts = list(ROWS.parse(("\n".join(lines) + "\n").encode(), 2))
    slow = [part for part in parts if isinstance(part.values["age"], csv_rows.PlainValues)]
    assert [len(part.lines) <= csv_rows._FEW and 1_236 in part.lines for part in slow] == [True]
    assert np.concatenate([part.lines for part in parts]).tolist() == list(range(2, 5_002))


def test_without_arrow_rows_are_the_same(monkeypatch):
    fast = read(contract(), csv(*COMPLETE), bad_rows="zero")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    slow = read(contract(), csv(*COMPLETE), bad_rows="zero")
    assert np.array_equal(fast[0].X, slow[0].X, equal_nan=True)
    assert np.array_equal(fast[0].y, slow[0].y, equal_nan=True)


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_the_header_says_what_separates(delimiter):
    data = csv(*COMPLETE).replace(",", delimiter)
    assert np.array_equal(read(contract(), data)[0].X, read(contract(), csv(*COMPLETE))[0].X)


def test_headers_may_be_quoted_and_marked_as_utf_8():
    assert header_of('\ufeff"a;b";"c ""d"""\r\n'.encode()).names == ("a;b", 'c "d"')
    for line in (b"", b"\n", b" , \n", b'"a\n', b"\xff\n"):
        with pytest.raises(InvalidInput, match="header"):
            header_of(line)


ODD = [
    *["1", "2.5", "-3e2", " 4 ", "\t5", "6\t", "+7", "1.", ".5", "1e400", "1e-400", "-0", "00012", "1e", "--1", "1e+5"],
    *["0x10", "1d", "infinity", "nan", "NaN", "inf", "NA", "null", "", "1\x0b", "1\xa0", " ", "1 2", "१", "4.9e-324"],
    *[
        "179769313486231580793728971405301e275",
        "123456789012345678901234567890",
        "0.1000000000000000055511151231257827",
    ],
]
TAKEN = {"1", "2.5", "-3e2", " 4 ", "1.", ".5", "00012", "1e+5", "4.9e-324"}


@pytest.mark.parametrize("number", ODD)
def test_numbers_are_the_same_by_both_readers(number):
    """To the last bit, if Arrow takes them; the common ones it does take."""
    block = f"{number},Oslo,1,a,b,yes".encode()
    fast = read_fast(block, line_ends(block), ROWS.header, ROWS.columns, ROWS.floats)
    slow = next(ROWS.parse(block, 2, fast=False)).values["age"].numbers()
    assert fast is not None or number not in TAKEN
    if fast is not None:
        assert fast["age"].numbers().tobytes() == slow.tobytes()


def test_reading_loads_no_pandas():
    """It takes as long to load as some hundred thousands of rows take to read."""
    code = (
        "import io, sys\n"
        "from taciturn.contract.contract import contract_of\n"
        "from taciturn.readers.rows import open_rows\n"
        "columns = {'x': {'range': [0, 1]}, 'town': {'categories': ['Oslo', 'Rome']}}\n"
        "target = {'column': 'y', 'positive': ['yes']}\n"
        "made = contract_of({'privacy': {'epsilon': 1}, 'target': target, 'columns': columns})\n"
        "[batch] = open_rows(made, io.BytesIO(b'x,town,y\\n1,Oslo,yes\\n0,,no\\n'))\n"
        "assert len(batch.y) == 2 and 'pyarrow' in sys.modules and 'pandas' not in sys.modules"
    )
    pytest.importorskip("pyarrow")
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.privacy
@pytest.mark.parametrize(
    "row", [b"anna,\xff,no", b'anna,"0.5,no', b"anna,0,5,no", b"anna", b"anna,0.5,no,", b"anna,0.5," + b"x" * LONGEST]
)
def test_an_id_before_what_cannot_be_read_stays(row):
    """The fields of a row are read from the left, as far as they go."""
    privacy = {"epsilon": 1.0, "user": "who", "rows_per_user": 2}
    target = {"column": "bought", "positive": ["yes"]}
    made = contract_of({"privacy": privacy, "target": target, "columns": {"x": {"range": [0, 1]}}})
    [batch] = read(made, b"who,x,bought\n" + row + b"\nbob,1,yes\n", bad_rows="zero")
    assert batch.users.tolist() == ["anna", "bob"]
    assert np.isnan(batch.X).ravel().tolist() == [True, False]


@pytest.mark.privacy
@pytest.mark.parametrize("label", [b"\xff", b'"yes', b"yes,no", b""])
def test_features_before_a_label_that_cannot_be_read_stay(label):
    """Where labels alone are protected; what is read of a row up to its label does not depend on it."""
    privacy = {"epsilon": 1.0, "neighbours": "label"}
    target = {"column": "bought", "range": [0, 1]}
    made = contract_of({"privacy": privacy, "target": target, "columns": {"x": {"range": [0, 1]}}})
    [batch] = read(made, b"x,bought\n0.25," + label + b"\n", bad_rows="zero")
    assert (batch.X.tolist(), np.isnan(batch.y).tolist()) == ([[-0.5]], [True])
