"""Domain errors; service/http/errors.py maps each to an HTTP status and an error code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from schemas.language import Text

NOUNS = {
    "event": Text("Event"),
    "venue": Text("Venue"),
    "organizer": Text("Organizer"),
    "category": Text("Category"),
    "tag": Text("Tag"),
}


def not_found(kind: str, ref: int | str = "") -> Text:
    """The message for a record that does not exist, with its ID, slug or name if one was sent."""
    noun = NOUNS.get(kind, kind.capitalize())
    if not ref:
        return Text("{kind} not found.", kind=noun)
    return Text("{kind} {ref} not found.", kind=noun, ref=repr(ref))


class Problem(Exception):
    """Base class of domain errors. `data` is added to the response; `kind` becomes part of the error code."""

    message = Text("The request cannot be served.")

    def __init__(self, message: Text | None = None, *, kind: str = "", **data: Any) -> None:
        self.text = message or self.message
        self.kind = kind
        self.data = data
        super().__init__(str(self.text))


def reasons_of(problem: Problem) -> list[str]:
    """The messages of a problem, one for each field."""
    params = problem.data.get("params")
    if isinstance(params, dict):
        return [f"{name}: {text}" for name, text in params.items()]
    return [str(problem.text)]


class InvalidJson(Problem):
    """The body is not JSON, or not an object."""

    message = Text("The body must be a JSON object.")


class MissingFields(Problem):
    """Required fields were not sent."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(Text("Missing parameters: {names}.", names=", ".join(names)), params=list(names))


class InvalidFields(Problem):
    """Fields or parameters have invalid values; the error lists all of them."""

    def __init__(self, params: Mapping[str, str]) -> None:
        self.params = dict(params)
        super().__init__(
            Text("Invalid parameters: {names}.", names=", ".join(sorted(params))), params=self.params
        )


class Problems(dict[str, str]):
    """Error messages by field, collected so that one response reports all of them."""

    @contextmanager
    def gather(self) -> Iterator[None]:
        try:
            yield
        except InvalidFields as refused:
            self.update(refused.params)

    def refuse(self) -> None:
        if self:
            raise InvalidFields(self)


NO_PROBLEMS = Problems()


class TermExists(Problem):
    """A category or tag with this name already exists."""

    message = Text("A term with this name already exists; to create another one, send a different slug.")


class DuplicateTermSlug(Problem):
    """The new slug of a term is already used by another one."""

    message = Text("Another term already has this slug.")


class Unauthenticated(Problem):
    """Credentials are missing or invalid."""

    message = Text("A valid token is required.")


class Forbidden(Problem):
    """The caller is authenticated but not allowed to do this."""

    message = Text("Your role does not allow this.")


class NotAccessible(Problem):
    """The record is not public and the caller may not see it."""

    message = Text("This record is not public.")


class PasswordNeeded(Problem):
    """The event's password is missing or wrong."""

    message = Text("This event is password-protected: send its password.")

    def __init__(self, *, was_wrong: bool = False) -> None:
        super().__init__()
        self.was_wrong = was_wrong


class NotFound(Problem):
    """No record has this id or slug."""

    def __init__(self, *, kind: str) -> None:
        super().__init__(not_found(kind), kind=kind)


class NoRoute(Problem):
    """No route has this path."""

    message = Text("No route matches this URL.")


class PageNotFound(Problem):
    """The page is past the end of the list."""

    message = Text("This page does not exist: the list is shorter.")


class MethodNotAllowed(Problem):
    """The route exists, but not for this method."""

    message = Text("This route does not support this method.")


class Trashed(Problem):
    """The record is in the trash."""

    message = Text("This record is in the trash; to restore it, send an update with a status.")

    def __init__(self, *, kind: str, was_seen: bool = True) -> None:
        super().__init__(kind=kind)
        self.was_seen = was_seen
        """Whether the caller could see the record before; the API tells everybody, pages do not."""


class TokenExpired(Problem):
    """The changes since this token are not kept any more."""

    message = Text(
        "The changes since this token are not kept any more. To begin again, request the changes without "
        "since, read the lists, and continue with the token in next."
    )


class IdempotencyKeyReused(Problem):
    """The idempotency key belongs to a creation with another body."""

    message = Text(
        "This Idempotency-Key was already used with another body: send the same body again, or a new key."
    )


class PreconditionFailed(Problem):
    """The record is not in the state that the headers of the request require."""

    message = Text("The record has changed since you read it.")


SLUG_TAKEN = Text("Another record already has this slug.")
"""Why the precondition that a new record has a new slug has failed."""


class TooLarge(Problem):
    """The request body exceeds the size limit."""

    message = Text("The body is too large.")


class TooSlow(Problem):
    """The request body was not received in time."""

    message = Text("The request body was not received in time.")


class UnsupportedType(Problem):
    """The body is neither JSON nor a form."""

    message = Text("Send application/json or application/x-www-form-urlencoded.")


class TooMany(Problem):
    """The client has exceeded a rate limit."""

    message = Text("Too many requests; try again later.")


class Unavailable(Problem):
    """The database is unreachable or too slow."""

    message = Text("The database is not available; try again later.")


class UnderRestore(Unavailable):
    """All records are being replaced by those of a backup."""

    message = Text("The calendar is being restored from a backup; try again later.")


class Disconnected(Problem):
    """The client closed the connection before its body was complete; nobody receives the response."""


class BadRequest(Problem):
    """The request is not valid HTTP."""

    message = Text("The request is not valid HTTP.")


class UriTooLong(Problem):
    """The URL exceeds the length limit."""


class HeadersTooLarge(Problem):
    """A header exceeds the length limit, or there are too many headers."""


class ExpectationFailed(Problem):
    """An Expect header asks for something other than 100-continue."""

    message = Text("The only supported Expect value is 100-continue.")
