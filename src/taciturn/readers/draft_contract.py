"""A draft of a contract from the header or schema of a file; no row is read.

Public values are stated as options of a command, or as answers to its questions. A value that is not stated is left
blank as `"?"`, which `taciturn check` rejects by name.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any

from taciturn.columns.kinds import Named, check_range, check_values
from taciturn.columns.values import number_of
from taciturn.contract.toml import BLANK
from taciturn.errors import InvalidInput, integer, positive
from taciturn.readers.csv import header_ends, header_of
from taciturn.readers.lines import LONGEST
from taciturn.readers.parquet import open_parquet
from taciturn.readers.source import Source, format_of, opened

_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass
class Draft:
    """The values that are stated so far, by the keys of the contract file.

    >>> draft = Draft("sales.csv", ["age", "bought"], target={"column": "bought", "classes": ["no", "yes"]})
    >>> draft.open
    ['privacy.epsilon', 'columns.age']
    >>> print(draft.text().splitlines()[-1])
    age = "?"
    """

    source: str
    names: Sequence[str]
    kinds: dict[str, str] = field(default_factory=dict)
    privacy: dict[str, Any] = field(default_factory=dict)
    target: dict[str, Any] = field(default_factory=dict)
    learning: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        named = [part[key] for part, key in ((self.target, "column"), (self.privacy, "user")) if key in part]
        for name in [*self.columns, *named]:
            if name not in self.names:
                raise InvalidInput(
                    f"{name} is not a column of {self.source}, which has {', '.join(self.names)}. Name one of these."
                )

    @property
    def features(self) -> list[str]:
        """The columns except the target and the users' ids."""
        return [name for name in self.names if name not in (self.target.get("column"), self.privacy.get("user"))]

    @property
    def open(self) -> list[str]:
        """The keys that are still blank."""
        aim = [] if {"classes", "positive", "range"} & set(self.target) else ["target.classes"]
        return [
            *([] if "epsilon" in self.privacy else ["privacy.epsilon"]),
            *(["privacy.rows_per_user"] if "user" in self.privacy and "rows_per_user" not in self.privacy else []),
            *([] if "column" in self.target else ["target.column"]),
            *aim,
            *(f"columns.{name}" for name in self.features if name not in self.columns),
        ]

    def text(self) -> str:
        """The content of the contract file."""
        privacy = {"epsilon": BLANK, "delta": 1e-6, "neighbours": "replace"} | self.privacy
        if "user" in privacy:
            privacy.setdefault("rows_per_user", BLANK)
        target = {"column": BLANK} | self.target
        if len(target) == 1:
            target["classes"] = BLANK
        learning = [f"{key} = {toml(value)}" for key, value in self.learning.items()]
        settings = [line for line in _SETTINGS if line[2:].split(" ")[0] not in self.learning]
        columns = [self._column(name) for name in self.features]
        return "\n".join(
            [
                f"# A contract for taciturn: the privacy budget, and what is public about {_in_comment(self.source)}.",
                '# No row was read to write it. Fill in every "?", then run: taciturn check',
                *_table("privacy", privacy),
                *_table("target", target),
                "\n[learning]",
                *learning,
                *settings,
                "\n[columns]",
                "# each as { range = [low, high] }, { categories = [...] }, { hash = 256 },",
                "# { text = { hash = 1024 } } or { ignore = true };",
                '# { range = [1, 1e6], scale = "log" }, { bins = [0, 10, 100] } for numbers in public steps, or',
                '# { date = ["2015-01-01", "2030-01-01"], cycle = ["weekday", "month", "hour"] };',
                '# a missing number is the middle of its range, or as in missing = 40; missing = "bad" is a bad row;',
                '# numbers also as { range = "private" }: their ranges are then found privately in the first rows',
                *columns,
                "",
            ]
        )

    def _column(self, name: str) -> str:
        line = f"{toml_key(name)} = {toml(self.columns.get(name, BLANK))}"
        return f"{line}  # {_in_comment(self.kinds[name])}" if name in self.kinds and name not in self.columns else line


_MEANING = {
    "epsilon": "total budget of everything that is published; 1.0 is common, smaller is more private",
    "delta": "well below 1 / (number of people)",
    "neighbours": "neighbour relation: replace a row; zero-out, remove its influence; label, where features are public",
    "user": "the column of ids: a user is protected with all of their rows; leave it out of [columns]",
    "rows_per_user": "rows of a user that count; decide it without the data",
    "column": "the column to predict; it is not a feature, so remove it from [columns]",
    "classes": 'all of them, as in ["no", "yes"]; or positive = ["yes"], against the rest; or range = [0, 10]',
    "positive": "these against the rest",
    "range": "numbers; values outside the range are clipped; private, if it is to be found in the first rows",
}
_SETTINGS = (
    '# loss = "logistic"  # or hinge; for numbers squared, absolute, huber, quantile',
    "# horizon = 100000   # number of rows; without it the stream has no end, and the noise is larger",
    "# feature_bound = 2.0  # largest norm of a row; by default a little less than the columns allow",
)


