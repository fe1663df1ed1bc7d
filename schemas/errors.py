"""What can go wrong, in words of the domain; service/errors.py says which status and code each gets."""

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
    """What is said of a record that does not exist, and of its id, slug or name if one was sent."""
    noun = NOUNS.get(kind, kind.capitalize())
    if not ref:
        return Text("{kind} not found.", kind=noun)
    return Text("{kind} {ref} not found.", kind=noun, ref=repr(ref))


class Problem(Exception):
    """Base of all refusals. `data` goes into the answer beside the message; `kind` into its code."""

    message = Text("The request cannot be served.")

    def __init__(self, message: Text | None = None, *, kind: str = "", **data: Any) -> None:
        self.text = message or self.message
        self.kind = kind
        self.data = data
        super().__init__(str(self.text))


class InvalidJson(Problem):
    """The body is not JSON, or not an object."""

    message = Text("The body must be a JSON object.")


class MissingFields(Problem):
    """Required fields were not sent."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(Text("Missing parameters: {names}.", names=", ".join(names)), params=list(names))


class InvalidFields(Problem):
    """Fields or parameters have values that cannot be used; all of them are named."""

    def __init__(self, params: Mapping[str, str]) -> None:
        self.params = dict(params)
        super().__init__(
            Text("Invalid parameters: {names}.", names=", ".join(sorted(params))), params=self.params
        )


class Problems(dict[str, str]):
    """Bad values by field, gathered so that the caller is told of all of them at once."""

    @contextmanager
    def gather(self) -> Iterator[None]:
        try:
            yield
        except InvalidFields as refused:
            self.update(refused.params)

    def refuse(self) -> None:
        if self:
            raise InvalidFields(self)


class TermExists(Problem):
    """A category or tag of this name is there already."""

    message = Text("A term with this name already exists; to create another one, send a different slug.")


class DuplicateTermSlug(Problem):
    """A term is renamed to a slug that another one has."""

    message = Text("Another term already has this slug.")


class Unauthenticated(Problem):
    """No credentials, or wrong ones."""

    message = Text("A valid token is required.")


class Forbidden(Problem):
    """The caller is known and may not do this."""

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
    """The list ends before this page."""

    message = Text("This page does not exist: the list is shorter.")


class MethodNotAllowed(Problem):
    """The route exists, but not for this method."""

    message = Text("This route does not support this method.")


class Trashed(Problem):
    """The record is in the trash."""

    message = Text("This record is in the trash; to restore it, send an update with a status.")


class PreconditionFailed(Problem):
    """The record is not in the state the caller's If-Match names."""

    message = Text("The record has changed since you read it.")


class TooLarge(Problem):
    """The body is larger than the service takes."""

    message = Text("The body is too large.")


class TooSlow(Problem):
    """The request body was not received in time."""

    message = Text("The request body was not received in time.")


class UnsupportedType(Problem):
    """The body is neither JSON nor a form."""

    message = Text("Send application/json or application/x-www-form-urlencoded.")


class TooMany(Problem):
    """The caller asks more often than allowed."""

    message = Text("Too many requests; try again later.")


class Unavailable(Problem):
    """The database is out of reach or too slow."""

    message = Text("The database is not available; try again later.")


class Disconnected(Problem):
    """The client has closed the connection before its body was complete; nobody reads the answer."""


class BadRequest(Problem):
    """The request is not valid HTTP."""

    message = Text("The request is not valid HTTP.")


class UriTooLong(Problem):
    """The URL is longer than the service reads."""


class HeadersTooLarge(Problem):
    """A header is longer than the service reads, or there are too many."""


class ExpectationFailed(Problem):
    """An Expect header asks for something other than 100-continue."""

    message = Text("The only supported Expect value is 100-continue.")
