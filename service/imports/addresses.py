"""Recognizes what is at an address: a calendar file, or a site with the REST interface."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader, BytesIO
from typing import Any

from yarl import URL

from config import SettingError
from config.settings import is_loopback
from schemas.site import Site
from service.imports.fetching import Answer, Fetcher, shown
from service.imports.item import Source, SourceError
from service.imports.opening import MAX_FILE_BYTES, recognized
from service.imports.options import ImportOptions
from service.imports.site.lists import API_PATHS, MAX_PAGE_BYTES, ROUTE, json_object, message_of
from service.imports.site.source import SiteSource

PLAIN_ROUTE = "/tribe/events/v1"
"""The same for sites of the reference service without readable links."""
API_END = "/events/v1"
API_HEADER = "X-TEC-API-ROOT"
"""Pages of the reference service name the address of the interface."""
NOT_FOUND = (404, 410)


async def open_address(
    fetcher: Fetcher, options: ImportOptions, site: Site
) -> tuple[Source | None, BufferedReader[Any]]:
    """The source at an address, or None and the file if that is NDJSON in the form that `POST` accepts."""
    url = address_of(options)
    nothing: BufferedReader[Any] = BufferedReader(BytesIO())
    if route_of(url).endswith(API_END):
        answer = await first_answer(fetcher, url, options, MAX_PAGE_BYTES)
        index = json_object(answer)
        if answer.status != 200 or "namespace" not in index:
            raise SourceError(f"{shown(url)} answers {answer.status}: {message_of(index)}")
        refuse_part(url, whole_of(url))
        return SiteSource(answer.url, fetcher), nothing
    answer = await first_answer(fetcher, url, options, MAX_FILE_BYTES)
    if is_file(answer):
        file: BufferedReader[Any] = BufferedReader(BytesIO(answer.body))
        return recognized(file, len(answer.body), options, site), file
    for root in api_roots(url, answer):
        if await has_api(fetcher, root):
            refuse_part(url, root)
            return SiteSource(root, fetcher), nothing
    if answer.status in NOT_FOUND:
        raise SourceError(
            f"{shown(url)} answers {answer.status}: there is no file and no site at this address"
        )
    raise SourceError(
        f"{shown(url)} is neither an iCalendar, CSV or NDJSON file nor a site with {' or '.join(API_PATHS)}"
    )


def address_of(options: ImportOptions) -> URL:
    """The address to read; with a password it must be encrypted, or on this machine."""
    try:
        url = URL(options.source.strip())
    except ValueError as error:
        raise SettingError(f"{options.source} is not an address: {error}") from None
    scheme = {"webcal": "https", "webcals": "https"}.get(url.scheme.lower(), url.scheme.lower())
    if not url.host:
        raise SettingError(f"{options.source} is not an address: it has no host")
    if options.user and scheme != "https" and not is_loopback(url.host):
        raise SettingError("--user needs an address with https: the password would be sent unencrypted")
    return url.with_scheme(scheme).with_fragment(None)


async def first_answer(fetcher: Fetcher, url: URL, options: ImportOptions, max_bytes: int) -> Answer:
    """The answer at the address. Where it redirects to is not trusted with a password."""
    answer = await fetcher.get(url, max_bytes)
    if options.user and answer.url.origin() != url.origin():
        raise SourceError(
            f"{shown(url)} redirects to {shown(answer.url)}; with --user, give the address of that site"
        )
    return answer


def is_file(answer: Answer) -> bool:
    """Whether an answer is a calendar file: iCalendar or NDJSON by its beginning, CSV by its type
    or name."""
    media_type = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    beginning = answer.body[:100].lstrip(b"\xef\xbb\xbf \r\n\t")
    is_ndjson = beginning.startswith(b"{") and media_type != "application/json"
    is_calendar = beginning.upper().startswith(b"BEGIN:VCALENDAR")
    is_csv = media_type in ("text/csv", "application/csv") or (
        media_type == "text/plain" and answer.url.path.lower().endswith(".csv")
    )
    return answer.status == 200 and (is_calendar or is_ndjson or is_csv)


def refuse_part(url: URL, root: URL) -> None:
    """Raise SourceError if an address has filters, or is that of a list or record in the interface of a site
    at `root`."""
    if url.query.keys() - {ROUTE} or f"{API_END}/" in route_of(url):
        raise SourceError(f"{shown(url)} is only a part of a site; to import all of it: {shown(root)}")


def route_of(url: URL) -> str:
    """The path that an address names, also that of a site without readable links."""
    return url.query.get(ROUTE, url.path).rstrip("/")


def whole_of(url: URL) -> URL:
    """The address of an interface without filters."""
    return url.with_query({name: text for name, text in url.query.items() if name == ROUTE})


def api_roots(asked: URL, answer: Answer) -> Iterator[URL]:
    """Addresses at which the interface of a site may be; it may have redirected the one that was asked."""
    origin = answer.url.origin()
    with suppress(ValueError):  # of an address that is not one
        said = URL(answer.headers.get(API_HEADER, ""))
        if said.host and said.origin() == origin:  # credentials are not sent to other sites
            yield said
    # A mistyped address of a file is not that of the whole site.
    named = (asked, answer.url) if answer.status in NOT_FOUND else (asked, answer.url, origin)
    bases = dict.fromkeys(url.path.rstrip("/") for url in named)
    for base in bases:
        for path in API_PATHS:
            yield origin.with_path(f"{base}/{path}")
        yield origin.with_path(f"{base}/").with_query({ROUTE: PLAIN_ROUTE})


async def has_api(fetcher: Fetcher, root: URL) -> bool:
    answer = await fetcher.get(root, MAX_PAGE_BYTES)
    try:
        return answer.status == 200 and str(json_object(answer).get("namespace")).endswith(API_END.strip("/"))
    except SourceError:
        return False
