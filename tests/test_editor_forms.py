"""Forms of the editor: what is shown, sent, refused and kept; nothing changes that nobody has changed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from schemas import KINDS, Kind
from tests.conftest import Api, MakeApi
from tests.editing import Editor
from tests.random_records import Bodies

Roles = dict[str, Api]


async def stored(api: Api, plural: str, id: int) -> Any:
    return await api.store.database[plural].find_one({"_id": id})


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_a_form_sent_back_changes_nothing(api: Api, kind: Kind, seed: int) -> None:
    bodies, editor = Bodies(seed), Editor(api)
    for _ in range(12):
        body = bodies.body(kind.name)
        body.pop("password", None)
        made = await api.made(kind.plural, **body)
        before = await stored(api, kind.plural, made["id"])
        page = await editor.get(f"/edit/{kind.plural}/{made['id']}")
        assert page.status == 200, page.text
        answer = await editor.submit(page.form())
        assert "notice=unchanged" in answer.location, body
        assert await stored(api, kind.plural, made["id"]) == before


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_one_change_changes_just_that(api: Api, kind: Kind) -> None:
    bodies, editor = Bodies(7), Editor(api)
    for _ in range(6):
        body = bodies.body(kind.name)
        body.pop("password", None)
        made = await api.made(kind.plural, **body)
        page = await editor.get(f"/edit/{kind.plural}/{made['id']}")
        answer = await editor.submit(page.form(), **{kind.name_field: "Another name"})
        assert "notice=saved" in answer.location, answer.text
        _, read = await api.get(f"/{kind.plural}/{made['id']}")
        names = {"modified", "modified_utc", "json_ld", kind.name_field}
        assert {n: v for n, v in read.items() if n not in names} == {
            n: v for n, v in made.items() if n not in names
        }
        assert read[kind.name_field] == "Another name"


async def test_an_event_is_created_with_a_new_venue(api: Api) -> None:
    await api.made("categories", name="Concerts")
    await api.made("tags", name="a, b")
    editor = Editor(api)
    form = (await editor.get("/edit/events/new")).form()
    page = await editor.submit(
        form,
        title="Jazz",
        start_date="2027-06-04T19:30",
        end_date="2027-06-04T23:00",
        timezone="Europe/Berlin",
        cost="15 €",
        categories__=["1"],
        tags='outdoor, "a, b"',
        venue_new__venue="Riverside",
        venue_new__city="Freiburg",
        organizer_new__organizer="Club",
        organizer_new__email="a@example.org",
        description="Doors at 7.\r\n\r\nFree beer",
        featured="1",
    )
    assert page.status == 303, page.text
    assert "notice=created" in page.location
    event = (await api.get("/events"))[1]["events"][0]
    assert (event["title"], event["utc_start_date"], event["cost"]) == ("Jazz", "2027-06-04 17:30:00", "15 €")
    assert (event["venue"]["venue"], event["venue"]["city"]) == ("Riverside", "Freiburg")
    assert [one["email"] for one in event["organizer"]] == ["a@example.org"]
    assert [one["name"] for one in event["tags"]] == ["a, b", "outdoor"]
    assert [one["name"] for one in event["categories"]] == ["Concerts"]
    assert (event["featured"], event["show_map"], event["status"]) == (True, True, "publish")
    assert event["description"] == "Doors at 7.\n\nFree beer"


@pytest.mark.parametrize("is_concurrent", [True, False])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_a_new_form_that_is_sent_twice_creates_one_record(
    api: Api, kind: Kind, is_concurrent: bool
) -> None:
    """As by a double click. Sent again with another name, or from another page, it creates another one."""
    editor, path = Editor(api), f"/edit/{kind.plural}/new"
    times = {"start_date": "2027-06-04T19:30", "end_date": "2027-06-04T20:00", "tags": "new"}
    typed = {kind.name_field: "One", **(times if kind.name == "event" else {})}
    form = (await editor.get(path)).form()
    sent = [editor.submit(form, **typed) for _ in range(2)]
    pages = await asyncio.gather(*sent) if is_concurrent else [await one for one in sent]
    assert len({page.location for page in pages}) == 1
    assert "notice=created" in pages[0].location
    other = await editor.submit(form, **{**typed, kind.name_field: "Two"})
    again = await editor.submit((await editor.get(path)).form(), **{**typed, kind.name_field: "Three"})
    assert len({page.location for page in (pages[0], other, again)}) == 3
    assert await api.store.database[kind.plural].count_documents({}) == 3


async def test_a_new_form_is_sent_again_after_a_mistake(api: Api) -> None:
    editor = Editor(api)
    page = await editor.submit((await editor.get("/edit/venues/new")).form(), venue="")
    assert page.status == 400
    sent = [await editor.submit(page.form(), venue="Hall") for _ in range(2)]
    assert sent[0].location == sent[1].location
    assert (await api.get("/venues"))[1]["total"] == 1


async def test_all_mistakes_are_told_at_once_and_everything_is_kept(api: Api) -> None:
    editor = Editor(api)
    form = (await editor.get("/edit/events/new?lang=de")).form()
    page = await editor.submit(
        form,
        title="",
        start_date="2027-06-04T19:30",
        end_date="2027-06-04T18:00",
        website="nope",
        timezone="Mars/Base",
        cost="x" * 501,
        venue_new__website="ftp://x",
        venue_new__city="Freiburg",
        description="<b>Kept</b> text",
        sticky="1",
    )
    assert page.status == 400
    assert '<html lang="de">' in page.text
    told = {one.get("name") for one in page.parsed.inputs if one.get("aria-invalid") == "true"}
    assert told >= {"title", "website", "timezone", "cost", "venue_new[venue]", "venue_new[website]"}
    assert "Darf nicht leer sein." in page.text
    form = page.form()
    assert form.value("website") == "nope"
    assert form.value("timezone") == "Mars/Base"
    assert form.value("venue_new[city]") == "Freiburg"
    assert form.value("description") == "<b>Kept</b> text"
    assert form.value("sticky") == "1"
    for name in ("title", "website"):
        assert f'href="#field-{name}"' in page.text
        assert f'id="field-{name}-problem"' in page.text
    assert (await api.get("/events"))[1]["total"] == 0
    page = await editor.submit(
        form,
        title="Now",
        end_date="2027-06-04T20:00",
        website="",
        timezone="UTC",
        cost="",
        venue_new__website="",
        venue_new__venue="Hall",
    )
    assert page.status == 303, page.text
    assert (await api.get("/events"))[1]["events"][0]["venue"]["city"] == "Freiburg"


async def test_messages_of_the_store_are_beside_their_fields(api: Api) -> None:
    await api.made("tags", name="Jazz")
    await api.made("tags", name="Rock")
    editor = Editor(api)
    page = await editor.submit((await editor.get("/edit/tags/new")).form(), name="jazz")
    assert page.status == 400
    assert 'id="field-name-problem"' in page.text
    assert "fill in “Address of the page” under “More”" in page.text
    assert "slug." not in page.text
    assert (await editor.submit(page.form(), slug="jazz-2")).status == 303
    page = await editor.submit((await editor.get("/edit/tags/2")).form(), slug="jazz")
    assert page.status == 400
    assert 'id="field-slug-problem"' in page.text
    assert page.form().value("slug") == "jazz"
    event = await api.event()
    page = await editor.submit((await editor.get(f"/edit/events/{event['id']}")).form(), venue__=["77"])
    assert page.status == 400
    assert 'id="field-venue-problem"' in page.text


PAYLOAD = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>{{7*7}}"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_markup_in_any_field_is_shown_as_text(api: Api, kind: Kind) -> None:
    """Sent back in a refused form, and stored where the API stores it."""
    editor = Editor(api)
    form = (await editor.get(f"/edit/{kind.plural}/new")).form()
    typed = {name: PAYLOAD for name, _ in form.pairs if name not in ("was",)}
    page = await editor.post(form.action, [("was", form.value("was")), *typed.items()])
    assert page.status in (400, 303)
    assert_harmless(page.text)
    body = {**kind.example, kind.name_field: f"Name {PAYLOAD}", "description": PAYLOAD}
    if kind.is_post:
        body |= {"image": "https://example.org/a.png?\"'><script>", "website": "https://example.org/\"'<"}
    made = await api.made(kind.plural, **body)
    path = f"/edit/{kind.plural}/{made['id']}"
    for address in (
        path,
        f"/edit/{kind.plural}",
        f"{path}/delete",
        f"/edit/{kind.plural}/new?copy={made['id']}",
    ):
        assert_harmless((await editor.get(address)).text)
    for query in ("notice", "undo", "skipped", "search", "status", "orderby", "next", "copy", "id", "lang"):
        for address in (path, f"/edit/{kind.plural}", f"/edit/{kind.plural}/new"):
            assert_harmless(
                (await editor.get(f"{address}?{query}=%22%27%3E%3Cscript%3Ealert(1)%3C/script%3E")).text
            )


def assert_harmless(text: str) -> None:
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert "onerror=alert(1)>" not in text


async def test_a_hostile_form_is_answered(api: Api) -> None:
    editor = Editor(api)
    event = await api.event()
    for pairs in (
        [("title[x]", "1"), ("title[y][z]", "2")],
        [("was", "[1]"), ("title", "x")],
        [("was", '{"title": 3}'), ("version", "x"), ("title", "x")],
        [("was[a]", "b"), ("version", "9" * 30)],
        [("was", '{"tags": "x"}'), ("tags", '"' * 200_000)],
        [("was", '{"venue": "x", "categories": "x"}'), ("venue[]", "é"), ("categories[]", "²")],
        [("venue_new", "x"), ("venue_new[venue][x]", "y"), ("was", "{")],
    ):
        for path in ("/edit/events/new", f"/edit/events/{event['id']}"):
            assert (await editor.post(path, pairs)).status in (200, 303, 400, 412), (path, pairs)


async def test_hidden_links_stay(roles: Roles) -> None:
    editor, author = roles["editor"], roles["author"]
    venue = await editor.made("venues", venue="Hall")
    event = await author.event("Event", venue=venue["id"])
    await editor.patch(f"/venues/{venue['id']}", {"status": "draft"})
    browser = Editor(author, author.token)
    page = await browser.submit((await browser.get(f"/edit/events/{event['id']}")).form(), title="New")
    assert "notice=saved" in page.location
    await editor.patch(f"/venues/{venue['id']}", {"status": "publish"})
    assert (await author.get(f"/events/{event['id']}"))[1]["venue"]["id"] == venue["id"]


async def test_one_coordinate_can_be_changed(api: Api) -> None:
    venue = await api.made("venues", venue="Hall", geo_lat=48, geo_lng=7)
    editor = Editor(api)
    await editor.submit((await editor.get(f"/edit/venues/{venue['id']}")).form(), geo_lat="49.5")
    read = (await api.get(f"/venues/{venue['id']}"))[1]
    assert (read["geo_lat"], read["geo_lng"]) == (49.5, 7)


async def test_several_venues_are_kept_and_changed(api: Api) -> None:
    ids = [(await api.made("venues", venue=name))["id"] for name in ("A", "B", "C")]
    event = await api.event(venue=ids[:2])
    editor = Editor(api)
    form = (await editor.get(f"/edit/events/{event['id']}")).form()
    assert [value for name, value in form.pairs if name == "venue[]"] == [str(id) for id in ids[:2]]
    await editor.submit(form, venue__=[ids[2], ids[0]])
    read = (await api.get(f"/events/{event['id']}"))[1]
    assert [one["id"] for one in read["venue"]] == [ids[2], ids[0]]


async def test_a_parent_is_chosen_and_the_own_branch_is_not_offered(api: Api) -> None:
    top = await api.made("categories", name="Top")
    mid = await api.made("categories", name="Mid", parent=top["id"])
    low = await api.made("categories", name="Low", parent=mid["id"])
    other = await api.made("categories", name="Other")
    editor = Editor(api)
    page = await editor.get(f"/edit/categories/{mid['id']}")
    offered = page.text.partition('id="field-parent"')[2].partition("</select>")[0]
    assert [f'value="{one["id"]}"' in offered for one in (top, mid, low, other)] == [True, False, False, True]
    await editor.submit(page.form(), parent=str(other["id"]))
    assert (await api.get(f"/categories/{mid['id']}"))[1]["parent"] == other["id"]
    page = await editor.submit((await editor.get(f"/edit/categories/{mid['id']}")).form(), parent="")
    assert (await api.get(f"/categories/{mid['id']}"))[1]["parent"] == 0


async def test_a_copy_is_not_stored_until_it_is_saved(api: Api) -> None:
    event = await api.event("Jazz", venue={"venue": "Hall"}, tags=["x"], cost="5", slug="jazz", all_day=True)
    editor = Editor(api)
    page = await editor.get(f"/edit/events/new?copy={event['id']}&lang=de")
    form = page.form()
    assert form.value("title") == "Kopie von Jazz"
    assert (form.value("status"), form.value("slug")) == ("draft", "")
    assert (await api.get("/events"))[1]["total"] == 1
    saved = await editor.submit(form)
    copy = (await api.get(saved.location.rpartition("/edit")[2].partition("?")[0]))[1]
    assert copy["venue"]["id"] == event["venue"]["id"]
    assert [one["name"] for one in copy["tags"]] == ["x"]
    for name in ("start_date", "end_date", "all_day", "cost", "timezone", "show_map"):
        assert copy[name] == event[name], name
    assert copy["status"] == "draft"


async def test_a_contributor_is_told_about_the_review(roles: Roles) -> None:
    browser = Editor(roles["contributor"], roles["contributor"].token)
    page = await browser.get("/edit/events/new")
    assert "An editor looks at what you save" in page.text
    assert 'value="publish"' not in page.text
    saved = await browser.submit(
        page.form(), title="Mine", start_date="2027-06-04T19:30", end_date="2027-06-04T20:00"
    )
    id = saved.location.rpartition("/")[2].partition("?")[0]
    assert (await roles["editor"].get(f"/events/{id}"))[1]["status"] == "pending"
    review = await Editor(roles["editor"], roles["editor"].token).get("/edit/review")
    assert "Mine" in review.text
    assert '<span class="count">1</span>' in review.text


async def test_who_publishes_an_event_is_told_which_links_are_not_public(roles: Roles) -> None:
    """A contributor's new venue stays a draft when the event is published."""
    editor, contributor = roles["editor"], roles["contributor"]
    shown = await editor.made("organizers", organizer="Shown")
    event = await contributor.event(
        "Mine", venue={"venue": "New Hall"}, organizer=[shown["id"], {"organizer": "Hidden"}]
    )
    hall, hidden = "with this event: New Hall.", "with this event: Hidden."
    form = f"/edit/events/{event['id']}"
    page = await Editor(editor, editor.token).get(form)
    assert hall in page.text
    assert hidden in page.text
    assert "with this event" not in (await Editor(contributor, contributor.token).get(form)).text
    await editor.patch(f"/venues/{event['venue']['id']}", {"status": "publish"})
    page = await Editor(editor, editor.token).get(form)
    assert hall not in page.text
    assert hidden in page.text


