"""What is needed to create a record, and what can become of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from schemas.caller import Caller
from schemas.errors import Problems
from schemas.kind import Document, Kind
from schemas.preconditions import NO_CONDITIONS, CreationConditions
from service.store.records.slugs import desired_slug


class AlreadyImported(Exception):
    """The line was imported before."""


@dataclass(frozen=True, eq=False)
class NewRecord:
    """The data of a record to create, with the problems that validation has found in it."""

    data: Document
    caller: Caller
    problems: Problems = field(default_factory=Problems)
    import_key: bytes | None = None
    """If it is imported: identifies what it is imported from. A unique index keeps it from being stored
    twice."""
    id: int | None = None
    """The id that it had where it is imported from, if it can keep it."""
    conditions: CreationConditions = NO_CONDITIONS

    def new_slug(self, kind: Kind) -> str | None:
        """The slug that no other record may have, if that is a condition."""
        has_slug = self.conditions.needs_new_slug and not self.problems
        return desired_slug(kind, self.data) if has_slug else None


Outcomes = dict[NewRecord, Document | Exception]
Documents = dict[NewRecord, Document]
