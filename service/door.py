"""Accept connections on a listening socket that several processes may share."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket

from aiohttp import web

log = logging.getLogger("kalends.door")
FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""Errors that mean the system has no resources for another connection."""
PAUSE = 1.0
"""Seconds until accepting is retried."""


class Door:
    """Accepts one connection per wakeup: the event loop's own server would accept all pending connections
    and leave none to the other processes."""

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
            return  # another process was faster, or the client has disconnected
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
        log.warning("cannot accept connections, retrying: %s", error)
        self._loop.remove_reader(self._taken)
        self._opening = self._loop.call_later(PAUSE, self.open)

    async def close(self) -> None:
        """Stop accepting; connections already accepted are still passed to the server."""
        if self._opening:
            self._opening.cancel()
        self._loop.remove_reader(self._taken)
        self._taken.close()
        if self._entering:
            await asyncio.wait(self._entering)
