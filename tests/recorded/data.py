"""Rows that recorded streams learn: small numbers that floats hold exactly, so that no machine makes others."""

import json

import numpy as np

ROWS, FEATURES = 600, 3
EPSILON = 4.0


def table(rows: int = ROWS, features: int = FEATURES, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Features, multiples of 1/128 between -1/2 and 1/2, and a number in [-1, 1] that depends on them."""
    draw = np.random.default_rng(seed)
    X = draw.integers(-64, 65, (rows, features)) / 128.0
    y = X @ (np.array([8, -5, 3, 7, -2, 4, -6, 1])[np.arange(features) % 8] / 8.0)
    return X, np.clip(y + draw.integers(-16, 17, rows) / 128.0, -1.0, 1.0)


def signs(rows: int = ROWS, features: int = FEATURES, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The same features, and a class, -1 or 1."""
    X, y = table(rows, features, seed)
    return X, np.where(y > 0.0, 1.0, -1.0)


def several(rows: int = ROWS, features: int = FEATURES, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The same features, and one of three classes, 0, 1 or 2."""
    X, y = table(rows, features, seed)
    return X, np.digitize(y, [-0.25, 0.25]).astype(np.float64)


def people(rows: int = ROWS, seed: int = 2) -> np.ndarray:
    """The user of each row: some with one row, some with a dozen."""
    return np.random.default_rng(seed).integers(0, rows // 4, rows) ** 2 // (rows // 8)


TOWNS, PLANS = ("Oslo", "Rome", "Bonn", "Lima"), ("free", "basic", "plus")
WORDS = ("refund", "late", "great", "again", "never", "parcel")


def records(rows: int = ROWS, seed: int = 3) -> list[dict[str, object]]:
    """Rows of a messy table: numbers, categories, dates, texts, gaps, bad numbers, users, and three targets."""
    draw = np.random.default_rng(seed)
    made = []
    for i in range(rows):
        age, income, visits = (int(each) for each in draw.integers((18, 0, 0), (95, 2000, 60)))
        town, plan = TOWNS[draw.integers(4)], PLANS[draw.integers(3)]
        note = " ".join(WORDS[k] for k in draw.integers(0, 6, draw.integers(0, 4)))
        signal = (age - 56) / 64 + (plan == "plus") / 2 - (town == "Rome") / 4 + int(draw.integers(-8, 9)) / 16
        made.append(
            {
                "who": f"user {int(draw.integers(0, rows // 3))}",
                "age": None if draw.integers(16) == 0 else age,
                "income": income * income,
                "visits": "many" if draw.integers(40) == 0 else visits,
                "town": None if draw.integers(16) == 0 else town,
                "plan": plan,
                "since": f"20{15 + i % 10}-{1 + i % 12:02d}-{1 + i % 28:02d}",
                "agent": f"browser {int(draw.integers(9))}",
                "note": note,
                "bought": "yes" if signal > 0 else "no",
                "kind": ("gone", "stays", "grows")[int(np.digitize(signal, [-0.25, 0.25]))],
                "spent": round(1000.0 * abs(signal), 2) + 1.0,
            }
        )
    return made


COLUMNS: dict[str, dict[str, object]] = {
    "age": {"range": [18, 100], "indicator": True},
    "income": {"range": [0, 4e6], "scale": "symlog", "threshold": 1000},
    "visits": {"bins": [0, 5, 20, 60]},
    "town": {"categories": ["Oslo", "Rome", "Bonn"], "missing": "category"},
    "plan": {"categories": ["free", "basic", "plus"]},
    "since": {"date": ["2015-01-01", "2025-01-01"], "cycle": ["month", "weekday"]},
    "agent": {"hash": 4},
    "note": {"text": {"hash": 8}},
}
"""Every kind of column but ranges that are found privately."""

FEW = {name: COLUMNS[name] for name in ("age", "town", "plan")}
SPENT: dict[str, object] = {"column": "spent", "range": [0, 2000]}
BOUGHT: dict[str, object] = {"column": "bought", "positive": ["yes"]}


def contract(
    target: dict[str, object],
    columns: dict[str, dict[str, object]] = FEW,
    *,
    privacy: dict[str, object] | None = None,
    learning: dict[str, object] | None = None,
    **more: dict[str, object],
) -> dict[str, dict[str, object]]:
    """A contract about the rows of `records`, as plain data: columns that are not declared are not read."""
    made = {"privacy": {"epsilon": EPSILON} | (privacy or {}), "target": target, "learning": learning or {}}
    known = {*columns, target["column"], made["privacy"].get("user")}
    ignored = {name: {"ignore": True} for name in (*COLUMNS, "who", "bought", "kind", "spent") if name not in known}
    return made | {"columns": columns | ignored} | more


def toml(data: dict[str, dict[str, object]]) -> str:
    """A contract as the text of its file."""
    return "".join(
        f"[{name}]\n" + "".join(f"{key} = {_inline(value)}\n" for key, value in section.items())
        for name, section in data.items()
    )


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_inline(each)}" for name, each in value.items()) + " }"
    return json.dumps(value)
