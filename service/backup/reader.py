"""Reads the file of a dump, and notices if it is not as it was written."""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any

import bson
from bson.errors import BSONError
from bson.raw_bson import RawBSONDocument

from schemas.kind import Document
from service.backup.files import reporting
from service.backup.format import (
    DIGEST_BYTES,
    MAGIC,
    MAX_DOCUMENT_BYTES,
    MAX_DOCUMENTS,
    NAME,
    BackupError,
    Batch,
)

CHUNK_BYTES = 1 << 20


class DumpReader:
    """Reads a dump, and raises BackupError if it is none, or not as it was written."""

    def __init__(self, file: IO[bytes], name: str, size: int) -> None:
        self._file, self._name, self._size = file, name, size
        self._hash = hashlib.sha256()
        self.counts = Counter[str]()
        self.position = 0
        """Bytes of the file that were read."""
        self._documents = self._parse()
        self.header = self._read_header()

    def batches(self) -> Iterator[Batch]:
        """All batches; the checksum is known to be right when the last one was returned."""
        for raw in self._documents:
            head = self._decode(raw)
            if "end" in head:
                if head["end"] != self.counts or next(self._documents, None):
                    raise self._damaged
                return
            yield self._batch(head)
        raise self._damaged

    def _batch(self, head: Document) -> Batch:
        name, size = head.get("collection"), head.get("documents")
        if not isinstance(name, str) or not isinstance(size, int) or size > MAX_DOCUMENTS:
            raise self._damaged
        documents = [RawBSONDocument(self._next()) for _ in range(size)]
        self.counts[name] += size
        return Batch(name, documents)

    def _read_header(self) -> Document:
        start = self._file.read(len(MAGIC))
        if not start.startswith(NAME):
            raise BackupError(f"{self._name} is not a dump of Kalends")
        if start != MAGIC:
            raise BackupError(f"{self._name} is a dump of a newer version of Kalends, or damaged")
        self._hash.update(start)
        self.position = len(start)
        return self._decode(self._next())

    def _next(self) -> bytes:
        if (found := next(self._documents, None)) is None:
            raise self._damaged
        return found

    def _parse(self) -> Iterator[bytes]:
        """The documents of the stream."""
        kept = bytearray()
        for content in self._decompress():
            kept += content
            at = 0
            while len(kept) - at >= 4:
                size = int.from_bytes(kept[at : at + 4], "little")
                if not 5 <= size <= MAX_DOCUMENT_BYTES:
                    raise self._damaged
                if len(kept) - at < size:
                    break
                yield bytes(kept[at : at + size])
                at += size
            del kept[:at]
        if kept:
            raise self._damaged

    def _decompress(self) -> Iterator[bytes]:
        """The stream in pieces of limited size; the checksum is compared at its end."""
        stream = zlib.decompressobj()
        try:
            while self.position < self._size - DIGEST_BYTES:
                content = self._read(min(CHUNK_BYTES, self._size - DIGEST_BYTES - self.position))
                while content:
                    yield stream.decompress(content, CHUNK_BYTES)
                    content = stream.unconsumed_tail
        except zlib.error:
            raise self._damaged from None
        if not stream.eof or stream.unused_data or self._file.read() != self._hash.digest():
            raise self._damaged

    def _read(self, size: int) -> bytes:
        with reporting(f"cannot read {self._name}"):
            content = self._file.read(size)
        if len(content) < size:
            raise self._damaged
        self._hash.update(content)
        self.position += size
        return content

    def _decode(self, raw: bytes) -> dict[str, Any]:
        try:
            return bson.decode(raw)
        except BSONError:
            raise self._damaged from None

    @property
    def _damaged(self) -> BackupError:
        return BackupError(f"{self._name} is damaged or cut off: its checksum is wrong")
