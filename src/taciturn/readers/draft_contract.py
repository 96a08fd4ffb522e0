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
from typing import IO, Any

from taciturn.columns.declaration import column_of
from taciturn.columns.kinds import Named, check_range, check_values
from taciturn.columns.values import number_of
from taciturn.contract.toml import BLANK
from taciturn.errors import InvalidInput, did_you_mean, integer, positive
from taciturn.readers.csv import header_ends, header_of
from taciturn.readers.lines import LONGEST
from taciturn.readers.parquet import open_parquet
from taciturn.readers.source import Source, format_of, opened

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})*,0\d{2}(,\d{3})*")
"""A number with separators of thousands: no list has an entry such as 000 or 050."""
_DAYS = re.compile(r"\d{4}-\d{2}-\d{2}:\d{4}-\d{2}-\d{2}")


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
        for name in named:
            if name in self.columns:
                raise InvalidInput(_declared_elsewhere(name, name == self.target.get("column")))
        if "column" in self.target and self.target["column"] == self.privacy.get("user"):
            raise InvalidInput(_ids_are_no_target(self.target["column"]))

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
    "scale": "the scale of the range: errors count by their ratio",
    "threshold": "up to here the scale is about linear",
    "range": "numbers; values outside the range are clipped; private, if it is to be found in the first rows",
}
_SETTINGS = (
    '# loss = "logistic"  # or hinge; for numbers squared, absolute, huber, quantile',
    "# horizon = 100000   # number of rows; without it the noise is larger, and many streams end at 2^23",
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
    if _THOUSANDS.fullmatch(text.strip()):
        raise InvalidInput(
            f"{text.strip()} for {key} could be one number or several. Write one as {text.strip().replace(',', '')}, "
            f"and several with blanks, as {text.strip().replace(',', ', ')}."
        )
    texts = [part.strip() for part in text.split(",")]
    numbers = [number_of(part) for part in texts]
    numeric = all(number == number for number in numbers)
    return list(check_values(key, [_short(number) for number in numbers] if numeric else texts))


def _short(number: float) -> float:
    return int(number) if number == int(number) and abs(number) < 2.0**53 else number


FORMS = (
    "0:100 (a number in a range), 1:1e6 log or 0:1e6 symlog threshold=1000 (on a logarithmic scale), private (a number "
    "whose range is found with noise), bins 0,10,100, date 2015-01-01:2030-01-01 month, no,yes (categories), hash 256, "
    "text 1024, or ignore"
)
"""The answers that declare a column, with examples."""

_KINDS = ("range", "bins", "date", "categories", "hash", "text", "ignore", "private")

TARGETS = "all classes, as in no,yes; one class against all others, as in yes; or a range, as in 0:100, for numbers"
"""The answers that declare the target, with examples."""


def kind_of(answer: str, key: str) -> dict[str, Any]:
    """Parse the declaration of a column, as typed by the user.

    After it, `threshold=10`, `missing=zero` and `indicator` may follow.

    >>> kind_of("0:100", "age"), kind_of("a,b", "town"), kind_of("hash 64", "ip"), kind_of("ignore", "id")
    ({'range': [0, 100]}, {'categories': ['a', 'b']}, {'hash': 64}, {'ignore': True})
    >>> kind_of("1:1e6 log missing=1000 indicator", "income")
    {'range': [1, 1000000], 'scale': 'log', 'missing': 1000, 'indicator': True}
    >>> kind_of("0:1e6 symlog threshold=1000", "income")
    {'range': [0, 1000000], 'scale': 'symlog', 'threshold': 1000}
    >>> kind_of("date 2015-01-01:2030-01-01 weekday month", "since")
    {'date': ['2015-01-01', '2030-01-01'], 'cycle': ['weekday', 'month']}
    """
    words = answer.split()
    options: dict[str, Any] = {}
    while len(words) > 1 and (words[-1] == "indicator" or words[-1].startswith(("missing=", "threshold="))):
        name, _, text = words.pop().partition("=")
        number = number_of(text)
        value = True if name == "indicator" else text if number != number else _short(number)
        options = {name: value, **options}
    first, rest = (words[0].rstrip(":"), words[1:]) if words else ("", [])
    declared = _declared_kind(" ".join(words), first, rest, key) | options
    column_of(key, declared)  # rejects what does not fit together
    return declared


def _declared_kind(answer: str, first: str, rest: list[str], key: str) -> dict[str, Any]:
    if first == "ignore" and not rest:
        return {"ignore": True}
    if first in ("hash", "text") and rest:
        count = integer(f"the hash of {key}", number_of(" ".join(rest)))
        return {"hash": count} if first == "hash" else {"text": {"hash": count}}
    if first == "bins" and rest:
        return {"bins": values_of(" ".join(rest), key)}
    if first == "date" and rest:
        low, _, high = rest[0].partition(":")
        return {"date": [low, high], **({"cycle": rest[1:]} if len(rest) > 1 else {})}
    if _DAYS.fullmatch(first):
        return _declared_kind(f"date {answer}", "date", [first, *rest], key)
    if answer in ("private", "range private"):
        return {"range": "private"}
    if first in ("range", "categories") and rest:
        return _declared_kind(" ".join(rest), rest[0], rest[1:], key)
    if first in _KINDS and not rest:  # a word of the prompt, and no category
        raise InvalidInput(f"{first} needs more, as in one of these: {FORMS}.")
    if ":" in answer and "," not in answer:
        if len(rest) > 1:
            raise InvalidInput(
                f"after the range of {key} comes its scale, log or symlog, then threshold=1000, missing=0 or "
                f"indicator, as in 0:1e6 symlog threshold=1000; got {answer!r}."
            )
        return {"range": range_of(answer.split(maxsplit=1)[0], key), **({"scale": rest[0]} if rest else {})}
    values = values_of(answer, key)
    if len(values) < 2:
        raise InvalidInput(f"{key} cannot have a single category. Answer as in one of these: {FORMS}.")
    return {"categories": values}


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
    declared: Sequence[str] = (),
) -> dict[str, dict[str, Any]]:
    """The columns that options declare, each at most once; `declared` are answers to the questions of `ask`.

    >>> stated_columns(["age", "id"], ["age=0:100"], [], [], ["id"])
    {'age': {'range': [0, 100]}, 'id': {'ignore': True}}
    >>> stated_columns(["income"], [], [], [], [], ["income=1:1e6 log"])
    {'income': {'range': [1, 1000000], 'scale': 'log'}}
    """
    ranged = by_column(ranges, names, "--range age=0:100")
    listed = by_column(categories, names, "--categories soil=clay,sand")
    hashed = by_column(hashes, names, "--hash ip=256")
    answered = by_column(declared, names, "--column 'income=1:1e6 log'")
    stated = [*ranged, *listed, *hashed, *ignored, *answered]
    for name in stated:
        if stated.count(name) > 1:
            raise InvalidInput(
                f"column {name} is declared twice. Declare it once, as a range, categories, hash or ignored."
            )
    return (
        {name: {"range": range_of(text, name)} for name, text in ranged.items()}
        | {name: {"categories": values_of(text, name)} for name, text in listed.items()}
        | {name: {"hash": integer(f"the hash of {name}", number_of(text))} for name, text in hashed.items()}
        | {name: {"ignore": True} for name in ignored}
        | {name: kind_of(text, name) for name, text in answered.items()}
    )


