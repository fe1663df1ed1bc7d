"""Files that are no dumps, or not whole, and places that cannot be written to: one line, nothing changes."""

from __future__ import annotations

import gzip
import io
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from bson import Timestamp, encode
from bson.raw_bson import RawBSONDocument

from config import Settings
from schemas.values.dates import EPOCH
from service.backup.contents import Header
from service.backup.dumping import DumpOptions, dump_database
from service.backup.format import BackupError, Batch, DumpWriter
from service.backup.reader import DumpReader
from service.backup.restore_command import RestoreOptions, restore_database
from service.embedded import EmbeddedError
from service.migrations import FORM
from service.store import Store
from tests.test_faults import command

NOWHERE = replace(Settings(), mongodb_uri="mongodb://127.0.0.1:1/?replicaSet=none")
"""A database that must not be asked for."""
HEADER = Header(FORM, "1.0", EPOCH, Timestamp(1, 1), {"_id": "instance", "uuid": "x"}, ["events", "tags"])


def whole() -> bytes:
    file, chance = io.BytesIO(), random.Random(1)
    writer = DumpWriter(file, HEADER._asdict())
    for name in ("events", "tags"):
        for _ in range(3):
            texts = [chance.randbytes(chance.randrange(300)) for _ in range(20)]
            writer.add(Batch(name, [RawBSONDocument(encode({"text": text})) for text in texts]))
    writer.end()
    return file.getvalue()


WHOLE = whole()


def read(content: bytes) -> int:
    reader = DumpReader(io.BytesIO(content), "it", len(content))
    return sum(len(batch.documents) for batch in reader.batches())


def test_a_whole_dump_is_read() -> None:
    assert read(WHOLE) == 120


def test_a_dump_that_is_cut_anywhere_is_refused() -> None:
    for length in (*range(100), *range(100, len(WHOLE) - 100, 53), *range(len(WHOLE) - 100, len(WHOLE))):
        with pytest.raises(BackupError):
            read(WHOLE[:length])


def test_a_dump_with_one_other_bit_is_refused() -> None:
    places = (*range(200), *range(200, len(WHOLE) - 200, 31), *range(len(WHOLE) - 200, len(WHOLE)))
    for place in places:
        other = bytearray(WHOLE)
        other[place] ^= 1 << place % 8
        with pytest.raises(BackupError):
            read(bytes(other))


@pytest.mark.parametrize(
    "other",
    [WHOLE + b"\0", WHOLE + WHOLE, WHOLE[:500] + WHOLE[600:], WHOLE[:500] + bytes(100) + WHOLE[600:]],
    ids=["a byte more", "twice", "a part missing", "a part of zeros"],
)
def test_a_dump_that_is_not_as_it_was_written_is_refused(other: bytes) -> None:
    with pytest.raises(BackupError, match="it is damaged or cut off"):
        read(other)


Make = Callable[[Path], object]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_bytes(b""), "is not a dump of Kalends"),
        (lambda path: path.write_text("title,start\nJazz,2027-06-01\n"), "is not a dump of Kalends"),
        (lambda path: path.write_bytes(gzip.compress(b"something else")), "is not a dump of Kalends"),
        (
            lambda path: path.write_bytes(b"KALENDS DUMP 7\n" + WHOLE[15:]),
            "newer version of Kalends, or damaged",
        ),
        (lambda path: path.write_bytes(WHOLE[:-1]), "is damaged or cut off"),
        (lambda path: path.mkdir(), "is not a file"),
        (os.mkfifo, "is not a file"),
        (lambda path: None, "cannot read .*: No such file or directory"),
    ],
    ids=["empty", "text", "gzip", "newer", "cut", "directory", "pipe", "missing"],
)
async def test_what_is_no_dump_is_refused_before_the_database_is_asked(
    make: Make, message: str, tmp_path: Path
) -> None:
    make(path := tmp_path / "some.dump")
    with pytest.raises(BackupError, match=message):
        await restore_database(NOWHERE, RestoreOptions(str(path), replace=True))


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        (
            "there",
            lambda path: path.write_text("kept"),
            "exists: choose another name, or overwrite it with --force",
        ),
        ("there", lambda path: path.symlink_to("nowhere"), "exists: choose another name"),
        ("there", lambda path: path.mkdir(), "is a directory"),
        ("there", os.mkfifo, "is not a regular file: dump to standard output"),
    ],
    ids=["file", "link", "directory", "pipe"],
)
async def test_what_exists_is_not_overwritten(name: str, make: Make, message: str, tmp_path: Path) -> None:
    make(path := tmp_path / name)
    before = list(tmp_path.iterdir())
    with pytest.raises(BackupError, match=message):
        await dump_database(NOWHERE, DumpOptions(str(path)))
    assert list(tmp_path.iterdir()) == before


async def test_a_pipe_or_device_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(path := tmp_path / "pipe")
    with pytest.raises(BackupError, match="is not a regular file"):
        await dump_database(NOWHERE, DumpOptions(str(path), force=True))
    assert path.is_fifo()


async def test_what_a_link_leads_to_is_overwritten(tmp_path: Path, mongodb_uri: str, store: Store) -> None:
    settings = replace(Settings(), mongodb_uri=mongodb_uri, database=store.database.name)
    (tmp_path / "disk").mkdir()
    (link := tmp_path / "last.dump").symlink_to(tmp_path / "disk" / "last.dump")
    for _ in range(2):
        await dump_database(settings, DumpOptions(str(link), force=True))
        assert link.is_symlink()
        assert [path.name for path in (tmp_path / "disk").iterdir()] == ["last.dump"]


async def test_there_must_be_something_to_dump(tmp_path: Path, mongodb_uri: str) -> None:
    path, nowhere = tmp_path / "all.dump", tmp_path / "none"
    with pytest.raises(EmbeddedError, match=f"there is no data in {nowhere}"):
        await dump_database(replace(Settings(), data_dir=nowhere), DumpOptions(str(path)))
    never = replace(Settings(), mongodb_uri=mongodb_uri, database="never_used")
    with pytest.raises(BackupError, match=r"there is nothing to dump: database never_used .* never"):
        await dump_database(never, DumpOptions(str(path)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_command_says_one_line_and_fails(tmp_path: Path, mongodb_uri: str) -> None:
    (tmp_path / "some.dump").write_text("Hello")
    settings = {"MONGODB_URI": mongodb_uri, "DATABASE": "never_used"}
    for words in (
        ["restore", str(tmp_path / "some.dump")],
        ["restore", str(tmp_path)],
        ["restore", str(tmp_path / "missing")],
        ["dump", str(tmp_path)],
        ["dump", str(tmp_path / "no" / "directory")],
        ["dump", str(tmp_path / "all.dump")],
        ["restore"],
    ):
        run = command(tmp_path / "data", *words, **settings)
        said = [line for line in run.stderr.splitlines() if not line.startswith(("Checking", "Try"))]
        assert (run.returncode in (1, 2), run.stdout, len(said)) == (True, "", 1), run
        assert said[0].startswith("kalends"), run
    assert {path.name for path in tmp_path.iterdir()} == {"some.dump"}


async def test_a_full_disk_is_reported(mongodb_uri: str, store: Store) -> None:
    name = store.database.name
    environment = os.environ | {"KALENDS_MONGODB_URI": mongodb_uri, "KALENDS_DATABASE": name}
    with Path("/dev/full").open("wb") as output:
        run = subprocess.run(
            [sys.executable, "-m", "service", "dump", "-"],
            env=environment,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == "kalends: cannot write to standard output: No space left on device"
