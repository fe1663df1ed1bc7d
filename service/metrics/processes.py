"""Metrics of several worker processes: each writes files into one directory, and a scrape adds them up.

The client library decides by a variable whether it uses files, when it is imported: it must be set in the
environment of the program that starts the workers. The counters of a worker that ended stay in its files, so
that no sum goes back; they are deleted with the directory when the service ends.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from service.metrics.definitions import REGISTRY

DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"


@contextmanager
def shared_directory() -> Iterator[dict[str, str]]:
    """A directory for the files; yields the variable that the workers and their manager need."""
    with TemporaryDirectory(prefix="kalends-metrics-", ignore_cleanup_errors=True) as path:
        yield {DIRECTORY: path}


def remove_directory() -> None:
    """Called by the manager when it ends: the process that made the directory may have been killed."""
    shutil.rmtree(os.environ[DIRECTORY], ignore_errors=True)


def scraped_registry() -> CollectorRegistry:
    """The metrics of this process or, if it is one of several, of all."""
    if DIRECTORY not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


def forget_gauges(pid: int) -> None:
    """Leave out the gauges of a process that has ended, or that serves nothing."""
    mark_process_dead(pid)  # type: ignore[no-untyped-call]
