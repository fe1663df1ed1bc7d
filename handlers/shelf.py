"""A cache of records rendered for lists, one rendering per version; pages are assembled from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import orjson

from handlers.answers import to_json
from handlers.memory import Drawer, Memory
from handlers.ports import Head, Store
from schemas.event import EVENT
from schemas.event_view import blanked, is_locked
from schemas.kind import Document, Kind, View

Key = tuple[object, ...]


class State(NamedTuple):
    """What a rendering depends on: the record's version and, for a term, its number of events."""

    version: int
    events: int | None


class Shelf:
    """Rendered records by record and caller, used only if they match the version just queried."""

    def __init__(self, store: Store, memory: Memory) -> None:
        self._store = store
        self._memory = Drawer[tuple[State, bytes]](memory, "shelf")

    async def listed(self, kind: Kind, heads: Sequence[Head], view: View) -> list[bytes]:
        """The rendered records of a page, in page order."""
        keys = {
            head["_id"]: (view.site.namespace, kind.name, head["_id"], view.caller.sight) for head in heads
        }
        found = {head["_id"]: self._take(keys[head["_id"]], kind, head) for head in heads}
        missing = [id for id, body in found.items() if body is None]
        for record in await self._store.fetch(kind, missing) if missing else ():
            if view.caller.sees(record):  # it may have been hidden since the query
                body = to_json(shown_in_list(kind, record, view))
                found[record["_id"]] = self._keep(keys[record["_id"]], kind, record, body)
        return [selected(body, view) for body in found.values() if body is not None]

    def _take(self, key: Key, kind: Kind, head: Head) -> bytes | None:
        kept = self._memory.take(key)
        return kept[1] if kept and kept[0] == state_of(kind, head) else None

    def _keep(self, key: Key, kind: Kind, record: Head, body: bytes) -> bytes:
        self._memory.keep(key, (state_of(kind, record), body), len(body))
        return body


def selected(body: bytes, view: View) -> bytes:
    """A rendered record reduced to the requested fields."""
    return to_json(view.selection.of(orjson.loads(body))) if view.selection else body


def state_of(kind: Kind, record: Head) -> State:
    # A term is shown with its event count, which changes without a new version of the term.
    return State(record["version"], None if kind.is_post else record["events"]["publish"])


def shown_in_list(kind: Kind, record: Document, view: View) -> Document:
    locked = kind is EVENT and is_locked(record) and not view.caller.unlocks
    return kind.represent(kind, blanked(record, view.site) if locked else record, view)
