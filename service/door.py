"""The door from a port to a server, which processes on one port share."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket

from aiohttp import web

log = logging.getLogger("kalends.door")
FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""What a system says that has no room for another connection."""
PAUSE = 1.0
"""Seconds until it is asked again."""


class Door:
    """Lets in one connection at a time: an event loop by itself takes all that wait, and leaves none to the
    other processes."""

    def __init__(self, taken: socket.socket, server: web.Server) -> None:
        taken.setblocking(False)
        self._taken, self._server = taken, server
        self._loop = asyncio.get_running_loop()
        self._entering: set[asyncio.Task[object]] = set()
        self._opening: asyncio.TimerHandle | None = None

    def open(self) -> None:
        self._loop.add_reader(self._taken, self._let_in)

    def _let_in(self) -> None:
        try:
            connection, _ = self._taken.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # another process was faster, or the client has left
        except OSError as error:
            if error.errno not in FULL:
                raise
            self._wait(error)
            return
        connection.setblocking(False)
        entering = self._loop.create_task(self._loop.connect_accepted_socket(self._server, connection))
        self._entering.add(entering)
        entering.add_done_callback(self._entering.discard)

    def _wait(self, error: OSError) -> None:
        log.warning("no room for another connection: %s", error)
        self._loop.remove_reader(self._taken)
        self._opening = self._loop.call_later(PAUSE, self.open)

    async def close(self) -> None:
        """Whoever was let in is served, and nobody else is."""
        if self._opening:
            self._opening.cancel()
        self._loop.remove_reader(self._taken)
        self._taken.close()
        if self._entering:
            await asyncio.wait(self._entering)
