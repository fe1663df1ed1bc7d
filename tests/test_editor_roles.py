"""Who may do what in the editor: every role and every route, as the API has it."""

from __future__ import annotations

import itertools

import pytest

from schemas import BY_PLURAL, KINDS
from tests import access_table as table
from tests.access_table import CALLERS, POSTS, STATUSES, Made
from tests.conftest import Api
from tests.editing import Editor

Roles = dict[str, Api]
OWNERS = ("contributor", "author", "admin")
SIGN_IN = "/edit/sign-in?next="


def browser(roles: Roles, caller: str) -> Editor:
    return Editor(roles["public"], roles[caller].token)


def may_create(caller: str, plural: str) -> bool:
    """Contributors write posts, but no terms."""
    return caller in ("author", "editor", "admin") or (caller == "contributor" and BY_PLURAL[plural].is_post)


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("plural", [kind.plural for kind in KINDS])
async def test_lists_and_new_forms(roles: Roles, plural: str, caller: str) -> None:
    editor = browser(roles, caller)
    listed, form = await editor.get(f"/edit/{plural}"), await editor.get(f"/edit/{plural}/new")
    sent = await editor.post(f"/edit/{plural}/new", [("was", "{}"), ("x", "y")])
    if caller == "public":
        for page in (listed, form):
            assert (page.status, page.location.startswith(SIGN_IN)) == (303, True)
        assert sent.status == 401
        return
    assert listed.status == 200
    allowed = may_create(caller, plural)
    assert (form.status, sent.status) == ((200, 400) if allowed else (403, 403))
    assert (f'href="/edit/{plural}/new"' in listed.text) == allowed


@pytest.mark.parametrize("caller", CALLERS)
async def test_other_pages(roles: Roles, caller: str) -> None:
    editor = browser(roles, caller)
    statuses = {"public": 303, "editor": 200, "admin": 200}
    assert (await editor.get("/edit/review")).status == statuses.get(caller, 403)
    for path in ("/edit/preview/cost?value=1", "/edit/preview/time?value=2027-06-01T10:00"):
        assert (await editor.get(path)).status == (303 if caller == "public" else 200)
    assert (await editor.get("/edit")).status == 303


async def made_records(roles: Roles, kind: str) -> list[Made]:
    ids = await table.role_ids(roles["admin"].store)
    wanted = [
        Made(kind, number, status, owner, texts={table.NAMES[kind]: f"{status} of {owner}"})
        for number, (status, owner) in enumerate(itertools.product(STATUSES, OWNERS))
    ]
    return await table.together(table.make(roles["admin"], ids, one) for one in wanted)


@pytest.mark.parametrize("kind", POSTS)
async def test_records_of_every_status_and_owner(roles: Roles, kind: str) -> None:
    """Reading and writing follow the table of the API; only the trash has a page of its own."""
    records = await made_records(roles, kind)
    for caller in CALLERS:
        editor = browser(roles, caller)
        for record in records:
            path = f"/edit/{record.plural}/{record.id}"
            page = await editor.get(path)
            if caller == "public":
                assert (page.status, page.location.startswith(SIGN_IN)) == (303, True)
                continue
            assert page.status == (200 if table.sees(caller, record) else 403), (caller, record)
            writes = table.sees(caller, record) and writes_record(caller, record)
            has_form = "/restore" in page.text if record.status == "trash" else 'name="was"' in page.text
            assert has_form == writes, (caller, record)
            listed = await editor.get(f"/edit/{record.plural}?status={record.status}")
            assert (next(iter(record.texts.values())) in listed.text) == table.sees(caller, record)


def writes_record(caller: str, record: Made) -> bool:
    if caller in ("editor", "admin"):
        return True
    own = caller == record.owner
    return own and (
        caller == "author" or (caller == "contributor" and record.status not in ("publish", "future"))
    )


