"""Every encoder of rows carries the marker, and encodes each row by itself, whatever is in the others."""

from __future__ import annotations

import ast
import importlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import taciturn
from checks.reader_cases import READERS, contract, json_line, plan
from taciturn import Chain, FeatureMap, L2Ball, Logistic, Problem, RandomFeatures
from taciturn.bandits import PrivateLinUCB
from taciturn.checks import ContractBroken, ReaderCase, check_map, check_reader
from taciturn.checks.readers import LAYOUTS
from taciturn.columns.encoder import encoder_of
from taciturn.columns.labels import Numbers, labels_of
from taciturn.columns.tables import Table
from taciturn.columns.target import Classes, Number, Positive, PrivateNumber
from taciturn.columns.values import ArrayValues, PlainValues
from taciturn.estimators import river_scaling, scaling
from taciturn.estimators.dict_rows import features_of
from taciturn.kernel.problem.clipping import clip_sparse_rows
from taciturn.kernel.problem.features import Bins
from taciturn.kernel.problem.inputs import as_numbers
from taciturn.kernel.problem.row_wise import RowWise
from taciturn.readers.arrow import ArrowValues
from taciturn.tables.column_maps import LinearMap, Standardise

pytestmark = pytest.mark.privacy

# Who carries the marker.

SOURCE = Path(taciturn.__file__).parent
ROOMS = (
    *("columns/*.py", "tables/*.py", "readers/*.py", "service/rows.py", "service/typed_rows.py", "service/events.py"),
    *("estimators/dict_rows.py", "estimators/*scaling.py", "kernel/problem/clipping.py"),
    *("kernel/problem/features.py", "kernel/problem/inputs.py", "kernel/problem/problem.py"),
)
FOR_PEOPLE = {"readers/draft_contract.py", "readers/table_check.py", "readers/first_rows.py", "readers/predictions.py"}
"""What reads rows to tell somebody about them: nothing of it is learnt."""
NONE = {
    "kernel/problem/inputs.py": {"as_parts"},  # the same rows, in parts
    "checks/vector_losses.py": {"Points"},  # of a loss
    "columns/declaration.py": {"Section"},  # of a contract
    "columns/hashing.py": {"BucketCache"},  # of texts, one at a time
    "columns/labels.py": {"probabilities"},  # of scores
    "columns/values.py": {"Unreadable"},  # one value
    "readers/csv.py": {"Header"},  # public
    "service/events.py": {"EventWriter"},  # a writer, which stores what it is given
    "service/rows.py": {"RowBatch"},  # rows as they came, and the rows of encoders
    "tables/random_features.py": {"directions"},  # of a public seed
}
"""What is no encoder in these rooms."""
RETURNED = {"Array", "NDArray", "Batch", "Parsed", "RowBatch"}
"""What functions that encode rows return."""
ENCODING = {"encode", "encode_sparse", "pairs", "clip_block", "transform", "transform_one", "transform_many"}
"""Methods that classes that encode rows have, wherever they are."""


def names_in(node: ast.AST | None) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} if node is not None else set()


def is_encoder(node: ast.AST, in_a_room: bool) -> bool:
    """Whether a definition of a module encodes rows: in a room any class does, and a function that returns rows."""
    if isinstance(node, ast.FunctionDef):
        return in_a_room and not node.name.startswith("_") and bool(names_in(node.returns) & RETURNED)
    if not isinstance(node, ast.ClassDef):
        return False
    bases = {name for base in node.bases for name in names_in(base)}
    if bases & {"NamedTuple", "Protocol"}:  # data, and types
        return False
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
    return in_a_room or any(
        each.name in ENCODING and not {"secret", "encoded"} & {a.arg for a in each.args.args} for each in methods
    )


def unmarked(module: Any, source: str, file: str) -> list[str]:
    """Encoders of a module without the marker."""
    in_a_room = file not in FOR_PEOPLE and any(Path(file).match(room) for room in ROOMS)
    found = {node.name for node in ast.parse(source).body if is_encoder(node, in_a_room)} - NONE.get(file, set())
    return sorted(name for name in found if not is_marked(getattr(module, name)))


