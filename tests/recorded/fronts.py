"""The fronts of the package as recorded streams reach them: the one file to edit where a name or a format moves.

Streams use what is named here, the names of `taciturn` itself, and nothing else of the package. How a state is written
is known to `state_of` alone; all else are calls and attributes that users have.
"""

import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from recorded.values import numbers_in
from taciturn import bandits
from taciturn.averages import late_average
from taciturn.bandits.off_policy import LoggedDecisions, private_ips
from taciturn.cli.app import app
from taciturn.client import Client
from taciturn.contract.contract import contract_of, read_contract
from taciturn.drift import drift
from taciturn.engines.files import FileStream
from taciturn.estimators import river as for_river
from taciturn.estimators import sklearn as for_sklearn
from taciturn.estimators.search import PrivateSearchCV
from taciturn.memories import decayed_sums
from taciturn.plan import recommend
from taciturn.service.server import running
from taciturn.service.service import Service
from taciturn.store import Store

__all__ = [
    "Client",
    "FileStream",
    "LoggedDecisions",
    "PrivateSearchCV",
    "Service",
    "Store",
    "bandits",
    "columns_of",
    "command",
    "contract_of",
    "cost_of",
    "decayed_sums",
    "drift",
    "for_river",
    "for_sklearn",
    "guarantee_of",
    "in_ledger",
    "late_average",
    "private_ips",
    "read_contract",
    "recommend",
    "released",
    "run_in",
    "running",
    "state_in",
    "state_of",
    "stored",
    "token_of",
]

COST = ("mu_squared", "rho", "extra_epsilon", "extra_delta", "plain_epsilon", "plain_delta")
UNIT = ("rows", "per_release", "apart", "period", "without_id")


def command(*arguments: object) -> str:
    """What `taciturn` prints, called in this process; it must succeed."""
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    if done.exit_code != 0:
        raise RuntimeError(f"taciturn {arguments[0]} ended with status {done.exit_code}: {done.output}") from (
            done.exception
        )
    return done.stdout


# What is read of the exact state, of whatever front.


def state_of(content: bytes, layers: Mapping[str, bytes] | None = None) -> dict[str, object]:
    """The arrays of a state, decrypted, and the rounds and the cost in it.

    Names of streams, tokens, hashes of settings and numbers of generations are left out: they are random, are to
    change, or count commits, which a front may cut as it likes; and so is the size of `models.jsonl` that runs stored
    before exporters knew it from the store. Records of users are those of all layers, the newest
    of each user, in the order of their hashes, wherever a front stores them.

    A state is a file of arrays as `numpy.savez` writes it, with a header in JSON.
    """
    with np.load(io.BytesIO(content)) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(str(arrays.pop("header")))
    arrays.pop("extra/written", None)
    if (released := header.get("released")) is not None:  # stored beside the state, as it changes at a release only
        with np.load(io.BytesIO((layers or {})[released])) as file:
            arrays |= {name: file[name] for name in file.files}
    if "users/layers" in arrays:
        names = [str(name) for name in arrays.pop("users/layers")]
        arrays |= _merged([(layers or {})[name] for name in names])
    numbers = {name: array for name, array in arrays.items() if array.dtype.kind in "biuf"}
    return {"t": header["t"], "k": header["k"], "spent": header["spent"], **numbers}


def _merged(layers: Iterable[bytes]) -> dict[str, np.ndarray]:
    """Layers of users' records as one: for each user a hash of two numbers, and a record of four."""
    users: dict[tuple[int, int], list[int]] = {}
    for content in layers:
        count = len(content) // 48
        hashes = np.frombuffer(content, "<u8", 2 * count).reshape(-1, 2)
        records = np.frombuffer(content, "<i8", offset=16 * count).reshape(-1, 4)
        users |= {tuple(name): record for name, record in zip(hashes.tolist(), records.tolist(), strict=True)}
    order = sorted(users)
    return {
        "users/hashes": np.array(order, dtype=np.uint64).reshape(-1, 2),
        "users/records": np.array([users[name] for name in order], dtype=np.int64).reshape(-1, 4),
    }


