"""Parse and validate the lines of an import file, with a fingerprint to recognize each in a later run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import BinaryIO

from handlers.parameters import json_values
from schemas.errors import Problem, TooLarge
from schemas.kind import Kind, load_valid
from schemas.language import Text
from schemas.site import Site
from schemas.warnings import unknown_fields
from service.store.records.drafting import Row

MOST, LARGEST = 500, 5_000_000
"""Maximum lines and bytes of a batch."""
BLANK = b" \t\r\n"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UNKNOWN = Text("Unknown field; --ignore-unknown-fields imports the record without it.")


@dataclass(frozen=True)
class Line:
    """A line that is not blank; `text` is None if it is too long, `mark` is its fingerprint."""

    number: int
    text: bytes | None
    mark: bytes


@dataclass
class Batch:
    """Lines to import together, and the file offset at which they end."""

    lines: list[Line] = field(default_factory=list)
    size: int = 0
    end: int = 0


def batches(file: BinaryIO, kind: Kind, longest: int) -> Iterator[Batch]:
    """The lines of a file in batches, without blank ones."""
    batch, seen = Batch(), Counter[bytes]()
    for number, (text, size) in enumerate(_cut(file, longest), 1):
        batch.size += size
        batch.end += size
        if text is None or text:
            batch.lines.append(Line(number, text, _mark(kind, text or b"", seen)))
        if len(batch.lines) >= MOST or batch.size >= LARGEST:
            yield batch
            batch = Batch(end=batch.end)
    yield batch


def _cut(file: BinaryIO, longest: int) -> Iterator[tuple[bytes | None, int]]:
    """Each line, stripped, and its size in the file; None for a line that is too long."""
    is_first = True
    while text := file.readline(longest + 2):
        size = len(text)
        while not text.endswith(b"\n") and (rest := file.readline(longest)):
            size += len(rest)
            text = text[:longest] + rest[-1:]
        kept = (text.removeprefix(BYTE_ORDER_MARK) if is_first else text).strip(BLANK)
        is_first = False
        yield (kept if size <= longest + 2 and len(kept) <= longest else None), size


def _mark(kind: Kind, text: bytes, seen: Counter[bytes]) -> bytes:
    """The fingerprint of a line: a hash, and an occurrence number to distinguish identical lines."""
    digest = blake2b(text, digest_size=16, person=kind.name.encode()).digest()
    seen[digest] += 1
    return digest + seen[digest].to_bytes(4)


def read(
    lines: Iterable[Line], kind: Kind, site: Site, *, ignore_unknown: bool
) -> tuple[list[Row], dict[int, Problem]]:
    """The rows of the valid lines, and the problems of the others by line number."""
    rows: list[Row] = []
    refused: dict[int, Problem] = {}
    for line in lines:
        try:
            if line.text is None:
                raise TooLarge
            values = json_values(line.text)
            data, problems = load_valid(kind.schema, values, site)
            if not ignore_unknown:
                problems.update(dict.fromkeys(unknown_fields(kind, values), UNKNOWN))
            problems.refuse()
            rows.append(Row(line.number, line.mark, data))
        except Problem as problem:
            refused[line.number] = problem
    return rows, refused
