"""One record of each kind to test with."""

from __future__ import annotations

from typing import Any

from schemas import KINDS, Kind

SAMPLES: dict[str, dict[str, Any]] = {kind.name: dict(kind.example) for kind in KINDS}
POSTS = [kind for kind in KINDS if kind.is_post]
TERMS = [kind for kind in KINDS if not kind.is_post]


def named(kind: Kind) -> str:
    return kind.name
