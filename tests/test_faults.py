"""The service as a process: killed, stopped, started wrongly, started twice, without its database."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession

from schemas.site import Site
from service.__main__ import main
from service.database import Location, connected
from service.embedded import embedded_mongod, running_uri
from service.store import open_store
from tests.checker import DEADLINE, agrees, maintain_later, until

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parent.parent
SERVE = (sys.executable, "-m", "service", "serve")
HANG_SECONDS = 20.0
"""A process that has not stopped by then waits for something that does not come."""


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


def environment(data_dir: Path, **settings: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KALENDS_")}
    chosen = {"DATA_DIR": str(data_dir), "PORT": "0"} | settings
    return kept | {f"KALENDS_{name}": value for name, value in chosen.items()}


def command(data_dir: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """A command that is expected to end by itself."""
    return subprocess.run(
        [sys.executable, "-m", "service", *words],
        cwd=REPOSITORY,
        env=environment(data_dir, **settings),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


@dataclass
class Running:
    """A service in a process of its own."""

    process: subprocess.Popen[bytes]
    api: str
    errors: Path
    data_dir: Path

    @property
    def root(self) -> str:
        return self.api.removesuffix("/calendar/events/v1")

    @property
    def mongod(self) -> int:
        return int((self.data_dir / "db" / "mongod.lock").read_text())

    async def end(self) -> int:
        async def has_ended() -> bool:
            return self.process.poll() is not None

        await until(has_ended)
        return self.process.wait()


@contextmanager
def spawned(data_dir: Path, output: Path, errors: Path, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    with (
        output.open("wb") as out,
        errors.open("wb") as err,
        subprocess.Popen(
            SERVE, cwd=REPOSITORY, env=environment(data_dir, **settings), stdout=out, stderr=err
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


@asynccontextmanager
async def running(data_dir: Path, **settings: str) -> AsyncIterator[Running]:
    """A service that has announced its address."""
    data_dir.parent.mkdir(parents=True, exist_ok=True)
    output, errors = data_dir.with_suffix(".out"), data_dir.with_suffix(".err")
    with spawned(data_dir, output, errors, **settings) as process:

        async def is_announced() -> bool:
            assert process.poll() is None, errors.read_text()
            return "Stop with Ctrl-C" in output.read_text()

        await until(is_announced)
        (line,) = (line for line in output.read_text().splitlines() if line.split()[:1] == ["API"])
        yield Running(process, line.split()[1].rstrip("/"), errors, data_dir)


@asynccontextmanager
async def waiting(data_dir: Path, **settings: str) -> AsyncIterator[Running]:
    """A service that answers before its database does: it has not announced anything yet."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        root = f"http://127.0.0.1:{free.getsockname()[1]}"
    output, errors = data_dir.with_suffix(".out"), data_dir.with_suffix(".err")
    with spawned(data_dir, output, errors, **settings, PORT=root.rpartition(":")[2]) as process:

        async def answers() -> bool:
            assert process.poll() is None, errors.read_text()
            with suppress(ClientError):
                return (await answer_of(f"{root}/health/live"))[0] == 200
            return False

        async with asyncio.timeout(DEADLINE):  # it may accept the connection and not answer
            await until(answers)
        yield Running(process, f"{root}/calendar/events/v1", errors, data_dir)


@dataclass
class Load:
    """Clients that create events without pause, and what they were answered."""

    service: Running
    acknowledged: list[int] = field(default_factory=list)
    refused: list[tuple[int, Any, str | None]] = field(default_factory=list)
    lost: int = 0
    stopping: bool = False

    async def create(self, session: ClientSession, number: int) -> None:
        body = {
            "title": f"Client {number}",
            "start_date": "2027-06-01 10:00:00",
            "end_date": "2027-06-01 12:00:00",
            "tags": [f"tag {number % 3}"],
            "venue": {"venue": f"Venue {number}"},
        }
        while not self.stopping:
            try:
                async with session.post(f"{self.service.api}/events", json=body) as answer:
                    shown = await answer.json()
                    if answer.status == 201:
                        self.acknowledged.append(shown["id"])
                    else:
                        self.refused.append((answer.status, shown["code"], answer.headers.get("Retry-After")))
            except (ClientError, ConnectionError):
                self.lost += 1
                await asyncio.sleep(0.05)

    async def reaches(self, number: int) -> None:
        async def enough() -> bool:
            return len(self.acknowledged) >= number

        await until(enough)


