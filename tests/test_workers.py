"""Several processes on one port: all answer, the dead are replaced, and no connection is dropped."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from config import read_settings
from service.embedded import embedded_mongod
from tests.checker import until
from tests.family import all_of, are_gone, are_two, holder, manager_of, port_of, workers_of
from tests.test_faults import SERVE, Running, answer_of, check, environment, load, running, waiting
from tests.wire import Wire, connected, is_refused

pytestmark = pytest.mark.slow

LIVE = "/health/live"
TAGS = "/calendar/events/v1/tags"


@pytest.fixture
def named(mongodb_uri: str, worker_id: str) -> dict[str, str]:
    """Settings for two workers on a MongoDB that is not theirs."""
    return {"MONGODB_URI": mongodb_uri, "DATABASE": f"workers_{worker_id}", "WORKERS": "2"}


@pytest.fixture
async def two(named: dict[str, str], tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path / "data", **named) as service:
        await are_two(service)
        yield service
    assert "Traceback" not in service.errors.read_text()


@asynccontextmanager
async def one_to_each(service: Running) -> AsyncIterator[dict[int, Wire]]:
    """Connections by the worker that has answered on them, until each has one."""
    found: dict[int, Wire] = {}
    async with AsyncExitStack() as stack:

        async def every_worker_has_one() -> bool:
            wire = await stack.enter_async_context(connected(port_of(service)))
            assert (await wire.get(LIVE)).status == 200
            if pid := holder(service, wire):
                found.setdefault(pid, wire)
            return found.keys() == workers_of(service)

        await until(every_worker_has_one)
        yield found


# Life and death


async def test_every_worker_answers_and_does_so_without_the_other(two: Running) -> None:
    async with one_to_each(two) as wires:
        assert len(wires) == 2
        (dead, lost), (_, kept) = wires.items()
        os.kill(dead, signal.SIGKILL)
        await lost.ends()
        assert (await kept.get(LIVE)).status == 200
        async with connected(port_of(two)) as new:
            assert (await new.get(LIVE)).status == 200


async def holders_of_many(service: Running) -> set[int]:
    """The workers that get connections which come at once."""
    async with AsyncExitStack() as stack:
        opened = [stack.enter_async_context(connected(port_of(service))) for _ in range(64)]
        wires = await asyncio.gather(*opened)
        await asyncio.gather(*(wire.get(LIVE) for wire in wires))
        return {holder(service, wire) for wire in wires}


async def test_connections_that_come_at_once_are_shared(two: Running) -> None:
    """At least once in a few times: on a busy machine a worker may not run while the other takes them all."""
    async with one_to_each(two):
        assert any([await holders_of_many(two) == workers_of(two) for _ in range(5)])


async def test_a_dead_worker_is_replaced_and_costs_only_what_it_had(tmp_path: Path) -> None:
    async with running(tmp_path / "data", WORKERS="2") as service, load(service, clients=6) as under:
        await under.reaches(30)
        (dead, _) = before = workers_of(service)
        os.kill(dead, signal.SIGKILL)
        await are_two(service, beside={dead})
        await under.reaches(len(under.acknowledged) + 60)
        under.stopping = True
        assert workers_of(service) & before == before - {dead}
        await check(service, under.acknowledged)
    assert under.refused == []
    assert under.lost <= 6


async def test_a_killed_service_leaves_nothing_behind(tmp_path: Path) -> None:
    async with running(tmp_path / "data", WORKERS="2") as service:
        await are_two(service)
        family = all_of(service)
        assert len(family) == 4, "a mongod, a manager and two workers"
        service.process.kill()
        await are_gone(family)


async def test_a_service_whose_manager_is_killed_ends_and_says_so(two: Running) -> None:
    workers = workers_of(two)
    os.kill(manager_of(two), signal.SIGKILL)
    assert await two.end() == 1
    assert "kalends: the workers ended with status -9" in two.errors.read_text()
    await are_gone(workers)


# Stopping


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_stop_finishes_what_is_under_way_and_leaves_nothing_behind(
    tmp_path: Path, workers: str
) -> None:
    async with running(tmp_path / "data", WORKERS=workers) as service, AsyncExitStack() as stack:
        port = port_of(service)
        if workers == "2":
            await stack.enter_async_context(one_to_each(service))
        wires = [await stack.enter_async_context(connected(port)) for _ in range(3)]
        arriving, waiting, quiet = wires
        assert (await quiet.get(LIVE)).status == 200
        body = await arriving.begin(TAGS, {"name": "Arriving"})
        await arriving.send(body[:5])
        late = await waiting.begin(TAGS, {"name": "Waiting"})
        os.kill(service.mongod, signal.SIGSTOP)
        await waiting.send(late)
        family = all_of(service)
        service.process.terminate()
        await until(lambda: is_refused(port))
        await quiet.ends()
        os.kill(service.mongod, signal.SIGCONT)
        await arriving.send(body[5:])
        for wire in (arriving, waiting):
            made = await wire.answer()
            assert (made.status, made.is_last) == (201, True), made.body
            await wire.ends()
        assert await service.end() == 0
        await are_gone(family)
    assert "Traceback" not in service.errors.read_text()


async def test_a_second_interrupt_waits_for_nothing(two: Running) -> None:
    async with connected(port_of(two)) as wire:
        await wire.begin(TAGS, {"name": "Never sent"})
        two.process.send_signal(signal.SIGINT)
        await until(lambda: is_refused(port_of(two)))
        two.process.send_signal(signal.SIGINT)
        assert await two.end() == 0


async def test_a_stop_during_the_start_is_heard(named: dict[str, str], tmp_path: Path) -> None:
    """The announcement comes before the first worker is there."""
    async with running(tmp_path / "data", **named) as service:
        family = all_of(service)
        service.process.send_signal(signal.SIGHUP)
        service.process.terminate()
        assert await service.end() == 0, service.errors.read_text()
        await are_gone(family)
    assert "Traceback" not in service.errors.read_text()


# Renewing


@dataclass
class Hammer:
    """Clients that ask without pause, on connections they keep and on new ones, and forgive nothing."""

    port: int
    answered: int = 0
    last_answers: int = 0
    failures: list[str] = field(default_factory=list)
    stopping: bool = False

    async def keep_asking(self, times: int) -> None:
        """So many requests on one connection, unless an answer says that it was the last."""
        while not self.stopping:
            try:
                async with connected(self.port) as wire:
                    for _ in range(times):
                        if await self._is_last(wire) or self.stopping:
                            break
            except (OSError, EOFError, AssertionError) as error:
                self.failures.append(repr(error))

    async def _is_last(self, wire: Wire) -> bool:
        answer = await wire.get("/calendar/events/v1/events")
        assert answer.status == 200, answer.body
        self.answered += 1
        if answer.is_last:
            self.last_answers += 1
            await wire.ends()
        return answer.is_last

    async def reaches(self, number: int) -> None:
        async def enough() -> bool:
            return self.answered >= number

        await until(enough)


@asynccontextmanager
async def hammer(service: Running) -> AsyncIterator[Hammer]:
    one = Hammer(port_of(service))
    tasks = [asyncio.create_task(one.keep_asking(times)) for times in (1, 1, 10**9, 10**9)]
    try:
        yield one
    finally:
        one.stopping = True
        await asyncio.gather(*tasks)


async def test_renewing_the_workers_drops_no_connection(two: Running) -> None:
    async with hammer(two) as blows:
        for _ in range(3):
            before = workers_of(two)
            await blows.reaches(blows.answered + 50)
            two.process.send_signal(signal.SIGHUP)
            await are_two(two, beside=before)
            await blows.reaches(blows.answered + 50)
            await are_gone(before)
            assert len(workers_of(two)) == 2
    assert blows.failures == []
    assert blows.last_answers >= 3


async def test_a_stop_while_workers_are_renewed_is_heard(two: Running) -> None:
    before = workers_of(two)
    async with one_to_each(two):
        two.process.send_signal(signal.SIGHUP)
        await are_two(two, beside=before)
        family = all_of(two)
        assert family > before, "quiet connections keep the old ones"
        two.process.terminate()
        assert await two.end() == 0
        await are_gone(family)


async def test_one_process_has_nothing_to_renew(named: dict[str, str], tmp_path: Path) -> None:
    settings = named | {"WORKERS": "1"}
    async with running(tmp_path / "data", **settings) as service, connected(port_of(service)) as wire:
        for _ in range(3):
            service.process.send_signal(signal.SIGHUP)
            assert not (await wire.get(LIVE)).is_last


@contextmanager
def terminal() -> Iterator[int]:
    """A terminal as standard input of what is started meanwhile; yields the end that hangs up."""
    kept, (master, slave) = os.dup(0), os.openpty()
    os.dup2(slave, 0)
    try:
        yield master
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(slave)


async def test_a_service_ends_with_its_terminal(named: dict[str, str], tmp_path: Path) -> None:
    with terminal() as master:
        async with running(tmp_path / "data", **named) as service:
            service.process.send_signal(signal.SIGHUP)
            assert (await answer_of(f"{service.root}{LIVE}"))[0] == 200
            os.close(master)
            service.process.send_signal(signal.SIGHUP)
            assert await service.end() == 0, service.errors.read_text()


# Settings and the database


async def test_workers_have_the_settings_of_the_service(
    named: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a flag takes away what a variable says."""
    monkeypatch.setattr("tests.test_faults.SERVE", (*SERVE, "--aliases=", "--rate-limit=7"))
    chosen = named | {
        "ALIASES": "/other",
        "RATE_LIMIT": "5",
        "CORS_ORIGINS": "none",
        "TIMEZONE": "Asia/Tokyo",
    }
    given = environment(tmp_path / "data", **chosen)
    async with running(tmp_path / "data", **chosen) as service:
        await are_two(service)
        expected = read_settings(given, {"aliases": "", "rate_limit": "7"})
        for pid in workers_of(service):
            rows = Path(f"/proc/{pid}/environ").read_text().split("\0")
            found = read_settings(dict(row.split("=", 1) for row in rows if row), {})
            assert found == replace(expected, port=port_of(service))


