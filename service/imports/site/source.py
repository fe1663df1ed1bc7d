"""Reads a site of the reference service, or another Kalends, through its REST interface."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from yarl import URL

from schemas import CATEGORY, EVENT, ORGANIZER, TAG, VENUE
from schemas.kind import Kind
from schemas.kinds.event_representation import LINKED
from service.imports.fetching import Fetcher, shown
from service.imports.item import Item, Refusal, key_of
from service.imports.site.lists import SiteLists, identity
from service.imports.site.values import id_of, is_id, linked_records, values_of

ORDER = (CATEGORY, TAG, VENUE, ORGANIZER, EVENT)


class SiteSource:
    """The records of a site: terms, venues and organizers first, then events. With credentials, the lists
    contain unpublished records, too."""

    notices = ()
    position = 0
    size = 0

    def __init__(self, root: URL, fetcher: Fetcher) -> None:
        self._lists = SiteLists(root, fetcher)
        self.name = shown(root)
        self._identity = identity(root)
        self.change_log = self._lists.change_log
        self._yielded: set[bytes] = set()

    async def items(self) -> AsyncIterator[Item | Refusal]:
        firsts = {kind.plural: await self._lists.page(kind, 1) for kind in ORDER}
        self.size = sum(page.total for page in firsts.values())
        for kind in ORDER:
            async for record in self._lists.records(kind, firsts[kind.plural]):
                self.position += 1
                for item in self._with_linked(kind, record):
                    yield item

    def _with_linked(self, kind: Kind, record: Any) -> list[Item | Refusal]:
        """The item of a record, after those of linked records that were not in the lists."""
        if id_of(record) is None:
            return [Refusal(kind, kind.plural, "a record without an ID")]
        found: list[Item | Refusal] = [
            self._item(target, one, {})
            for field, target in LINKED.items()
            if kind is EVENT
            for one in linked_records(record, field)
            if self._key(target, one["id"]) not in self._yielded
        ]
        return [*found, self._item(kind, record, self._links(kind, record))]

    def _links(self, kind: Kind, record: Mapping[str, Any]) -> dict[str, list[bytes]]:
        if kind is CATEGORY:
            parent = record.get("parent")
            return {"parent": [self._key(kind, parent)]} if is_id(parent) else {"parent": []}
        if kind is not EVENT:
            return {}
        links = {
            field: [self._key(target, one["id"]) for one in linked_records(record, field)]
            for field, target in LINKED.items()
        }
        parent = record.get("post_parent")
        return links | ({"post_parent": [self._key(EVENT, parent)]} if is_id(parent) else {})

    def _item(self, kind: Kind, record: Mapping[str, Any], links: dict[str, list[bytes]]) -> Item:
        key = self._key(kind, record["id"])
        self._yielded.add(key)
        return Item(kind, key, f"{kind.plural}/{record['id']}", values_of(kind, record), links)

    def _key(self, kind: Kind, id: Any) -> bytes:
        return key_of("site", self._identity, kind.plural, id)
