"""Changes in the editor: two editors at once, undo, trash and restore, deletion of terms."""

from __future__ import annotations

from typing import Any

import pytest

from schemas import KINDS, Kind
from tests.conftest import Api
from tests.editing import Editor, Page
from tests.random_records import Bodies

Roles = dict[str, Api]


async def opened(api: Api, kind: str, **body: Any) -> tuple[Editor, str, Any]:
    made = await api.made(kind, **body)
    return Editor(api), f"/edit/{kind}/{made['id']}", made


def rows(page: Page) -> list[list[str]]:
    """The cells of the table of differences, as text."""
    table = page.text.partition('<table class="differences">')[2].partition("</table>")[0]
    found = []
    for row in table.partition("<tbody>")[2].split("<tr>")[1:]:
        cells = row.replace("<th", "<td").replace("</th>", "</td>").split("<td")[1:]
        found.append(
            [cell.partition(">")[2].partition("</td>")[0].partition(" <small>")[0] for cell in cells]
        )
    return found


async def test_the_second_of_two_editors_sees_both_versions(api: Api) -> None:
    event = await api.event("Jazz", cost="5", tags=["a"])
    editor, path = Editor(api), f"/edit/events/{event['id']}"
    first, second = (await editor.get(path)).form(), (await editor.get(path)).form()
    assert (await editor.submit(first, title="Rock", website="https://example.org/new")).status == 303
    page = await editor.submit(second, title="Blues", cost="7", tags="a, b")
    assert page.status == 412
    assert rows(page) == [
        ["Title", "Blues", "Rock"],
        ["Tags", "a, b", "a"],
        ["Website", "–", "https://example.org/new"],
        ["Cost", "7", "$5"],
    ]
    form = page.form()
    assert (form.value("title"), form.value("website")) == ("Blues", "https://example.org/new")
    assert (await api.get(f"/events/{event['id']}"))[1]["title"] == "Rock"
    assert "notice=saved" in (await editor.submit(form)).location
    read = (await api.get(f"/events/{event['id']}"))[1]
    assert (read["title"], read["cost"], read["website"]) == ("Blues", "$7", "https://example.org/new")
    assert [one["name"] for one in read["tags"]] == ["a", "b"]


async def test_a_third_change_between_conflict_and_save_is_noticed(api: Api) -> None:
    editor, path, made = await opened(api, "venues", venue="Hall")
    form = (await editor.get(path)).form()
    await api.patch(f"/venues/{made['id']}", {"city": "Bonn"})
    conflict = await editor.submit(form, venue="Great Hall")
    await api.patch(f"/venues/{made['id']}", {"city": "Ulm"})
    page = await editor.submit(conflict.form())
    assert page.status == 412
    assert (await editor.submit(page.form())).status == 303
    read = (await api.get(f"/venues/{made['id']}"))[1]
    assert (read["venue"], read["city"]) == ("Great Hall", "Ulm")


async def test_a_form_without_a_version_does_not_overwrite(api: Api) -> None:
    editor, path, made = await opened(api, "tags", name="Jazz")
    form = (await editor.get(path)).form()
    assert (await editor.submit(form, name="Rock", version=None)).status == 412
    assert (await api.get(f"/tags/{made['id']}"))[1]["name"] == "Jazz"