@pytest.mark.parametrize("action", ["", "/delete", "/restore", "/undo"])
@pytest.mark.parametrize("kind", POSTS)
async def test_what_may_not_be_written_stays_as_it_is(roles: Roles, kind: str, action: str) -> None:
    records = await made_records(roles, kind)
    collection = roles["admin"].store.database[POSTS[kind]]
    for caller in CALLERS:
        editor = browser(roles, caller)
        for record in records:
            if writes_record(caller, record):
                continue
            before = await collection.find_one({"_id": record.id})
            name = table.NAMES[kind]
            data = [("was", f'{{"{name}": "x"}}'), ("version", str(before["version"])), (name, "Taken")]
            page = await editor.post(f"/edit/{record.plural}/{record.id}{action}", data)
            assert page.status == (401 if caller == "public" else 403), caller
            assert await collection.find_one({"_id": record.id}) == before, (caller, record)


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("plural", ["categories", "tags"])
async def test_terms(roles: Roles, plural: str, caller: str) -> None:
    term = await roles["admin"].made(plural, name="Jazz")
    editor, path = browser(roles, caller), f"/edit/{plural}/{term['id']}"
    allowed = may_create(caller, plural)
    page = await editor.get(path)
    assert page.status == (303 if caller == "public" else 200)
    assert ('name="was"' in page.text) == allowed
    expected = 303 if caller == "public" else 200 if allowed else 403
    assert (await editor.get(f"{path}/delete")).status == expected
    page = await editor.post(f"{path}/delete", [])
    assert page.status == (401 if caller == "public" else 303 if allowed else 403)
    assert (await roles["admin"].get(f"/{plural}/{term['id']}"))[0] == (404 if allowed else 200)


async def test_a_step_of_undo_is_only_for_those_who_may_write(roles: Roles) -> None:
    venue = await roles["editor"].made("venues", venue="Hall")
    editor, path = browser(roles, "editor"), f"/edit/venues/{venue['id']}"
    saved = await editor.follow(await editor.submit((await editor.get(path)).form(), venue="Great Hall"))
    form = saved.form("/undo")
    for caller in ("public", "viewer", "contributor", "author"):
        await browser(roles, caller).submit(form)
        assert (await roles["public"].get(f"/venues/{venue['id']}"))[1]["venue"] == "Great Hall"
    await browser(roles, "admin").submit(form)
    assert (await roles["public"].get(f"/venues/{venue['id']}"))[1]["venue"] == "Hall"


@pytest.mark.parametrize("plural", [kind.plural for kind in KINDS])
@pytest.mark.parametrize("id", ["999", "9" * 25, "0"])
async def test_what_does_not_exist(api: Api, plural: str, id: str) -> None:
    editor = Editor(api)
    assert (await editor.get(f"/edit/{plural}/{id}")).status == 404
    for action in ("", "/delete", "/restore", "/undo"):
        assert (await editor.post(f"/edit/{plural}/{id}{action}")).status == 404
    assert (await editor.get(f"/edit/{plural}/new?copy={id}")).status in (200, 404)


async def test_what_was_typed_is_kept_if_a_record_is_published_meanwhile(roles: Roles) -> None:
    event = await roles["contributor"].event("Mine", status="pending")
    editor, path = browser(roles, "contributor"), f"/edit/events/{event['id']}"
    form = (await editor.get(path)).form()
    await roles["editor"].patch(f"/events/{event['id']}", {"status": "publish"})
    page = await editor.submit(form, description="Long text", venue_new__venue="Hall")
    assert (page.status, "Your role does not allow this." in page.text) == (403, True)
    kept = page.form()
    assert (kept.value("description"), kept.value("venue_new[venue]")) == ("Long text", "Hall")
    assert (await roles["public"].get(f"/events/{event['id']}"))[1]["description"] == ""


async def test_a_viewer_opens_a_protected_event_with_its_password(roles: Roles) -> None:
    event = await roles["editor"].event("Secret", password="sesame", description="Hidden words")
    viewer, path = browser(roles, "viewer"), f"/edit/events/{event['id']}"
    page = await viewer.get(path)
    assert (page.status, "Hidden words" in page.text) == (403, False)
    page = await viewer.submit(page.form(path), current_password="wrong")
    assert (page.status, "This password is wrong." in page.text) == (403, True)
    page = await viewer.submit(page.form(path), current_password="sesame")
    assert (page.status, "Hidden words" in page.text, 'name="was"' in page.text) == (200, True, False)
    sent = [("was", "{}"), ("current_password", "sesame"), ("title", "Taken")]
    assert (await viewer.post(path, sent)).status == 403


@pytest.mark.parametrize("password", ["", "sesame"])
async def test_hidden_events_are_listed_to_their_authors_and_those_who_see_all(
    roles: Roles, password: str
) -> None:
    await roles["author"].event("Hidden one", hide_from_listings=True, status="publish", password=password)
    expected = {"viewer": True, "contributor": False, "author": True, "editor": True, "admin": True}
    for caller, is_listed in expected.items():
        for query in ("", "?status=publish"):
            page = await browser(roles, caller).get(f"/edit/events{query}")
            assert ("Hidden one" in page.text) == is_listed, (caller, query)
