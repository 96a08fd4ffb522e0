"""What commands print for machines."""

from __future__ import annotations

import json
from typing import Any


def json_text(value: Any) -> str:
    """JSON, which has no infinity: null in its place.

    >>> json_text(float("inf"))
    'null'
    """
    plain = json.loads(json.dumps(value), parse_constant=lambda _: None)
    return json.dumps(plain, indent=2, allow_nan=False)
