"""`kalends token`: create, list and revoke access tokens, which the API itself cannot do."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from config import SettingError, Settings
from schemas.caller import Role
from service.database import opened
from service.tokens import USE_RECORDED_EVERY, utc_now

UNITS = {"h": "hours", "d": "days", "w": "weeks"}
EXPIRY = "a duration such as 12h, 90d or 8w, or a date such as 2027-06-30"
HEADER = ("ID", "NAME", "ROLE", "CREATED (UTC)", "LAST USED (UTC)", "EXPIRES (UTC)")


def expiry(text: str) -> datetime:
    """When a token expires, in UTC; a date means the end of that day."""
    now = utc_now()
    try:
        if text[-1:] in UNITS and text[:-1].isascii() and text[:-1].isdigit():
            found = now + timedelta(**{UNITS[text[-1]]: int(text[:-1])})
        else:
            found = datetime.strptime(text, "%Y-%m-%d").replace(hour=23, minute=59, second=59)
    except (ValueError, OverflowError):
        raise ArgumentTypeError(f"must be {EXPIRY}, not {text!r}") from None
    if found <= now:
        raise ArgumentTypeError(f"{text!r} is in the past; must be {EXPIRY}")
    return found


def token_name(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ArgumentTypeError("must not be empty or contain line breaks")
    return text.strip()


def number_from(noun: str) -> Callable[[str], int]:
    """Parser of a number that `kalends NOUN list` shows."""

    def number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise ArgumentTypeError(f"must be a number that `kalends {noun} list` shows, not {text!r}")
        return int(text)

    return number


def token_command(arguments: Namespace, settings: Settings) -> Coroutine[Any, Any, None]:
    """The coroutine of an action."""
    if arguments.action == "create":
        return create_token(settings, arguments.role, arguments.name, arguments.expires)
    return list_tokens(settings) if arguments.action == "list" else revoke_token(settings, arguments.id)


async def create_token(settings: Settings, role: str, name: str, expires: datetime | None) -> None:
    async with opened(settings) as (store, location):
        issued = await store.tokens.issue(name, Role(role), expires)
        until = f"expires {format_time(expires)} UTC" if expires else "never expires"
        print(f"Token {issued.id} created in {location}; it {until} and is shown only now:", file=sys.stderr)
        print(issued.token)


async def list_tokens(settings: Settings) -> None:
    async with opened(settings) as (store, location):
        tokens = await store.tokens.list()
    if tokens:
        print(table([HEADER, *(row(token, utc_now()) for token in tokens)]))
        minutes = USE_RECORDED_EVERY.total_seconds() / 60
        print(f"Last use is recorded at most every {minutes:.0f} minutes.", file=sys.stderr)
    print(f"{len(tokens) or 'No'} token{'s' * (len(tokens) != 1)} in {location}", file=sys.stderr)


async def revoke_token(settings: Settings, id: int) -> None:
    async with opened(settings) as (store, location):
        if not await store.tokens.revoke(id):
            raise SettingError(f"there is no token {id} in {location}")
        print(f"Token {id} revoked in {location}")


def row(token: Mapping[str, Any], now: datetime) -> Sequence[str]:
    """One row of the table; tokens created by earlier versions have no timestamps."""
    expires = token.get("expires_utc")
    used = format_time(token["last_used_utc"], "never") if "last_used_utc" in token else "unknown"
    return (
        str(token["_id"]),
        token["name"],
        token["role"],
        format_time(token.get("created_utc"), "unknown"),
        used,
        format_time(expires, "never") + (" (expired)" if expires and expires <= now else ""),
    )


def format_time(moment: datetime | None, none: str = "") -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment else none


def table(rows: Iterable[Sequence[str]]) -> str:
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{cell:<{width}}" for cell, width in zip(one, widths, strict=True)) for one in rows)
    return "\n".join(line.rstrip() for line in lines)
