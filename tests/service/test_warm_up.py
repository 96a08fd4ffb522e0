"""What learns the streams of a server is compiled before their first row, and nothing of them changes by that."""

import json
import subprocess
import sys

import pytest

from served import declared, service_at
from taciturn.contract.contract import contract_of
from taciturn.service.service import Service
from taciturn.service.warm_up import learn_zeros, warm_up
from taciturn.store import Store

KINDS = {
    "two classes": {},
    "three classes": {"target": {"column": "y", "classes": ["a", "b", "c"]}},
    "hinge": {"learning": {"horizon": 1000, "loss": "hinge"}},
    "numbers": {"target": {"column": "y", "range": [0, 10]}},
    "absolute": {"target": {"column": "y", "range": [0, 10]}, "learning": {"horizon": 1000, "loss": "absolute"}},
    "giga": {"learning": {"horizon": 1000, "method": "giga", "ridge": 0.1}},
    "random features": {"learning": {"horizon": 1000, "features": 20}},
    "ranges": {"columns": {"x": {"range": "private"}}, "learning": {"horizon": 30_000}},
    "no end": {"learning": {"horizon": None}},
    "half-lives": {"learning": {"forget": 500, "horizon": None}},
    "users": {"privacy": {"epsilon": 5.0, "user": "id", "rows_per_user": 5}},
    "months of users": {"privacy": {"epsilon": 5.0, "user": "id", "rows_per_user": 5, "period": "month"}},
    "one row": {"learning": {"horizon": 1}},
    "events": {"events": {"wait": "1 minute"}},
    "decisions": {
        "target": {"column": "y", "range": [0, 1]},
        "learning": {"horizon": 1000},
        "events": {"wait": "1 minute", "missing": 0.0},
        "bandit": {"actions": ["a", "b"]},
    },
}


def contract(kind):
    return contract_of(declared(1000) | KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_zeros_can_be_learnt(kind):
    learn_zeros(contract(kind).plan(on_bad="zero"))


def test_a_warm_up_changes_nothing(tmp_path, caplog):
    service = Service(Store(tmp_path / "streams.db"))
    for number, kind in enumerate(KINDS):
        service.create(f"stream-{number}", contract(kind))
    content = (tmp_path / "streams.db").read_bytes()
    warm_up(service)
    assert (tmp_path / "streams.db").read_bytes() == content
    assert all(host.view.k == 0 for host in service.open_hosts())
    service.close()
    assert [record.getMessage() for record in caplog.records] == []


def test_a_store_without_streams_is_warmed_up_for_the_usual_one(tmp_path, monkeypatch):
    learnt = []
    monkeypatch.setattr("taciturn.service.warm_up.learn_zeros", learnt.append)
    service = Service(Store(tmp_path / "streams.db"))
    warm_up(service)
    service.close()
    assert [plan.method for plan in learnt] == [contract("two classes").plan(on_bad="zero").method]
    service = Service(Store(tmp_path / "streams.db"), read_only=True)
    warm_up(service)
    service.close()
    assert len(learnt) == 1, "what only shows learns nothing"


FIRST_ROWS = """
import asyncio, json, sys
import numba.core.dispatcher
from taciturn.service.rows import JSON
from taciturn.service.service import Service
from taciturn.service.warm_up import warm_up
from taciturn.store import Store

compiled = []
compile = numba.core.dispatcher.Dispatcher.compile

def noted(self, signature):
    compiled.append(self.py_func.__name__)
    return compile(self, signature)

numba.core.dispatcher.Dispatcher.compile = noted

async def learn(service):
    await service.start()
    for number, rows in enumerate((1, 1, 40)):
        body = json.dumps({"rows": [{"age": 3, "income": 5, "town": "Rome", "y": "yes"}] * rows}).encode()
        await service.learn("clicks", str(number), JSON, body)
    await service.stop()

service = Service(Store(sys.argv[1]), tick=0.05)
if sys.argv[2] == "warm":
    warm_up(service)
before = len(compiled)
asyncio.run(learn(service))
print(json.dumps([compiled[:before], compiled[before:]]))
"""


def test_the_first_row_waits_for_no_compiler(tmp_path):
    """A planted fault shows that it would be seen: without a warm-up, rows do."""
    service_at(tmp_path / "streams.db")[0].close()

    def compiled(how):
        command = [sys.executable, "-c", FIRST_ROWS, str(tmp_path / "streams.db"), how]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    before, later = compiled("warm")
    assert before
    assert later == []
    assert compiled("cold")[1]
