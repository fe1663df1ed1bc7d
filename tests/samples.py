"""Records to test with."""

from __future__ import annotations

from typing import Any

from schemas import KINDS, Kind

SAMPLES: dict[str, dict[str, Any]] = {kind.name: dict(kind.example) for kind in KINDS}
POSTS = [kind for kind in KINDS if kind.is_post]
TERMS = [kind for kind in KINDS if not kind.is_post]
TIMES = {"start_date": "2027-06-01 10:00:00", "end_date": "2027-06-01 12:00:00"}
"""When an event takes place if that does not matter."""


def named(kind: Kind) -> str:
    return kind.name
