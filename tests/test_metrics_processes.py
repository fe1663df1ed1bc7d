"""Metrics of running services: several workers, killed ones, and a database that is away."""

from __future__ import annotations

import asyncio
import os
import signal
from math import isnan
from pathlib import Path

import pytest
from aiohttp import ClientSession

from schemas.caller import Role
from schemas.site import Site
from service.embedded import running_uri
from service.store import open_store
from tests.checker import until
from tests.family import are_gone, are_two, manager_of, port_of, workers_of
from tests.scraping import Scrape
from tests.test_faults import running
from tests.test_workers import one_to_each
from tests.wire import Wire, connected

pytestmark = pytest.mark.slow

EVENTS = "/calendar/events/v1/events"
COUNTED = {"route": EVENTS, "method": "GET", "status": "200"}


async def scraped(wire: Wire) -> Scrape:
    answer = await wire.get("/metrics")
    assert answer.status == 200, answer.body
    return Scrape(answer.body.decode())


def requests(scrape: Scrape) -> float:
    return scrape.value("kalends_requests_total", **COUNTED)


def directory_of(pid: int) -> Path:
    rows = Path(f"/proc/{pid}/environ").read_text().split("\0")
    (path,) = (row.partition("=")[2] for row in rows if row.startswith("PROMETHEUS_MULTIPROC_DIR="))
    return Path(path)


async def test_every_worker_tells_the_sums_of_all_and_none_goes_back(tmp_path: Path) -> None:
    async with running(tmp_path / "data", WORKERS="2") as service:
        await are_two(service)
        async with one_to_each(service) as wires:
            for number, wire in enumerate(wires.values(), 3):
                for _ in range(number):
                    assert (await wire.get(EVENTS)).status == 200
            for wire in wires.values():
                scrape = await scraped(wire)
                assert requests(scrape) == 7
                assert scrape.value("kalends_workers") == 2
                seconds = "kalends_request_duration_seconds_count"
                assert scrape.value(seconds, route=EVENTS, method="GET") == 7
            assert scrape.value("kalends_mongodb_command_failures_total") == 0
            (dead, _), (_, kept) = wires.items()
            directory = directory_of(dead)
            os.kill(dead, signal.SIGKILL)

            async def is_replaced() -> bool:
                one = await scraped(kept)
                assert requests(one) >= 7
                return one.value("kalends_workers") == 2 and dead not in workers_of(service)

            await until(is_replaced)
            assert (await kept.get(EVENTS)).status == 200
            assert requests(await scraped(kept)) == 8
        assert list(directory.glob("*.db"))
        assert not list(directory.glob(f"gauge_live*_{dead}.db"))
        service.process.terminate()
        assert await service.end() == 0
    assert not directory.exists()
    assert "Traceback" not in service.errors.read_text()


async def test_counters_survive_when_workers_are_renewed(tmp_path: Path) -> None:
    async with running(tmp_path / "data", WORKERS="2") as service:
        await are_two(service)
        before = workers_of(service)
        async with connected(port_of(service)) as wire:
            for _ in range(5):
                await wire.get(EVENTS)
        service.process.send_signal(signal.SIGHUP)
        await are_two(service, beside=before)
        await are_gone(before)
        async with connected(port_of(service)) as wire:
            assert requests(await scraped(wire)) == 5


async def test_a_killed_service_leaves_no_files(tmp_path: Path) -> None:
    async with running(tmp_path / "data", WORKERS="2") as service:
        await are_two(service)
        workers = workers_of(service)
        directory = directory_of(min(workers))
        assert directory.exists()
        service.process.kill()
        await are_gone(workers)

        async def is_removed() -> bool:
            return not directory.exists()

        await until(is_removed)


async def test_the_metrics_answer_while_mongodb_does_not(tmp_path: Path) -> None:
    async with running(tmp_path / "data", AUTH="token") as service, ClientSession() as session:
        uri = running_uri(service.data_dir)
        assert uri
        async with open_store(uri, "kalends", Site()) as store:
            token, other = [await store.tokens.create(name, Role.VIEWER) for name in "ab"]

        async def scrape(token: str) -> tuple[int, Scrape]:
            headers = {"Authorization": f"Bearer {token}"}
            async with session.get(f"{service.root}/metrics", headers=headers) as answer:
                text = await answer.text()
                return answer.status, Scrape(text if answer.status == 200 else "")

        async def read(query: str) -> int:
            headers = {"Authorization": f"Bearer {token}"}
            async with session.get(f"{service.api}/events{query}", headers=headers) as answer:
                return answer.status

        assert (await scrape(token))[0] == 200
        os.kill(service.mongod, signal.SIGSTOP)

        async def is_noticed() -> bool:
            status, found = await scrape(token)
            assert status == 200
            jobs = found.value("kalends_fanout_jobs_open")
            return found.value("kalends_mongodb_up") == 0 and isnan(jobs)

        await until(is_noticed)
        assert (await scrape(other))[0] == 503, "nobody has seen this token yet"
        # More requests than there are threads.
        waiting = [asyncio.create_task(read(f"?search={n}")) for n in range(60)]
        await asyncio.sleep(0.5)
        assert (await scrape(token))[0] == 200
        assert set(await asyncio.gather(*waiting)) == {503}
        os.kill(service.mongod, signal.SIGCONT)

        async def is_back() -> bool:
            status, found = await scrape(other)
            return status == 200 and found.value("kalends_mongodb_up") == 1

        await until(is_back)


async def test_a_process_tells_its_memory_and_its_delays(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as service, connected(port_of(service)) as wire:

        async def has_both() -> bool:
            found = await scraped(wire)
            delays = found.value("kalends_event_loop_delay_seconds_count")
            lag = found.value("kalends_change_feed_lag_seconds")
            return found.value("process_resident_memory_bytes") > 10**7 and delays > 0 and lag >= 0

        await until(has_both)


async def test_the_files_stay_until_workers_whose_manager_was_killed_have_ended(tmp_path: Path) -> None:
    async with running(tmp_path / "data", WORKERS="2") as service:
        await are_two(service)
        slow = max(workers_of(service))
        directory = directory_of(slow)
        os.kill(slow, signal.SIGSTOP)
        os.kill(manager_of(service), signal.SIGKILL)
        await asyncio.sleep(2)
        assert service.process.poll() is None
        assert directory.is_dir()
        os.kill(slow, signal.SIGCONT)
        assert await service.end() == 1
        assert not directory.exists()
