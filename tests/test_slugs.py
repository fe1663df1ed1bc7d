"""Slugs: what is left of a name in ASCII, and the numbers of those that several records want."""

from __future__ import annotations

import asyncio
import unicodedata
from typing import Any
from unittest.mock import AsyncMock

import pytest
from pymongo.errors import AutoReconnect

from schemas import EVENT
from schemas.kind import Kind
from schemas.kinds.event_representation import LINKED
from schemas.values.slugs import numbered, slug_of
from tests.conftest import Api
from tests.samples import TIMES

SLUGS = [
    ("Österreich ÄÖÜ_ß", "osterreich-aou_ss", "accents are left out"),
    ("ÅSE Æ Ø Łódź ñ ç", "ase-ae-o-lodz-n-c", "letters of other languages"),
    ("Việt Nam", "viet-nam", "two accents on a letter"),
    ("Москва Йод", "moskva-iod", "Cyrillic"),
    ("Σήμερα", "semera", "Greek"),
    ("東京 한국어", "dong-jing-hangugeo", "Chinese characters and Hangul"),
    ("½ x² ① Ⅳ ﬁn ＡＢＣ", "1-2-x2-1-iv-fin-abc", "other forms of letters and digits"),
    ("a/b . c–d C++", "a-b-c-d-c", "separators and marks"),
    ("I <b>love</b> it", "i-love-it", "tags"),
    ("がいど", "gaido", "voiced kana"),
    ("ガイド・パブ", "gaidopabu", "katakana, and a mark that is no letter"),
    ("ｶﾞｲﾄﾞ ﾊﾟﾌﾞ", "gaido-pabu", "in half width"),
    ("हिन्दी संगीत २०२७", "hindii-sngiit-2027", "vowels of Devanagari, and digits"),
    ("বাংলা", "baanlaa", "Bengali"),
    ("తెలుగు ગુજરાતી", "telugu-gujraatii", "Telugu and Gujarati"),
    ("கொடி", "kotti", "a vowel that is written around its letter"),
]


@pytest.mark.parametrize(("name", "slug"), [row[:2] for row in SLUGS], ids=[row[2] for row in SLUGS])
def test_slug(name: str, slug: str) -> None:
    assert slug_of(name, "event") == slug
    # However its characters are encoded.
    assert slug_of(unicodedata.normalize("NFD", name), "event") == slug


def test_marks_alone_make_no_slug() -> None:
    assert slug_of("\u3099\u309a\u093c\u0301", "event") == "event"


async def test_an_event_with_a_name_in_kana_is_found_by_its_slug(api: Api) -> None:
    event = await api.event("ガイド")
    assert event["slug"] == "gaido"
    assert (await api.get("/events/by-slug/gaido"))[1]["id"] == event["id"]


@pytest.mark.parametrize("slug", ["lecture", "x" * 199], ids=["short", "cut for its number"])
async def test_another_process_goes_on_after_the_last_number(pair: tuple[Api, Api], slug: str) -> None:
    for number in range(1, 13):
        assert (await pair[0].event("Lecture", slug=slug))["slug"] == numbered(slug, number)
    assert (await pair[1].event("Lecture", slug=slug))["slug"] == numbered(slug, 13)


async def test_another_process_takes_the_first_number_that_is_free(pair: tuple[Api, Api]) -> None:
    lectures = [await pair[0].event("Lecture") for _ in range(5)]
    await pair[0].event("Lecture 3 and 4")  # a longer slug is not a number of this one
    for at in (2, 3):
        await pair[0].delete(f"/events/{lectures[at]['id']}")
    assert [(await pair[1].event("Lecture"))["slug"] for _ in range(3)] == [
        "lecture-3",
        "lecture-4",
        "lecture-6",
    ]


async def test_a_number_and_a_title_that_ends_with_it_at_once(pair: tuple[Api, Api]) -> None:
    """In the same batch, and again when all of them are taken."""
    titles = ["Hall", "Hall", "Hall", "Hall 2", "Hall 2", "Hall 3"]
    slugs: list[str] = []
    for at in range(3):
        events = await asyncio.gather(*(pair[at % 2].event(title) for title in titles))
        slugs += [event["slug"] for event in events]
    assert len(set(slugs)) == len(slugs) == 18
    assert all(slug.startswith("hall") for slug in slugs)


async def test_long_slugs_that_end_like_a_number_differ(api: Api) -> None:
    """Cut for its number, such a slug is the same as before."""
    names = ["x" * 198 + "-2", "x" * 198 + " 2"]
    event = await api.event(venue=[{"venue": name} for name in names])
    slugs = [venue["slug"] for venue in event["venue"]]
    assert slugs == ["x" * 198 + "-2", "x" * 198 + "-3"]


async def test_the_first_number_after_very_many(api: Api) -> None:
    """As events of generated data have them, or those whose names cannot be transliterated."""
    rows = [{"_id": 1000 + number, "slug": numbered("event", number)} for number in range(1, 3001)]
    await api.store.database["venues"].insert_many(rows)
    venues = [await api.made("venues", venue="Event") for _ in range(2)]
    assert [venue["slug"] for venue in venues] == ["event-3001", "event-3002"]
    await api.store.database["venues"].delete_many({"_id": {"$gte": 1000}})


@pytest.mark.parametrize("is_new", [True, False], ids=["create", "update"])
async def test_slugs_of_what_could_not_be_created_are_free_again(
    api: Api, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    """The database fails when the last one of several new records is prepared; then it is sent again."""
    path = "/events" if is_new else f"/events/{(await api.event('Old'))['id']}"
    vocabulary = api.store.vocabulary
    prepare = vocabulary.all_searchable

    async def fail_for_the_last(kind: Kind, *arguments: Any) -> Any:
        if kind is LINKED[list(EVENT.links)[-1]]:
            raise AutoReconnect("connection closed")
        return await prepare(kind, *arguments)

    links = {"venue": {"venue": "Hall"}, "organizer": {"organizer": "Club"}, "tags": ["Rock"]}
    body = {"title": "Concert", "slug": "concert", **TIMES, **links}
    monkeypatch.setattr(vocabulary, "all_searchable", fail_for_the_last)
    assert (await api.send("POST", path, body))[0] == 503
    monkeypatch.undo()
    status, event = await api.send("POST", path, body)
    assert status < 300, event
    slugs = [event["slug"], event["venue"]["slug"], event["organizer"][0]["slug"], event["tags"][0]["slug"]]
    assert slugs == ["concert", "hall", "club", "rock"]


async def test_the_slug_of_a_venue_is_free_again_if_its_event_could_not_be_changed(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/events/{(await api.event('Old'))['id']}"
    monkeypatch.setattr(api.store.vocabulary, "searchable", AsyncMock(side_effect=AutoReconnect("closed")))
    body = {"title": "New", "venue": {"venue": "Hall"}}
    assert (await api.patch(path, body))[0] == 503
    monkeypatch.undo()
    assert (await api.patch(path, body))[1]["venue"]["slug"] == "hall"
