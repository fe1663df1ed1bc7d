"""The file format of a dump.

A line that names the format, a zlib stream, and the SHA-256 of everything before it, as 32 bytes. The
stream is a sequence of BSON documents: a header, the batches, and the number of documents in each collection.
A batch is a document that names a collection and the number of its documents, followed by these.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import IO, NamedTuple

import bson
from bson.raw_bson import RawBSONDocument

from schemas.kind import Document

NAME = b"KALENDS DUMP "
MAGIC = NAME + b"1\n"
COMPRESSION_LEVEL = 1
DIGEST_BYTES = hashlib.sha256().digest_size
MAX_DOCUMENT_BYTES = 17 << 20
"""MongoDB limits a document to 16 MiB."""
MAX_DOCUMENTS = 1000
"""Documents in one batch."""


class BackupError(Exception):
    """A dump or a restore is not possible; the message is one line for the operator."""


class Batch(NamedTuple):
    """Documents of one collection."""

    collection: str
    documents: Sequence[RawBSONDocument]


class DumpWriter:
    """Writes a dump to a file that need not be seekable."""

    def __init__(self, file: IO[bytes], header: Document) -> None:
        self._file, self._hash, self._compressor = file, hashlib.sha256(), zlib.compressobj(COMPRESSION_LEVEL)
        self.counts = Counter[str]()
        self._write(MAGIC)
        self._compress(bson.encode(header))

    def add(self, batch: Batch) -> None:
        size = len(batch.documents)
        self._compress(bson.encode({"collection": batch.collection, "documents": size}))
        self._compress(b"".join(document.raw for document in batch.documents))
        self.counts[batch.collection] += size

    def end(self) -> None:
        self._compress(bson.encode({"end": dict(self.counts)}))
        self._write(self._compressor.flush())
        self._file.write(self._hash.digest())

    def _compress(self, content: bytes) -> None:
        self._write(self._compressor.compress(content))

    def _write(self, content: bytes) -> None:
        self._hash.update(content)
        self._file.write(content)