def state_in(path: Path) -> dict[str, object]:
    """The state in a file that a model has dumped."""
    return state_of(path.read_bytes())


# What is read of streams, by front.


def cost_of(cost: object) -> list[float]:
    """The parts of a cost, in the order of `COST`."""
    return [getattr(cost, name) for name in COST]


def guarantee_of(private: object) -> dict[str, object]:
    """The guarantee of a private learner: what is claimed and delivered, the relation and the unit."""
    made = private.guarantee
    return {
        "epsilon": made.claimed.epsilon,
        "delta": made.claimed.delta,
        "mu": made.delivered.mu,
        "delivered": cost_of(made.delivered),
        "epsilons": made.as_data(),
        "neighbours": made.neighbours,
        "calibration": made.calibration,
        "proven": made.proven,
        "simulated": made.simulated,
        "unit": {"name": made.unit.name}
        | {name: getattr(made.unit, name) for name in UNIT if hasattr(made.unit, name)},
        "last round": private.last_round if hasattr(private, "last_round") else private.horizon,
    }


def released(releases: Iterable) -> dict[str, object]:
    """Releases of one stream, in their order, as arrays, and the numbers of the first and the last."""
    made = list(releases)
    return {
        "t": np.array([each.t for each in made], dtype=np.int64),
        "k": [each.k for each in made[:1] + made[-1:]],
        "noisy": np.array([each.noisy for each in made]),
        "points": np.array([each.point for each in made]),
        "noise_sd": np.array([each.noise_sd for each in made]),
    }


def columns_of(lines: list[dict]) -> dict[str, np.ndarray]:
    """Releases that were read, as arrays, by the names of their numbers."""
    if not lines:
        return {}
    names = [name for name, value in lines[0].items() if isinstance(value, int | float | list)]
    return {name: np.array([line[name] for line in lines]) for name in names}


def stored(store: Store, name: str) -> dict[str, object]:
    """A stream in a store: its state, its costs, its relation and its unit, and its releases as the store has them."""
    saved = store.load(name)
    lines = [json.loads(line) for chunk in store.releases(name) for line in chunk.content.splitlines()]
    _, t, k, _ = saved.position
    return {
        "t": t,
        "k": k,
        "state": state_of(saved.state, store.layers(saved)),
        "cost": {"spent": cost_of(saved.spent), "reserved": cost_of(saved.reserved)},
        "neighbours": saved.neighbours,
        "unit": saved.about.get("unit"),
        "closed": saved.closed,
        "outbox": columns_of(lines),
    }


def in_ledger(ledger: object) -> dict[str, object]:
    """What a ledger has reserved and spent for each stream, by size, as their names are random; and the sums."""
    lines = sorted([*cost_of(each.reserved), *cost_of(each.spent)] for each in ledger.lines.values())
    return {
        "reserved and spent": lines,
        "reserved": cost_of(ledger.reserved),
        "spent": cost_of(ledger.spent),
        "left": ledger.left,
        "unit": ledger.unit,
        "neighbours": ledger.neighbours,
    }


def run_in(folder: Path, contract: Path, *, seed: int | None = None, key: Path | None = None) -> dict[str, object]:
    """A folder that `taciturn learn` has written: its files, its store, and the guarantee of its contract."""
    store = Store(folder / "stream.db", key=key)
    (name,) = store.names()
    private = read_contract(contract).plan(on_bad="zero", seed=seed).private
    model = numbers_in(json.loads((folder / "model.json").read_text()))
    model.pop("contract", None)
    outbox = b"".join(chunk.content for chunk in store.releases(name))
    return {
        "model.json": model,
        "models.jsonl is the outbox": (folder / "models.jsonl").read_bytes() == outbox,
        "store": stored(store, name),
        "guarantee": guarantee_of(private),
    }


def token_of(service: Service) -> str:
    """The secret of a token for everything."""
    return service.tokens.create(["admin"])[1]
