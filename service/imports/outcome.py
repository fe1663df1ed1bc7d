"""Counts what became of the records of a source, by kind, and reports why some were refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from schemas import KINDS
from schemas.errors import Problem, reasons_of
from schemas.kind import Kind

Result = Literal["new", "changed", "same"] | Problem
"""What became of a record; a problem if it was refused."""
REFUSED = "refused"
RESULTS = ("new", "changed", "same", REFUSED)


class Outcome:
    """The number of records by kind and result. `report` gets a line for each reason to refuse one."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._counts = Counter[tuple[str, str]]()
        self._last: tuple[str, Sequence[str]] = ("", ())

    def add(self, kind: Kind, where: str, result: Result) -> None:
        if isinstance(result, Problem):
            reasons = reasons_of(result)
            is_reported = (where, reasons) == self._last  # for another occurrence of the same series
            self._last = where, reasons
            self.refuse(kind, where, [] if is_reported else reasons)
        else:
            self._counts[kind.plural, result] += 1

    def refuse(self, kind: Kind, where: str, reasons: Sequence[str]) -> None:
        self._counts[kind.plural, REFUSED] += 1
        for reason in reasons:
            self._report(f"{where}: {reason}")

    @property
    def total(self) -> int:
        return self._counts.total()

    @property
    def has_refused(self) -> bool:
        return any(result == REFUSED for _, result in self._counts)

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
