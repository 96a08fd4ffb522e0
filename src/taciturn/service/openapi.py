"""The OpenAPI document, generated from the operations of `taciturn.service.app` and their message types."""

from __future__ import annotations

import json
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import msgspec

from taciturn import __version__
from taciturn.service import messages

_ALWAYS = (400, 401, 403, 503)
_NAMES = {
    "s": "The name of a stream.",
    "k": "The number of a release.",
    "l": "The people of a ledger.",
    "e": "The id of an event.",
}


@lru_cache(maxsize=1)
def document() -> bytes:
    """The document, as JSON.

    >>> json.loads(document())["openapi"]
    '3.1.0'
    """
    from taciturn.service.app import OPERATIONS

    kinds = [kind for each in OPERATIONS for kind in (each.takes, each.gives) if isinstance(kind, type)]
    named = list(dict.fromkeys([*kinds, messages.Error]))
    schemas, components = msgspec.json.schema_components(named, ref_template="#/components/schemas/{name}")
    schema_of = dict(zip(named, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for each in OPERATIONS:
        content: dict[str, Any] = {}
        if isinstance(each.gives, str):
            content = {each.gives: {"schema": {} if each.gives.endswith("json") else {"type": "string"}}}
        elif each.gives is not None:
            content = {"application/json": {"schema": schema_of[each.gives]}}
        answers: dict[str, Any] = {str(each.status): {"description": each.summary, "content": content}}
        for status in sorted({*each.errors, *(_ALWAYS if each.scope else ())}):
            answers[str(status)] = {"description": HTTPStatus(status).phrase}
            if status != HTTPStatus.NOT_MODIFIED:
                answers[str(status)]["content"] = {"application/json": {"schema": schema_of[messages.Error]}}
        described: dict[str, Any] = {
            "operationId": each.handler.__name__,
            "summary": each.summary,
            "parameters": [
                *(_parameter(name, "path") for name in _NAMES if f"{{{name}}}" in each.path),
                *({"name": name, "in": "query", "schema": schema} for name, schema in each.query.items()),
                *(
                    {
                        "name": name.rstrip("!"),
                        "in": "header",
                        "required": name.endswith("!"),
                        "description": about,
                        "schema": {"type": "string"},
                    }
                    for name, about in each.headers.items()
                ),
            ],
            "responses": answers,
            "security": [{"token": []}] if each.scope else [],
        }
        if each.scope:
            scopes = " and ".join(each.scope.split())
            described["description"] = f"Needs a token with the scope {scopes}."
        if each.takes is not None:
            described["requestBody"] = {
                "required": True,
                "content": {
                    media: {"schema": schema_of[each.takes] if media == "application/json" else {"type": "string"}}
                    for media in each.media
                },
            }
        paths.setdefault(each.path, {})[each.method.lower()] = described
    made = {
        "openapi": "3.1.0",
        "info": {
            "title": "taciturn",
            "version": __version__,
            "description": "Differentially private online learning: every model published from a stream, under one "
            "guarantee.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
    return json.dumps(made, indent=1).encode()


def _parameter(name: str, place: str) -> dict[str, Any]:
    schema = {"type": "integer", "minimum": 1} if name == "k" else {"type": "string", "minLength": 1}
    return {"name": name, "in": place, "required": True, "description": _NAMES[name], "schema": schema}
