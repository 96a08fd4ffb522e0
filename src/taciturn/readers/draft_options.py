"""What people state about columns in a few letters: as options of a command, or as answers to its questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from taciturn.contract.categories import Named, check_values
from taciturn.contract.columns import check_range
from taciturn.contract.values import number_of
from taciturn.errors import InvalidInput, integer, positive
from taciturn.readers.draft import Draft


def range_of(text: str, key: str) -> list[float]:
    """Two numbers about a colon.

    >>> range_of("-173:601", "VDH")
    [-173, 601]
    """
    low, colon, high = text.partition(":")
    ends = [number_of(low), number_of(high)]
    if not colon or not all(end == end for end in ends):
        raise InvalidInput(f"the range of {key} must be two numbers about a colon, as in 0:100; got {text!r}.")
    check_range(f"the range of {key}", *ends)
    return [_short(end) for end in ends]


def values_of(text: str, key: str) -> list[Named]:
    """Numbers, if all are, or texts, between commas.

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
    """What an answer declares of a column.

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
    """Options of the form column=value, by column; names may contain the sign, so the longest that fits is meant.

    >>> by_column(["age=0:100"], ["age", "town"], "--range age=0:100")
    {'age': '0:100'}
    """
    found = {}
    for option in options:
        fitting = [name for name in names if option.startswith(f"{name}=")]
        if not fitting:
            raise InvalidInput(f"{option!r} names no column of {', '.join(names)}. Say it as in {example}.")
        name = max(fitting, key=len)
        found[name] = option[len(name) + 1 :]
    return found


def stated_columns(
    names: Sequence[str],
    ranges: Sequence[str],
    categories: Sequence[str],
    hashes: Sequence[str],
    ignored: Sequence[str],
) -> dict[str, dict[str, Any]]:
    """What options declare of columns, each once.

    >>> stated_columns(["age", "id"], ["age=0:100"], [], [], ["id"])
    {'age': {'range': [0, 100]}, 'id': {'ignore': True}}
    """
    ranged = by_column(ranges, names, "--range age=0:100")
    listed = by_column(categories, names, "--categories soil=clay,sand")
    hashed = by_column(hashes, names, "--hash ip=256")
    found = [*ranged, *listed, *hashed, *ignored]
    for name in found:
        if found.count(name) > 1:
            raise InvalidInput(
                f"column {name} is declared twice. Say it once, as a range, categories, hash or ignored."
            )
    return (
        {name: {"range": range_of(text, name)} for name, text in ranged.items()}
        | {name: {"categories": values_of(text, name)} for name, text in listed.items()}
        | {name: {"hash": integer(f"the hash of {name}", number_of(text))} for name, text in hashed.items()}
        | {name: {"ignore": True} for name in ignored}
    )


def ask(draft: Draft, question: Callable[[str], str]) -> None:
    """Ask for what is open; an empty answer leaves it so, and one that cannot be is asked for again."""
    if "epsilon" not in draft.privacy:
        _until("epsilon, the total budget", question, lambda a: draft.privacy.update(epsilon=_epsilon(a)))
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
        except InvalidInput as refusal:
            about = f"{refusal} Again"


def _epsilon(answer: str) -> float:
    return positive("epsilon", number_of(answer))


def _declare(draft: Draft, name: str, answer: str) -> None:
    draft.columns[name] = kind_of(answer, name)


def _aim_at(draft: Draft, answer: str) -> None:
    if answer not in draft.names:
        raise InvalidInput(f"{answer} is no column.")
    draft.target["column"] = answer


def _aim(answer: str) -> dict[str, Any]:
    kind = kind_of(answer, "the target")
    if "categories" in kind and len(kind["categories"]) > 1:
        return {"classes": kind["categories"]}
    if "range" in kind:
        return kind
    raise InvalidInput("the target has two classes or more, or a range.")