@pytest.mark.parametrize("renamed", ["venues", "organizers", "categories"])
@pytest.mark.parametrize("typed", [{"password": "sesame"}, {"title": "Rock"}], ids=["password", "title"])
async def test_a_new_name_of_a_linked_record_is_no_conflict(
    roles: Roles, renamed: str, typed: dict[str, str]
) -> None:
    """It changes the event's version, but nothing that its form shows."""
    api = roles["editor"]
    names = {"venues": "venue", "organizers": "organizer", "categories": "name"}
    made = {plural: await api.made(plural, **{name: "Old"}) for plural, name in names.items()}
    links = {"venue": "venues", "organizer": "organizers", "categories": "categories"}
    event = await api.event("Jazz", **{name: [made[plural]["id"]] for name, plural in links.items()})
    editor, path = Editor(api, api.token), f"/edit/events/{event['id']}"
    form = (await editor.get(path)).form()
    await api.patch(f"/{renamed}/{made[renamed]['id']}", {names[renamed]: "New"})
    assert (await editor.get(path)).form().value("version") != form.value("version")
    saved = await editor.submit(form, **typed)
    assert "notice=saved" in saved.location
    status, read = await roles["public"].get(f"/events/{event['id']}")
    assert (status, read.get("title")) == ((403, None) if "password" in typed else (200, "Rock"))
    if "title" in typed:
        page = await editor.submit((await editor.follow(saved)).form("/undo"))
        assert "notice=undone" in page.location


@pytest.mark.parametrize("renamed", ["venues", "organizers", "categories"])
async def test_a_new_name_of_a_linked_record_prevents_nothing(roles: Roles, renamed: str) -> None:
    """It changes the event's version, but nothing that undo and the trash are about."""
    api, name = roles["editor"], {"venues": "venue", "organizers": "organizer"}.get(renamed, "name")
    field = renamed if name == "name" else name
    made = await api.made(renamed, **{name: "Old"})
    event = await api.event("Jazz", **{field: [made["id"]]})
    editor, path = Editor(api, api.token), f"/edit/events/{event['id']}"
    version = 0

    async def rename() -> None:
        nonlocal version
        version += 1
        await api.patch(f"/{renamed}/{made['id']}", {name: f"New {version}"})

    saved = await editor.follow(await editor.submit((await editor.get(path)).form(), title="Rock"))
    await rename()
    assert "notice=undone" in (await editor.submit(saved.form("/undo"))).location
    assert (await api.get(f"/events/{event['id']}"))[1]["title"] == "Jazz"
    for page in (path, f"{path}/delete"):
        form = (await editor.get(page)).form("/delete")
        await rename()
        trashed = await editor.follow(await editor.submit(form))
        assert (await api.get(f"/events/{event['id']}"))[0] == 410
        form = trashed.form("/restore") if page == path else (await editor.get(path)).form("/restore")
        await rename()
        assert "notice=restored" in (await editor.submit(form)).location
    read = (await api.get(f"/events/{event['id']}"))[1]
    linked = read[field][0] if isinstance(read[field], list) else read[field]
    assert linked[name] == f"New {version}"


async def test_a_change_of_the_event_still_prevents_undo_and_the_trash(api: Api) -> None:
    hall = await api.made("venues", venue="Hall")
    event = await api.event("Jazz", venue=hall["id"])
    editor, path = Editor(api), f"/edit/events/{event['id']}"
    saved = await editor.follow(await editor.submit((await editor.get(path)).form(), title="Rock"))
    await api.patch(f"/venues/{hall['id']}", {"venue": "Barn"})
    await api.patch(f"/events/{event['id']}", {"venue": []})
    assert "notice=undo-changed" in (await editor.submit(saved.form("/undo"))).location
    assert "notice=changed" in (await editor.submit(saved.form("/delete"))).location
    assert (await api.get(f"/events/{event['id']}"))[1]["title"] == "Rock"


async def test_two_new_passwords_are_a_conflict_that_is_told(roles: Roles) -> None:
    api = roles["editor"]
    event = await api.event("Jazz")
    editor, path = Editor(api, api.token), f"/edit/events/{event['id']}"
    first, second = (await editor.get(path)).form(), (await editor.get(path)).form()
    assert (await editor.submit(first, password="one")).status == 303
    page = await editor.submit(second, password="two")
    assert (page.status, rows(page)) == (412, [])
    assert "Somebody else has saved this meanwhile" in page.text
    assert (await roles["public"].get(f"/events/{event['id']}", password="one"))[0] == 200
    assert "notice=saved" in (await editor.submit(page.form())).location
    assert (await roles["public"].get(f"/events/{event['id']}", password="two"))[0] == 200


