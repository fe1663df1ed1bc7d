"""The files of dumps: written under another name until they are complete, and opened to be read."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import IO

from service.backup.format import BackupError
from service.embedded.directory import sync_directory

STANDARD_OUTPUT = "-"


def refuse_existing(path: str, *, force: bool) -> None:
    """Raise BackupError if a dump cannot be written to a path."""
    if path == STANDARD_OUTPUT:
        if sys.stdout.isatty():
            raise BackupError("a dump is not text: name a file, or send it to another command")
        return
    place = Path(path)
    if place.is_dir():
        raise BackupError(f"{path} is a directory: name a file")
    # A dump replaces its file, and would replace a pipe or a device in the same way.
    if place.exists() and not place.is_file():
        raise BackupError(
            f"{path} is not a regular file: dump to standard output, as in `kalends dump - > {path}`"
        )
    if os.path.lexists(place) and not force:
        raise BackupError(f"{path} exists: choose another name, or overwrite it with --force")


@contextmanager
def created(path: str, *, force: bool) -> Iterator[IO[bytes]]:
    """A file that gets its name when the block has ended, and its content is on disk. Only its owner may read
    it: it contains password hashes."""
    if path == STANDARD_OUTPUT:
        # A descriptor of its own: if its reader stops, the interpreter does not complain, too.
        with (
            reporting("cannot write to standard output"),
            os.fdopen(os.dup(sys.stdout.fileno()), "wb") as file,
        ):
            yield file
        return
    with reporting(f"cannot write {path}"):
        place = Path(path).resolve()  # what a symbolic link leads to is replaced, not the link
        descriptor, name = tempfile.mkstemp(".part", f".{place.name}.", place.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            refuse_existing(path, force=force)
            Path(name).replace(place)
        except BaseException:
            Path(name).unlink()
            raise
        sync_directory(place.parent)


@contextmanager
def opened(path: str) -> Iterator[tuple[IO[bytes], int]]:
    """A file and its size."""
    with reporting(f"cannot read {path}"):
        if not S_ISREG(Path(path).stat().st_mode):
            raise BackupError(f"{path} is not a file: a restore reads the dump twice")
        file = Path(path).open("rb")  # noqa: SIM115 - other errors must not be reported like this
    with file:
        yield file, os.fstat(file.fileno()).st_size


@contextmanager
def reporting(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BackupError(f"{what}: {error.strerror or error}") from None
