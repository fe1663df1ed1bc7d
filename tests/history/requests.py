"""Sends requests, and classifies the answers as acknowledged, refused or unknown."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from random import Random
from typing import Any

from aiohttp import ClientError, ClientSession

from tests.history.observing import observe
from tests.history.recording import History
from tests.history.services import Service


@dataclass
class Answer:
    """The answer to one request; a status of 0 means that the connection was lost."""

    status: int
    body: Any
    since: int
    etag: str = ""

    @property
    def outcome(self) -> str:
        if self.status in (0, 503):
            return "unknown"
        return "acknowledged" if self.status < 300 else "refused"

    @property
    def is_done(self) -> bool:
        return self.outcome == "acknowledged"


class Client:
    """A client that sends one request after the other, to either service."""

    def __init__(
        self, history: History, session: ClientSession, services: list[Service], rng: Random
    ) -> None:
        self.history, self.session, self.services, self.rng = history, session, services, rng

    async def send(
        self,
        operation: str,
        method: str,
        path: str,
        body: Any = None,
        may: Collection[int] = (),
        service: Service | None = None,
        **options: Any,
    ) -> Answer:
        """Send a request; `may` has the error statuses that are right for it, besides 503."""
        service = service or self.rng.choice(self.services)
        since, kills = self.history.tick(), service.kills
        might_fail = not service.is_listening
        if body is not None:
            options["json"] = body
        service.in_flight[operation] += 1
        try:
            async with self.session.request(method, service.api + path, **options) as got:
                answer = Answer(got.status, await got.json(), since, got.headers.get("ETag", ""))
        except (ClientError, ConnectionError) as error:
            if not might_fail and kills == service.kills:
                self.history.violation(f"{method} {path}: {service.name} dropped the connection: {error!r}")
            answer = Answer(0, None, since)
        except TimeoutError:
            self.history.violation(f"{method} {path}: {service.name} did not answer in time")
            answer = Answer(0, None, since)
        finally:
            service.in_flight[operation] -= 1
        return self._judged(operation, f"{method} {path}", body, answer, may, service)

    def _judged(
        self, operation: str, request: str, body: Any, answer: Answer, may: Collection[int], service: Service
    ) -> Answer:
        """Record an answer and check it."""
        history, path = self.history, request.partition(" ")[2]
        detail = {"service": service.name, "request": request, "status": answer.status}
        if not request.startswith("GET"):
            detail |= {"body": body, "id": (answer.body or {}).get("id")}
        history.note(operation, answer.outcome, since=answer.since, **detail)
        if answer.is_done:
            observe(history, path, answer.body, answer.since)
        else:
            self._is_right(request, body, answer, may)
        return answer

    def _is_right(self, request: str, body: Any, answer: Answer, may: Collection[int]) -> None:
        """An error must be one that is right for the request, and 503 only during a fault."""
        calm = self.history.calm_since
        if answer.status == 503:
            right = calm is None or calm > answer.since
            self.history.expect(right, f"{request} {body}: 503 without a fault: {answer.body}")
        elif answer.status not in (0, *may):
            self.history.violation(f"{request} {body}: answers {answer.status} {answer.body}")
