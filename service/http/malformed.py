"""Errors for requests that cannot be parsed; their messages quote nothing of the request."""

from __future__ import annotations

import re

from aiohttp import hdrs, http_exceptions
from aiohttp.http import HttpVersion11, RawRequestMessage
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from schemas.errors import BadRequest, HeadersTooLarge, Problem, UriTooLong
from schemas.language import Text

MAX_URL_BYTES = 8190
MAX_HEADER_BYTES = 8192
"""Must differ from MAX_URL_BYTES: only the limit in aiohttp's LineTooLong tells the two cases apart."""
MAX_HEADERS = 128
REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,40}) (/[!-~]*) HTTP/1\.[01]\r\n")


def problem_of_message(error: http_exceptions.HttpProcessingError) -> Problem:
    if isinstance(error, http_exceptions.LineTooLong):
        if error.args[1] == MAX_URL_BYTES:
            return UriTooLong(
                Text("The URL is too long: at most {limit} bytes are allowed.", limit=MAX_URL_BYTES)
            )
        return HeadersTooLarge(
            Text("A header is too long: at most {limit} bytes are allowed.", limit=MAX_HEADER_BYTES)
        )
    if error.message == "Too many headers received":
        return HeadersTooLarge(Text("Too many headers: at most {limit} are allowed.", limit=MAX_HEADERS))
    if error.message.startswith("Received HTTPS"):
        return BadRequest(Text("This port speaks HTTP, not HTTPS."))
    return BadRequest(MESSAGES.get(type(error)))


MESSAGES = {
    http_exceptions.BadStatusLine: Text("The request line is not valid HTTP."),
    http_exceptions.BadHttpMethod: Text("The request line is not valid HTTP."),
    http_exceptions.InvalidURLError: Text("The URL in the request line is not valid."),
    http_exceptions.InvalidHeader: Text("A header is not valid."),
}


def unknown_method(error: BaseException, data: bytes) -> RawRequestMessage | None:
    """A request message for a method that aiohttp's parser does not know, so that the application can respond
    with the allowed methods. It has no headers, and it is the last request on its connection."""
    found = REQUEST_LINE.match(data) if isinstance(error, http_exceptions.BadHttpMethod) else None
    if found is None or (method := found[1].decode()) in hdrs.METH_ALL or len(found[2]) > MAX_URL_BYTES:
        return None
    target = found[2].decode()
    path, _, query = target.partition("?")
    url = URL.build(path=path, query_string=query, encoded=True)
    headers: CIMultiDict[str] = CIMultiDict()
    return RawRequestMessage(
        method, target, HttpVersion11, CIMultiDictProxy(headers), (), True, None, False, False, url
    )
