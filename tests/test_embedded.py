"""The embedded mongod: private, durable, never twice on one directory, never left behind."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import bson
import pytest
from pymongo import AsyncMongoClient, MongoClient
from pymongo.errors import OperationFailure, PyMongoError

from service.embedded import EmbeddedError, embedded_mongod, member, program, running_uri, server
from service.embedded.directory import Directory
from service.embedded.log import Log
from service.mongo.client import Client, close_client
from service.mongo.hello import HEADER, HELLO, OP_MSG

pytestmark = pytest.mark.slow

DEADLINE = 60.0
REPOSITORY = Path(__file__).parent.parent
SERVICE = """
import asyncio, pathlib, sys
from service.embedded import embedded_mongod

async def main():
    async with embedded_mongod(pathlib.Path(sys.argv[1])) as uri:
        print(uri, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of one mongod for all tests that leave it as it is."""
    data_dir = tmp_path_factory.mktemp("kalends") / "data"
    with asyncio.Runner() as runner:
        mongod = embedded_mongod(data_dir)
        runner.run(mongod.__aenter__())
        yield data_dir
        runner.run(mongod.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that was used once, with one event; to be copied, not touched."""
    data_dir = tmp_path_factory.mktemp("kalends") / "new" / "data"

    async def use() -> None:
        async with client_of(data_dir) as client:
            assert client.write_concern.document == {"w": "majority"}
            await client.calendar.events.insert_one({"_id": 1})

    asyncio.run(use())
    return data_dir


@asynccontextmanager
async def client_of(data_dir: Path) -> AsyncIterator[AsyncMongoClient[dict[str, Any]]]:
    async with embedded_mongod(data_dir) as uri, AsyncMongoClient[dict[str, Any]](uri) as client:
        yield client


@contextmanager
def other_service(data_dir: Path, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that runs a mongod, ready to be used or killed."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), *filter(None, sys.path)])}
    command = [sys.executable, "-c", SERVICE, str(data_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=cwd, env=environment) as process:
        try:
            assert process.stdout
            assert process.stdout.readline().startswith("mongodb://")
            yield process
        finally:
            process.kill()


async def until(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < give_up, "nothing happened in time"
        await asyncio.sleep(0.05)


def mongod_pid(data_dir: Path) -> int:
    return int((data_dir / "db" / "mongod.lock").read_text())


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def mode(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


async def test_a_stop_leaves_no_process_and_no_socket(tmp_path: Path) -> None:
    async with embedded_mongod(tmp_path):
        pid = mongod_pid(tmp_path)
        assert lives(pid)
        assert os.getsid(pid) == pid, "Ctrl-C would reach it before the service"
    assert not lives(pid)
    assert not list(tmp_path.glob("*.sock"))


async def test_a_stop_does_not_wait_for_clients(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with client_of(tmp_path) as client, client.start_session() as session:
        await session.start_transaction()
        await client.calendar.events.insert_one({"_id": 1}, session=session)
        pid = mongod_pid(tmp_path)
    assert not lives(pid)
    assert "killing" not in caplog.text


async def test_one_directory_has_one_owner(running: Path) -> None:
    with pytest.raises(
        EmbeddedError, match=f"in use by process {os.getpid()}; stop it or choose another KALENDS"
    ):
        await embedded_mongod(running).__aenter__()


async def test_an_owner_in_another_process_is_named(tmp_path: Path) -> None:
    with other_service(tmp_path / "data", tmp_path) as process, pytest.raises(EmbeddedError) as caught:
        await embedded_mongod(tmp_path / "data").__aenter__()
    assert f"in use by process {process.pid};" in str(caught.value)


def test_the_uri_is_known_beside_a_running_service_only(tmp_path: Path) -> None:
    assert running_uri(tmp_path / "data") is None
    with other_service(tmp_path / "data", tmp_path) as process:
        with MongoClient[dict[str, Any]](running_uri(tmp_path / "data")) as client:
            assert client.admin.command("ping")["ok"]
        process.kill()
        process.wait()
        assert running_uri(tmp_path / "data") is None


def test_it_is_reached_by_its_socket_only(running: Path) -> None:
    process = Path(f"/proc/{mongod_pid(running)}")
    handles = {str(handle.readlink()) for handle in (process / "fd").iterdir()}

    def sockets(table: str, column: int) -> list[list[str]]:
        rows = [line.split() for line in (process / "net" / table).read_text().splitlines()[1:]]
        return [row for row in rows if f"socket:[{row[column]}]" in handles]

    assert [sockets(table, 9) for table in ("tcp", "tcp6", "udp", "udp6")] == [[], [], [], []]
    assert {row[7] for row in sockets("unix", 6) if len(row) > 7} == {"./mongod.sock"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (".", "0o700"),
        ("db", "0o700"),
        ("keyfile", "0o600"),
        ("password", "0o600"),
        ("mongod.sock", "0o700"),
    ],
)
def test_other_users_are_kept_out(running: Path, name: str, expected: str) -> None:
    assert mode(running / name) == expected


async def test_strangers_are_refused(running: Path) -> None:
    uri = str(running_uri(running))
    async with AsyncMongoClient[dict[str, Any]]("mongodb://" + uri.partition("@")[2]) as stranger:
        with pytest.raises(OperationFailure, match="requires authentication"):
            await stranger.calendar.events.find_one()
        with pytest.raises(OperationFailure, match="requires authentication"):
            await stranger.admin.command("createUser", "second", pwd="x", roles=["root"])


async def test_the_client_of_a_set_up_that_is_cancelled_is_closed(
    running: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking, closed = asyncio.Event(), list[Client]()

    async def ask_without_end(client: Client) -> bool:
        asking.set()
        return await asyncio.Event().wait()

    def close(client: Client) -> None:
        close_client(client)
        closed.append(client)

    monkeypatch.setattr(member, "_became_primary", ask_without_end)
    monkeypatch.setattr(member, "close_client", close)
    setting_up = asyncio.create_task(member.became_ready(Directory.at(running)))
    async with asyncio.timeout(DEADLINE):
        await asking.wait()
        setting_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await setting_up
    assert len(closed) == 1


async def test_what_the_service_needs_is_allowed(running: Path) -> None:
    async with AsyncMongoClient[dict[str, Any]](running_uri(running)) as client:
        events = client.calendar.events
        await events.create_index([("place", "2dsphere")])
        async with client.start_session() as session, await session.start_transaction():
            await events.insert_one({"_id": 1}, session=session)
            await client.calendar.venues.insert_one({"_id": 1}, session=session)
        await client.calendar.command("profile", 1)
        await client.calendar.command("profile", 0)
        assert (await events.find({"_id": 1}).explain())["ok"]
        assert (await client.admin.command("serverStatus"))["ok"]
        async with await events.watch():
            pass
        await client.drop_database("calendar")


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ({"shutdown": 1}, "not authorized"),
        ({"createUser": "second", "pwd": "x", "roles": ["root"]}, "not authorized"),
        ({"find": "events", "filter": {"$where": "1"}}, "(?i)script"),
    ],
)
async def test_what_the_service_does_not_need_is_not(
    running: Path, command: dict[str, Any], why: str
) -> None:
    async with AsyncMongoClient[dict[str, Any]](running_uri(running)) as client:
        with pytest.raises(OperationFailure, match=why):
            await client.admin.command(command)


async def test_a_killed_service_leaves_no_mongod_and_no_damage(tmp_path: Path) -> None:
    with other_service(tmp_path / "data", tmp_path) as process:
        pid = mongod_pid(tmp_path / "data")
        with MongoClient[dict[str, Any]](running_uri(tmp_path / "data")) as client:
            client.calendar.events.insert_one({"_id": 1})
        process.kill()
    async with client_of(tmp_path / "data") as after:
        assert await after.calendar.events.find_one() == {"_id": 1}
    await until(lambda: not lives(pid))


async def test_both_killed_at_once_leave_no_damage(tmp_path: Path) -> None:
    with other_service(tmp_path / "data", tmp_path) as process:
        with MongoClient[dict[str, Any]](running_uri(tmp_path / "data")) as client:
            client.calendar.events.insert_one({"_id": 1})
        process.send_signal(signal.SIGSTOP)
        os.kill(mongod_pid(tmp_path / "data"), signal.SIGKILL)
        process.kill()
    assert (tmp_path / "data" / "mongod.sock").exists()
    async with client_of(tmp_path / "data") as after:
        assert await after.calendar.events.find_one() == {"_id": 1}


async def test_a_killed_mongod_comes_back_with_all_it_acknowledged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    acknowledged: list[int] = []

    async def write(client: AsyncMongoClient[dict[str, Any]], numbers: range) -> None:
        for number in numbers:
            try:
                await client.calendar.events.insert_one({"_id": number})
                acknowledged.append(number)
            except PyMongoError:
                await asyncio.sleep(0.05)

    async with client_of(tmp_path) as client:
        first = mongod_pid(tmp_path)
        writers = [asyncio.create_task(write(client, range(n, n + 10_000))) for n in range(0, 80_000, 10_000)]
        await until(lambda: len(acknowledged) > 500)
        os.kill(first, signal.SIGKILL)
        before = len(acknowledged)
        await until(lambda: len(acknowledged) > before + 500)
        for writer in writers:
            writer.cancel()
        await asyncio.gather(*writers, return_exceptions=True)
        stored = {event["_id"] async for event in client.calendar.events.find()}
        assert mongod_pid(tmp_path) != first
    assert set(acknowledged) <= stored
    assert "mongod exited (killed by signal 9): restarting it" in caplog.text


async def test_nobody_is_let_in_before_it_can_be_written_to(tmp_path: Path) -> None:
    """A driver's connection to a member that is not yet a primary never gets a session."""
    said: list[bool] = []

    async def knock() -> None:
        while True:
            with suppress(OSError, EOFError):
                said.append((await hello_at(Directory.at(tmp_path).client_socket))["isWritablePrimary"])
            await asyncio.sleep(0)

    knocking = asyncio.create_task(knock())
    async with embedded_mongod(tmp_path):
        first = mongod_pid(tmp_path)
        await until(lambda: bool(said))
        os.kill(first, signal.SIGKILL)
        before = len(said)
        await until(lambda: len(said) > before + 100 and mongod_pid(tmp_path) != first)
        knocking.cancel()
    assert set(said) == {True}


async def hello_at(socket: Path) -> dict[str, Any]:
    """The answer to `hello` of whoever listens, without a driver, which would wait for a primary."""
    reader, writer = await asyncio.open_unix_connection(socket)
    try:
        writer.write(HEADER.pack(HEADER.size + len(HELLO), 1, 0, OP_MSG, 0, 0) + HELLO)
        length, *_ = HEADER.unpack(await reader.readexactly(HEADER.size))
        return bson.decode(await reader.readexactly(length - HEADER.size))
    finally:
        writer.close()


async def test_its_ways_in_are_kept_from_cleaners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAINTENANCE_SECONDS", 0.05)
    async with embedded_mongod(tmp_path):
        for way in tmp_path.glob("*.sock"):
            os.utime(way, (0, 0), follow_symlinks=False)
        await until(lambda: all(way.lstat().st_mtime > 0 for way in tmp_path.glob("*.sock")))


async def test_starting_again_is_tried_until_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "MAX_RESTART_SECONDS", 0.2)
    async with client_of(tmp_path) as client:
        (tmp_path / "keyfile").rename(tmp_path / "mislaid")
        os.kill(mongod_pid(tmp_path), signal.SIGKILL)
        await until(lambda: caplog.text.count("cannot restart mongod yet: mongod did not start: ") > 1)
        (tmp_path / "mislaid").rename(tmp_path / "keyfile")
        await client.calendar.events.insert_one({"_id": 1})
        assert await client.calendar.events.find_one() == {"_id": 1}


async def test_a_restart_that_fails_while_mongod_runs_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with client_of(tmp_path) as client:
        opened, failures = Directory.publish_client_socket, [OSError("no room"), OSError("no room")]

        def publish_client_socket(directory: Directory) -> None:
            if failures:
                raise failures.pop()
            opened(directory)

        monkeypatch.setattr(Directory, "publish_client_socket", publish_client_socket)
        os.kill(mongod_pid(tmp_path), signal.SIGKILL)
        await until(lambda: caplog.text.count("cannot restart mongod yet: no room") == 2)
        await client.calendar.events.insert_one({"_id": 1})
        assert await client.calendar.events.find_one() == {"_id": 1}


async def test_a_restart_keeps_what_was_written_also_in_another_place(stopped: Path, tmp_path: Path) -> None:
    shutil.copytree(stopped, tmp_path / "here").rename(tmp_path / "there")
    async with client_of(tmp_path / "there") as client:
        assert await client.calendar.events.find_one() == {"_id": 1}
        await client.calendar.events.insert_one({"_id": 2})


async def test_a_copy_that_lost_its_modes_gets_them_back(stopped: Path, tmp_path: Path) -> None:
    data_dir = shutil.copytree(stopped, tmp_path / "copy", copy_function=shutil.copyfile)
    data_dir.chmod(0o755)
    async with client_of(data_dir) as client:
        assert await client.calendar.events.find_one() == {"_id": 1}
    assert mode(data_dir) == "0o700"
    assert mode(data_dir / "keyfile") == "0o600"


async def test_a_long_path_has_its_socket_elsewhere(tmp_path: Path) -> None:
    data_dir = tmp_path / ("long, odd %2F name " * 10) / "data"
    with other_service(data_dir, tmp_path):
        async with AsyncMongoClient[dict[str, Any]](running_uri(data_dir)) as client:
            await client.calendar.events.insert_one({"_id": 1})
        socket = Path((data_dir / "lock").read_text().splitlines()[1])
        assert mode(socket.parent) == "0o700"
    async with client_of(data_dir) as client:
        assert await client.calendar.events.find_one() == {"_id": 1}
    assert not socket.parent.exists()


async def test_a_socket_directory_open_to_others_is_refused(tmp_path: Path) -> None:
    data_dir = tmp_path / ("long " * 30)
    place = Directory.at(data_dir).socket.parent
    place.mkdir()
    place.chmod(0o777)
    with pytest.raises(EmbeddedError, match="belongs to someone else"):
        await embedded_mongod(data_dir).__aenter__()
    assert not place.exists()


async def test_a_directory_in_other_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters").touch()
    tmp_path.chmod(0o755)
    with pytest.raises(EmbeddedError, match="holds other files"):
        await embedded_mongod(tmp_path).__aenter__()
    assert mode(tmp_path) == "0o755"


async def test_a_path_that_cannot_be_a_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EmbeddedError, match=r"cannot use .*/file/data: Not a directory"):
        await embedded_mongod(tmp_path / "file" / "data").__aenter__()


async def test_mongod_gives_its_own_reason_not_to_start(tmp_path: Path) -> None:
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "storage.bson").write_text("not of this format")
    tmp_path.chmod(0o700)
    with pytest.raises(
        EmbeddedError, match="did not start: Unable to read the storage engine metadata"
    ) as caught:
        await embedded_mongod(tmp_path).__aenter__()
    assert "\n" not in str(caught.value)
    assert running_uri(tmp_path) is None


async def test_a_lost_password_is_said(stopped: Path, tmp_path: Path) -> None:
    data_dir = shutil.copytree(stopped, tmp_path / "copy")
    (data_dir / "password").unlink()
    with pytest.raises(EmbeddedError, match="is not the password of"):
        await embedded_mongod(data_dir).__aenter__()
    assert (data_dir / "db" / "mongod.lock").read_text() == ""


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (None, "mongod not found"),
        ("echo 'libcrypto.so.3: cannot open shared object file' >&2; exit 127", "libcrypto.so.3"),
        ("echo 'db version v3.6.8'", "is too old: db version v3.6.8"),
    ],
)
async def test_without_a_usable_mongod_the_ways_out_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, why: str
) -> None:
    monkeypatch.setattr(program, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    if script:
        (tmp_path / "mongod").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "mongod").chmod(0o755)
    with pytest.raises(EmbeddedError, match=why) as caught:
        await embedded_mongod(tmp_path / "data").__aenter__()
    assert "\n" not in str(caught.value)
    for way in ("install MongoDB", "KALENDS_MONGODB_URI", "Debian 12+", "Ubuntu 22.04+"):
        assert way in str(caught.value)


@pytest.mark.parametrize(("major", "setting"), [(6, "ForceClassicEngine=true"), (8, "=forceClassicEngine")])
def test_the_engine_is_named_as_the_version_knows_it(tmp_path: Path, major: int, setting: str) -> None:
    command = program.Program(Path("mongod"), major).command(Directory.at(tmp_path))
    assert any(word.endswith(setting) for word in command)


def test_the_log_stays_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.embedded.log.MAX_LOG_BYTES", 10)
    log = Log(tmp_path / "mongod.log")
    with log.opened() as writer:
        for text in (b"first 0123456789\n", b"second 0123456789\n", b"third\n"):
            log.trim()
            writer.write(text)
            writer.flush()
    assert (tmp_path / "mongod.log").read_text() == "third\n"
    assert (tmp_path / "mongod.log.1").read_text() == "second 0123456789\n"