@asynccontextmanager
async def load(service: Running, clients: int = 6) -> AsyncIterator[Load]:
    """Load for as long as it is open, and then until every client has its answer."""
    under = Load(service)
    async with ClientSession() as session:
        tasks = [asyncio.create_task(under.create(session, number)) for number in range(clients)]
        try:
            yield under
        finally:
            under.stopping = True
            await asyncio.gather(*tasks)


async def check(service: Running, acknowledged: list[int]) -> None:
    """Everything that was acknowledged is there, and everything agrees."""
    uri = running_uri(service.data_dir)
    assert uri
    async with open_store(uri, "kalends", Site()) as store:
        stored = {event["_id"] async for event in store.database["events"].find({}, {"_id": 1})}
        assert set(acknowledged) <= stored
        assert len(set(acknowledged)) == len(acknowledged)
        await maintain_later(store)
        await agrees(store)


async def answer_of(url: str) -> tuple[int, Any, Any]:
    async with ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.json(), answer.headers


# Death and stopping


async def test_a_killed_mongod_costs_a_pause_and_nothing_else(data_dir: Path) -> None:
    async with running(data_dir) as service:
        async with load(service) as under:
            await under.reaches(30)
            first = service.mongod
            os.kill(first, signal.SIGKILL)
            await under.reaches(len(under.acknowledged) + 60)
        assert service.mongod != first
        assert service.process.poll() is None
        await check(service, under.acknowledged)
    assert {refusal for refusal in under.refused if refusal != (503, "rest_unavailable", "5")} == set()
    assert under.lost == 0


async def test_a_killed_service_loses_nothing_that_it_acknowledged(data_dir: Path) -> None:
    acknowledged: list[int] = []
    for workers in ("1", "2"):
        async with running(data_dir, WORKERS=workers) as service, load(service) as under:
            await under.reaches(30)
            service.process.kill()
            under.stopping = True
        # Workers that outlive the database by a moment say so.
        assert set(under.refused) <= {(503, "rest_unavailable", "5")}
        acknowledged += under.acknowledged
    async with running(data_dir) as service:
        await check(service, acknowledged)


async def test_a_service_that_is_told_to_stop_answers_what_it_has_begun(data_dir: Path) -> None:
    acknowledged: list[int] = []
    for name, workers in ((signal.SIGTERM, "1"), (signal.SIGINT, "2")):
        async with running(data_dir, WORKERS=workers) as service, load(service) as under:
            mongod = service.mongod
            await under.reaches(30)
            service.process.send_signal(name)
            assert await service.end() == 0, service.errors.read_text()
            under.stopping = True
        assert under.refused == []
        assert not Path(f"/proc/{mongod}").exists()
        assert "Traceback" not in service.errors.read_text()
        acknowledged += under.acknowledged
    async with running(data_dir) as service:
        await check(service, acknowledged)


async def test_a_service_can_be_stopped_while_it_starts(data_dir: Path, tmp_path: Path) -> None:
    output, errors = tmp_path / "out", tmp_path / "err"
    with spawned(data_dir, output, errors) as process:

        async def has_begun() -> bool:
            return data_dir.exists()

        await until(has_begun)
        process.send_signal(signal.SIGTERM)
        service = Running(process, "", errors, data_dir)
        assert await service.end() == 0, errors.read_text()
    assert "Traceback" not in errors.read_text()


