"""Tokens: expiry, last use, and what the command line shows of them. Roles are in test_access."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from schemas.caller import Role
from service.commands import tokens as commands
from service.commands.tokens import expiry, row, table
from service.store import Store
from service.tokens import USE_RECORDED_EVERY, digest, utc_now
from tests.checker import until
from tests.conftest import Api, MakeApi

NOW = datetime(2027, 3, 1, 12, 0)
MINUTE = timedelta(minutes=1)


@pytest.fixture
async def with_token(make_api: MakeApi, store: Store) -> Callable[[str], Api]:
    client = (await make_api(auth="token")).client
    return lambda token: Api(client, store, token)


async def status_of(api: Api) -> int:
    return (await api.get("/tags"))[0]


async def used(store: Store) -> None:
    """Until the uses of tokens are written; an error of that would be raised here."""
    for task in list(store.tokens._tasks._tasks):
        await task


@pytest.mark.slow
async def test_an_expired_token_is_refused(store: Store, with_token: Callable[[str], Api]) -> None:
    past = await store.tokens.issue("past", Role.ADMIN, utc_now() - timedelta(seconds=1))
    soon = await store.tokens.issue("soon", Role.ADMIN, utc_now() + timedelta(seconds=4))
    assert await status_of(with_token(past.token)) == 401
    assert await status_of(with_token(soon.token)) == 200

    async def is_over() -> bool:
        return await status_of(with_token(soon.token)) == 401

    await until(is_over)


async def test_tokens_of_several_commands_are_numbered_without_gaps(store: Store) -> None:
    first = await store.tokens.issue("a", Role.ADMIN)
    other = Store(store.database, store.site)
    assert (await other.tokens.issue("b", Role.ADMIN)).id == first.id + 1
    await other.close()


async def test_a_token_of_an_earlier_version_works_and_never_expires(
    store: Store, with_token: Callable[[str], Api]
) -> None:
    old = {"_id": 1, "name": "Old", "role": "editor", "digest": digest("kal_old")}
    await store.database["tokens"].insert_one(old)
    assert row((await store.tokens.list())[0], NOW)[3:] == ("unknown", "unknown", "never")
    assert await status_of(with_token("kal_old")) == 200

    async def is_used() -> bool:
        return bool((await store.tokens.list())[0].get("last_used_utc"))

    await until(is_used)


@pytest.mark.parametrize(
    ("ago", "is_written"), [(USE_RECORDED_EVERY - MINUTE, False), (USE_RECORDED_EVERY + MINUTE, True)]
)
async def test_the_last_use_is_written_now_and_then(store: Store, ago: timedelta, is_written: bool) -> None:
    token = await store.tokens.create("Me", Role.ADMIN)
    before = utc_now() - ago
    await store.database["tokens"].update_one({}, {"$set": {"last_used_utc": before}})
    assert await store.tokens.caller(token)
    await used(store)
    (found,) = await store.tokens.list()
    assert (found["last_used_utc"] > before) is is_written


async def test_a_use_that_cannot_be_written_fails_nothing(store: Store) -> None:
    token = await store.tokens.create("Me", Role.ADMIN)
    await store.database.command("collMod", "tokens", validator={"last_used_utc": None})
    try:
        assert await store.tokens.caller(token)
        await used(store)
    finally:
        await store.database.command("collMod", "tokens", validator={})
    assert (await store.tokens.list())[0]["last_used_utc"] is None, "it was refused"


def expires_at(text: str) -> datetime | str:
    try:
        return expiry(text)
    except ArgumentTypeError as error:
        return str(error)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12h", datetime(2027, 3, 2)),
        ("90d", datetime(2027, 5, 30, 12)),
        ("8w", datetime(2027, 4, 26, 12)),
        ("2027-03-01", datetime(2027, 3, 1, 23, 59, 59)),
        ("2028-02-29", datetime(2028, 2, 29, 23, 59, 59)),
        ("2027-02-28", "'2027-02-28' is in the past; must be"),
        ("0d", "'0d' is in the past; must be"),
        ("2027-02-29", "must be a duration such as 12h, 90d or 8w, or a date such as 2027-06-30, not"),
        ("90", "must be a duration"),
        ("-5d", "must be a duration"),
        ("1.5d", "must be a duration"),
        ("٣d", "must be a duration"),
        ("d", "must be a duration"),
        ("", "must be a duration"),
        ("99999999999d", "must be a duration"),
        ("tomorrow", "must be a duration"),
    ],
)
def test_when_a_token_expires(text: str, expected: datetime | str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "utc_now", lambda: NOW)
    found = expires_at(text)
    assert found.startswith(expected) if isinstance(expected, str) else found == expected  # type: ignore[union-attr]


def test_the_list_is_a_table_that_marks_expired_tokens() -> None:
    made: dict[str, Any] = {"_id": 1, "name": "Town hall", "role": "editor", "created_utc": NOW}
    rows = [
        row(made | {"last_used_utc": None, "expires_utc": None}, NOW),
        row(made | {"_id": 12, "last_used_utc": NOW, "expires_utc": NOW}, NOW),
    ]
    assert table([commands.HEADER, *rows]).splitlines() == [
        "ID  NAME       ROLE    CREATED (UTC)     LAST USED (UTC)   EXPIRES (UTC)",
        "1   Town hall  editor  2027-03-01 12:00  never             never",
        "12  Town hall  editor  2027-03-01 12:00  2027-03-01 12:00  2027-03-01 12:00 (expired)",
    ]
