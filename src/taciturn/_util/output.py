"""Text for machines, as commands and files of results print it, and the mark of what no guarantee covers."""

from __future__ import annotations

import json
from typing import Any

NOT_PRIVATE = "NOT PRIVATE: computed from exact data; do not publish"
"""The mark of everything that no guarantee covers."""


def json_text(value: Any) -> str:
    """JSON text; infinities and NaN, which JSON lacks, become null.

    >>> json_text(float("inf"))
    'null'
    """
    plain = json.loads(json.dumps(value), parse_constant=lambda _: None)
    return json.dumps(plain, indent=2, allow_nan=False)