async def test_typed_data_of_a_new_venue_survives_a_conflict(api: Api) -> None:
    event = await api.event("Jazz")
    editor, path = Editor(api), f"/edit/events/{event['id']}"
    form = (await editor.get(path)).form()
    await api.patch(f"/events/{event['id']}", {"cost": "3"})
    page = await editor.submit(form, venue_new__venue="Hall")
    assert (page.status, page.form().value("venue_new[venue]")) == (412, "Hall")
    await editor.submit(page.form())
    assert (await api.get(f"/events/{event['id']}"))[1]["venue"]["venue"] == "Hall"


def without_times(record: Any) -> dict[str, Any]:
    hidden = ("modified_utc", "has_own_time", "version", "last_change", "tok", "text", "claim")
    return {name: value for name, value in record.items() if name not in hidden and value is not None}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_undo_sets_every_field_back(api: Api, kind: Kind) -> None:
    """The form of one random record is sent with the values of another."""
    bodies, editor, undone = Bodies(3), Editor(api), 0
    for _ in range(10):
        one, other = [
            await api.made(
                kind.plural, **{n: v for n, v in bodies.body(kind.name).items() if n != "password"}
            )
            for _ in range(2)
        ]
        path = f"/edit/{kind.plural}/{one['id']}"
        mine, theirs = [
            (await editor.get(f"/edit/{kind.plural}/{id}")).form() for id in (one["id"], other["id"])
        ]
        kept = ("was", "version", "slug")
        sent = [pair for pair in theirs.pairs if pair[0] not in kept]
        before = await api.store.database[kind.plural].find_one({"_id": one["id"]})
        page = await editor.post(path, [*sent, *(pair for pair in mine.pairs if pair[0] in kept)])
        if page.status != 303 or "notice=saved" not in page.location:
            continue  # a name that is taken, or an end before the start
        undone += 1
        page = await editor.submit((await editor.follow(page)).form("/undo"))
        assert "notice=undone" in page.location
        after = await api.store.database[kind.plural].find_one({"_id": one["id"]})
        assert without_times(after) == without_times(before)
    assert undone


@pytest.mark.parametrize(
    ("start", "typed", "moved", "is_told"),
    [
        ("2027-06-01 19:00", {"all_day": "1"}, "2027-06-01 00:00:00", False),
        ("2027-03-28 02:30", {"timezone": "Europe/Berlin"}, "2027-03-28 01:30:00", True),
        ("2027-06-01 02:30", {"timezone": "Europe/Berlin"}, "2027-06-01 00:30:00", False),
    ],
)
async def test_undo_restores_the_times_of_an_event(
    api: Api, start: str, typed: dict[str, str], moved: str, is_told: bool
) -> None:
    """Whole days and another zone move both edges. Without scripts, nothing else is sent with them."""
    event = await api.event("Jazz", start_date=start, end_date=f"{start[:10]} 22:00", timezone="UTC")
    editor, path = Editor(api), f"/edit/events/{event['id']}"
    saved = await editor.submit((await editor.get(path)).form(), **typed)
    assert (await api.get(f"/events/{event['id']}"))[1]["utc_start_date"] == moved
    page = await editor.follow(saved)
    assert ("The time that you entered does not exist" in page.text) == is_told
    assert "notice=undone" in (await editor.submit(page.form("/undo"))).location
    read = (await api.get(f"/events/{event['id']}"))[1]
    names = ("start_date", "end_date", "utc_start_date", "utc_end_date", "timezone", "all_day")
    assert {name: read[name] for name in names} == {name: event[name] for name in names}


async def test_undo_does_not_overwrite_a_later_change(api: Api) -> None:
    editor, path, made = await opened(api, "venues", venue="Hall")
    saved = await editor.follow(await editor.submit((await editor.get(path)).form(), venue="Great Hall"))
    await api.patch(f"/venues/{made['id']}", {"city": "Bonn"})
    assert "notice=undo-changed" in (await editor.submit(saved.form("/undo"))).location
    assert (await api.get(f"/venues/{made['id']}"))[1]["venue"] == "Great Hall"


