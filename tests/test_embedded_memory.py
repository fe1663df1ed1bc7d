"""The cache of the embedded mongod: a part of the memory that a container or the machine has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from service.embedded.directory import Directory
from service.embedded.memory import memory_bytes
from service.embedded.program import Program, cache_gigabytes

MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
MB = 2**20
V1 = "memory/{}memory.limit_in_bytes"


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        ("0::/", {"memory.max": 512 * MB}, 512 * MB),
        ("0::/", {"memory.max": "max"}, MACHINE),
        ("0::/", {"memory.max": 4 * MACHINE}, MACHINE),
        ("0::/", {}, MACHINE),
        ("0::/a/b", {"a/b/memory.max": 300 * MB, "a/memory.max": 200 * MB, "c/memory.max": MB}, 200 * MB),
        ("0::/a/b", {"a/b/memory.max": "max", "a/memory.max": 200 * MB}, 200 * MB),
        ("4:memory:/\n0::/", {V1.format(""): 256 * MB}, 256 * MB),
        # Docker shows the group of the host, but mounts only the container's.
        ("4:cpu,memory:/docker/1", {V1.format(""): 256 * MB}, 256 * MB),
        ("4:memory:/a\n3:cpu:/b", {V1.format("a/"): 128 * MB, V1.format(""): 2**63 - 4096}, 128 * MB),
        (None, {}, MACHINE),
    ],
)
def test_the_lowest_limit_counts(
    groups: str | None, limits: dict[str, object], expected: int, tmp_path: Path
) -> None:
    files = {f"sys/fs/cgroup/{name}": f"{limit}\n" for name, limit in limits.items()}
    for name, text in files.items() | ({"proc/self/cgroup": f"{groups}\n"} if groups else {}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert memory_bytes(tmp_path) == expected


@pytest.mark.parametrize(
    ("memory", "cache"), [(64, 8), (8, 1), (4, 0.5), (2, 0.5), (1.5, 0.375), (1, 0.25), (0.25, 0.25)]
)
def test_a_part_of_it_is_for_the_cache(memory: float, cache: float) -> None:
    assert cache_gigabytes(memory) == cache


def test_mongod_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.embedded.program.memory_bytes", lambda: 1024 * MB)
    words = Program(Path("mongod"), 7).command(Directory.at(tmp_path))
    assert words[words.index("--wiredTigerCacheSizeGB") + 1] == "0.25"
