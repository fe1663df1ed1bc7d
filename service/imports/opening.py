"""Recognizes a source by its content, and opens it."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, cast

from config import SettingError
from schemas.site import Site
from service.imports.csv.source import CsvSource
from service.imports.ical.source import CalendarSource
from service.imports.item import Source, SourceError
from service.imports.ndjson.export_source import ExportSource, is_export
from service.imports.options import ImportOptions

MAX_FILE_BYTES = 200_000_000
"""Files that have to be in memory as a whole."""
PEEKED_BYTES = 2000
NDJSON_ENDINGS = (".ndjson", ".jsonl")
SPLIT_CHARACTER = re.compile(rb"(\r?\n[ \t])([\x80-\xbf]+)")
"""A line of iCalendar that is folded inside a character: its bytes belong before the fold."""
WINDOWS = "windows"
"""The name of the error handler below."""
OTHER_FORMATS = ("<", "[", "%PDF", "PK\x03\x04")
"""Beginnings of HTML, XML, JSON arrays, PDF and spreadsheets."""


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error(WINDOWS, _as_windows)


@contextmanager
def opened_file(path: str) -> Iterator[tuple[BufferedReader[Any], int]]:
    """The file and its size; 0 for standard input, whose size is unknown."""
    if path == "-":
        yield cast(BufferedReader, sys.stdin.buffer), 0
        return
    try:
        size = Path(path).stat().st_size
        file = Path(path).open("rb")  # noqa: SIM115 - errors while reading must not be caught here
    except OSError as error:
        raise SettingError(f"cannot read {path}: {error.strerror}") from None
    with file:
        yield file, size


def recognized(file: BufferedReader[Any], size: int, options: ImportOptions, site: Site) -> Source | None:
    """The source in a file; None if it is NDJSON in the form that `POST` accepts."""
    head = file.peek(PEEKED_BYTES)[:PEEKED_BYTES].removeprefix(codecs.BOM_UTF8).lstrip()
    name = "standard input" if options.source == "-" else options.source
    if is_export(head):
        return ExportSource(name, file, size)
    if not head or head.startswith(b"{") or name.endswith(NDJSON_ENDINGS):
        return None
    text = decoded(file.read(MAX_FILE_BYTES + 1), name)
    if text.lstrip()[:100].upper().startswith("BEGIN:VCALENDAR"):
        return CalendarSource(name, text, site, options.since, options.until)
    return CsvSource(name, text, options.mapping, options.date_format)


def decoded(content: bytes, name: str) -> str:
    """The text of a file: UTF-16, or UTF-8, where other bytes have the encoding of older Windows programs."""
    if len(content) > MAX_FILE_BYTES:
        raise SourceError(f"{name} has more than {MAX_FILE_BYTES // 1_000_000} MB")
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = content.decode("utf-16", "replace")
    else:
        text = SPLIT_CHARACTER.sub(rb"\2\1", content).decode("utf-8-sig", WINDOWS)
    beginning = text.lstrip()[:PEEKED_BYTES]
    if "\0" in "".join(beginning.splitlines()[:1]) or beginning.startswith(OTHER_FORMATS):
        raise SourceError(f"{name} is not NDJSON, iCalendar or CSV")
    return text