@pytest.mark.parametrize("key", ["", "nonsense", "{other}"])
async def test_a_step_of_another_record_undoes_nothing(api: Api, key: str) -> None:
    editor, path, _ = await opened(api, "venues", venue="Hall")
    _, other, _ = await opened(api, "venues", venue="Other")
    saved = await editor.submit((await editor.get(other)).form(), venue="Changed")
    used = saved.location.partition("undo=")[2].partition("&")[0]
    page = await editor.post(f"{path}/undo", [("key", key.format(other=used))])
    assert "notice=undo-expired" in page.location


@pytest.mark.parametrize("status", ["publish", "draft", "private"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.is_post], ids=lambda kind: kind.name)
async def test_trash_and_undo(api: Api, kind: Kind, status: str) -> None:
    made = await api.made(kind.plural, **{**kind.example, "status": status})
    editor, path = Editor(api), f"/edit/{kind.plural}/{made['id']}"
    page = await editor.submit((await editor.get(path)).form("/delete"))
    assert page.status == 303
    assert (await api.get(f"/{kind.plural}/{made['id']}"))[0] == 410
    listed = await editor.follow(page)
    assert "Moved to the trash." in listed.text
    assert "Restore" in (await editor.get(path)).text
    page = await editor.submit(listed.form("/restore"))
    assert "notice=restored" in page.location
    read = (await api.get(f"/{kind.plural}/{made['id']}"))[1]
    assert (read["status"], read["slug"]) == (status, made["slug"])


async def test_the_trash_is_listed_and_restored_from(api: Api) -> None:
    event = await api.event("Gone")
    await api.delete(f"/events/{event['id']}")
    editor = Editor(api)
    assert "Gone" not in (await editor.get("/edit/events")).text
    page = await editor.get("/edit/events?status=trash")
    assert "Gone" in page.text
    assert (await editor.submit(page.form("/restore"))).status == 303
    assert (await api.get(f"/events/{event['id']}"))[1]["status"] == "publish"


async def test_forms_without_fields_hold_no_digests_of_a_protected_event(api: Api) -> None:
    """Somebody who does not know the password could compare them with those of a guess."""
    event = await api.event(password="secret", cost="20")
    editor, path = Editor(api), f"/edit/events/{event['id']}"
    assert (await editor.get(f"{path}/delete")).form("/delete").value("was") == ""
    assert (await api.send("DELETE", f"/events/{event['id']}", params={"password": "secret"}))[0] == 200
    for place in (path, f"/edit/events?notice=trashed&id={event['id']}"):
        assert (await editor.get(place)).form("/restore").value("was") == "", place


async def test_trash_from_an_outdated_form_is_refused(api: Api) -> None:
    editor, path, made = await opened(api, "venues", venue="Hall")
    page = await editor.get(path)
    await api.patch(f"/venues/{made['id']}", {"city": "Bonn"})
    answer = await editor.submit(page.form("/delete"))
    assert answer.location == f"{path}?notice=changed"
    assert (await api.get(f"/venues/{made['id']}"))[0] == 200


async def test_deleting_a_term_asks_first(api: Api) -> None:
    tag = await api.made("tags", name="Jazz")
    for title in ("One", "Two"):
        await api.event(title, tags=[tag["id"]])
    editor, path = Editor(api), f"/edit/tags/{tag['id']}/delete"
    page = await editor.get(path)
    assert "Published events that use it: 2." in page.text
    assert (await api.get(f"/tags/{tag['id']}"))[0] == 200
    page = await editor.submit(page.form("/delete"))
    assert "Deleted." in (await editor.follow(page)).text
    assert (await api.get(f"/tags/{tag['id']}"))[0] == 404


