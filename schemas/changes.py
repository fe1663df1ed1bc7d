"""The change feed of the interface: its query, and its representation."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, fields, post_load, validates_schema

from schemas import EVENT, KINDS
from schemas.fields import Choice, Many, When, Whole
from schemas.kind import Document, Input, Kind, ResponseSchema, reader_of
from schemas.kinds.event import EventListInput
from schemas.kinds.post import describe, shown_time
from schemas.language import Text
from schemas.text_fields import FreeText

MAX_CHANGES = 500
"""Changes in one response; a larger limit is lowered to it."""
OF_LISTS = ("page", "per_page", "fields", "orderby", "order", "modified_after")
"""Parameters of the event list that have no meaning for changes, and are refused."""
ACTIONS = ("created", "changed", "trashed", "restored", "removed", "left")


class ChangesInput(EventListInput):
    """Query parameters of the change feed; those of the event list filter events."""

    class Meta(Input.Meta):
        exclude = OF_LISTS

    # Without a date, changes to events of any date are returned.
    start_date = When(metadata=describe(Text("events that start on this date or later")))
    end_date = When(metadata=describe(Text("events that end on this date or before")))
    since = FreeText(
        60,
        metadata=describe(
            Text("the token in next of an earlier response; without one only next is returned")
        ),
    )
    kinds = Many(
        Choice(*(kind.plural for kind in KINDS), allow_none=False),
        metadata=describe(
            Text("only changes to these kinds; by default all, or events if events are filtered")
        ),
    )
    limit = Whole(1, load_default=100, metadata=describe(Text("maximum number of changes, at most 500")))

    @validates_schema(skip_on_field_errors=False, pass_original=True)
    def refuse_list_parameters(self, data: Document, sent: Document, **_: Any) -> None:
        """If they were ignored like unknown ones, a reader would take what is told for what was asked for."""
        reason = Text("Only lists have this parameter; changes are read with since and limit.")
        if refused := {name: [reason] for name in OF_LISTS if sent.get(name) is not None}:
            raise ValidationError(refused)

    @post_load
    def lower_limit(self, values: Document, **_: Any) -> Document:
        return values | {"limit": min(values.get("limit") or MAX_CHANGES, MAX_CHANGES)}


class ChangeResponse(ResponseSchema):
    """One change to a record."""

    kind = fields.String(metadata={"enum": [kind.plural for kind in KINDS]})
    id = fields.Integer()
    action = fields.String(metadata={"enum": list(ACTIONS)})
    changed_utc = shown_time()
    record = fields.Raw(
        allow_none=True,
        metadata=describe(
            Text("the record as it is now; null if it was trashed, removed, or left the filter"),
            one_of=tuple(fields.Nested(kind.response_schema) for kind in KINDS),
        ),
    )


class ChangesResponse(ResponseSchema):
    """Changes since a token."""

    changes = fields.List(fields.Nested(ChangeResponse))
    next = fields.String(metadata=describe(Text("the token for the next request")))
    has_more = fields.Boolean(metadata=describe(Text("whether more changes are waiting")))


EVENT_FILTERS = frozenset(reader_of(EventListInput).fields) - {*OF_LISTS}


def kinds_of(query: Document) -> list[Kind]:
    """The kinds whose changes are wanted."""
    if query.get("kinds"):
        return [kind for kind in KINDS if kind.plural in query["kinds"]]
    is_filtered = any(query.get(name) is not None for name in EVENT_FILTERS - {"strict_dates"})
    return [EVENT] if is_filtered else list(KINDS)
