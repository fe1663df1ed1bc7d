"""What readers yield: a record of the source, or the reason why it cannot be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

import orjson

from schemas.kind import Document, Kind

KEY_BYTES = 16


class SourceError(Exception):
    """The source cannot be read, or not any further; the message is one line."""


@dataclass(frozen=True)
class Item:
    """A record of the source, in the form in which it would be sent to the API."""

    kind: Kind
    key: bytes
    """Identifies the record of the source for ever."""
    where: str
    """Where in the source it is, for messages."""
    values: Mapping[str, Any] | None
    """The fields that the source has; None if the record was cancelled there."""
    links: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    """Field -> keys of the records of the source that it links to."""
    id: int | None = None
    """The id that it has in the source, if it should keep it."""
    password_hash: str | None = None
    imported_hash: bytes | None = None
    """The hash of the values it was imported with into the source, if it was."""

    @property
    def hash(self) -> bytes:
        """A hash of everything that the source says about the record."""
        links = {name: [key.hex() for key in keys] for name, keys in sorted(self.links.items())}
        said = orjson.dumps([self.values, links, self.password_hash], option=orjson.OPT_SORT_KEYS)
        return blake2b(said, digest_size=KEY_BYTES).digest()


class Refusal(NamedTuple):
    """A record of the source that cannot be imported, and why."""

    kind: Kind
    where: str
    reason: str


class Series(NamedTuple):
    """All records that the source has in some ranges of keys: others that were imported from it before have
    been cancelled."""

    kind: Kind
    where: str
    ranges: tuple[tuple[bytes, bytes], ...]
    present: frozenset[bytes]


Entry = Item | Refusal | Series


class Source(Protocol):
    """A source that was recognized and opened."""

    @property
    def name(self) -> str: ...
    @property
    def notices(self) -> Sequence[str]:
        """What should be known about the source as a whole."""

    @property
    def size(self) -> int:
        """How much there is to read; 0 if that is not known."""

    @property
    def position(self) -> int:
        """How much of it was read."""

    def items(self) -> AsyncIterator[Entry]:
        """The records. Linked records should come before those that link to them."""


def key_of(*parts: object) -> bytes:
    """The key of a record, from everything that identifies it."""
    return blake2b(orjson.dumps([str(part) for part in parts]), digest_size=KEY_BYTES).digest()


class OccurrenceKeys:
    """Keys for records that only their content identifies: equal ones are numbered."""

    def __init__(self) -> None:
        self._seen = Counter[bytes]()

    def number(self, key: bytes) -> bytes:
        self._seen[key] += 1
        return key + self._seen[key].to_bytes(4)


def without_empty(values: Document) -> Document:
    """The values that are set: an unset field of a linked record must not keep it from being found."""
    return {name: value for name, value in values.items() if value not in (None, "")}
