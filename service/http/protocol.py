"""The HTTP server below the application: requests that aiohttp itself rejects get our error body too.

This relies on undocumented parts of aiohttp: `RequestHandler.handle_error`, `finish_response`,
`log_access`, `log_exception` and its queue `_messages` of (message, payload), in which `_ErrInfo` marks a
request that cannot be parsed; and `AppRunner._make_server`. pyproject.toml therefore pins the release series.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import Any

from aiohttp import web
from aiohttp.http import HttpVersion10, HttpVersion11
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import RequestHandler, _ErrInfo

from config import Settings
from handlers.requests import language_of
from handlers.responses.streamed import StreamedResponse
from schemas.errors import BadRequest, ExpectationFailed, Problem
from schemas.language import Text
from service.http.errors import problem_response, response_to
from service.http.in_flight import IN_FLIGHT, InFlight
from service.http.malformed import MAX_HEADER_BYTES, MAX_HEADERS, MAX_URL_BYTES, unknown_method
from service.http.request_ids import REQUEST_IDS, RequestIds
from service.http.request_log import RequestLog
from service.metrics.requests import count_response

Sending = Coroutine[Any, Any, tuple[web.StreamResponse, bool]]


class Connection(RequestHandler):
    """One client connection."""

    __slots__ = ("_ids", "_in_flight", "_incoming_body", "_request_log")

    def __init__(
        self,
        server: web.Server,
        *,
        ids: RequestIds,
        in_flight: InFlight,
        request_log: RequestLog | None,
        **options: Any,
    ) -> None:
        super().__init__(server, **options)
        self._ids, self._in_flight, self._request_log = ids, in_flight, request_log
        self._incoming_body: StreamReader = EMPTY_PAYLOAD

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._messages:
            message, payload = self._messages[-1]
            if isinstance(message, _ErrInfo):
                self._handle_parse_error(message.exc, data)
            else:
                self._incoming_body = payload

    def _handle_parse_error(self, error: BaseException, data: bytes) -> None:
        if not self._incoming_body.is_eof():
            # The rest of a body is malformed. aiohttp would leave its handler waiting, and respond twice.
            self._messages.pop()
            self._incoming_body.set_exception(web.RequestPayloadError())
        elif message := unknown_method(error, data):
            self._messages[-1] = (message, EMPTY_PAYLOAD)

    def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> Sending:
        """Send a response. A streamed one is in flight until it is sent; the others are sent at once."""
        sending = super().finish_response(request, resp, start_time)
        return self._stream(request, resp, sending) if isinstance(resp, StreamedResponse) else sending

    async def _stream(
        self, request: web.BaseRequest, resp: StreamedResponse, sending: Sending
    ) -> tuple[web.StreamResponse, bool]:
        try:
            with self._in_flight.streaming(resp, self):
                return await sending
        except BaseException:  # it ends without an entry in the access log
            count_response(request, resp)
            raise

    def log_access(self, request: web.BaseRequest, response: web.StreamResponse, time: float | None) -> None:
        """Called when a response was sent, or its client has gone."""
        count_response(request, response)
        if self._request_log:
            self._request_log.add(request, response)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The response to a request that cannot be parsed, or that failed outside the application."""
        if request.writer.output_size > 0:
            raise ConnectionError("part of a response has already been sent")
        if "headers" not in request:
            self._ids.assign(request)
        if isinstance(exc, HttpProcessingError):
            request["unreadable"] = True  # it is a placeholder that aiohttp passes
        response = response_to(exc if isinstance(exc, Exception) else TimeoutError(), request)
        response.headers.update(request["headers"])
        response.force_close()
        return response

    def log_exception(self, *args: Any, **options: Any) -> None:
        """A client that disconnects or sends a malformed body is not an error of the service."""
        error = options.get("exc_info")
        if isinstance(error, (OSError, web.RequestPayloadError)):
            self.logger.debug("connection closed: %s", type(error).__name__)
        else:
            super().log_exception(*args, **options)


class Server(web.Server):
    """Creates the connections and passes their requests to the application."""

    def __init__(self, base: web.Server, app: web.Application, options: dict[str, Any]) -> None:
        super().__init__(
            self._handle,
            request_factory=base.request_factory,
            handler_cancellation=base.handler_cancellation,
        )
        self._application, self._options = base.request_handler, options
        self._ids, self._in_flight = app[REQUEST_IDS], app[IN_FLIGHT]

    def __call__(self) -> RequestHandler:
        return Connection(self, ids=self._ids, in_flight=self._in_flight, loop=self._loop, **self._options)

    def _handle(self, request: web.BaseRequest) -> Awaitable[web.StreamResponse]:
        problem = header_problem(request)
        return self._refuse(request, problem) if problem else self._application(request)

    async def _refuse(self, request: web.BaseRequest, problem: Problem) -> web.StreamResponse:
        self._ids.assign(request)
        response = problem_response(problem, language_of(request))
        response.headers.update(request["headers"])
        response.force_close()
        return response


def header_problem(request: web.BaseRequest) -> Problem | None:
    """Errors that aiohttp would report in its own format, or fails to detect."""
    if request.headers.get("Expect", "").lower() not in ("", "100-continue"):
        return ExpectationFailed()
    if request.version not in (HttpVersion11, HttpVersion10):
        return BadRequest(Text("The request must be HTTP/1.1 or HTTP/1.0."))
    return None


class Runner(web.AppRunner):
    """Runs the application with our `Server` and `Connection`."""

    def __init__(self, app: web.Application, settings: Settings, **options: Any) -> None:
        super().__init__(app, **options)
        self._request_log = RequestLog() if settings.access_log == "on" else None
        self._options = {
            "request_log": self._request_log,
            "access_log": None,  # that of aiohttp
            "max_line_size": MAX_URL_BYTES,
            "max_field_size": MAX_HEADER_BYTES,
            "max_headers": MAX_HEADERS,
            # handlers/bodies.py decompresses: aiohttp accepts a body whose compressed data is truncated.
            "auto_decompress": False,
        }

    async def _make_server(self) -> web.Server:
        base = await super()._make_server()
        return Server(base, self.app, {**base._kwargs, **self._options})

    async def cleanup(self) -> None:
        await super().cleanup()
        if self._request_log:
            self._request_log.write()