def is_marked(thing: Any) -> bool:
    if isinstance(thing, type):
        return issubclass(thing, RowWise | Exception)
    return getattr(thing, "row_wise", False)


def sources() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.glob("**/*.py")):
        source = path.read_text(encoding="utf-8")
        file = path.relative_to(SOURCE).as_posix()
        if any(is_encoder(node, any(Path(file).match(room) for room in ROOMS)) for node in ast.parse(source).body):
            yield file, source


def test_every_encoder_carries_the_marker():
    found = {}
    for file, source in sources():
        module = importlib.import_module(f"taciturn.{file.removesuffix('.py').replace('/', '.')}")
        if names := unmarked(module, source, file):
            found[file] = names
    assert not found, f"{found}: derive from RowWise, and add a case to ENCODERS or READERS; or say why it is none"


def test_an_encoder_without_the_marker_is_found():
    """In a room any class, and a function that returns rows; elsewhere a class that has a method of an encoder."""

    class Module:
        class Squares:
            pass

        def mean(self):
            pass

    classes = "class Squares:\n    def encode(self, values, out): ...\n"
    functions = "def mean(X: Array) -> Array: ...\n"
    assert unmarked(Module, classes + functions, "columns/squares.py") == ["Squares", "mean"]
    assert unmarked(Module, classes + functions, "plan.py") == ["Squares"]
    assert unmarked(Module, "class Squares:\n    def encode(self, secret, row, k): ...\n", "plan.py") == []


# What the marker claims. Rows of Python's objects, of which any may stand beside any.

HUGE = (1e12, 1e15, 1e300, -1e15, 5e-324, -0.0, 0.0, math.nan, math.inf, -math.inf)
CELLS = st.one_of(
    st.floats(-2.0, 2.0),
    st.sampled_from(HUGE),
    st.integers(-3, 3),
    st.sampled_from([2**53 + 1, 2**63, 2**64 + 1, 10**400, -(10**400), 20240531, 1_700_000_000]),
    st.booleans(),
    st.none(),
    st.sampled_from(
        ["Oslo", "Rome", "0.5", " 1e1 ", "1e400", "nan", "2024-05-31", "2024-05-31T12:30:00+02:00", "", " "]
    ),
    st.text(max_size=4),
    st.sampled_from([[], [1], {"x": 1}, [[1.0]], (1.0,), np.array([1.0]), pd.NA, pd.NaT, b"\xff"]),
    st.sampled_from([np.float32(0.1), np.int64(7), Decimal("0.1"), date(2024, 5, 31), pd.Timestamp("2024-05-31")]),
)
NAMES = ("a", "b", "c", "d", "e", "f", "g", "town", "user", "colour_red")
COLUMNS = {
    "a": {"range": [-1, 1]},
    "b": {"range": [1e-3, 10], "scale": "log", "missing": 1.0, "indicator": True},
    "c": {"range": [-1e12, 1e12], "scale": "symlog", "missing": "bad"},
    "d": {"bins": [0, 1, 2, 3], "missing": "category"},
    "e": {"date": ["2015-01-01", "2030-01-01"], "cycle": ["weekday", "month", "hour"], "indicator": True},
    "f": {"range": "private", "indicator": True},
    "g": {"categories": [1, 2, 7]},
    "town": {"categories": ["Oslo", "Rome", "1"], "missing": "bad"},
    "user": {"ignore": True},
    "colour_red": {"ignore": True},
}
WORDS = {"a": COLUMNS["a"], "town": {"hash": 8, "missing": "category"}, "g": {"text": {"hash": 8}}}
RECORDS = st.fixed_dictionaries(dict.fromkeys(NAMES, CELLS) | {"colour_red": st.integers(0, 1)})
TABLES = st.lists(RECORDS, min_size=1, max_size=6)
TARGETS = (Classes("y", (1, 2, 7)), Positive("y", ("Rome", "1")), Number("y", -1.0, 1.0), PrivateNumber("y"))


def bits(*parts: Any) -> list[bytes]:
    """The bits of each row of several arrays."""
    dense = [np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64) for part in parts]
    table = np.column_stack([part.reshape(len(part), -1) for part in dense])
    return [row.tobytes() for row in np.where(np.isnan(table), np.nan, table)]


