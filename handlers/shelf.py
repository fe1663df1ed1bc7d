"""A cache of records rendered for lists, one rendering per version; pages are assembled from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import orjson

from handlers.memory import ByteLru, LruNamespace
from handlers.responses import to_json
from handlers.store_protocol import Head, Store
from schemas.event import EVENT
from schemas.event_representation import is_locked, without_protected_fields
from schemas.kind import Document, Kind, RenderContext

Key = tuple[object, ...]


class RecordState(NamedTuple):
    """What a rendering depends on: the record's version and, for a term, its number of events."""

    version: int
    events: int | None


class FragmentCache:
    """Rendered records by record and caller, used only if they match the version just queried."""

    def __init__(self, store: Store, memory: ByteLru) -> None:
        self._store = store
        self._memory = LruNamespace[tuple[RecordState, bytes]](memory, "fragments")

    async def render_list(self, kind: Kind, heads: Sequence[Head], context: RenderContext) -> list[bytes]:
        """The rendered records of a page, in page order."""
        keys = {
            head["_id"]: (context.site.namespace, kind.name, head["_id"], context.caller.visibility_key)
            for head in heads
        }
        found = {head["_id"]: self._take(keys[head["_id"]], kind, head) for head in heads}
        missing = [id for id, body in found.items() if body is None]
        for record in await self._store.fetch(kind, missing) if missing else ():
            if context.caller.sees(record):  # it may have been hidden since the query
                body = to_json(list_representation(kind, record, context))
                found[record["_id"]] = self._keep(keys[record["_id"]], kind, record, body)
        return [select_fields(body, context) for body in found.values() if body is not None]

    def _take(self, key: Key, kind: Kind, head: Head) -> bytes | None:
        cached = self._memory.take(key)
        return cached[1] if cached and cached[0] == state_of(kind, head) else None

    def _keep(self, key: Key, kind: Kind, record: Head, body: bytes) -> bytes:
        self._memory.keep(key, (state_of(kind, record), body), len(body))
        return body


def select_fields(body: bytes, context: RenderContext) -> bytes:
    """A rendered record reduced to the requested fields."""
    return to_json(context.selection.of(orjson.loads(body))) if context.selection else body


def state_of(kind: Kind, record: Head) -> RecordState:
    # A term is shown with its event count, which changes without a new version of the term.
    return RecordState(record["version"], None if kind.is_post else record["events"]["publish"])


def list_representation(kind: Kind, record: Document, context: RenderContext) -> Document:
    locked = kind is EVENT and is_locked(record) and not context.caller.bypasses_passwords
    return kind.represent(kind, without_protected_fields(record, context.site) if locked else record, context)
