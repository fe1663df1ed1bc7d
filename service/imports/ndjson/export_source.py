"""Reads what `kalends export` has written: a line about the database, then a record on each line."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator
from io import BufferedReader
from typing import Any
from uuid import UUID

import orjson

from schemas import BY_NAME, BY_PLURAL, EVENT
from schemas.kind import Kind
from schemas.kinds.parents import parent_field
from service.imports.item import Entry, Item, Refusal, SourceError, key_of

HEADER = "kalends_export"
"""The first key of the first line, which identifies the database that the records were created in."""
INSTANCE = "instance"
"""The second one: the identity of the calendar, from which the identifiers in feeds are made."""
HIDDEN = ("password_hash", "import_key", "import_hash")
"""What a line contains besides the fields of the interface."""
MAX_ID = 2**53
"""Larger numbers are not exact in other programs, and leave no room for new records."""
MAX_LINE_BYTES = 32_000_000
"""More than a document of MongoDB can have."""


def is_export(head: bytes) -> bool:
    return head.startswith(b'{"%s":' % HEADER.encode())


class ExportSource:
    """The records of an export. Where their ids are free, they are imported with these."""

    notices = ()

    def __init__(self, name: str, file: BufferedReader[Any], size: int) -> None:
        self.name, self.size, self._file = name, size, file
        self._imported: dict[tuple[str, int], bytes] = {}
        """Keys of records that had been imported before they were exported."""
        header = file.readline(MAX_LINE_BYTES)
        self.position = len(header)
        try:
            found = orjson.loads(header.removeprefix(codecs.BOM_UTF8))
            self.origin, self.instance = UUID(found[HEADER]), UUID(found[INSTANCE])
        except (ValueError, TypeError, AttributeError, KeyError):
            raise SourceError(f"{name}, line 1: not the first line of an export") from None

    async def items(self) -> AsyncIterator[Entry]:
        number = 1
        while line := self._file.readline(MAX_LINE_BYTES):
            number += 1
            self.position += len(line)
            if line.strip():
                yield self._entry(line, f"line {number}")

    def _entry(self, line: bytes, where: str) -> Entry:
        try:
            record = orjson.loads(line)
            kind, id = BY_PLURAL[record.pop("kind")], record.pop("id")
            password, key, hash = (record.pop(name, None) for name in HIDDEN)
            refuse_unusable(id, password)
            links = {
                name: self._keys(kind, name, record.pop(name)) for name in linked_fields(kind) & record.keys()
            }
            if key:
                self._imported[kind.plural, id] = bytes.fromhex(key)
            imported_hash = bytes.fromhex(hash) if hash else None
        except (ValueError, TypeError, AttributeError, KeyError):
            return Refusal(EVENT, where, "not a record with its kind, ID and links, as an export has them")
        return Item(kind, self._key(kind, id), where, record, links, id, password, imported_hash)

    def _keys(self, kind: Kind, field: str, ids: list[int]) -> list[bytes]:
        return [self._key(BY_NAME[kind.links.get(field, kind.name)], int(id)) for id in ids]

    def _key(self, kind: Kind, id: int) -> bytes:
        """The key with which a record was imported before it was exported, or one of its own."""
        return self._imported.get((kind.plural, id)) or key_of("kalends", self.origin, kind.plural, id)


def refuse_unusable(id: object, password_hash: object) -> None:
    """Raise ValueError for an ID that cannot be kept, or for a text that is not the hash of a password."""
    is_id = type(id) is int and 0 < id <= MAX_ID
    is_hash = password_hash is None or str(password_hash).startswith("$argon2")
    if not is_id or not is_hash:
        raise ValueError


def linked_fields(kind: Kind) -> set[str]:
    """The fields of a record that contain ids of others."""
    return {*kind.links, parent_field(kind)}
