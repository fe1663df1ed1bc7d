"""Lines of a file as rows to import: cut, parsed, validated, and marked so that each is known again."""

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
from service.store.drafts import Row

MOST, LARGEST = 500, 5_000_000
"""Lines of a batch, and bytes."""
BLANK = b" \t\r\n"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UNKNOWN = Text("Unknown field; --ignore-unknown-fields imports the record without it.")


@dataclass(frozen=True)
class Line:
    """A line that says something. Its text is None where it is longer than allowed."""

    number: int
    text: bytes | None
    mark: bytes


@dataclass
class Batch:
    """Lines to import together, and how far into the file they reach."""

    lines: list[Line] = field(default_factory=list)
    size: int = 0
    end: int = 0


def batches(file: BinaryIO, kind: Kind, longest: int) -> Iterator[Batch]:
    """The lines of a file, a batch at a time; blank ones do not count."""
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
    """Each line without its end, and its size; None for one that is too long to be kept."""
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
    """Equal lines are told apart by which of them they are."""
    digest = blake2b(text, digest_size=16, person=kind.name.encode()).digest()
    seen[digest] += 1
    return digest + seen[digest].to_bytes(4)


def read(
    lines: Iterable[Line], kind: Kind, site: Site, *, ignore_unknown: bool
) -> tuple[list[Row], dict[int, Problem]]:
    """The rows that lines stand for, and what is wrong with the others."""
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
