"""Rendered records, each in its latest version: an answer is made of what the database says is current."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import orjson

from handlers.answers import entity_tag
from handlers.memory import Memory
from handlers.ports import Glance, Ref, Store
from schemas.event import EVENT
from schemas.event_view import blanked, is_locked
from schemas.kind import Document, Kind, View

LARGEST = 64 * 1024 * 1024
"""Bytes that a process keeps."""
FORM = 1
"""Counts changes of how records are shown: clients must not keep what an older service has sent."""
Key = tuple[object, ...]


class State(NamedTuple):
    """What a rendering is made of: a version and, of a term, how many events it has."""

    version: int
    events: int | None


class Shelf:
    """A bounded store of bytes. Nothing is shown from here unless it is what was just found."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._memory = Memory[tuple[State, bytes]](LARGEST)
        site = store.site
        self._site = (FORM, site.api, site.zone.name, site.currency)

    async def listed(self, kind: Kind, glances: Sequence[Glance], view: View) -> list[bytes]:
        """The records of a page as lists show them, in its order."""
        keys = {glance["_id"]: (kind.name, glance["_id"], view.caller.sight, "list") for glance in glances}
        found = {glance["_id"]: self._take(keys[glance["_id"]], kind, glance) for glance in glances}
        missing = [id for id, body in found.items() if body is None]
        for record in await self._store.fetch(kind, missing) if missing else ():
            if view.caller.sees(record):  # it may have been hidden since it was found
                body = orjson.dumps(shown_in_list(kind, record, view))
                found[record["_id"]] = self._keep(keys[record["_id"]], kind, record, body)
        return [body for body in found.values() if body is not None]

    def has_some(self, kind: Kind, ref: Ref, view: View) -> bool:
        """Whether a record was shown lately, perhaps in an older version."""
        return self._memory.take(single(kind, ref, view)) is not None

    def latest(self, kind: Kind, ref: Ref, glance: Glance, view: View) -> bytes | None:
        """A record as it is shown alone, if it is here as it was found."""
        return self._take(single(kind, ref, view), kind, glance)

    def render(self, kind: Kind, ref: Ref, record: Document, view: View) -> bytes:
        """A record as it is shown alone."""
        shown = kind.represent(kind, record, view)
        if kind.json_ld:
            shown["json_ld"] = kind.json_ld(kind, record, view)
        return self._keep(single(kind, ref, view), kind, record, orjson.dumps(shown))

    def tag(self, kind: Kind, glance: Glance, view: View) -> str:
        """The entity tag of a record that is shown alone, made of all that its rendering depends on."""
        depends = (self._site, view.caller.sight, kind.name, glance["_id"], state_of(kind, glance))
        return entity_tag(glance["version"], repr(depends).encode())

    def _take(self, key: Key, kind: Kind, glance: Glance) -> bytes | None:
        kept = self._memory.take(key)
        return kept[1] if kept and kept[0] == state_of(kind, glance) else None

    def _keep(self, key: Key, kind: Kind, record: Glance, body: bytes) -> bytes:
        self._memory.keep(key, (state_of(kind, record), body), len(body))
        return body


def single(kind: Kind, ref: Ref, view: View) -> Key:
    return (kind.name, ref, view.caller.sight, "single")


def state_of(kind: Kind, record: Glance) -> State:
    # What is shown of a term counts its events, which is not a change of the term.
    return State(record["version"], None if kind.is_post else record["events"]["publish"])


def shown_in_list(kind: Kind, record: Document, view: View) -> Document:
    locked = kind is EVENT and is_locked(record) and not view.caller.unlocks
    return kind.represent(kind, blanked(record, view.site) if locked else record, view)