async def test_a_password_is_set_kept_changed_and_removed(roles: Roles) -> None:
    editor, public = Editor(roles["editor"], roles["editor"].token), roles["public"]
    event = await roles["editor"].event("Secret", status="publish")
    path = f"/events/{event['id']}"
    await editor.submit((await editor.get(f"/edit{path}")).form(), password="one")
    assert (await public.get(path))[0] == 403
    page = await editor.get(f"/edit{path}")
    assert "notice=saved" in (await editor.submit(page.form(), title="Secret 2")).location
    assert (await public.get(path, password="one"))[0] == 200
    await editor.submit((await editor.get(f"/edit{path}")).form(), password_remove="1")
    assert (await public.get(path))[0] == 200


async def test_a_protected_event_is_opened_with_its_password(make_api: MakeApi) -> None:
    api = await make_api()
    event = await api.event("Secret", password="sesame", description="Hidden words")
    editor, path = Editor(api), f"/edit/events/{event['id']}"
    page = await editor.get(path)
    assert (page.status, "Hidden words" in page.text) == (403, False)
    page = await editor.submit(page.form(path), current_password="wrong")
    assert (page.status, "This password is wrong" in page.text) == (403, True)
    page = await editor.submit(page.form(path), current_password="sesame")
    assert (page.status, "Hidden words" in page.text) == (200, True)
    assert "notice=saved" in (await editor.submit(page.form(), title="Renamed")).location
    for _ in range(9):
        assert (await editor.post(path, [("current_password", "wrong")])).status == 403
    assert (await editor.post(path, [("current_password", "sesame")])).status == 429


