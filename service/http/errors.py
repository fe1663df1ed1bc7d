"""Map domain errors to HTTP statuses and codes, and build the error responses."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware
from pymongo.errors import PyMongoError

from handlers.requests import language_of
from handlers.responses import json_response
from handlers.responses.prepared import OutgoingResponse, PreparedResponse
from schemas import errors
from schemas.errors import Problem
from schemas.language import Text, translate
from service.http.malformed import problem_of_message
from service.http.request_ids import RequestIds, id_of
from service.http.request_log import path_of

log = logging.getLogger("kalends.errors")

STATUS_AND_CODE: dict[type[Problem], tuple[int, str]] = {
    errors.BadRequest: (400, "rest_bad_request"),
    errors.InvalidJson: (400, "rest_invalid_json"),
    errors.MissingFields: (400, "rest_missing_callback_param"),
    errors.InvalidFields: (400, "rest_invalid_param"),
    errors.TermExists: (400, "term_exists"),
    errors.Unauthenticated: (401, "rest_forbidden"),
    errors.Forbidden: (403, "rest_forbidden"),
    errors.NotAccessible: (403, "{kind}-not-accessible"),
    errors.PasswordNeeded: (403, "event-password-protected"),
    errors.NotFound: (404, "{kind}-not-found"),
    errors.NoRoute: (404, "rest_no_route"),
    errors.PageNotFound: (404, "{kind}-archive-page-not-found"),
    errors.MethodNotAllowed: (405, "rest_method_not_allowed"),
    errors.TooSlow: (408, "rest_request_timeout"),
    errors.DuplicateTermSlug: (409, "duplicate_term_slug"),
    errors.Trashed: (410, "{kind}-is-in-trash"),
    errors.TokenExpired: (410, "rest_token_expired"),
    errors.PreconditionFailed: (412, "rest_precondition_failed"),
    errors.TooLarge: (413, "rest_body_too_large"),
    errors.UriTooLong: (414, "rest_uri_too_long"),
    errors.UnsupportedType: (415, "rest_unsupported_media_type"),
    errors.ExpectationFailed: (417, "rest_expectation_failed"),
    errors.IdempotencyKeyReused: (422, "rest_idempotency_key_reused"),
    errors.TooMany: (429, "rest_too_many_requests"),
    errors.HeadersTooLarge: (431, "rest_headers_too_large"),
    errors.Disconnected: (499, "rest_client_closed_request"),
    errors.Unavailable: (503, "rest_unavailable"),
    errors.UnderRestore: (503, "rest_unavailable"),
}
PROBLEM_OF_EXCEPTION: dict[type[Exception], type[Problem]] = {
    web.HTTPNotFound: errors.NoRoute,
    web.HTTPRequestEntityTooLarge: errors.TooLarge,
    PyMongoError: errors.Unavailable,
    TimeoutError: errors.Unavailable,
}
STATUS_HEADERS = {401: {"WWW-Authenticate": 'Bearer realm="kalends"'}, 503: {"Retry-After": "5"}}
CLOSING_PROBLEMS = (errors.TooSlow, errors.Disconnected)
"""After these errors nothing more can be read from the connection."""
INTERNAL_ERROR = Text("Internal error. The log has the details under request ID {id}.")


def problem_body(problem: Problem, language: str = "en") -> dict[str, Any]:
    """The body of an error response, which includes its status."""
    status, code = STATUS_AND_CODE[type(problem)]
    data: dict[str, Any] = {"status": status, **problem.data}
    if isinstance(params := data.get("params"), dict):
        data["params"] = {name: translate(text, language) for name, text in params.items()}
    return error_body(code.format(kind=problem.kind), translate(problem.text, language), data)


def error_body(code: str, message: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"code": code, "message": message, "data": data}


def error_response(body: dict[str, Any]) -> web.StreamResponse:
    status = body["data"]["status"]
    return json_response(body, status, STATUS_HEADERS.get(status))


def problem_response(problem: Problem, language: str) -> web.StreamResponse:
    return error_response(problem_body(problem, language))


def handle_errors(
    ids: RequestIds,
    show_page: Callable[[web.Request, Exception, web.StreamResponse], None],
    finish: Callable[[web.Request, web.StreamResponse], None],
) -> Middleware:
    """The outermost middleware: gives each request an id, turns exceptions into error responses, lets
    `show_page` replace them by pages for browsers, and applies `finish` to every response."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        ids.assign(request)
        request["resource"] = request.match_info.route.resource
        try:
            response = await handler(request)
        except Exception as error:  # even a bug must get the standard error body
            response = response_to(error, request)
            show_page(request, error, response)
        response.headers.update(request["headers"])
        finish(request, response)
        return response

    return middleware


def response_to(error: Exception, request: web.BaseRequest) -> web.StreamResponse:
    language, id = language_of(request), id_of(request)
    if isinstance(error, web.HTTPMethodNotAllowed):
        return _method_not_allowed(request, error, language)
    if problem := problem_of(error):
        if isinstance(problem, errors.Unavailable) and error is not problem:
            log.warning("%s %s %s: %s", id, request.method, path_of(request), error)
        response = problem_response(problem, language)
        if isinstance(problem, CLOSING_PROBLEMS):
            response.force_close()
        return response
    if isinstance(error, web.HTTPException):
        return error_response(error_body("rest_refused", error.reason, {"status": error.status}))
    # A bug: the caller gets only the request id, the log gets the traceback.
    log.error("%s %s %s failed", id, request.method, path_of(request), exc_info=error)
    message = translate(Text(INTERNAL_ERROR.template, id=id), language)
    return error_response(error_body("rest_internal_error", message, {"status": 500}))


def problem_of(error: Exception) -> Problem | None:
    """The problem that is reported to the caller; None for an unexpected error."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, HttpProcessingError):
        return problem_of_message(error)
    return next(
        (problem() for kind, problem in PROBLEM_OF_EXCEPTION.items() if isinstance(error, kind)), None
    )


def _method_not_allowed(
    request: web.BaseRequest, refused: web.HTTPMethodNotAllowed, language: str
) -> web.StreamResponse:
    """Answer OPTIONS with the allowed methods, other unsupported methods with 405 and the same list."""
    allowed = ", ".join(sorted({*refused.allowed_methods, "OPTIONS"}))
    if request.method == "OPTIONS":
        response: web.StreamResponse = OutgoingResponse(PreparedResponse(b"", {}, 204))
    else:
        response = problem_response(errors.MethodNotAllowed(), language)
    response.headers["Allow"] = allowed
    return response
