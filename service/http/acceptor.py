"""Accept connections on a listening socket that several processes may share."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket

from aiohttp import web

log = logging.getLogger("kalends.acceptor")
OUT_OF_RESOURCES_ERRNOS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""Errors that mean the system has no resources for another connection."""
ACCEPT_RETRY_SECONDS = 1.0
"""Seconds until accepting is retried."""


class Acceptor:
    """Accepts one connection per wakeup: the event loop's own server would accept all pending connections
    and leave none to the other processes."""

    def __init__(self, listener: socket.socket, server: web.Server) -> None:
        listener.setblocking(False)
        self._listener, self._server = listener, server
        self._loop = asyncio.get_running_loop()
        self._connecting: set[asyncio.Task[object]] = set()
        self._retry: asyncio.TimerHandle | None = None

    def open(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # another process was faster, or the client has disconnected
        except OSError as error:
            if error.errno not in OUT_OF_RESOURCES_ERRNOS:
                raise
            self._pause(error)
            return
        connection.setblocking(False)
        connecting = self._loop.create_task(self._loop.connect_accepted_socket(self._server, connection))
        self._connecting.add(connecting)
        connecting.add_done_callback(self._connecting.discard)

    def _pause(self, error: OSError) -> None:
        log.warning("cannot accept connections, retrying: %s", error)
        self._loop.remove_reader(self._listener)
        self._retry = self._loop.call_later(ACCEPT_RETRY_SECONDS, self.open)

    async def close(self) -> None:
        """Stop accepting; connections already accepted are still passed to the server."""
        if self._retry:
            self._retry.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()
        if self._connecting:
            await asyncio.wait(self._connecting)