@pytest.mark.parametrize(
    ("typed", "said", "instant"),
    [
        ("2027-03-28T02:30", "does not exist", "2027-03-28 01:30:00"),
        ("2027-10-31T02:30", "occurs twice", "2027-10-31 00:30:00"),
        ("2027-06-01T02:30", "UTC+02:00", "2027-06-01 00:30:00"),
    ],
)
async def test_clock_changes_are_told(api: Api, typed: str, said: str, instant: str) -> None:
    editor = Editor(api)
    query = f"value={typed}&timezone=Europe/Berlin"
    told = json.loads((await editor.get(f"/edit/preview/time?{query}")).text)
    assert (said in told["text"], told["is_warning"]) == (True, "UTC" not in said)
    form = (await editor.get("/edit/events/new")).form()
    end = typed.replace("T02", "T09")
    saved = await editor.submit(form, title="X", timezone="Europe/Berlin", start_date=typed, end_date=end)
    page = await editor.follow(saved)
    note = page.text.partition('id="field-start_date-note"')[2].partition("</p>")[0]
    assert said in note
    id = saved.location.rpartition("/")[2].partition("?")[0]
    assert (await api.get(f"/events/{id}"))[1]["utc_start_date"] == instant


async def test_the_second_occurrence_of_a_time_is_kept_and_named(api: Api) -> None:
    event = await api.event(
        start_date="2027-10-31T01:30:00Z", end_date="2027-10-31T05:00:00Z", timezone="Europe/Berlin"
    )
    editor = Editor(api)
    page = await editor.get(f"/edit/events/{event['id']}")
    assert "The one in CET (UTC+01:00) is used" in page.text
    await editor.submit(page.form(), title="Changed")
    assert (await api.get(f"/events/{event['id']}"))[1]["utc_start_date"] == "2027-10-31 01:30:00"


