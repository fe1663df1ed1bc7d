"""The domain model: record kinds, field types, validation and errors; no database or network access."""

from schemas.kind import Kind
from schemas.kinds.category import CATEGORY
from schemas.kinds.event import EVENT
from schemas.kinds.organizer import ORGANIZER
from schemas.kinds.tag import TAG
from schemas.kinds.venue import VENUE

KINDS: tuple[Kind, ...] = (EVENT, VENUE, ORGANIZER, CATEGORY, TAG)
BY_NAME = {kind.name: kind for kind in KINDS}
BY_PLURAL = {kind.plural: kind for kind in KINDS}

__all__ = ["BY_NAME", "BY_PLURAL", "CATEGORY", "EVENT", "KINDS", "ORGANIZER", "TAG", "VENUE", "Kind"]