INTRODUCTION = (
    "No row is read: every answer is public, and must come from public knowledge, not from the data. An empty answer "
    "leaves a blank to fill in later; back returns to the question before."
)


def ask(draft: Draft, question: Callable[[str], str], say: Callable[[str], None] = lambda text: None) -> None:
    """Ask for the blanks; an empty answer leaves one blank, and after an invalid answer the question is repeated.

    `say` is called with what was understood. The answer `back` takes the answer before back, and asks for it again.
    """
    say(INTRODUCTION)
    asked: list[str] = []
    shown = False
    while (key := next((key for key in _questions(draft) if key not in asked), None)) is not None:
        about = _about(draft, key)
        if key.startswith("columns.") and not shown:
            say(f"What each column is, public and not from the data: {FORMS}.")
            shown = True
        while answer := question(about).strip():
            if answer == "back":
                if asked:
                    _forget(draft, asked.pop())
                break
            try:
                understood = _take(draft, key, answer)
            except InvalidInput as error:
                about = f"{error} Again"
                continue
            say(f"  understood: {understood}")
            asked.append(key)
            break
        else:
            asked.append(key)


def _questions(draft: Draft) -> list[str]:
    """The keys that are asked for, in order: those that nothing was stated for, or that were asked already."""
    users = ["privacy.rows_per_user"] if "user" in draft.privacy else []
    kind = ["target.kind"] if "column" in draft.target else []
    keys = ["privacy.epsilon", "privacy.user", *users, "target.column", *kind]
    return [
        *(key for key in keys if not _stated(draft, key)),
        *(f"columns.{n}" for n in draft.features if n not in draft.columns),
        *([] if _stated(draft, "learning.horizon") else ["learning.horizon"]),
    ]