async def test_lists_show_what_lists_of_the_api_hide(api: Api) -> None:
    await api.event("Hidden one", hide_from_listings=True)
    await api.event("Long ago", start_date="1999-01-01", end_date="1999-01-02")
    await api.event("Far away", start_date="2199-01-01", end_date="2199-01-02", status="private")
    text = (await Editor(api).get("/edit/events")).text
    assert [title in text for title in ("Hidden one", "Long ago", "Far away")] == [True, True, True]


async def test_lists_are_filtered_sorted_and_paged(api: Api) -> None:
    for number in range(30):
        await api.event(f"Event {number:02}", status="draft" if number % 2 else "publish")
    editor = Editor(api)
    page = await editor.get("/edit/events?orderby=title&order=asc")
    assert "30 in total" in page.text
    assert page.text.index("Event 00") < page.text.index("Event 24")
    assert "Event 25" not in page.text
    assert "Event 25" in (await editor.get("/edit/events?orderby=title&order=asc&page=2")).text
    page = await editor.get("/edit/events?status=draft")
    assert "15 in total" in page.text
    assert "1 in total" in (await editor.get("/edit/events?search=event+17")).text


async def test_categories_are_a_tree(api: Api) -> None:
    music = await api.made("categories", name="Music")
    await api.made("categories", name="Art")
    jazz = await api.made("categories", name="Jazz", parent=music["id"])
    await api.made("categories", name="Bebop", parent=jazz["id"])
    text = (await Editor(api).get("/edit/categories")).text
    order = [text.index(f">{name}</a>") for name in ("Art", "Music", "Jazz", "Bebop")]
    assert order == sorted(order)
    assert [f'class="depth-{depth}"' in text for depth in range(4)] == [True, True, True, False]


