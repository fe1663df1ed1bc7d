"""Operations that write several documents, as requests. Each attempt has records of its own."""

from __future__ import annotations

from itertools import count
from typing import Any

from tests.conftest import Api

DAY = {"start_date": "2027-06-01 10:00:00", "end_date": "2027-06-01 12:00:00"}


class Numbered:
    """Names that are new for each attempt, and have a new word: each attempt sends the same commands."""

    repeats_events, is_small = False, True

    def __init__(self) -> None:
        self._numbers, self.number = count(1), 0

    async def begin(self, api: Api) -> None:
        self.number = next(self._numbers)

    def name(self, word: str) -> str:
        return f"{word} {word.lower()}{self.number}"

    def slug(self, word: str) -> str:
        return f"{word}-{word}{self.number}".lower()


async def read(api: Api, path: str) -> Any:
    """A record, or None if there is none."""
    status, body = await api.get(path)
    assert status in (200, 404), body
    return body if status == 200 else None


async def named(api: Api, plural: str, slug: str) -> Any:
    """The record with this slug, or None; terms are looked for in their list."""
    if plural not in ("categories", "tags"):
        return await read(api, f"/{plural}/by-slug/{slug}")
    status, page = await api.get(f"/{plural}", slug=slug, hide_empty="false", per_page=50)
    assert status == 200, page
    return next((term for term in page[plural] if term["slug"] == slug), None)


async def succeeds(api: Api, method: str, path: str, body: Any = None) -> Any:
    status, answer = await api.send(method, path, body)
    assert status == 200, answer
    return answer


async def is_in_trash(api: Api, by_id: str, by_slug: str) -> bool:
    """Whether a record is in the trash, which its slug must show."""
    statuses = [(await api.get(path))[0] for path in (by_id, by_slug, f"{by_slug}__trashed")]
    assert statuses in ([200, 200, 404], [410, 404, 410])
    return statuses[0] == 410


def ids(records: Any) -> list[int]:
    return [record["id"] for record in records]


LINKED = {"venues": "Hall", "organizers": "Club", "categories": "Jazz", "tags": "Free"}


class EventWithLinks(Numbered):
    """An event whose venue, organizer, category and tag are created with it."""

    def links(self) -> Any:
        return {
            "venue": {"venue": self.name("Hall")},
            "organizer": [{"organizer": self.name("Club")}],
            "categories": [self.name("Jazz")],
            "tags": [self.name("Free")],
        }

    async def perform(self, api: Api) -> None:
        await api.made("events", title=self.name("Concert"), **DAY, **self.links())

    async def is_done(self, api: Api) -> bool:
        event = await named(api, "events", self.slug("Concert"))
        others = {plural: await named(api, plural, self.slug(word)) for plural, word in LINKED.items()}
        assert {other is None for other in others.values()} == {event is None or not event["venue"]}, others
        if event is None or not event["venue"]:
            return False
        found = [event["venue"], *event["organizer"], *event["categories"], *event["tags"]]
        assert ids(found) == ids(others.values())
        assert [term["count"] for term in (others["categories"], others["tags"])] == [1, 1]
        return True


class LinksOfEvent(EventWithLinks):
    """An event gets a venue, an organizer and terms that are created with the update."""

    async def begin(self, api: Api) -> None:
        await super().begin(api)
        self.id = (await api.event(self.name("Concert")))["id"]

    async def perform(self, api: Api) -> None:
        await succeeds(api, "PATCH", f"/events/{self.id}", self.links())


class CategoryDeletion(Numbered):
    """A category between others is deleted: its children move up, and events do not have it any more."""

    repeats_events = True

    async def begin(self, api: Api) -> None:
        await super().begin(api)
        self.top = (await api.made("categories", name=self.name("Top")))["id"]
        self.gone = (await api.made("categories", name=self.name("Gone"), parent=self.top))["id"]
        self.children = [
            (await api.made("categories", name=self.name(word), parent=self.gone))["id"]
            for word in ("Left", "Right")
        ]
        await api.made("categories", name=self.name("Leaf"), parent=self.children[0])
        both = [self.gone, self.children[0]]
        self.events = [(await api.event(self.name(word), categories=both))["id"] for word in ("One", "Two")]

    async def perform(self, api: Api) -> None:
        await succeeds(api, "DELETE", f"/categories/{self.gone}")

    async def is_done(self, api: Api) -> bool:
        is_done = await read(api, f"/categories/{self.gone}") is None
        above = self.top if is_done else self.gone
        parents = [(await read(api, f"/categories/{id}"))["parent"] for id in self.children]
        assert parents == [above] * 2
        wanted = {self.children[0]} if is_done else {self.gone, self.children[0]}
        for id in self.events:
            assert set(ids((await read(api, f"/events/{id}"))["categories"])) == wanted
        return is_done


