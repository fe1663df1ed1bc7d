"""The log of a run, and the rules that every answer must keep at once."""

from __future__ import annotations

import bisect
import json
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from tests.history.entries import Chain, Creation, Key, Register, is_prefix

LONGEST = 400


class History:
    """The log of one run, and the violations that were found."""

    def __init__(self, log: Path) -> None:
        self._log = log.open("w")
        self.clock = 0
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.violations: list[str] = []
        self.registers: dict[Key, Register] = {}
        self.creations: list[Creation] = []
        self._ids: dict[tuple[bool, int], str] = {}
        self._slugs: set[str] = set()
        self.deleting: Counter[tuple[str, int]] = Counter()
        """How often the deletion of a term was sent."""
        self.deleted: dict[tuple[str, int], int] = {}
        """Terms whose deletion was acknowledged, and when."""
        self.chains: dict[int, Chain] = {}
        self.calm_since: int | None = 0
        """When the last fault was healed; None during a fault."""
        self.counted_sent = self.counted_acknowledged = 0
        self._floors: defaultdict[Key, list[tuple[int, int]]] = defaultdict(list)
        self._number = 0
        self._began = time.monotonic()

    def seconds(self) -> float:
        return time.monotonic() - self._began

    def close(self) -> None:
        self._log.close()

    def number(self) -> int:
        self._number += 1
        return self._number

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def note(self, operation: str, outcome: str, **detail: Any) -> None:
        self.outcomes[operation, outcome] += 1
        self._log.write(
            json.dumps(
                {
                    "at": self.clock,
                    "s": round(self.seconds(), 3),
                    "op": operation,
                    "outcome": outcome,
                    **detail,
                }
            )
            + "\n"
        )

    def violation(self, text: str) -> None:
        self.violations.append(f"after {self.seconds():.0f} s: {text[:LONGEST]}")
        self._log.write(json.dumps({"at": self.clock, "violation": text}) + "\n")
        self._log.flush()

    def expect(self, is_right: bool, text: str) -> None:
        if not is_right:
            self.violation(text)

    def new_id(self, plural: str, id: int, creation: str) -> None:
        """Posts share one space of ids, terms another; no id is given twice."""
        key = (plural in ("categories", "tags"), id)
        self.expect(key not in self._ids, f"{plural} {id}: given to {creation} and to {self._ids.get(key)}")
        self._ids[key] = creation

    def new_slug(self, slug: str, creation: str) -> None:
        """Titles are only used once, or at the same time: no slug of an event becomes free again."""
        self.expect(slug not in self._slugs, f"slug {slug!r} of {creation!r}: given twice")
        self._slugs.add(slug)

    # Registers

    def register(self, key: Key, value: Any) -> Register:
        return self.registers.setdefault(key, Register(value, changed_at=self.tick()))

    def begin(self, key: Key, value: Any) -> Register:
        register = self.registers[key]
        register.possible.append(value)
        register.changed_at, register.in_flight = self.tick(), True
        return register

    def end(self, key: Key, value: Any, outcome: str) -> None:
        register = self.registers[key]
        if outcome == "acknowledged":
            register.value, register.possible = value, []
        elif outcome == "refused":
            register.possible.remove(value)
        register.changed_at, register.in_flight = self.tick(), False

    def saw(self, key: Key, value: Any, since: int) -> None:
        """An answer to a request sent at `since` shows the value: if nobody has written since then, it must
        be the one that was acknowledged last."""
        register = self.registers.get(key)
        if register and not register.in_flight and register.changed_at <= since:
            self.expect(register.allows(value), f"{key}: shows {value!r}, acknowledged {register.shown()}")

    # Values that only increase

    def rises(self, key: Key, value: int, since: int) -> None:
        """A value that only increases: it must not be lower than any that was shown or acknowledged before
        the request was sent."""
        floors = self._floors[key]
        before = bisect.bisect_left(floors, (since, -1)) - 1
        if before >= 0 and value < floors[before][1]:
            self.violation(f"{key}: goes back from {floors[before][1]} to {value}")
        if not floors or value > floors[-1][1]:
            floors.append((self.tick(), value))

    def extends(self, id: int, text: str, since: int) -> None:
        """A chain must extend every one that was shown before the request was sent, and never branch."""
        seen = self.chains[id].seen
        before, last = seen[bisect.bisect_left(seen, (since, "")) - 1][1], seen[-1][1]
        if is_prefix(last, text) and len(text) > len(last):
            seen.append((self.tick(), text))
        elif not is_prefix(before, text) or not is_prefix(text, last):
            self.violation(f"event {id}: the chain {text[-60:]!r} does not fit {last[-60:]!r}")
