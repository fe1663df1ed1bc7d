"""Rendered records, kept by version: an answer is made of what the database says is current."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import orjson

from handlers.ports import Glance, Store
from schemas.event import EVENT
from schemas.event_view import blanked, is_locked
from schemas.kind import Document, Kind, View

LARGEST = 64 * 1024 * 1024
"""Bytes that a process keeps."""
Key = tuple[Any, ...]


class Shelf:
    """A bounded store of bytes. Nothing is shown from here unless it is the version that was just found."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[Key, bytes] = OrderedDict()
        self._size = 0

    async def listed(self, kind: Kind, glances: Sequence[Glance], view: View) -> list[bytes]:
        """The records of a page as lists show them, in its order."""
        keys = [self._key(kind, glance, view, "list") for glance in glances]
        found = {glance["_id"]: self._take(key) for glance, key in zip(glances, keys, strict=True)}
        missing = [id for id, body in found.items() if body is None]
        for record in await self._store.fetch(kind, missing) if missing else ():
            if view.caller.sees(record):  # it may have been hidden since it was found
                body = orjson.dumps(shown_in_list(kind, record, view))
                self._keep(self._key(kind, record, view, "list"), body)
                found[record["_id"]] = body
        return [body for body in found.values() if body is not None]

    def single(self, kind: Kind, glance: Glance, view: View) -> bytes | None:
        """A record as it is shown alone, if it is here."""
        return self._take(self._key(kind, glance, view, "single"))

    def render(self, kind: Kind, record: Document, view: View) -> bytes:
        """A record as it is shown alone, rendered now."""
        shown = kind.represent(kind, record, view)
        if kind.json_ld:
            shown["json_ld"] = kind.json_ld(kind, record, view)
        body = orjson.dumps(shown)
        self._keep(self._key(kind, record, view, "single"), body)
        return body

    def _key(self, kind: Kind, record: Glance, view: View, form: str) -> Key:
        # What is shown of a term counts its events, which is not a change of the term.
        count = None if kind.is_post else record["events"]["publish"]
        return (kind.name, record["_id"], record["version"], count, view.caller.sight, form)

    def _take(self, key: Key) -> bytes | None:
        if (body := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
        return body

    def _keep(self, key: Key, body: bytes) -> None:
        self._size += len(body) - len(self._kept.pop(key, b""))
        self._kept[key] = body
        while self._size > LARGEST:
            _, oldest = self._kept.popitem(last=False)
            self._size -= len(oldest)


def shown_in_list(kind: Kind, record: Document, view: View) -> Document:
    locked = kind is EVENT and is_locked(record) and not view.caller.unlocks
    return kind.represent(kind, blanked(record, view.site) if locked else record, view)
