"""All checks, in the order in which they run: what later ones rely on comes first."""

from __future__ import annotations

from collections.abc import Sequence

from schemas import CATEGORY, KINDS
from schemas.kind import Kind
from service.doctor.checks.database.accounts import TOKEN_DOCUMENTS, WEBHOOK_DOCUMENTS
from service.doctor.checks.database.expiring import KEYS, UNDO_STEPS
from service.doctor.checks.database.indexes import INDEX_DEFINITIONS
from service.doctor.checks.database.jobs import FANOUT_JOBS, REMOVED
from service.doctor.checks.database.log import CHECKPOINTS, LOG_ROWS
from service.doctor.checks.database.meta import FORM_NUMBER, ID_COUNTERS, IDENTITY, IDS, LEASES
from service.doctor.checks.database.tree import TREE
from service.doctor.checks.database.unique import UNIQUE_VALUES
from service.doctor.checks.database.words import NUMBERS, TRIGRAMS
from service.doctor.checks.records.copies import COPIES
from service.doctor.checks.records.derived import COSTS, POSITIONS, PROTECTION, TERMS
from service.doctor.checks.records.fields import FIELDS
from service.doctor.checks.records.posts import PARENTS, PUBLICATION, SHARED_IDS, TRASH
from service.doctor.checks.records.search import SEARCH
from service.doctor.checks.records.times import TIMES
from service.doctor.checks.records.usage import USAGE
from service.doctor.findings import Check

Stage = tuple[Kind | None, Sequence[Check]]
BEFORE = (
    FORM_NUMBER,
    IDENTITY,
    LEASES,
    IDS,
    ID_COUNTERS,
    UNIQUE_VALUES,
    TOKEN_DOCUMENTS,
    # Creates missing collections; the checkpoint has the identity of that of events.
    INDEX_DEFINITIONS,
    LOG_ROWS,
    CHECKPOINTS,
)
RECORDS = (
    FIELDS,
    TIMES,
    PROTECTION,
    COSTS,
    POSITIONS,
    TRASH,
    PUBLICATION,
    PARENTS,
    TERMS,
    SHARED_IDS,
    SEARCH,
    COPIES,
)
AFTER = (NUMBERS, TRIGRAMS, REMOVED, WEBHOOK_DOCUMENTS, UNDO_STEPS, KEYS)
LINKED_KINDS = [kind for kind in KINDS if not kind.links]
STAGES: list[Stage] = [
    (None, BEFORE),
    *((kind, RECORDS) for kind in LINKED_KINDS if kind is not CATEGORY),
    (CATEGORY, [FIELDS]),
    (None, [TREE]),
    (CATEGORY, RECORDS),
    # Jobs before the copies that they update, and events before the counters of what they link to.
    (None, [FANOUT_JOBS]),
    *((kind, RECORDS) for kind in KINDS if kind.links),
    *((kind, [USAGE]) for kind in LINKED_KINDS if kind.embedded_fields),
    (None, AFTER),
]
CHECKS: list[Check] = [*BEFORE, *RECORDS, TREE, FANOUT_JOBS, USAGE, *AFTER]
assert all(check in CHECKS for _, checks in STAGES for check in checks)
