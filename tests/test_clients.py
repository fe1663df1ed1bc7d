"""What clients of the reference service do with answers without asking first, over random records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from schemas import KINDS, Kind
from tests.conftest import Api, MakeApi
from tests.random_records import Bodies

Record = dict[str, Any]
NULLABLE = {"geo_lat", "geo_lng"}
"""Numbers that a typed client must expect to be unset."""
TERM = {"name": str, "slug": str, "description": str, "taxonomy": str, "url": str, "id": int, "urls": dict}
TYPES: dict[str, dict[str, type]] = {
    "event": {
        **dict.fromkeys(
            ("title", "excerpt", "start_date", "end_date", "utc_start_date", "utc_end_date"), str
        ),
        **dict.fromkeys(("utc_end_date", "timezone", "timezone_abbr", "cost"), str),
        **dict.fromkeys(("all_day", "hide_from_listings", "sticky", "featured", "ticketed"), bool),
        **dict.fromkeys(("show_map", "show_map_link"), bool),
        **dict.fromkeys(("start_date_details", "end_date_details", "cost_details"), dict),
        **dict.fromkeys(("categories", "tags", "organizer"), list),
        "post_parent": int,
    },
    "venue": {
        **dict.fromkeys(("venue", "address", "city", "country", "province", "state", "stateprovince"), str),
        **dict.fromkeys(("zip", "phone"), str),
        **dict.fromkeys(("show_map", "show_map_link"), bool),
    },
    "organizer": dict.fromkeys(("organizer", "phone", "email"), str),
    "category": TERM | {"parent": int},
    "tag": TERM,
}
POST = {
    **dict.fromkeys(("global_id", "status", "date", "date_utc", "modified", "modified_utc"), str),
    **dict.fromkeys(("url", "rest_url", "slug", "description", "website"), str),
    **dict.fromkeys(("id", "author"), int),
    "global_id_lineage": list,
}


def picture(record: Record) -> str | None:
    """`image === false ? … : image.sizes.medium.url`"""
    image = record["image"]
    return None if image is False else image["sizes"]["medium"]["url"] or image["url"]


def card(event: Record) -> str:
    """A client that fills a template: texts are texts, and a single venue has a city."""
    venue = event["venue"]
    city = venue["city"].title() if isinstance(venue, dict) else ", ".join(one["city"] for one in venue)
    organizers = ", ".join(one["organizer"] + one["phone"].replace(" ", "") for one in event["organizer"])
    text = event["description"].replace("<p>", "").strip()[:50] + event["excerpt"].lower()
    return f"{event['title'].upper()} {city} {organizers} {text} {event['website'].removeprefix('https://')}"


def is_typed(record: Record, kind: str) -> None:
    """A client in a typed language, whose models know no null."""
    is_term = kind in ("category", "tag")
    for name, type in (TYPES[kind] | ({} if is_term else POST)).items():
        assert isinstance(record[name], type), (kind, name, record[name])
    unset = {name for name, value in record.items() if value is None}
    assert unset <= NULLABLE, unset


def every_record(shown: Any, kind: str) -> Iterator[tuple[Record, str]]:
    """A record, and those within it."""
    yield shown, kind
    fields = {"categories": "category", "tags": "tag", "venue": "venue", "organizer": "organizer"}
    for field, inner in fields.items() if kind == "event" else ():
        for one in shown[field] if isinstance(shown[field], list) else [shown[field]]:
            yield one, inner


def use(shown: Record, kind: str) -> None:
    for record, name in every_record(shown, kind):
        is_typed(record, name)
        if name not in ("category", "tag"):
            assert picture(record) is None or picture(record)
    if kind == "event":
        assert shown["title"].upper() in card(shown)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_answers_can_be_used_without_a_guard(api: Api, kind: Kind, seed: int) -> None:
    bodies = Bodies(seed)
    for number in range(12):
        secret = {"password": "s3cret"} if kind.name == "event" and number % 4 == 3 else {}
        made = await api.made(kind.plural, **bodies.body(kind.name) | secret)
        path = f"/{kind.plural}/{made['id']}"
        answers = [made, (await api.get(path, **secret))[1]]
        answers.append((await api.patch(path, {"description": None} | secret))[1])
        if kind.is_post:
            answers.append((await api.get(f"/{kind.plural}/by-slug/{made['slug']}", **secret))[1])
        for shown in answers:
            use(shown, kind.name)
    dates = {"starts_after": "2001-01-01"} if kind.name == "event" else {}
    query = dates if kind.is_post else {"hide_empty": "0"}
    _, page = await api.get(f"/{kind.plural}", per_page="100", **query)
    assert page[kind.plural]
    for shown in page[kind.plural]:
        use(shown, kind.name)
    for record in page[kind.plural][:3]:
        status, gone = await api.delete(f"/{kind.plural}/{record['id']}", params={"password": "s3cret"})
        assert status == 200
        use(gone, kind.name)


async def test_links_follow_the_alias(make_api: MakeApi) -> None:
    """A client that has /wp-json/tribe/events/v1 built in never leaves it."""
    alias = "/wp-json/tribe/events/v1"
    api = await make_api(aliases=(alias,))
    ids = [
        (await api.event(f"Event {number}", venue={"venue": "Hall"}, tags=["red"]))["id"]
        for number in range(5)
    ]
    root = api.store.site.base_url + alias
    found, path = [], f"/{alias}/events?per_page=2"
    while path:
        _, page = await api.get(path)
        for event in page["events"]:
            links = [event["rest_url"], event["venue"]["rest_url"], event["tags"][0]["urls"]["self"]]
            assert all(link.startswith(f"{root}/") for link in links), links
        found += [event["id"] for event in page["events"]]
        assert all(part.startswith(f"<{root}/") for part in api.headers.get("Link", f"<{root}/").split(", "))
        following = page.get("next_rest_url", "")
        assert not following or following.startswith(f"{root}/events?")
        path = following.replace(api.store.site.base_url, "/")
    assert found == ids
    _, there = await api.get(f"/{alias}/events/{ids[0]}")
    _, here = await api.get(f"/events/{ids[0]}")
    assert there["rest_url"] == f"{root}/events/{ids[0]}"
    assert here["rest_url"] == f"{api.store.site.api}/events/{ids[0]}"
    status, made = await api.post(f"/{alias}/venues", {"venue": "New"})
    assert (status, api.headers["Location"]) == (201, made["rest_url"])
    assert made["rest_url"].startswith(f"{root}/venues/")
    _, index = await api.get(f"/{alias}/")
    hrefs = [
        link["href"] for route in index["routes"].values() for link in route.get("_links", {}).get("self", ())
    ]
    assert hrefs
    assert all(href.startswith(root) for href in hrefs)
    assert (await api.get(f"/{alias}/doc"))[1]["basePath"] == alias
