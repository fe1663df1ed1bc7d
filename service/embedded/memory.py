"""The memory that mongod may use: that of the machine, or less in a container or unit with a limit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path("/")


def memory_bytes(root: Path = ROOT) -> int:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_limits(root)])


def _limits(root: Path) -> Iterator[int]:
    """The limits of the control groups that this process is in, in both versions of their interface."""
    for file in _limit_files(root):
        with suppress(OSError, ValueError):  # a container does not see all groups; "max" is no limit
            yield int(file.read_text())


def _limit_files(root: Path) -> Iterator[Path]:
    with suppress(OSError):  # only Linux has them
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if not controllers:
                yield from _upwards(root / "sys/fs/cgroup", group, "memory.max")
            elif "memory" in controllers.split(","):
                yield from _upwards(root / "sys/fs/cgroup/memory", group, "memory.limit_in_bytes")


def _upwards(mount: Path, group: str, name: str) -> Iterator[Path]:
    """The file of a group, and those of the groups above it, whose limits include it."""
    place = mount / group.lstrip("/")
    return (above / name for above in (place, *place.parents) if above.is_relative_to(mount))