@pytest.mark.parametrize(
    ("typed", "said"),
    [("10–20 €", "read as 10 EUR, 20 EUR"), ("donation", "no price"), ("", ""), ("x" * 900, "no price")],
)
async def test_costs_are_previewed(api: Api, typed: str, said: str) -> None:
    page = await Editor(api).get(f"/edit/preview/cost?value={typed}")
    assert page.status == 200
    assert said in json.loads(page.text)["text"]
    assert bool(json.loads(page.text)["text"]) == bool(typed)


async def test_a_tag_whose_name_is_a_number_stays_itself(api: Api) -> None:
    """A string of digits would be taken for the ID of another tag."""
    other = await api.made("tags", name="Other")
    number = await api.made("tags", name=str(other["id"]))
    event = await api.event(tags=[number["id"]])
    editor = Editor(api)
    form = (await editor.get(f"/edit/events/{event['id']}")).form()
    await editor.submit(form, tags=f"{form.value('tags')}, new")
    names = [one["name"] for one in (await api.get(f"/events/{event['id']}"))[1]["tags"]]
    assert names == [number["name"], "new"]


@pytest.mark.parametrize(
    ("linked", "typed", "expected"),
    [
        ([0], "Jazz, new", [0]),
        ([1], "Jazz, new", [1]),
        ([0, 1], "Jazz, Jazz, new", [0, 1]),
        ([0, 1], "Jazz, new", [0]),
        ([1], "new, Jazz, Jazz", [1]),
        ([], "Jazz, Jazz", [0]),
    ],
)
async def test_tags_with_the_same_name_are_not_swapped(
    api: Api, linked: list[int], typed: str, expected: list[int]
) -> None:
    ids = [(await api.made("tags", name="Jazz", slug=slug))["id"] for slug in ("jazz-1", "jazz-2")]
    event = await api.event(tags=[ids[one] for one in linked])
    editor = Editor(api)
    await editor.submit((await editor.get(f"/edit/events/{event['id']}")).form(), tags=typed)
    tags = (await api.get(f"/events/{event['id']}"))[1]["tags"]
    assert [one["id"] for one in tags if one["name"] == "Jazz"] == [ids[one] for one in expected]
    assert [one["name"] for one in tags if one["name"] != "Jazz"] == ["new"] * ("new" in typed)