def values(rows: list[dict[str, Any]], kind: Callable[[list[Any]], Any] = PlainValues) -> dict[str, Any]:
    return {name: kind([row.get(name) for row in rows]) for name in NAMES}


def by_columns(rows):
    encoder = encoder_of(COLUMNS)
    return bits(*encoder.encode(values(rows), len(rows)))


def by_words(rows):
    return bits(*encoder_of(WORDS).encode_sparse(values(rows), len(rows)))


def by_frame(rows):
    table = Table(pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=object) for name in NAMES}))
    return bits(*encoder_of(COLUMNS).encode({name: table.values(name) for name in NAMES}, len(rows)))


def by_target(rows):
    return bits(*(part for name in ("a", "g", "town") for t in TARGETS for part in t.encode(values(rows)[name])))


def by_numbers(rows):
    return bits(as_numbers([[1.0, *row.values()] for row in rows]))


def by_labels(rows):
    return bits([Numbers()(row["a"]) for row in rows], labels_of(np.array([1 for _ in rows]), 2))


def by_dicts(**rule):
    def encode(rows):
        features = features_of(rule.get("features"), rule.get("buckets"), columns=rule.get("columns"), on_bad="zero")
        return bits(features.block([features.row(row) for row in rows]))

    return encode


def by_table_of_dicts(**rule):
    """As pandas makes a data frame of records: the type of a column depends on all of its cells."""

    def encode(rows):
        features = features_of(rule.get("features"), rule.get("buckets"), columns=rule.get("columns"), on_bad="zero")
        kept = [{name: value for name, value in row.items() if plain(value)} for row in rows]
        return bits(features.table(pd.DataFrame(kept, columns=list(rows[0]))))

    return encode


def plain(value: Any) -> bool:
    """Numbers that pandas itself does not round because of others in their column."""
    return isinstance(value, float | str | bool) or (isinstance(value, int) and abs(value) < 2**53)


def by_reader(name):
    reader, made = READERS[name], contract("replace", "user")
    fields = {"who": "user", "a": "a", "b": "b", "town": "town", "y": "c"}

    def encode(rows):
        records = [{name: row[own] for name, own in fields.items() if is_json(row[own])} for row in rows]
        blocks = list(reader.read([json_line(record) for record in records], made, plan("replace", "user")))
        ids = [user for *_, users in blocks for user in users]
        numbers = bits(*(np.concatenate([block[part] for block in blocks]) for part in (0, 1)))
        return list(zip(numbers, ids, strict=True))

    return encode


def is_json(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float, str, list, dict)


NAMED = {"features": ["a", "b", "town=Rome", "town=Oslo"]}
ENCODERS: dict[str, Callable[[list[dict[str, Any]]], list[Any]]] = {
    "columns": by_columns,
    "hashed columns": by_words,
    "data frame": by_frame,
    "targets": by_target,
    "numbers": by_numbers,
    "labels": by_labels,
    "names": by_dicts(**NAMED),
    "hashed names": by_dicts(buckets=8),
    "declared names": by_dicts(columns=COLUMNS),
    "table of names": by_table_of_dicts(**NAMED),
    "table of one-hot names": by_table_of_dicts(features=["a", "colour"]),
    "table of hashed names": by_table_of_dicts(buckets=8),
    "JSON": by_reader("json"),
    "JSON lines": by_reader("json lines"),
    "JSON lines of a request": by_reader("json lines of a request"),
    "events": by_reader("events"),
}


def holds_for(encode, rows, data):
    """Drop, permute and repeat rows, replace some by others: the encoding of a row is what it is alone."""
    alone = [encode([row])[0] for row in rows]
    order = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=2 * len(rows)), label="order")
    together = encode([rows[i] for i in order])
    assert len(together) == len(order)
    for i, encoded in zip(order, together, strict=True):
        assert encoded == alone[i], f"row {i} among {order}"


@pytest.mark.parametrize("name", ENCODERS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_row_is_encoded_by_itself(name, data):
    holds_for(ENCODERS[name], data.draw(TABLES), data)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODERS)
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_row_is_encoded_by_itself_at_length(name, data):
    holds_for(ENCODERS[name], data.draw(TABLES), data)


# Rows of numbers: in arrays laid in memory in many ways, in sparse matrices and in Arrow tables.

