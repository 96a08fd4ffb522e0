"""A dry run over the rows of a request: what the contract makes of them, for who sent them.

It reads the rows and the contract of a stream, and nothing else: no state, no store and no writer. So it tells nothing
about the rows of others, takes no round, and counts no user. What it counts is exact, and NOT PRIVATE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from taciturn.columns.kinds import Ignored
from taciturn.contract.contract import Contract
from taciturn.errors import InvalidInput, did_you_mean
from taciturn.readers.table_check import check_table
from taciturn.service.host import Host
from taciturn.service.messages import Check, CheckedColumn, CheckedUsers
from taciturn.service.rows import absent_columns, parsed_rows

_NAMED = 20  # undeclared names that are listed,
_LONGEST = 100  # characters of one,
_COMPARED = 256  # and columns up to which one is looked for that may have been meant


def check_rows(host: Host, media: str, body: bytes, most: int) -> Check:
    """What the contract of a stream makes of the rows of a request, of which there may be at most `most`.

    >>> import tempfile
    >>> from taciturn.contract.contract import contract_of
    >>> from taciturn.service.service import Service
    >>> from taciturn.store import Store
    >>> folder = tempfile.TemporaryDirectory()
    >>> service = Service(Store(f"{folder.name}/streams.db"))
    >>> target, columns = {"column": "bought", "positive": ["yes"]}, {"age": {"range": [0, 100]}}
    >>> contract = contract_of({"privacy": {"epsilon": 1.0}, "target": target, "columns": columns})
    >>> host = service.create("clicks", contract)
    >>> made = check_rows(host, "application/json", b'{"rows": [{"agee": 30, "bought": "yes"}, {"age": 7}]}', 1_000)
    >>> made.bad_rows, made.undeclared, made.hints
    (1, ['agee'], ['agee is not in the contract, and is not read. Did you mean age?'])
    >>> service.close()
    >>> folder.cleanup()
    """
    contract = host.contract
    if contract.bandit is not None:
        raise InvalidInput(f"{host.name} chooses actions, and takes no rows. Ask POST /v1/streams/{host.name}/rank.")
    records, parts = parsed_rows(media, body, contract, most, host.private.problem.width)
    made = check_table(contract, host.plan, parts)
    target, user, absent = contract.target.column, contract.user, absent_columns(records, contract)
    counts = {name: each.as_data() for name, each in [*made.columns.items(), (target, made.target)]}
    if user is not None:
        counts[user] = {"missing": made.without_id}
    objects = [record for record in records if isinstance(record, dict)]
    undeclared = _undeclared(objects, contract)
    return Check(
        stream=host.name,
        not_private=True,
        rows=made.rows,
        bad_rows=made.bad,
        reasons=dict(made.reasons.most_common()),
        target=target,
        user=user,
        columns={name: CheckedColumn(absent.get(name, 0), **each) for name, each in counts.items()},
        ignored=[column.name for column in contract.columns if isinstance(column, Ignored)],
        undeclared=undeclared,
        hints=_hints(undeclared, absent, len(objects)),
        labels=dict(made.labels),
        users=None if user is None else CheckedUsers(made.users, made.without_id, made.counted),
    )


def _undeclared(objects: Iterable[Mapping[str, object]], contract: Contract) -> list[str]:
    """Names in the rows that are not in the contract, as they can be printed, the most frequent first."""
    known = {contract.target.column, contract.user, *(column.name for column in contract.columns)}
    names = Counter(name for record in objects for name in record if name not in known)
    return [name[:_LONGEST].encode("utf-8", "replace").decode() for name, _ in names.most_common(_NAMED)]


def _hints(undeclared: Iterable[str], absent: Mapping[str, int], objects: int) -> list[str]:
    """What may be wrong with names."""
    near = absent if len(absent) <= _COMPARED else ()
    everywhere = [name for name in absent if absent[name] == objects]
    return [
        *(f"{name} is not in the contract, and is not read.{did_you_mean(name, near)}" for name in undeclared),
        *(f"No row has {name}, which is missing in all of them." for name in everywhere[:_NAMED]),
    ]
