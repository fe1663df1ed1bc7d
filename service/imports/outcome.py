"""Counts what became of the records of a source, by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from schemas import KINDS
from schemas.kind import Kind

RESULTS = ("new", "changed", "same", "refused")


class Outcome:
    """The number of records by kind and result."""

    def __init__(self) -> None:
        self._counts = Counter[tuple[str, str]]()

    def add(self, kind: Kind, result: str) -> None:
        self._counts[kind.plural, result] += 1

    @property
    def total(self) -> int:
        return self._counts.total()

    @property
    def has_refused(self) -> bool:
        return any(result == "refused" for _, result in self._counts)

    def lines(self) -> Iterator[str]:
        """One line for each kind that there were records of."""
        for kind in KINDS:
            counts = [self._counts[kind.plural, result] for result in RESULTS]
            if any(counts):
                yield f"{kind.plural}: " + ", ".join(
                    f"{count} {result}" for count, result in zip(counts, RESULTS, strict=True)
                )
        if not self.total:
            yield "no records found"