async def test_a_text_that_begins_with_an_empty_line_keeps_it(api: Api) -> None:
    venue = await api.made("venues", venue="Hall", description="\n\nBelow")
    editor = Editor(api)
    form = (await editor.get(f"/edit/venues/{venue['id']}")).form()
    assert form.value("description") == "\r\n\r\nBelow"
    assert "notice=unchanged" in (await editor.submit(form)).location


@pytest.mark.parametrize("path", ["/doc", "/openapi.json", "/"])
async def test_the_api_description_has_nothing_of_the_forms(api: Api, path: str) -> None:
    assert (await api.get(path))[0] == 200
    assert not [
        word for word in ("label", "form", "widget", "together", "several") if f'"{word}"' in api.text
    ]


async def test_a_parent_that_the_list_does_not_reach_is_kept(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handlers.editor.forms.choices.MAX_OPTIONS", 2)
    await api.made("categories", name="Art")
    await api.made("categories", name="Books")
    parent = await api.made("categories", name="Zoo")
    child = await api.made("categories", name="Tigers", parent=parent["id"])
    editor, path = Editor(api), f"/edit/categories/{child['id']}"
    form = (await editor.get(path)).form()
    assert form.value("parent") == str(parent["id"])
    assert "notice=saved" in (await editor.submit(form, name="Lions")).location
    read = (await api.get(f"/categories/{child['id']}"))[1]
    assert (read["name"], read["parent"]) == ("Lions", parent["id"])
    form = (await editor.get(path)).form()
    await editor.submit(form, parent="")
    assert (await api.get(f"/categories/{child['id']}"))[1]["parent"] == 0


async def test_records_that_the_options_do_not_reach_are_typed_by_id(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 'placeholder="ID"' not in (await Editor(api).get("/edit/events/new")).text
    monkeypatch.setattr("handlers.editor.forms.choices.MAX_OPTIONS", 1)
    await api.made("venues", venue="Arena")
    await api.made("categories", name="Art")
    venue, category = await api.made("venues", venue="Zoo"), await api.made("categories", name="Zumba")
    editor, event = Editor(api), await api.event("Jazz")
    form = (await editor.get(f"/edit/events/{event['id']}")).form()
    typed = {"venue__": ["", str(venue["id"])], "categories__": [str(category["id"])]}
    page = await editor.submit(form, title="", **typed)
    assert page.status == 400
    assert "notice=saved" in (await editor.submit(page.form(), title="Rock")).location
    read = (await api.get(f"/events/{event['id']}"))[1]
    assert (read["venue"]["venue"], [one["name"] for one in read["categories"]]) == ("Zoo", ["Zumba"])
    form = (await editor.get(f"/edit/events/{event['id']}")).form()
    assert "notice=unchanged" in (await editor.submit(form)).location
    page = await editor.submit(form, venue__=["999"])
    assert (page.status, "Venue 999 not found." in page.text) == (400, True)


async def test_a_protected_event_in_the_trash_cannot_be_copied(api: Api) -> None:
    editor = Editor(api)
    event = await api.event("Party", description="the secret place", password="secret")
    assert (await api.delete(f"/events/{event['id']}?password=secret"))[0] == 200
    page = await editor.get(f"/edit/events/new?copy={event['id']}")
    assert "the secret place" not in str(page.text)
    assert page.status == 410
