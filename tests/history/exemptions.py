"""Answers that are wrong and known: they are counted as exempted, until the service is changed.

HISTORY_STRICT=1 makes them violations again.
"""

from __future__ import annotations

import os
from typing import Any

from tests.history.recording import History
from tests.history.services import Service

STRICT = os.environ.get("HISTORY_STRICT", "") == "1"


def is_exempt(history: History, service: Service, request: str, status: int, body: Any, since: int) -> bool:
    """Whether a wrong answer is a known one; `request` is its method and path."""
    first = is_first_list(history, service, request, since)
    known = (first and status == 503) or is_lost_reload(history, request, status, body)
    return known and not STRICT


def is_first_list(history: History, service: Service, request: str, since: int) -> bool:
    """The change stream from which a service keeps totals may be on a member that has rolled back. The first
    list of events after the fault then gets error 175 (QueryPlanKilled) and answers 503; the next one opens a
    new stream."""
    calm = history.calm_since
    if not request.startswith("GET /events?") or calm is None or calm > since:
        return False
    if service.listed_at < calm:
        service.listed_at = history.tick()
    return since < service.listed_at


def is_lost_reload(history: History, request: str, status: int, body: Any) -> bool:
    """An event whose links changed meanwhile is read again after it was stored. On a primary that has just
    been elected, reads with majority read concern may be older than acknowledged writes: then the event is
    not found, and its creation answers 404."""
    is_new = request == "POST /events" and history.calm_since is None
    return is_new and status == 404 and body["code"] == "event-not-found"
