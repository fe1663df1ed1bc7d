"""What checks are, and what they find."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from schemas.kind import Document, Kind
from service.doctor.scope import Scope


@dataclass(frozen=True)
class Finding:
    """Something that is wrong."""

    subject: str
    """Such as `event 17`."""
    problem: str
    """A sentence about it, without the final period."""
    aspect: Hashable = ""
    """What of the subject is wrong: when it is read again, a finding with the same aspect confirms it."""
    id: Any = None
    """Id of the record to read again."""
    change: Document = field(default_factory=dict)
    """Fields of the record to set; REMOVED for those to remove."""
    repair: Callable[[], Awaitable[object]] | None = None
    """For what is repaired otherwise."""
    advice: str = ""
    """If it cannot be repaired: what to do."""
    fanout_of: str = ""
    """The record, such as `venue:5`, whose fan-out may be about to repair it."""

    @property
    def key(self) -> Hashable:
        return self.subject, self.aspect

    @property
    def is_repairable(self) -> bool:
        return bool(self.change or self.repair)


REMOVED: Any = object()
"""Stands for the value of a field that is to be removed."""


class RecordCheck(NamedTuple):
    """A check of records, in batches of one kind."""

    name: str
    about: str
    find: Callable[[Scope, Kind, Sequence[Document]], Awaitable[list[Finding]]]
    concerns: Callable[[Kind], bool] = lambda kind: True
    is_required: bool = False
    """Whether later checks need records that pass this one."""


class DatabaseCheck(NamedTuple):
    """A check of something that there is once, or little of."""

    name: str
    about: str
    find: Callable[[Scope], Awaitable[list[Finding]]]


Check = RecordCheck | DatabaseCheck
