"""Link references: records by id, terms by slug or name, venues and organizers by their fields."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from schemas.fields import MAX_INT64
from schemas.kind import Document, Kind
from schemas.links import is_number
from schemas.site import Site

LinkRef = int | str | Document
"""The id of a record; the id, slug or name of a term; or the fields of a venue or organizer."""

NEVER_EMPTY = ("status", "slug", "author", "date", "date_utc")
"""Fields that every record has, whatever is sent."""


def link_ref(kind: Kind, link: Any, site: Site) -> LinkRef | None:
    """Convert a link in the data of an event to a reference; None if no such record can exist yet."""
    return link if isinstance(link, int | str) else _described(kind, link, site)


def _described(kind: Kind, link: Mapping[str, Any], site: Site) -> Document | None:
    """The fields that identify the record described by the data: a published one with the same values. One
    that is given as empty must be empty there, unless no record is without it."""
    given = {name: value for name, value in link.items() if value is not None or name not in NEVER_EMPTY}
    if given.get("status", "publish") != "publish":
        return None
    settled = kind.normalize(given, None, site)
    return {name: settled[name] for name in given if name in settled} | {"status": "publish"}


def name_key(name: str) -> str:
    """The normalized name of a term: names with the same key count as equal."""
    return unicodedata.normalize("NFC", name).casefold()


def id_in(ref: LinkRef) -> int | None:
    """The id that a reference may name; a string of digits may also be a slug or a name."""
    if isinstance(ref, int):
        return ref
    return min(int(ref), MAX_INT64) if isinstance(ref, str) and is_number(ref) else None


def condition(refs: Iterable[LinkRef]) -> Document:
    """A query for all records of a kind that are referred to; it may match others of the same name."""
    distinct = {repr(ref): ref for ref in refs}.values()
    ids = [id for ref in distinct if (id := id_in(ref)) is not None]
    texts = [ref for ref in distinct if isinstance(ref, str)]
    either: list[Document] = [ref for ref in distinct if isinstance(ref, dict)]
    if ids:
        either.append({"_id": {"$in": ids}})
    if texts:
        either += [{"slug": {"$in": texts}}, {"key": {"$in": [name_key(text) for text in texts]}}]
    return either[0] if len(either) == 1 else {"$or": either}


class Candidates:
    """Records that link references may refer to."""

    def __init__(self) -> None:
        self._by_id: dict[tuple[str, int], Document] = {}
        self._by_name: defaultdict[tuple[str, str], list[Document]] = defaultdict(list)

    def add(self, kind: Kind, record: Document) -> None:
        if (kind.name, record["_id"]) not in self._by_id:
            self._by_id[kind.name, record["_id"]] = record
            for name in {record[kind.name_field]} if kind.is_post else {record["slug"], record["key"]}:
                self._by_name[kind.name, name].append(record)

    def match(self, kind: Kind, ref: LinkRef) -> Document | None:
        """The record referred to: by id, else a term by slug, else by name; the oldest of several."""
        id = id_in(ref)
        by_id = None if id is None else self._by_id.get((kind.name, id))
        if by_id or isinstance(ref, int):
            return by_id
        names = {ref, name_key(ref)} if isinstance(ref, str) else {ref[kind.name_field]}
        likely = (record for name in names for record in self._by_name.get((kind.name, name), ()))
        fitting = [record for record in likely if _fits(record, ref)]
        return min(fitting, key=lambda record: (record["slug"] != ref, record["_id"]), default=None)


def _fits(record: Mapping[str, Any], ref: str | Document) -> bool:
    if isinstance(ref, str):
        return bool(ref == record["slug"] or name_key(ref) == record["key"])
    return all(record.get(name) == value for name, value in ref.items())