NEVER_READY = """
import asyncio, signal, sys
from service.embedded import server
async def never_ready(directory):
    print("waiting", flush=True)
    await asyncio.sleep(0.1)
    return False
server.became_ready = never_ready
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
from service.__main__ import main
main()
"""
"""The command, with a mongod that is not ready for minutes, as when it reads a long journal."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_service_can_be_stopped_while_its_database_starts(data_dir: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-c", NEVER_READY, "serve"]
    settings, pipe = environment(data_dir), subprocess.PIPE
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=settings, stdout=pipe, stderr=pipe, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(number)
        try:
            _, errors = process.communicate(timeout=HANG_SECONDS)
        finally:
            process.kill()
    assert (process.returncode, errors) == (0, "")
    assert not list(data_dir.glob("*.sock"))


async def test_a_service_starts_without_its_database_and_waits_for_it(data_dir: Path, tmp_path: Path) -> None:
    async with embedded_mongod(tmp_path / "mongod") as uri:
        pass
    output = data_dir.with_suffix(".out")
    async with waiting(data_dir, MONGODB_URI=uri, SLOW_MS="0") as service:
        assert (await answer_of(f"{service.root}/health/ready"))[0] == 503
        status, problem, headers = await answer_of(f"{service.api}/events")
        assert (status, problem["code"], headers["Retry-After"]) == (503, "rest_unavailable", "5")

        async def is_told() -> bool:
            return "waiting for MongoDB at" in service.errors.read_text()

        await until(is_told)
        assert output.read_text() == ""
        async with embedded_mongod(tmp_path / "mongod"):

            async def is_announced() -> bool:
                return "Kalends is ready" in output.read_text()

            await until(is_announced)
            assert (await answer_of(f"{service.root}/health/ready"))[0] == 200
            async with load(service, 2) as under:
                await under.reaches(4)
            assert (under.refused, under.lost) == ([], 0), service.errors.read_text()
            service.process.terminate()
            assert await service.end() == 0
    assert not data_dir.exists()
    said = service.errors.read_text().splitlines()
    assert [line for line in said if "waiting" in line] == said[:1], "once, and nothing else about it"
    assert max(map(len, said)) < 250


async def test_a_service_is_alive_while_its_database_is_prepared(data_dir: Path, tmp_path: Path) -> None:
    """As while another process upgrades the database, for hours."""
    held = {"_id": "migration", "holder": "other", "until": datetime(2090, 1, 1)}
    async with (
        embedded_mongod(tmp_path / "mongod") as uri,
        connected(Location(uri, "kalends")) as database,
    ):
        await database["meta"].insert_one(held)
        async with waiting(data_dir, MONGODB_URI=uri) as service:
            assert (await answer_of(f"{service.root}/health/ready"))[0] == 503
            status, problem, headers = await answer_of(f"{service.api}/events")
            assert (status, problem["code"], headers["Retry-After"]) == (503, "rest_unavailable", "5")
            service.process.terminate()
            assert await service.end() == 0
        assert "Traceback" not in service.errors.read_text()
        async with waiting(data_dir, MONGODB_URI=uri) as service:
            await database["meta"].delete_one({"_id": "migration"})

            async def is_ready() -> bool:
                return (await answer_of(f"{service.root}/health/ready"))[0] == 200

            await until(is_ready)
            assert (await answer_of(f"{service.api}/events"))[0] == 200


async def test_a_service_stops_while_its_database_is_frozen(data_dir: Path, tmp_path: Path) -> None:
    async with embedded_mongod(tmp_path / "mongod") as uri:
        mongod = int((tmp_path / "mongod" / "db" / "mongod.lock").read_text())
        async with running(data_dir, MONGODB_URI=uri) as service:
            async with load(service, 2) as under:
                await under.reaches(4)
            os.kill(mongod, signal.SIGSTOP)
            try:
                service.process.terminate()
                async with asyncio.timeout(HANG_SECONDS):
                    assert await service.end() == 0
            finally:
                os.kill(mongod, signal.SIGCONT)
    assert "Traceback" not in service.errors.read_text()


# Starting wrongly

WRONG = [
    ({"PORT": "abc"}, "KALENDS_PORT"),
    ({"PORT": "65536"}, "KALENDS_PORT"),
    ({"AUTH": "maybe"}, "KALENDS_AUTH"),
    ({"HOST": "0.0.0.0"}, "KALENDS_AUTH"),
    (
        {"UNKNOWN": "1"},
        "KALENDS_UNKNOWN is not a setting; the settings are KALENDS_ACCESS_LOG, KALENDS_ALIASES, ",
    ),
    ({"PRT": "1"}, "KALENDS_PRT is not a setting; did you mean KALENDS_PORT?"),
    ({"MAX_PER_PAGE": "0"}, "KALENDS_MAX_PER_PAGE"),
    ({"BASE_URL": "ftp://x"}, "KALENDS_BASE_URL"),
    ({"BASE_URL": "https://[x"}, "KALENDS_BASE_URL"),
    ({"DATABASE": "a b"}, "KALENDS_DATABASE"),
    ({"MONGODB_URI": "http://x"}, "KALENDS_MONGODB_URI"),
    ({"MONGODB_URI": "http://me:hunter2@x/"}, "KALENDS_MONGODB_URI"),
    ({"MONGODB_URI": "http://me:hunt/hunter2@x/"}, "KALENDS_MONGODB_URI"),
    ({"MONGODB_URI": "me:hunter2@x"}, "KALENDS_MONGODB_URI"),
]
LATE = [
    ({"PORT": "abc"}, "KALENDS_PORT"),
    ({"TIMEZONE": "Mars"}, "KALENDS_TIMEZONE"),
    ({"HOST": "no such host", "AUTH": "token"}, "no such host"),
    ({"MONGODB_URI": "mongodb://"}, "KALENDS_MONGODB_URI"),
    ({"MONGODB_URI": "mongodb://me:hunter2@x:port/"}, "KALENDS_MONGODB_URI"),
    ({"MONGODB_URI": "mongodb://me:hunter2:hunter2@x/"}, "KALENDS_MONGODB_URI"),
    ({"MONGODB_URI": "mongodb://me:hunt/hunter2/@x"}, "percent-encoded, such as %2F for /"),
]


@pytest.mark.parametrize(("settings", "named"), WRONG, ids=[str(settings) for settings, _ in WRONG])
def test_a_wrong_setting_is_refused_before_any_work(
    data_dir: Path,
    settings: dict[str, str],
    named: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("service.__main__.configure", lambda level: None)
    monkeypatch.setattr("service.__main__.work", lambda *arguments: pytest.fail("it started to work"))
    monkeypatch.setattr("sys.argv", ["kalends", "serve"])
    for name, value in environment(data_dir, **settings).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert ended.value.code == 2
    is_one_line(said.err, named)
    assert said.out == ""


@pytest.mark.parametrize(("settings", "named"), LATE, ids=[str(settings) for settings, _ in LATE])
def test_a_service_with_a_wrong_setting_ends_before_it_starts_anything(
    data_dir: Path, settings: dict[str, str], named: str
) -> None:
    ended = command(data_dir, "serve", **settings)
    assert ended.returncode == 2, ended.stderr
    is_one_line(ended.stderr, named)
    assert ended.stdout == ""
    assert not data_dir.exists()


def is_one_line(text: str, named: str) -> None:
    assert (text.startswith("kalends: "), text.count("\n")) == (True, 1), text
    assert named in text
    assert "hunter2" not in text


def test_a_busy_port_is_told_before_anything_starts(data_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        ended = command(data_dir, "serve", PORT=str(busy.getsockname()[1]))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert (ended.stderr.startswith("kalends: cannot listen on"), ended.stderr.count("\n")) == (True, 1)
    assert not data_dir.exists()


# Commands


async def test_commands_work_beside_a_running_service_and_without_one(data_dir: Path) -> None:
    async def run(*words: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(command, data_dir, *words)

    made = await run("token", "create", "--role=editor", "--name=Me")
    assert made.returncode == 0, made.stderr
    (token,) = made.stdout.split()
    assert f" created in database kalends of the embedded MongoDB in {data_dir};" in made.stderr
    async with running(data_dir, AUTH="token") as service:
        second = await run("serve")
        assert (second.returncode, second.stdout) == (1, "")
        assert f"in use by process {service.process.pid}" in second.stderr
        assert second.stderr.count("\n") == 1
        filled, again = await run("demo"), await run("demo")
        where = f"database kalends of the embedded MongoDB in {data_dir}"
        assert (filled.returncode, f"events created in {where}" in filled.stderr) == (0, True), filled.stderr
        assert (again.returncode, f"events in {where}; nothing was changed" in again.stderr) == (0, True)
        assert (await answer_of(f"{service.api}/events"))[1]["total"] > 0
        made = await run("token", "create", "--role=viewer", "--name=Guest")
        assert (made.returncode, len(made.stdout.split())) == (0, 1), made.stderr
        listed = [line.split() for line in (await run("token", "list")).stdout.splitlines()[1:]]
        assert [row[1:3] for row in listed] == [["Me", "editor"], ["Guest", "viewer"]]
        unknown = await run("token", "revoke", "999")
        assert (unknown.returncode, unknown.stderr) == (2, f"kalends: there is no token 999 in {where}\n")
        async with ClientSession(headers={"Authorization": f"Bearer {token}"}) as session:
            async with session.post(f"{service.api}/tags", json={"name": "Mine"}) as answer:
                assert answer.status == 201
            revoked = await run("token", "revoke", listed[0][0])
            assert revoked.stdout == f"Token {listed[0][0]} revoked in {where}\n"

            async def is_refused() -> bool:
                async with session.get(f"{service.api}/tags") as answer:
                    return answer.status == 401

            await until(is_refused)
