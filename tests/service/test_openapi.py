"""The OpenAPI document says what the server does: requests that are generated from it have no other outcome."""

import json

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from served import NAME, service_at, some_rows
from taciturn.service.app import OPERATIONS
from taciturn.service.openapi import document
from taciturn.service.server import running
from taciturn.service.service import Limits

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
DOCUMENT = json.loads(document())
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)  # its modules are imported before a server runs in a thread
PLANTED = "Wq9plantedrow"


@schemathesis.serializer("application/x-ndjson", "application/toml", "application/vnd.apache.arrow.stream")
def as_bytes(context, value):
    """Texts as they are, anything else as JSON."""
    return value if isinstance(value, bytes) else (value if isinstance(value, str) else json.dumps(value)).encode()


@pytest.fixture(scope="module")
def generated_before():
    """Requests that nothing answers: they import modules, and before CPython 3.12.8 threads that parse at once fail."""
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        strategy = SCHEMA["/v1/streams/{s}/predict"]["POST"].as_strategy(generation_mode=mode)

        @given(case=strategy)
        @settings(max_examples=3, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None)
        def generate(case):
            assert case.operation.method.upper() == "POST"

        generate()


@pytest.fixture(scope="module")
def site(generated_before, tmp_path_factory):
    """A server with a stream that has released, whose rows hold a word that no answer may show."""
    limits = Limits(streams=40)
    service, secret = service_at(tmp_path_factory.mktemp("api") / "streams.db", tick=0.05, limits=limits)
    with running(service) as address, httpx.Client(timeout=60.0) as client:
        rows = [{**row, "town": PLANTED} for row in some_rows(25)]
        body = json.dumps({"rows": rows}).encode()
        headers = {"authorization": f"Bearer {secret}", "idempotency-key": "0", "content-type": "application/json"}
        answer = client.post(f"{address}/v1/streams/{NAME}/examples", content=body, headers=headers)
        assert answer.status_code == 200
        yield address, secret, client


def explore(operation, site, examples, mode):
    """Send requests that are generated from an operation; how many."""
    address, secret, client = site
    described = SCHEMA[operation.path][operation.method]
    sent = 0

    @given(case=described.as_strategy(generation_mode=mode))
    @settings(
        max_examples=examples,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        deadline=None,
        derandomize=True,
        database=None,
    )
    def send(case):
        nonlocal sent
        sent += 1
        if "s" in (case.path_parameters or {}) and sent % 4:  # mostly a stream that there is
            case.path_parameters["s"] = NAME
        if operation.path.endswith("/close"):
            case.path_parameters["s"] = "none"
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {secret}"}
        if operation.path.endswith("/live"):  # it does not end
            try:
                request = case.as_transport_kwargs(base_url=address)
                headers = dict(request["headers"].items())
                with client.stream(request["method"], request["url"], headers=headers) as answer:
                    assert answer.status_code < 500
            except (httpx.InvalidURL, httpx.LocalProtocolError, UnicodeEncodeError):
                pass
            return
        answer = case.call(base_url=address)
        assert answer.status_code != 500, answer.text
        assert PLANTED not in answer.text
        assert "Traceback" not in answer.text
        try:
            case.validate_response(answer, checks=CHECKS)
        except FailureGroup as failures:
            raise AssertionError(f"{answer.status_code} {answer.text[:200]}: {failures.exceptions}") from None

    send()
    return sent


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
def test_generated_requests_are_answered_as_described(site, operation):
    assert explore(operation, site, 12, GenerationMode.POSITIVE) > 0


@pytest.mark.slow
def test_ten_thousand_generated_requests(site):
    """Good ones and bad ones: none is answered by an internal error, or by a row."""
    sent = 0
    for operation in OPERATIONS:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            parameters = operation.takes or operation.query or "{" in operation.path or operation.headers
            if mode is GenerationMode.NEGATIVE and not parameters:
                continue
            sent += explore(operation, site, 900 if operation.takes else 400, mode)
    print(f"{sent} requests")  # noqa: T201  (for pytest -rP)
    assert sent >= 10_000


def test_the_document_has_every_operation_and_no_other():
    described = {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert described == {(operation.method, operation.path) for operation in OPERATIONS}


def test_operations_without_a_token_are_few():
    free = {operation.path for operation in OPERATIONS if operation.scope is None}
    assert free == {"/healthz", "/readyz", "/openapi.json"}