def _stated(draft: Draft, key: str) -> bool:
    table, _, name = key.partition(".")
    if key == "target.kind":
        return bool({"classes", "positive", "range"} & set(draft.target))
    return name in _section(draft, table)


def _section(draft: Draft, table: str) -> dict[str, Any]:
    return {"privacy": draft.privacy, "target": draft.target, "learning": draft.learning}[table]


def _forget(draft: Draft, key: str) -> None:
    table, _, name = key.partition(".")
    if table == "columns":
        draft.columns.pop(name, None)
    elif key == "target.kind":
        for each in ("classes", "positive", "range", "scale", "threshold"):
            draft.target.pop(each, None)
    else:
        _section(draft, table).pop(name, None)


def _about(draft: Draft, key: str) -> str:
    """The question for a key: what it means, and how to answer."""
    names = ", ".join(draft.names)
    if key.startswith("columns."):
        return f"{key.removeprefix('columns.')}: what is it?"
    return {
        "privacy.epsilon": "epsilon, the total budget of all that is published: smaller is more private, as in 1",
        "privacy.user": f"column of users' ids, to protect users with all their rows; empty to protect rows ({names})",
        "privacy.rows_per_user": "rows of a user that count, the others have no influence, as in 4",
        "target.column": f"column to predict ({names})",
        "target.kind": f"{draft.target.get('column')}: {TARGETS}",
        "learning.horizon": "number of rows, as in 100000; empty if it is not known, which needs more noise",
    }[key]


def _take(draft: Draft, key: str, answer: str) -> str:
    """Take the answer for a key, and return what was understood, as in the contract file."""
    table, _, name = key.partition(".")
    if table == "columns":
        draft.columns[name] = kind_of(answer, name)
        return f"{toml_key(name)} = {toml(draft.columns[name])}"
    if key == "target.kind":
        kind = _aim(answer)
        draft.target.update(kind)
        return ", ".join(f"{each} = {toml(value)}" for each, value in kind.items())
    value: Any
    if name == "epsilon":
        value = _epsilon(answer)
    else:
        value = _integer(name, answer) if name in ("rows_per_user", "horizon") else _named(draft, answer)
    other = {"column": draft.privacy.get("user"), "user": draft.target.get("column")}
    if other.get(name, ...) == value:
        raise InvalidInput(_ids_are_no_target(value))
    if name in ("column", "user") and value in draft.columns:
        raise InvalidInput(_declared_elsewhere(value, name == "column"))
    _section(draft, table)[name] = value
    return f"{name} = {toml(value)}"


def _ids_are_no_target(name: str) -> str:
    return f"{name} cannot be both the column of ids and the target. Name another column for one of them."


def _declared_elsewhere(name: str, target: bool) -> str:
    if target:
        return f"{name} is the target, and no feature. State what it is by --target-range, --classes or --positive."
    return f"{name} is the column of ids, and no feature. Leave out what declares it as one."


def _epsilon(answer: str) -> float:
    number = number_of(answer)
    if number != number:
        raise InvalidInput(f"epsilon must be a number, as in 1; got {answer!r}.")
    return positive("epsilon", _short(number))


def _integer(name: str, answer: str) -> int:
    number = number_of(answer)
    return integer(name, _short(number) if number == number and abs(number) < math.inf else answer)


def _named(draft: Draft, answer: str) -> str:
    if answer not in draft.names:
        raise InvalidInput(f"{answer} is not a column.{did_you_mean(answer, draft.names)}")
    return answer


def _aim(answer: str) -> dict[str, Any]:
    first, *rest = answer.split()
    if first not in _KINDS and not rest and not set(answer) & set(",:"):
        return {"positive": values_of(answer, "the target")}
    if first == "private" or first not in _KINDS or (first in ("range", "categories") and rest):
        kind = kind_of(answer, "the target")
        if "categories" in kind:
            return {"classes": kind["categories"]}
        if set(kind) <= {"range", "scale", "threshold"}:
            return kind
    raise InvalidInput(f"the target must be one of these: {TARGETS}.")
