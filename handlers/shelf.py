"""Rendered records, kept by version: an answer is made of what the database says is current."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from handlers.answers import entity_tag
from handlers.memory import Memory
from handlers.ports import Glance, Store
from schemas.event import EVENT
from schemas.event_view import blanked, is_locked
from schemas.kind import Document, Kind, View

LARGEST = 64 * 1024 * 1024
"""Bytes that a process keeps."""
FORM = 1
"""Counts changes of how records are shown: clients must not keep what an older service has sent."""
Key = tuple[Any, ...]


class Shelf:
    """A bounded store of bytes. Nothing is shown from here unless it is the version that was just found."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._memory = Memory[bytes](LARGEST)
        site = store.site
        self._site = (FORM, site.api, site.zone.name, site.currency)

    def tag(self, kind: Kind, glance: Glance, view: View) -> str:
        """The entity tag of a record that is shown alone, made of all that its rendering depends on."""
        depends = (self._site, key_of(kind, glance, view, "single"))
        return entity_tag(glance["version"], repr(depends).encode())

    async def listed(self, kind: Kind, glances: Sequence[Glance], view: View) -> list[bytes]:
        """The records of a page as lists show them, in its order."""
        found = {glance["_id"]: self._memory.take(key_of(kind, glance, view, "list")) for glance in glances}
        missing = [id for id, body in found.items() if body is None]
        for record in await self._store.fetch(kind, missing) if missing else ():
            if view.caller.sees(record):  # it may have been hidden since it was found
                found[record["_id"]] = self._keep(kind, record, view, "list", shown_in_list)
        return [body for body in found.values() if body is not None]

    async def single(self, kind: Kind, glance: Glance, view: View) -> bytes | None:
        """A record as it is shown alone; None if it is no longer as it was found."""
        if (body := self._memory.take(key_of(kind, glance, view, "single"))) is not None:
            return body
        for record in await self._store.fetch(kind, [glance["_id"]]):
            if record["version"] == glance["version"]:
                return self._keep(kind, record, view, "single", shown_alone)
        return None

    def _keep(self, kind: Kind, record: Document, view: View, form: str, show: Any) -> bytes:
        body = orjson.dumps(show(kind, record, view))
        self._memory.keep(key_of(kind, record, view, form), body, len(body))
        return body


def key_of(kind: Kind, record: Glance, view: View, form: str) -> Key:
    """What a rendering depends on."""
    # What is shown of a term counts its events, which is not a change of the term.
    count = None if kind.is_post else record["events"]["publish"]
    return (kind.name, record["_id"], record["version"], count, view.caller.sight, form)


def shown_in_list(kind: Kind, record: Document, view: View) -> Document:
    locked = kind is EVENT and is_locked(record) and not view.caller.unlocks
    return kind.represent(kind, blanked(record, view.site) if locked else record, view)


def shown_alone(kind: Kind, record: Document, view: View) -> Document:
    shown = kind.represent(kind, record, view)
    if kind.json_ld:
        shown["json_ld"] = kind.json_ld(kind, record, view)
    return shown
