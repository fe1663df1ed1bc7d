"""Requests in flight, and streamed responses: concurrency limit, timeouts and graceful shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from aiohttp import web
from aiohttp.typedefs import Handler

from config import Settings
from handlers.responses.streamed import StreamedResponse
from handlers.time_slices import let_others_run
from schemas.errors import Unavailable
from schemas.language import Text
from service import metrics
from service.http.acceptor import Acceptor
from service.metrics.definitions import SHED
from service.process.shutdown import Shutdown, Urgency

DRAIN_SECONDS = 20.0
"""Seconds that requests in flight get to complete during shutdown."""
DRAIN_POLL_SECONDS = 0.1
"""Seconds between checks of the remaining connections, and before the first one is closed."""
SECONDS_WITHOUT_PRIMARY = 2.0
"""Seconds after which a request is cancelled while MongoDB elects a primary, which may take much longer."""
OVERDUE_CHECK_SECONDS = 0.25
"""Seconds between checks for overdue requests: a timer for each request would be too expensive."""

BUSY = Text("The service is busy; try again.")


def is_endless(response: web.StreamResponse) -> bool:
    return isinstance(response, StreamedResponse) and response.is_endless


def is_monitoring(request: web.Request) -> bool:
    """Health checks and scrapes of metrics are exempt from the rate and concurrency limits."""
    return request.path.startswith("/health/") or request.path == metrics.PATH


@dataclass(eq=False, slots=True)
class PendingRequest:
    """One request in flight."""

    connection: object
    task: asyncio.Task[object]
    arrived_at: float
    is_timed_out: bool = False


class InFlight:
    """All requests in flight, in order of arrival."""

    def __init__(self, settings: Settings, has_lost_primary: Callable[[], bool]) -> None:
        self._has_lost_primary = has_lost_primary
        self._max_concurrent = settings.max_concurrent
        self._timeout_seconds = settings.request_seconds
        self._pending: dict[PendingRequest, None] = {}
        self._streams: dict[StreamedResponse, object] = {}
        """Responses that are being sent, with their connections. They have no time limit: a client may be
        slow to read."""
        self._endless: dict[StreamedResponse, object] = {}
        """Those without an end. They have a limit of their own: they must not keep out other requests."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_draining = False

    @web.middleware
    async def enforce_limits(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Reject requests above the concurrency limit, and cancel those that exceed the time limit."""
        if len(self._pending) + len(self._streams) >= self._max_concurrent and not is_monitoring(request):
            raise self._busy_error()
        pending = self._track(request)
        try:
            if not is_monitoring(request):
                await let_others_run()
            response = await handler(request)
        except asyncio.CancelledError:
            if not pending.is_timed_out:
                raise
            pending.task.uncancel()
            raise TimeoutError from None
        finally:
            del self._pending[pending]
        if len(self._endless) >= self._max_concurrent and is_endless(response):
            raise self._busy_error()
        return response

    def _busy_error(self) -> Unavailable:
        SHED.inc()
        return Unavailable(BUSY)

    def count(self) -> dict[str, int]:
        """The numbers of requests and responses in flight, by state."""
        return {"handled": len(self._pending), "streamed": len(self._streams), "endless": len(self._endless)}

    @contextmanager
    def streaming(self, response: StreamedResponse, connection: object) -> Iterator[None]:
        """Count a response as in flight until it is sent; stop an endless one during shutdown."""
        streams = self._endless if response.is_endless else self._streams
        streams[response] = connection
        if self._is_draining:
            self._stop_endless()
        try:
            yield
        finally:
            del streams[response]

    def _stop_endless(self) -> None:
        for response in self._endless:
            response.stop()

    def close_if_draining(self, response: web.StreamResponse) -> None:
        if self._is_draining:
            response.force_close()

    def _track(self, request: web.Request) -> PendingRequest:
        task = asyncio.current_task()
        assert task
        loop = task.get_loop()
        pending = PendingRequest(request.protocol, task, loop.time())
        self._pending[pending] = None
        if self._timer is None:
            self._timer = loop.call_later(OVERDUE_CHECK_SECONDS, self._cancel_overdue, loop)
        return pending

    def _cancel_overdue(self, loop: asyncio.AbstractEventLoop) -> None:
        limit: float = self._timeout_seconds
        if self._has_lost_primary():
            limit = min(limit, SECONDS_WITHOUT_PRIMARY)
        for pending in list(self._overdue(loop.time() - limit)):
            pending.is_timed_out = True
            pending.task.cancel()
        self._timer = (
            loop.call_later(OVERDUE_CHECK_SECONDS, self._cancel_overdue, loop) if self._pending else None
        )

    def _overdue(self, latest: float) -> Iterator[PendingRequest]:
        """The requests that arrived at a time or before."""
        for pending in self._pending:
            if pending.arrived_at > latest:
                return
            if not pending.is_timed_out:
                yield pending

    async def drain(self, server: web.Server, acceptor: Acceptor, shutdown: Shutdown) -> None:
        """Stop accepting connections; return when the last one has closed or the grace period is over.

        aiohttp's own shutdown stops reading from all connections: a body still being received would never be
        complete, and responses would not announce that the connection closes.
        """
        self._is_draining = True
        self._stop_endless()
        await acceptor.close()
        with suppress(TimeoutError):  # the grace period is over
            async with asyncio.timeout(DRAIN_SECONDS):
                await self._close_connections(server, shutdown)

    async def _close_connections(self, server: web.Server, shutdown: Shutdown) -> None:
        while server.connections and not shutdown.is_requested(Urgency.NOW):
            await asyncio.sleep(DRAIN_POLL_SECONDS)
            if shutdown.is_requested(Urgency.STOP):
                idle = set(server.connections) - self._busy()
                await asyncio.sleep(0)  # a response that is ready is sent in the next iteration of the loop
                for connection in idle - self._busy():
                    connection.force_close()

    def _busy(self) -> set[object]:
        streams = (*self._streams.values(), *self._endless.values())
        return {pending.connection for pending in self._pending} | set(streams)


IN_FLIGHT = web.AppKey("in_flight", InFlight)
