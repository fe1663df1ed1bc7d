"""Parse and validate the lines of an import file, with a fingerprint to recognize each in a later run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import BinaryIO, NamedTuple

from handlers.requests import json_values
from schemas.errors import Problem, TooLarge
from schemas.kind import Document, Kind, load_valid
from schemas.language import Text
from schemas.site import Site
from schemas.warnings import unknown_fields

MAX_BATCH_LINES, MAX_BATCH_BYTES = 500, 5_000_000
"""Maximum lines and bytes of a batch."""
WHITESPACE = b" \t\r\n"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UNKNOWN_FIELD = Text("Unknown field; --ignore-unknown-fields imports the record without it.")


@dataclass(frozen=True)
class ImportLine:
    """A line that is not blank; `text` is None if it is too long, `fingerprint` identifies it."""

    number: int
    text: bytes | None
    fingerprint: bytes


class ImportRow(NamedTuple):
    """The data of a valid line."""

    number: int
    fingerprint: bytes
    data: Document


@dataclass
class LineBatch:
    """Lines to import together, and the file offset at which they end."""

    lines: list[ImportLine] = field(default_factory=list)
    size: int = 0
    end: int = 0


def read_batches(file: BinaryIO, kind: Kind, max_line_bytes: int) -> Iterator[LineBatch]:
    """The lines of a file in batches, without blank ones."""
    batch, seen = LineBatch(), Counter[bytes]()
    for number, (text, size) in enumerate(_split_lines(file, max_line_bytes), 1):
        batch.size += size
        batch.end += size
        if text is None or text:
            batch.lines.append(ImportLine(number, text, _fingerprint(kind, text or b"", seen)))
        if len(batch.lines) >= MAX_BATCH_LINES or batch.size >= MAX_BATCH_BYTES:
            yield batch
            batch = LineBatch(end=batch.end)
    yield batch


def _split_lines(file: BinaryIO, max_line_bytes: int) -> Iterator[tuple[bytes | None, int]]:
    """Each line, stripped, and its size in the file; None for a line that is too long."""
    is_first = True
    while text := file.readline(max_line_bytes + 2):
        size = len(text)
        while not text.endswith(b"\n") and (rest := file.readline(max_line_bytes)):
            size += len(rest)
            text = text[:max_line_bytes] + rest[-1:]
        content = (text.removeprefix(BYTE_ORDER_MARK) if is_first else text).strip(WHITESPACE)
        is_first = False
        yield (content if size <= max_line_bytes + 2 and len(content) <= max_line_bytes else None), size


def _fingerprint(kind: Kind, text: bytes, seen: Counter[bytes]) -> bytes:
    """The fingerprint of a line: a hash, and an occurrence number to distinguish identical lines."""
    digest = blake2b(text, digest_size=16, person=kind.name.encode()).digest()
    seen[digest] += 1
    return digest + seen[digest].to_bytes(4)


def parse_lines(
    lines: Iterable[ImportLine], kind: Kind, site: Site, *, ignore_unknown: bool
) -> tuple[list[ImportRow], dict[int, Problem]]:
    """The rows of the valid lines, and the problems of the others by line number."""
    rows: list[ImportRow] = []
    refused: dict[int, Problem] = {}
    for line in lines:
        try:
            if line.text is None:
                raise TooLarge
            values = json_values(line.text)
            data, problems = load_valid(kind.body_schema, values, site)
            if not ignore_unknown:
                problems.update(dict.fromkeys(unknown_fields(kind, values), UNKNOWN_FIELD))
            problems.refuse()
            rows.append(ImportRow(line.number, line.fingerprint, data))
        except Problem as problem:
            refused[line.number] = problem
    return rows, refused