WIDE = np.random.default_rng(0).uniform(-1.0, 1.0, (10, 20))
SPARSE = {"sparse": csr_array, "sparse columns": lambda X: csr_array(X).tocsc()}
TABLE = {"Arrow": lambda X: pa.table({str(j): X[:, j] for j in range(X.shape[1])})}
PROBLEM = Problem(Logistic(), L2Ball(1.0), WIDE.shape[1], feature_bound=0.9, intercept=0.1, on_bad="zero")
MAPS: dict[str, FeatureMap] = {
    "standardised": Standardise(np.zeros(20), np.full(20, 0.3)),
    "some standardised": Standardise(np.zeros(2), np.ones(2), columns=(3, 7)),
    "bins": Bins(np.linspace(-1.0, 1.0, 40).reshape(20, 2) * [1.0, 2.0] + [-3.0, 0.0]),
    "mixed": LinearMap(np.random.default_rng(1).normal(size=(3, 20))),
    "random": RandomFeatures(6, 2.0),
    "chain": Chain(
        (Standardise(np.zeros(2), np.ones(2), columns=(3, 7)), LinearMap(np.eye(20)[::-1]), RandomFeatures(6, 2.0))
    ),
}


def block(*parts: Any) -> list[tuple[Any, Any, None]]:
    """What is read of rows of numbers, as a reader returns it; a row's label is its last part."""
    X = np.column_stack([np.asarray(part, dtype=np.float64).reshape(len(part), -1) for part in parts])
    return [(X, np.zeros(len(X)), None)]


def by_problem(X):
    source, _ = PROBLEM.read(X, np.ones(X.shape[0] if hasattr(X, "shape") else X.num_rows))
    return block(PROBLEM.clip_block(source[:], np.ones(source.shape[0]))[0])


def by_sparse_clipping(X):
    V, bad = clip_sparse_rows(csr_array(X), 0.9)
    return block(V.toarray(), bad)


def by_array(X):
    table = Table(X)
    encoder = encoder_of({j: {"range": [-0.5, 1e3]} if j % 2 else {"bins": [-1, 0, 1e12]} for j in range(20)})
    return block(*encoder.encode({j: table.values(j) for j in range(20)}, table.rows))


def by_arrow(X):
    encoder = encoder_of({j: {"range": [-0.5, 1e3], "indicator": True} for j in range(20)})
    return block(*encoder.encode({j: ArrowValues(pa.array(X[:, j], from_pandas=True)) for j in range(20)}, len(X)))


def by_texts(X):
    codes, texts = zip(*(ArrayValues(X[:, j]).texts() for j in range(20)), strict=True)
    known = [[float(text or "nan") for text in each] for each in texts]
    return block(*(np.array(each)[code] for code, each in zip(codes, known, strict=True)))


def by_transformer(made):
    """Transformers reject rows with NaN and infinite numbers; a row of zeros stands for them."""

    def read(X):
        fine = np.where(np.isfinite(X).all(axis=1)[:, None], X, 0.0)
        return block(made.fit(fine).transform(fine))

    return read


def by_river(made):
    def read(X):
        return block(made.transform_many(pd.DataFrame(np.asarray(X, dtype=np.float64))).to_numpy(dtype=np.float64))

    return read


ARRAYS: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "clipped rows": (by_problem, SPARSE | TABLE),
    "clipped sparse rows": (by_sparse_clipping, {}),
    "columns of an array": (by_array, {}),
    "columns of Arrow": (by_arrow, {}),
    "texts of numbers": (by_texts, {}),
    "scikit-learn's public scaler": (by_transformer(scaling.PublicScaler((-0.5, 1e3))), {}),
    "scikit-learn's norm clip": (by_transformer(scaling.NormClip(0.9)), {}),
    "scikit-learn's random features": (by_transformer(scaling.PublicRandomFeatures(6, 2.0)), {}),
    "scikit-learn's map": (by_transformer(scaling.PublicMap(MAPS["chain"])), {}),
    "river's public scaler": (by_river(river_scaling.PublicScaler({3: (-0.5, 1e3)}, indicator=True)), {}),
    "river's norm clip": (by_river(river_scaling.NormClip(0.9)), {}),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_rows_of_an_array_are_encoded_by_themselves(name):
    read, more = ARRAYS[name]
    assert check_reader(ReaderCase(read, WIDE, layouts=LAYOUTS | more)).holds