async def test_workers_start_without_their_database_and_wait_for_it(tmp_path: Path) -> None:
    async with embedded_mongod(tmp_path / "mongod") as uri:
        pass
    output = tmp_path / "data.out"
    async with waiting(tmp_path / "data", MONGODB_URI=uri, WORKERS="2") as service:
        await are_two(service)
        async with one_to_each(service) as wires:
            first = set(wires)
            for wire in wires.values():
                assert (await wire.get("/health/ready")).status == 503
                assert (await wire.get(TAGS)).status == 503
        assert output.read_text() == ""
        async with embedded_mongod(tmp_path / "mongod"):

            async def all_are_ready() -> bool:
                async with one_to_each(service) as wires:
                    return {(await wire.get("/health/ready")).status for wire in wires.values()} == {200}

            await until(all_are_ready)
            assert workers_of(service) == first

            async def is_announced() -> bool:
                return output.read_text().count("Kalends is ready") == 1

            await until(is_announced)
            service.process.terminate()
            assert await service.end() == 0
    assert "Traceback" not in service.errors.read_text()
    assert service.errors.read_text().count("waiting for MongoDB") == 1, "not once for each worker"


async def test_a_wrong_address_is_told_before_a_worker_starts(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"^kalends: KALENDS_MONGODB_URI cannot be used"):
        async with running(tmp_path / "data", MONGODB_URI="mongodb://x:port/", WORKERS="2"):
            pass
