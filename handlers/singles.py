"""A cache of responses for single records."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from handlers.memory import ByteLru, LruNamespace
from handlers.prepared_response import PreparedResponse
from handlers.responses import JSON, entity_tag, to_json
from handlers.shelf import RecordState, select_fields, state_of
from handlers.store_protocol import Head, Ref
from schemas.event_representation import is_locked
from schemas.kind import Document, Kind, RenderContext

REPRESENTATION_VERSION = 2
"""Part of every ETag. Increment it when the representation changes, to invalidate clients' cached copies."""
Key = tuple[Hashable, ...]


class CachedRecord(NamedTuple):
    """A cached response, the state of its record, and the database clock in which it is current."""

    response: PreparedResponse
    state: RecordState
    clock: Hashable | None

    def is_current(self, clock: Hashable | None) -> bool:
        """Whether it can be sent without another query: nothing at all has been written since."""
        return clock is not None and self.clock == clock

    def matches(self, kind: Kind, head: Head) -> bool:
        """Whether the record is unchanged."""
        return self.state == state_of(kind, head)


class RecordCache:
    """Cached responses by kind, id or slug, and view."""

    def __init__(self, memory: ByteLru) -> None:
        self._memory = LruNamespace[CachedRecord](memory, "records")

    def take(self, kind: Kind, ref: Ref, context: RenderContext) -> CachedRecord | None:
        """The cached response, which may be stale."""
        return self._memory.take(key_of(kind, ref, context))

    def render(
        self, kind: Kind, ref: Ref, record: Document, context: RenderContext, clock: Hashable | None
    ) -> PreparedResponse:
        shown = kind.represent(kind, record, context)
        if kind.json_ld:
            shown["json_ld"] = kind.json_ld(kind, record, context)
        headers = {"Content-Type": JSON, "ETag": self.tag(kind, record, context)}
        response = PreparedResponse(select_fields(to_json(shown), context), headers)
        return self.keep(kind, ref, record, context, clock, response)

    def tag(self, kind: Kind, head: Head, context: RenderContext, occasion: str = "read") -> str:
        """The ETag of a record, derived from everything its representation depends on."""
        version, events = state_of(kind, head)
        inputs = (
            REPRESENTATION_VERSION,
            context.site.representation_key,
            context.key,
            occasion,
            kind.name,
            head["_id"],
            version,
            events,
        )
        return entity_tag(version, repr(inputs).encode())

    def keep(
        self,
        kind: Kind,
        ref: Ref,
        head: Head,
        context: RenderContext,
        clock: Hashable | None,
        response: PreparedResponse,
    ) -> PreparedResponse:
        # Without a clock the cached response is never sent unchecked: each request needs the password.
        valid_clock = None if is_locked(head) else clock
        cached = CachedRecord(response, state_of(kind, head), valid_clock)
        self._memory.keep(key_of(kind, ref, context), cached, response.size)
        return response


def key_of(kind: Kind, ref: Ref, context: RenderContext) -> Key:
    return (context.key, kind.name, ref)