@pytest.mark.parametrize("name", MAPS)
def test_maps_are_of_a_row(name):
    assert check_map(MAPS[name], WIDE.shape[1]).holds


@pytest.mark.parametrize("values", [ArrayValues, lambda x: ArrowValues(pa.array(x)), lambda x: PlainValues(x.tolist())])
def test_a_long_column_is_scaled_as_its_numbers_are(values):
    """By compiled code, which is left where one number is not finite."""
    encoder = encoder_of({"x": {"range": [-0.3, 1e12]}})
    column = np.random.default_rng(2).normal(size=1_500) * 10.0 ** np.arange(1_500).clip(0, 300)
    alone = np.vstack([encoder.encode({"x": values(column[i : i + 1])}, 1)[0] for i in range(1_500)])
    for wrong in (0.0, math.nan, math.inf):
        changed = np.append(column, wrong)
        assert encoder.encode({"x": values(changed)}, 1_501)[0][:-1].tobytes() == alone.tobytes()


@pytest.mark.filterwarnings("ignore:Nothing useful can be learnt")
def test_contexts_of_a_bandit_are_clipped_by_themselves():
    private = PrivateLinUCB(3, 20, epsilon=1.0, horizon=len(WIDE)).private
    passed = check_reader(ReaderCase(block, WIDE, private=private)).passed
    assert "clipped_rows_stay_the_same" in {outcome.check for outcome in passed}


# Planted: encoders that look at other rows.


@dataclass(frozen=True)
class OfBlocks(FeatureMap):
    """A map with a fault: of a block, and not of its rows."""

    fault: Callable[[Any], Any]

    def width(self, dimension):
        return self.fault(np.zeros((1, dimension))).shape[1]

    def __call__(self, X):
        return self.fault(X)


MATRIX = np.random.default_rng(4).normal(size=(20, 5))
PLANTED = {
    "centred": lambda X: X - X.mean(axis=0),
    "of the row before": lambda X: X + 1e-9 * np.roll(X, 1, axis=0),
    "scaled by the largest": lambda X: X / max(1.0, np.abs(X).max()),
    "ranked": lambda X: np.argsort(np.argsort(X, axis=0), axis=0).astype(float),
    "a product of BLAS": lambda X: X @ MATRIX,
    "numbered": lambda X: X + 1e-12 * np.arange(len(X))[:, None],
    "single precision beside a large row": lambda X: X.astype(np.float32 if np.abs(X).max(initial=0) > 1e9 else float),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_map_that_looks_at_other_rows_is_caught(name):
    with pytest.raises(ContractBroken):
        check_map(OfBlocks(PLANTED[name]), WIDE.shape[1])


def adds_up_by_memory(X):
    return block(np.linalg.norm(X, axis=1))


def is_bad_as_a_block(X):
    return block(np.where(np.isnan(X).any(), np.nan, X))


def is_read_as_texts_beside_one(rows):
    return bits([math.nan if isinstance(each, str) else each for each in np.array([row["a"] for row in rows]).tolist()])


@pytest.mark.parametrize(
    ("read", "check"),
    [
        (adds_up_by_memory, "rows_of_an_array_are_read_alike_however_they_lie"),
        (is_bad_as_a_block, "other_rows_stay_the_same"),
        (is_bad_as_a_block, "a_row_is_read_alike_wherever_it_stands"),
    ],
)
def test_an_encoder_of_blocks_is_caught(read, check):
    with pytest.raises(ContractBroken, match=check):
        check_reader(ReaderCase(read, WIDE))


def test_one_cell_that_changes_the_type_of_a_column_is_caught():
    @settings(max_examples=200, deadline=None, database=None)
    @given(
        rows=st.lists(st.fixed_dictionaries({"a": st.one_of(st.floats(), st.text(max_size=1))}), min_size=2),
        data=st.data(),
    )
    def search(rows, data):
        holds_for(is_read_as_texts_beside_one, rows, data)

    with pytest.raises(AssertionError):
        search()
