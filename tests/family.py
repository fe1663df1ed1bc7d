"""The processes of a running service, as the kernel shows them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tests.checker import until
from tests.test_embedded import lives
from tests.test_faults import Running
from tests.wire import Wire


def port_of(service: Running) -> int:
    return int(service.root.rpartition(":")[2])


def children(pid: int) -> list[int]:
    with suppress(FileNotFoundError, ProcessLookupError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def manager_of(service: Running) -> int:
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children(service.process.pid)}
    (pid,) = (pid for pid, command in commands.items() if b"service.process.workers" in command)
    return pid


def workers_of(service: Running) -> set[int]:
    return set(filter(lives, children(manager_of(service))))


def all_of(service: Running) -> set[int]:
    """Everything that the service has started, and what that has started."""
    ours = children(service.process.pid)
    return {*ours, *(pid for one in ours for pid in children(one))}


def holder(service: Running, wire: Wire) -> int | None:
    """The worker that has the other end of a connection."""
    ends = f":{port_of(service):04X}", f":{wire.port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inodes = {f"socket:[{row[9]}]" for row in rows if (row[1][-5:], row[2][-5:]) == ends}
    for pid in workers_of(service):
        for handle in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                if str(handle.readlink()) in inodes:
                    return pid
    return None


async def are_gone(pids: set[int]) -> None:
    async def gone() -> bool:
        return not any(map(lives, pids))

    await until(gone)


async def are_two(service: Running, *, beside: frozenset[int] | set[int] = frozenset()) -> None:
    """Two workers live that are not among the named ones."""

    async def two() -> bool:
        return len(workers_of(service) - beside) == 2

    await until(two)
