"""`taciturn.client`: rows are learnt once, whatever fails on the way."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from taciturn.client import Client, Learnt, Released, ServiceError
from taciturn.errors import InvalidInput
from taciturn.service.server import running
from taciturn.service.service import Service
from taciturn.store import Store

CONTRACT = {
    "privacy": {"epsilon": 1.0},
    "target": {"column": "clicked", "positive": ["yes"]},
    "learning": {"horizon": 2000, "release": 50},
    "columns": {
        "age": {"range": [0, 100]},
        "device": {"categories": ["phone", "tablet"]},
        "day": {"date": ["2024-01-01", "2025-01-01"]},
    },
}


def rows(count: int) -> list[dict[str, Any]]:
    return [{"age": i % 100, "device": "phone", "day": "2024-05-31", "clicked": "yes"} for i in range(count)]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[str, str]]:
    made = Service(Store(tmp_path / "taciturn.db"), tick=0.05)
    _, secret = made.tokens.create(["admin"])
    with running(made) as url:
        yield url, secret


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the client would have slept."""
    slept: list[float] = []
    monkeypatch.setattr("taciturn.client.time.sleep", slept.append)
    return slept


def scripted(
    *answers: Callable[[httpx.Request], httpx.Response], **settings: Any
) -> tuple[Client, list[httpx.Request]]:
    """A client whose requests are answered by these functions, one after the other."""
    seen: list[httpx.Request] = []
    left = iter(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path in ("/v1/streams/clicks", "/v1/streams/clicks/check"):  # the names of its contract
            return httpx.Response(403, json={"error": "another scope."})
        seen.append(request)
        return next(left)(request)

    return Client("http://service", "secret", transport=httpx.MockTransport(answer), **settings), seen


def lost(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadError("gone", request=request)


def unreachable(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused", request=request)


def answered(status: int, content: Any = None, **headers: str) -> Callable[[httpx.Request], httpx.Response]:
    return lambda request: httpx.Response(status, json=content, headers=headers)


LEARNT = answered(200, {"stream": "clicks", "first": 1, "last": 2})


def test_a_stream_from_its_beginning_to_its_end(service: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "contract.toml"
    file.write_text(
        '[privacy]\nepsilon = 1.0\n[target]\ncolumn = "clicked"\npositive = ["yes"]\n[learning]\nhorizon = 2000\n'
        "release = 50\n[columns]\nage = { range = [0, 100] }\n"
    )
    with Client(*service) as client:
        assert client.create("clicks", file)["stream"]["name"] == "clicks"
        assert [one["name"] for one in client.streams()] == ["clicks"]
        assert client.learn("clicks", rows(250), batch=100) == Learnt(1, 250)
        watched = client.live("clicks", after=0)
        seen = [next(watched) for _ in range(5)]
        assert [one.k for one in seen] == [1, 2, 3, 4, 5]
        assert all(one.model is not None for one in seen)
        assert [one[:3] for one in client.releases("clicks", after=2)] == [one[:3] for one in seen[2:]]
        model = client.model("clicks")
        assert client.model("clicks") is model  # not sent again
        assert (model.releases, client.model("clicks", 3).releases) == (5, 3)
        made = client.predict("clicks", [{"age": 40}, {"age": "old"}], probabilities=True)
        assert made.release == 5
        assert made.predictions[1] is None
        assert client.predict("clicks", []) == (made.release, [], None, None)
        assert made.release > 0
        assert made.probabilities is not None
        assert sum(made.probabilities[0] or []) == pytest.approx(1.0)
        X, _ = model.contract.encoder.encode({"age": _plain([40])}, 1)
        assert made.predictions[0] == model.contract.decode_predictions(model.scores(X)).tolist()[0]
        assert client.ledgers() == []
        client.close("clicks")
        assert list(watched) == []
        with pytest.raises(ServiceError) as error:
            client.learn("clicks", rows(1))
        assert error.value.status == 409


def _plain(values: list[Any]) -> Any:
    from taciturn.columns.values import PlainValues

    return PlainValues(values)


def test_tables_are_learnt_like_rows(service: tuple[str, str]) -> None:
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pd.DataFrame(rows(60))
    with Client(*service) as client:
        client.create("clicks", CONTRACT)
        assert client.learn("clicks", frame, batch=40) == Learnt(1, 60)
        table = pa.Table.from_pandas(frame, preserve_index=False)
        assert client.learn("clicks", table) == Learnt(61, 120)
        assert client.learn("clicks", table.to_batches()[0]) == Learnt(121, 180)
        mixed = [{"age": np.float64(3.0), "day": date(2024, 5, 31), "device": None, "clicked": "no"}]
        assert client.learn("clicks", mixed) == Learnt(181, 181)
        by_rows = client.predict("clicks", rows(3)).predictions
        assert client.predict("clicks", frame.head(3)).predictions == by_rows


def test_missing_values_of_pandas_are_null() -> None:
    """As text, NaT would be a date that cannot be read: a bad row, where a missing value is meant."""
    pd = pytest.importorskip("pandas")
    client, seen = scripted(answered(200, {"first": 1, "last": 1}))
    client.learn("clicks", [{"day": pd.NaT, "age": pd.NA, "device": pd.Timestamp("2024-05-31")}])
    assert json.loads(seen[0].content)["rows"] == [{"day": None, "age": None, "device": "2024-05-31T00:00:00"}]


def test_tables_that_cannot_be_sent_are_told_in_a_sentence(service: tuple[str, str]) -> None:
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pd.DataFrame(rows(3))
    with Client(*service) as client:
        client.create("clicks", CONTRACT)
        for wrong, says in (
            (frame["age"], "a DataFrame or an Arrow table, got Series"),
            (pd.concat([frame, frame[["age"]]], axis=1), "two columns of the table have the same name"),
            (frame.assign(device=[1, "a secret", None]), "column device has values of several kinds"),
        ):
            with pytest.raises(InvalidInput, match=says) as error:
                client.learn("clicks", wrong)
            assert "secret" not in str(error.value)
        # A service that does not know a type reads the numbers that it is stored in: months since 1970, not seconds.
        months = pa.field("day", pa.int64(), metadata={"ARROW:extension:name": "a.month"})
        table = pa.Table.from_pandas(frame, preserve_index=False).set_column(2, months, pa.array([652] * 3))
        with pytest.raises(ServiceError, match=r"column day holds a\.month, which is not read"):
            client.learn("clicks", table)
        with pytest.raises(ServiceError, match=r"column day holds .*pandas\.period"):
            client.learn("clicks", frame.assign(day=pd.PeriodIndex(["2024-05"] * 3, freq="M")))
        assert client.stream("clicks")["stream"]["round"] == 0
        assert client.learn("clicks", frame) == Learnt(1, 3)


def test_a_key_that_is_repeated_is_learnt_once(service: tuple[str, str]) -> None:
    with Client(*service) as client:
        client.create("clicks", CONTRACT)
        first = client.learn("clicks", rows(30), key="a day's rows", batch=20)
        assert client.learn("clicks", rows(30), key="a day's rows", batch=20) == first == Learnt(1, 30)
        with pytest.raises(ServiceError, match="Idempotency-Key"):
            client.learn("clicks", rows(29), key="a day's rows", batch=29)


MISSPELT = "column Age is not in the contract of clicks, and no row has its column age. .* Did you mean age?"


@pytest.mark.parametrize("scopes", [["admin"], ["learn", "predict"], ["read", "learn", "predict"]])
def test_misspelt_names_are_rejected_before_they_are_sent(tmp_path: Path, scopes: list[str]) -> None:
    """Of lists and of tables, by tokens that may read the contract or learn; one that may only predict cannot."""
    made = Service(Store(tmp_path / "taciturn.db"), tick=0.05)
    _, secret = made.tokens.create(["admin"])
    with running(made) as url, Client(url, secret) as owner, Client(url, made.tokens.create(scopes)[1]) as client:
        owner.create("clicks", CONTRACT)
        wrong = [{("Age" if name == "age" else name): value for name, value in row.items()} for row in rows(3)]
        no_label = [{name: value for name, value in row.items() if name != "clicked"} for row in rows(3)]
        for sent in (wrong, iter(wrong), pd.DataFrame(wrong), pa.Table.from_pylist(wrong)):
            with pytest.raises(InvalidInput, match=MISSPELT):
                client.learn("clicks", sent)
        with pytest.raises(InvalidInput, match="no row has clicked, the target of clicks"):
            client.learn("clicks", no_label)
        with pytest.raises(InvalidInput, match=MISSPELT):
            client.predict("clicks", wrong)
        assert client.predict("clicks", [*no_label, {}]).predictions
        assert made.metrics.counted("clicks").rows == 0
        others = [{**row, "note": "of another program"} for row in rows(2)]
        assert client.learn("clicks", [{"clicked": "yes"}, *others]) == Learnt(1, 3)
        assert client.learn("clicks", [{"clicked": "yes"}]) == Learnt(4, 4)
        with Client(url, made.tokens.create(["predict"])[1]) as without:
            assert without.predict("clicks", wrong).predictions


def test_names_of_events_and_ids_are_compared_too(service: tuple[str, str]) -> None:
    ids = {"user": "who", "rows_per_user": 2}
    with Client(*service) as client:
        client.create("returns", CONTRACT | {"events": {"wait": "10 minutes"}})
        with pytest.raises(InvalidInput, match=r"column day_ is not in .* Did you mean day\?"):
            client.open("returns", {"age": 1, "device": "phone", "day_": None})
        assert client.open("returns", {"age": 1}).round == 1
        client.create("clicks", CONTRACT | {"privacy": CONTRACT["privacy"] | ids})
        with pytest.raises(InvalidInput, match=r"column Who is not in .* no row has its column who"):
            client.learn("clicks", [{**row, "Who": "anna"} for row in rows(2)])


def test_a_dry_run_tells_what_the_contract_makes_of_rows(service: tuple[str, str]) -> None:
    with Client(*service) as client:
        client.create("clicks", CONTRACT)
        made = client.check("clicks", [*rows(1_500), {"age": "old"}])
        assert (made["rows"], made["bad_rows"]) == (1_000, 0)
        made = client.check("clicks", pd.DataFrame(rows(3)).assign(age="old"))
        assert made["reasons"] == {"age is not a number": 3}
        with pytest.raises(InvalidInput, match="no row to check"):
            client.check("clicks", [])
        assert client.learn("clicks", rows(1)) == Learnt(1, 1)


def test_an_error_says_which_rows_are_learnt(service: tuple[str, str]) -> None:
    """Past the end of the stream, and where a later row cannot be sent; no row is lost or learnt twice."""
    with Client(*service) as client:
        client.create("clicks", CONTRACT)
        with pytest.raises(ServiceError, match=r"Convert the rest\. The first 400 rows") as error:
            client.learn("clicks", [*rows(500), {"clicked": object()}], batch=400)
        assert (error.value.status, error.value.learnt) == (None, 400)
        with pytest.raises(ServiceError, match=r"100 of them are left\. .* The first 1,500 rows of this call") as error:
            client.learn("clicks", rows(1_601), batch=500)
        assert (error.value.status, error.value.learnt) == (409, 1_500)
        assert client.learn("clicks", rows(1_601)[error.value.learnt : -1]) == Learnt(1_901, 2_000)
        with pytest.raises(ServiceError, match="none is left") as error:
            client.learn("clicks", rows(1))
        assert error.value.learnt == 0


def test_the_same_key_is_sent_again_after_a_lost_answer(pauses: list[float]) -> None:
    client, seen = scripted(lost, answered(503), answered(429, **{"retry-after": "7"}), unreachable, LEARNT)
    assert client.learn("clicks", [{"x": 1}]) == Learnt(1, 2)
    assert len({request.headers["idempotency-key"] for request in seen}) == 1
    assert len({request.content for request in seen}) == 1
    assert len(pauses) == 4
    assert pauses[2] == 7.0
    assert 0.0 < pauses[0] < 0.11


def test_another_call_has_another_key(pauses: list[float]) -> None:
    client, seen = scripted(LEARNT, LEARNT, LEARNT)
    client.learn("clicks", [{"x": 1}])
    client.learn("clicks", [{"x": 1}, {"x": 2}], batch=1)
    assert len({request.headers["idempotency-key"] for request in seen}) == 3


def test_it_gives_up_at_last_and_says_so(pauses: list[float]) -> None:
    client, seen = scripted(*[unreachable] * 3, retries=2)
    with pytest.raises(ServiceError, match="did not answer"):
        client.streams()
    assert len(seen) == 3
    client, seen = scripted(*[answered(429, {"error": "busy."})] * 2, retries=1)
    with pytest.raises(ServiceError, match="busy") as error:
        client.learn("clicks", [{"x": 1}])
    assert (error.value.status, len(seen)) == (429, 2)


def test_what_cannot_be_repeated_is_not(pauses: list[float]) -> None:
    """A stream whose creation may have arrived is not created again; one that was not sent is."""
    client, seen = scripted(lost)
    with pytest.raises(ServiceError, match="did not answer"):
        client.create("clicks", CONTRACT)
    assert len(seen) == 1
    client, seen = scripted(unreachable, answered(503), answered(201, {"stream": {}}))
    client.create("clicks", CONTRACT)
    assert len(seen) == 3
    client, seen = scripted(answered(502))
    with pytest.raises(ServiceError, match="502"):
        client.close("clicks")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 500])
def test_an_error_of_the_caller_is_not_repeated(status: int, pauses: list[float]) -> None:
    client, seen = scripted(answered(status, {"error": "a sentence."}))
    with pytest.raises(ServiceError, match="a sentence") as error:
        client.learn("clicks", [{"x": 1}])
    assert (error.value.status, len(seen), pauses) == (status, 1, [])


def test_what_the_service_can_not_answer_soon_is_not_repeated(pauses: list[float]) -> None:
    """A 503 of the service itself, without a time; those of proxies without one are repeated, whatever they say."""
    unreadable = answered(503, {"error": "this stream cannot be read now."})
    client, seen = scripted(unreadable)
    with pytest.raises(ServiceError, match="cannot be read now") as error:
        client.learn("clicks", [{"x": 1}])
    assert (error.value.status, len(seen), pauses) == (503, 1, [])
    client, seen = scripted(unreadable)
    with pytest.raises(ServiceError, match="cannot be read now"):
        next(client.live("clicks"))
    assert (len(seen), pauses) == (1, [])
    busy = answered(503, {"error": "the store cannot be used now."}, **{"retry-after": "1"})
    proxies = [answered(503, content) for content in (None, {"message": "no"}, ["no"], {"error": {"code": 503}})]
    client, seen = scripted(busy, *proxies, lambda request: httpx.Response(503, text="<html>"), LEARNT)
    assert client.learn("clicks", [{"x": 1}]) == Learnt(1, 2)
    assert len(seen) == 7


def test_live_goes_on_where_it_was(pauses: list[float]) -> None:
    def event(k: int) -> str:
        return f"id: {k}\nevent: release\ndata: {json.dumps({'k': k, 't': 10 * k, 'noise_sd': 1.0})}\n\n"

    def stream(text: str) -> Callable[[httpx.Request], httpx.Response]:
        return lambda request: httpx.Response(200, text=text, headers={"content-type": "text/event-stream"})

    client, seen = scripted(
        stream("retry: 2000\n\n" + event(1) + event(2) + ": no news\n\nid: 3\nevent: rel"),
        unreachable,
        answered(503),
        stream(event(2) + event(3) + "event: closed\ndata: {}\n\n"),
    )
    assert list(client.live("clicks")) == [Released(k, 10 * k, 1.0) for k in (1, 2, 3)]
    assert [request.headers.get("last-event-id") for request in seen] == [None, "2", "2", "2"]
    client, _ = scripted(answered(404, {"error": "there is no such stream."}))
    with pytest.raises(ServiceError, match="no such stream"):
        next(client.live("clicks"))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Client("http://service", ""), "a token is needed"),
        (lambda: Client("http://service", "a\nb"), "characters that no token has"),
        (lambda: Client("127.0.0.1:8000", "secret"), "begin with http://"),
        (lambda: scripted()[0].learn("clicks", []), "no row"),
        (lambda: scripted()[0].learn("clicks", {"age": 1}), "list of dicts"),
        (lambda: scripted()[0].learn("clicks", [{"x": object()}]), "dicts of numbers"),
        (lambda: scripted()[0].learn("clicks", [{"age": 1}], key=5), "key must be a text"),
        (lambda: scripted()[0].learn("clicks", [{"age": 1}], key="a\nb"), "key must be a text"),
        (lambda: scripted()[0].create("clicks", "nowhere.toml"), "cannot be read"),
        (lambda: scripted()[0].rank("clicks", {}, excluded="sports"), "lists of names"),
        (lambda: scripted()[0].reward("clicks", "visit-7", "yes"), "a finite number"),
        (lambda: scripted()[0].reward("clicks", "visit-7", math.nan), "a finite number"),
    ],
)
def test_mistakes_are_told_before_anything_is_sent(
    wrong: Callable[[], Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TACITURN_TOKEN", raising=False)
    with pytest.raises(InvalidInput, match=says):
        wrong()


def test_the_token_is_not_printed() -> None:
    assert "secret" not in repr(scripted()[0])


def test_an_answer_of_something_else_is_an_error(pauses: list[float]) -> None:
    client, _ = scripted(lambda request: httpx.Response(200, text="<html>"))
    with pytest.raises(ServiceError, match="not that of taciturn serve"):
        client.streams()


def test_names_are_escaped() -> None:
    client, seen = scripted(answered(200, {}))
    client.stream("../tokens?x")
    assert seen[0].url.raw_path == b"/v1/streams/..%2Ftokens%3Fx"