async def test_more_categories_than_a_tree_shows_are_paged(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handlers.editor.forms.choices.MAX_OPTIONS", 29)
    for number in range(30):
        await api.made("categories", name=f"Category {number:02}")
    editor = Editor(api)
    first = await editor.get("/edit/categories")
    assert ["30 in total" in first.text, 'rel="next"' in first.text] == [True, True]
    assert ["Category 24" in first.text, "Category 25" in first.text] == [True, False]
    second = (await editor.get("/edit/categories?page=2")).text
    assert ["Category 24" in second, "Category 25" in second, "Category 29" in second] == [False, True, True]
    monkeypatch.setattr("handlers.editor.forms.choices.MAX_OPTIONS", 30)
    text = (await editor.get("/edit/categories")).text
    assert ["Category 29" in text, 'rel="next"' in text] == [True, False]


async def test_what_was_typed_is_kept_if_an_event_is_protected_meanwhile(api: Api) -> None:
    event = await api.event("Jazz", description="Old")
    editor, path = Editor(api), f"/edit/events/{event['id']}"
    form = (await editor.get(path)).form()
    await api.patch(f"/events/{event['id']}", {"new_password": "sesame"})
    typed = {"description": 'First "line"\r\n\r\nSecond', "venue_new__venue": "Hall"}
    page = await editor.submit(form, **typed)
    assert page.status == 403
    page = await editor.submit(page.form(), current_password="wrong")
    assert (page.status, "This password is wrong." in page.text) == (403, True)
    assert [name for name, _ in page.form().pairs].count("current_password") == 1
    page = await editor.submit(page.form(), current_password="sesame")
    assert page.status == 412  # setting the password was a change
    assert "notice=saved" in (await editor.submit(page.form())).location
    read = (await api.get(f"/events/{event['id']}", password="sesame"))[1]
    assert (read["description"], read["venue"]["venue"]) == ('First "line"\n\nSecond', "Hall")


async def test_removing_the_password_stays_ticked_after_a_mistake_and_a_conflict(roles: Roles) -> None:
    api = roles["editor"]
    event = await api.event("Jazz", password="sesame")
    editor, path = Editor(api, api.token), f"/edit/events/{event['id']}"
    page = await editor.submit((await editor.get(path)).form(), title="", password_remove="1")
    assert (page.status, page.form().value("password_remove")) == (400, "1")
    await api.patch(f"/events/{event['id']}", {"cost": "3"})
    page = await editor.submit(page.form(), title="Rock")
    assert (page.status, page.form().value("password_remove")) == (412, "1")
    assert "notice=saved" in (await editor.submit(page.form())).location
    assert (await roles["public"].get(f"/events/{event['id']}"))[0] == 200
    assert "password_remove" not in (await editor.get(path)).text


@pytest.mark.parametrize("action", ["undo", "restore"])
async def test_links_to_languages_lead_to_a_page(roles: Roles, action: str) -> None:
    """Also those of a page that answers an action which has no page of its own."""
    venue = await roles["editor"].made("venues", venue="Hall")
    path = f"/edit/venues/{venue['id']}"
    page = await Editor(roles["public"]).post(f"{path}/{action}", [("key", "x")])
    assert (page.status, page.form(action).action) == (401, f"{path}/{action}")
    assert f'href="{path}?lang=de"' in page.text
    assert f'{action}?lang=de"' not in page.text
    editor = Editor(roles["public"], roles["editor"].token)
    assert (await editor.get(f"{path}?lang=de")).status == 200


async def test_a_protected_event_is_copied_with_its_password(roles: Roles) -> None:
    author = roles["author"]
    event = await author.event("Jazz", password="sesame", description="Hidden words")
    editor, path = Editor(author, author.token), f"/edit/events/{event['id']}"
    page = await editor.follow(await editor.get(f"/edit/events/new?copy={event['id']}&lang=de"))
    for password in ("", "wrong"):
        page = await editor.submit(page.form(path), current_password=password)
        assert (page.status, "Hidden words" in page.text) == (403, False)
    asked, viewer = page.form(path), Editor(author, roles["viewer"].token)
    assert (await viewer.submit(asked, current_password="sesame")).status == 403
    page = await editor.submit(asked, current_password="sesame")
    assert (page.status, page.form().value("title")) == (200, "Kopie von Jazz")
    assert page.form().value("description") == "Hidden words"
    page = await editor.submit(page.form(), title="Rock")
    assert page.location.endswith("lang=de&notice=created")
    for _ in range(9):
        assert (await editor.submit(asked, current_password="wrong")).status == 403
    assert (await editor.submit(asked, current_password="sesame")).status == 429


async def test_the_password_page_keeps_the_notice_and_the_step_of_undo(api: Api) -> None:
    event = await api.event("Jazz", password="sesame")
    editor, path = Editor(api), f"/edit/events/{event['id']}"
    form = (await editor.post(path, [("current_password", "sesame")])).form()
    page = await editor.follow(await editor.submit(form, title="Rock"))
    assert page.status == 403
    page = await editor.submit(page.form(path), current_password="wrong")
    page = await editor.submit(page.form(path), current_password="sesame")
    assert (page.status, "Saved." in page.text) == (200, True)
    page = await editor.submit(page.form("/undo"), current_password="sesame")
    assert "notice=undone" in page.location
    assert (await api.get(f"/events/{event['id']}", password="sesame"))[1]["title"] == "Jazz"


async def test_undo_of_a_protected_event_asks_for_the_password_and_goes_on(api: Api) -> None:
    event = await api.event("Jazz", password="sesame")
    editor, path = Editor(api), f"/edit/events/{event['id']}"
    form = (await editor.post(path, [("current_password", "sesame")])).form()
    saved = await editor.submit(form, title="Rock")
    key = saved.location.partition("undo=")[2].partition("&")[0]
    page = await editor.post(f"{path}/undo", [("key", key)])
    assert (page.status, f'href="{path}?lang=de"' in page.text) == (403, True)
    page = await editor.submit(page.form("/undo"), current_password="sesame")
    assert "notice=undone" in page.location
    assert (await api.get(f"/events/{event['id']}", password="sesame"))[1]["title"] == "Jazz"