def _table(name: str, values: dict[str, Any]) -> list[str]:
    lines = [f"{key} = {toml(value)}" for key, value in values.items()]
    width = max(map(len, lines))
    return [f"\n[{name}]", *(f"{line:{width}}  # {_MEANING[key]}" for key, line in zip(values, lines, strict=True))]


def toml(value: Any) -> str:
    """A value in TOML; a text is in quotes, with the escapes of JSON, which are valid in TOML, and one for DEL.

    >>> toml({"range": [0, 1.5]}), toml(["a", 1]), toml(True)
    ('{ range = [0, 1.5] }', '["a", 1]', 'true')
    """
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{toml_key(key)} = {toml(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidInput(f"{value!r} is not valid Unicode, which a contract must be. Rename it.") from None
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value)


def toml_key(name: str) -> str:
    """A key in TOML, in quotes if needed.

    >>> toml_key("age"), toml_key("hours per week")
    ('age', '"hours per week"')
    """
    return name if _BARE.fullmatch(name) else toml(name)


def _in_comment(text: str) -> str:
    """A text for a comment: ASCII, with escapes for control characters, which comments must not contain."""
    return json.dumps(text)[1:-1]


def columns_of(source: Source, format: str | None = None) -> tuple[list[str], dict[str, str]]:
    """Names of the columns of a file and, from a schema, their types; no row is read.

    The bytes of a CSV file are read one at a time, up to the first newline.
    """
    kind = format_of(source, format)
    if kind == "json":
        raise InvalidInput("JSON lines have no header. Name the columns, as in --columns age,town,bought.")
    if kind == "parquet":
        with open_parquet(source) as file:
            schema = file.schema_arrow
            names, kinds = list(schema.names), {field.name: str(field.type) for field in schema}
    else:
        with opened(source, buffered=False) as (stream, _):
            names, kinds = list(header_of(_first_line(stream)).names), {}
    if kind == "csv" and any(map(_is_number, names)):  # the contract is public: it must not contain values of a row
        raise InvalidInput(
            "the first line of the file has numbers instead of names. If it is a row, add a line of names before it; "
            "if they are names, repeat all names as in --columns country,2024,2025."
        )
    return distinct(names), kinds


def distinct(names: list[str]) -> list[str]:
    """The names of columns; a name that occurs twice is an error.

    >>> distinct(["age", "town"])
    ['age', 'town']
    """
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInput(f"two columns have the name {twice[0]!r}. Rename one of them.")
    return names


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _first_line(stream: IO[bytes]) -> bytes:
    line = bytearray()
    while len(line) <= LONGEST and (byte := stream.read(1)):
        line += byte
        if byte == b"\n" and len(header_ends(bytes(line), False)):
            break
    return bytes(line)


def range_of(text: str, key: str) -> list[float] | str:
    """Parse a range: two numbers separated by a colon, or "private" for one that is found in the first rows.

    >>> range_of("-173:601", "VDH"), range_of("private", "VDH")
    ([-173, 601], 'private')
    """
    if text.strip() == "private":
        return "private"
    low, colon, high = text.partition(":")
    ends = [number_of(low), number_of(high)]
    if not colon or not all(end == end for end in ends):
        raise InvalidInput(
            f"the range of {key} must be two numbers separated by a colon, as in 0:100, or private; got {text!r}."
        )
    check_range(f"the range of {key}", *ends)
    return [_short(end) for end in ends]


def values_of(text: str, key: str) -> list[Named]:
    """Parse a list separated by commas: numbers if all entries are numbers, otherwise texts.

    >>> values_of("1,2", "soil"), values_of("no, 1", "bought")
    ([1, 2], ['no', '1'])
    """
    texts = [part.strip() for part in text.split(",")]
    numbers = [number_of(part) for part in texts]
    numeric = all(number == number for number in numbers)
    return list(check_values(key, [_short(number) for number in numbers] if numeric else texts))


def _short(number: float) -> float:
    return int(number) if number == int(number) and abs(number) < 2.0**53 else number


def kind_of(answer: str, key: str) -> dict[str, Any]:
    """Parse the declaration of a column, as typed by the user.

    >>> kind_of("0:100", "age"), kind_of("a,b", "town"), kind_of("hash 64", "ip"), kind_of("ignore", "id")
    ({'range': [0, 100]}, {'categories': ['a', 'b']}, {'hash': 64}, {'ignore': True})
    """
    word, _, rest = answer.strip().partition(" ")
    if word == "ignore" and not rest:
        return {"ignore": True}
    if word == "hash":
        return {"hash": integer(f"the hash of {key}", number_of(rest))}
    if ":" in answer and "," not in answer:
        return {"range": range_of(answer, key)}
    return {"categories": values_of(answer, key)}


def by_column(options: Sequence[str], names: Sequence[str], example: str) -> dict[str, str]:
    """Options of the form column=value, by column; names may contain "=", so the longest matching name counts.

    >>> by_column(["age=0:100"], ["age", "town"], "--range age=0:100")
    {'age': '0:100'}
    """
    by_name = {}
    for option in options:
        fitting = [name for name in names if option.startswith(f"{name}=")]
        if not fitting:
            raise InvalidInput(f"{option!r} names no column of {', '.join(names)}. Write it as in {example}.")
        name = max(fitting, key=len)
        by_name[name] = option[len(name) + 1 :]
    return by_name


def stated_columns(
    names: Sequence[str],
    ranges: Sequence[str],
    categories: Sequence[str],
    hashes: Sequence[str],
    ignored: Sequence[str],
) -> dict[str, dict[str, Any]]:
    """The columns that options declare, each at most once.

    >>> stated_columns(["age", "id"], ["age=0:100"], [], [], ["id"])
    {'age': {'range': [0, 100]}, 'id': {'ignore': True}}
    """
    ranged = by_column(ranges, names, "--range age=0:100")
    listed = by_column(categories, names, "--categories soil=clay,sand")
    hashed = by_column(hashes, names, "--hash ip=256")
    declared = [*ranged, *listed, *hashed, *ignored]
    for name in declared:
        if declared.count(name) > 1:
            raise InvalidInput(
                f"column {name} is declared twice. Declare it once, as a range, categories, hash or ignored."
            )
    return (
        {name: {"range": range_of(text, name)} for name, text in ranged.items()}
        | {name: {"categories": values_of(text, name)} for name, text in listed.items()}
        | {name: {"hash": integer(f"the hash of {name}", number_of(text))} for name, text in hashed.items()}
        | {name: {"ignore": True} for name in ignored}
    )


def ask(draft: Draft, question: Callable[[str], str]) -> None:
    """Ask for the blanks; an empty answer leaves one blank, and after an invalid answer the question is repeated."""
    if "epsilon" not in draft.privacy:
        _until("epsilon, the total budget", question, lambda a: draft.privacy.update(epsilon=_epsilon(a)))
    if "user" not in draft.privacy:
        about = f"column of users' ids, to protect users; empty to protect rows ({', '.join(draft.names)})"
        _until(about, question, lambda a: draft.privacy.update(user=_named(draft, a)))
    if "user" in draft.privacy and "rows_per_user" not in draft.privacy:
        about = "rows of a user that count, as in 4"
        _until(about, question, lambda a: draft.privacy.update(rows_per_user=integer("rows_per_user", number_of(a))))
    if "column" not in draft.target:
        _until(f"column to predict ({', '.join(draft.names)})", question, lambda a: _aim_at(draft, a))
    if not {"classes", "positive", "range"} & set(draft.target) and "column" in draft.target:
        about = f"{draft.target['column']}: all classes a,b,c, or a range low:high"
        _until(about, question, lambda a: draft.target.update(_aim(a)))
    for name in draft.features:
        if name not in draft.columns:
            about = f"{name}: low:high, or categories a,b,c, or hash 256, or ignore"
            _until(about, question, partial(_declare, draft, name))


def _until(about: str, question: Callable[[str], str], take: Callable[[str], None]) -> None:
    while answer := question(about).strip():
        try:
            return take(answer)
        except InvalidInput as error:
            about = f"{error} Again"


def _epsilon(answer: str) -> float:
    return positive("epsilon", number_of(answer))


def _declare(draft: Draft, name: str, answer: str) -> None:
    draft.columns[name] = kind_of(answer, name)


def _aim_at(draft: Draft, answer: str) -> None:
    draft.target["column"] = _named(draft, answer)


def _named(draft: Draft, answer: str) -> str:
    if answer not in draft.names:
        raise InvalidInput(f"{answer} is not a column.")
    return answer


def _aim(answer: str) -> dict[str, Any]:
    kind = kind_of(answer, "the target")
    if "categories" in kind and len(kind["categories"]) > 1:
        return {"classes": kind["categories"]}
    if "range" in kind:
        return kind
    raise InvalidInput("the target must have two or more classes, or a range.")
