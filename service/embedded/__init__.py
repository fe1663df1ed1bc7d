"""Run mongod as a child process: a replica set with one member, on a private Unix socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from service.background import background_task
from service.embedded.default_directory import ChosenDirectory, choose_directory
from service.embedded.directory import Directory
from service.embedded.errors import EmbeddedError
from service.embedded.owner import owned, owner_uri
from service.embedded.program import find_program
from service.embedded.server import Server

__all__ = [
    "ChosenDirectory",
    "EmbeddedError",
    "choose_directory",
    "embedded_mongod",
    "has_data",
    "running_uri",
]


@asynccontextmanager
async def embedded_mongod(data_dir: Path) -> AsyncIterator[str]:
    """Run mongod on a data directory, restarting it whenever it dies; yields its URI."""
    program = await find_program()
    directory = Directory.at(data_dir)
    async with owned(directory):
        server = Server(directory, program)
        try:
            with directory.reporting_os_errors():
                await server.start()
            async with background_task(server.supervise()):
                yield directory.uri()
        finally:
            await server.stop()


def has_data(data_dir: Path) -> bool:
    """Whether an embedded mongod has been started on this directory before."""
    return Directory.at(data_dir).has_data()


def running_uri(data_dir: Path) -> str | None:
    """The URI of the mongod that another process runs on this directory; None if there is none."""
    return owner_uri(Directory.at(data_dir))
