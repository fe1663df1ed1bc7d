"""Random words for generated events."""

from __future__ import annotations

import random

SYLLABLES = ["ba", "co", "di", "fu", "ga", "hel", "is", "jo"]
SYLLABLES += ["ka", "lum", "mi", "nor", "o", "pra", "qui", "ras"]


def vocabulary(size: int, chance: random.Random) -> list[str]:
    """Distinct pronounceable words."""
    found: dict[str, None] = {}
    while len(found) < size:
        found["".join(chance.choices(SYLLABLES, k=chance.randint(2, 5)))] = None
    return list(found)