class TagDeletion(Numbered):
    """A tag is deleted, and events do not have it any more."""

    async def begin(self, api: Api) -> None:
        await super().begin(api)
        self.gone = (await api.made("tags", name=self.name("Gone")))["id"]
        self.events = [
            (await api.event(self.name(word), tags=[self.gone]))["id"] for word in ("One", "Two", "Three")
        ]

    async def perform(self, api: Api) -> None:
        await succeeds(api, "DELETE", f"/tags/{self.gone}")

    async def is_done(self, api: Api) -> bool:
        is_done = await read(api, f"/tags/{self.gone}") is None
        for id in self.events:
            assert ids((await read(api, f"/events/{id}"))["tags"]) == ([] if is_done else [self.gone])
        return is_done


class CategoryMove(Numbered):
    """A category is moved with everything below it, and its events are in the list of another one."""

    repeats_events = True

    async def begin(self, api: Api) -> None:
        await super().begin(api)
        self.old, self.new = [
            (await api.made("categories", name=self.name(word)))["id"] for word in ("Old", "New")
        ]
        self.moved = (await api.made("categories", name=self.name("Moved"), parent=self.old))["id"]
        leaf = (await api.made("categories", name=self.name("Leaf"), parent=self.moved))["id"]
        self.events = [
            (await api.event(self.name("One"), categories=[self.moved]))["id"],
            (await api.event(self.name("Two"), categories=[leaf]))["id"],
        ]

    async def perform(self, api: Api) -> None:
        await succeeds(api, "PATCH", f"/categories/{self.moved}", {"parent": self.new})

    async def is_done(self, api: Api) -> bool:
        parent = (await read(api, f"/categories/{self.moved}"))["parent"]
        below = {id: await api.ids("events", categories=id) for id in (self.old, self.new)}
        assert sorted(below.pop(parent)) == self.events
        assert list(below.values()) == [[]]
        return bool(parent == self.new)


class VenueSlug(Numbered):
    """A venue with events gets another slug and name."""

    words = ("Old", "New")

    async def begin(self, api: Api) -> None:
        await super().begin(api)
        self.id = (await api.made("venues", venue=self.name("Old")))["id"]
        self.events = [
            (await api.event(self.name(word), venue=self.id))["id"] for word in ("One", "Two", "Three")
        ]

    async def perform(self, api: Api) -> None:
        change = {"slug": self.slug("New"), "venue": self.name("New")}
        await succeeds(api, "PATCH", f"/venues/by-slug/{self.slug('Old')}", change)

    async def is_done(self, api: Api) -> bool:
        records = [await named(api, "venues", self.slug(word)) for word in self.words]
        (venue,) = (record for record in records if record)
        for id in self.events:
            copy = (await read(api, f"/events/{id}"))["venue"]
            assert [copy[name] for name in ("slug", "venue")] == [venue[name] for name in ("slug", "venue")]
        return venue["slug"] == self.slug("New")


class VenueDeletion(VenueSlug):
    """A venue with events is moved to the trash."""

    async def perform(self, api: Api) -> None:
        await succeeds(api, "DELETE", f"/venues/{self.id}")

    async def is_done(self, api: Api) -> bool:
        is_trash = await is_in_trash(api, f"/venues/{self.id}", f"/venues/by-slug/{self.slug('Old')}")
        for id in self.events:
            event = await read(api, f"/events/{id}")
            assert event["venue"] == [] if is_trash else event["venue"]["id"] == self.id
        return is_trash


class EventTrash(Numbered):
    """An event is moved to the trash; the counters of what it links to follow."""

    async def begin(self, api: Api) -> None:
        await super().begin(api)
        event = await api.event(self.name("Concert"), categories=[self.name("Jazz")], venue={"venue": "Hall"})
        self.id, self.category = event["id"], event["categories"][0]["id"]

    async def perform(self, api: Api) -> None:
        await succeeds(api, "DELETE", f"/events/{self.id}")

    async def is_done(self, api: Api) -> bool:
        is_trash = await is_in_trash(api, f"/events/{self.id}", f"/events/by-slug/{self.slug('Concert')}")
        assert (await read(api, f"/categories/{self.category}"))["count"] == (0 if is_trash else 1)
        return self.wants(is_trash)

    def wants(self, is_trash: bool) -> bool:
        return is_trash


class EventRestore(EventTrash):
    """An event is restored from the trash."""

    async def begin(self, api: Api) -> None:
        await super().begin(api)
        await EventTrash.perform(self, api)

    async def perform(self, api: Api) -> None:
        await succeeds(api, "PATCH", f"/events/{self.id}", {"status": "publish"})

    def wants(self, is_trash: bool) -> bool:
        return not is_trash
