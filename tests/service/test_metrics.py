"""Metrics: public numbers for readers; the operator's, marked, for operators."""

import time

from served import NAME, Client, service_at, some_rows
from taciturn.service.server import running


def test_readers_get_public_numbers_and_operators_all(tmp_path):
    service, secret = service_at(tmp_path / "streams.db", tick=0.05)
    with running(service) as address:
        client = Client(address, secret)
        client.learn(some_rows(25), "one")
        while service.host(NAME).view.k < 2:
            time.sleep(0.01)
        every = client.get("/metrics")
        reader = Client(address, service.tokens.create(["read"])[1]).get("/metrics")
        both = Client(address, service.tokens.create(["read", "operate"])[1]).get("/metrics")
    assert every.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert f'taciturn_stream_releases{{stream="{NAME}"}} 2\n' in reader.text
    assert f'taciturn_stream_round{{stream="{NAME}"}} 20\n' in reader.text
    assert "operator" not in reader.text
    assert "NOT PRIVATE" not in reader.text
    public, mark, secret_part = both.text.partition("# NOT PRIVATE")
    assert mark
    assert public == reader.text
    assert f'taciturn_operator_rows_total{{stream="{NAME}"}} 25\n' in secret_part
    assert f'taciturn_operator_commits_total{{stream="{NAME}"}} 1\n' in secret_part
    assert 'route="/v1/streams/{s}/examples",status="200"} 1\n' in secret_part
    for line in secret_part.splitlines()[1:]:
        assert line.startswith("# TYPE") or "taciturn_operator_" in line
        assert not line.startswith("# HELP") or "NOT PRIVATE" in line
