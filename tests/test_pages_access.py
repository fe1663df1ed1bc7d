"""Who sees which page: what a GET of the API shows, the page shows; what it refuses does not exist there."""

from __future__ import annotations

from tests import access_table as table
from tests.access_table import CALLERS, POSTS, Made
from tests.conftest import Api
from tests.test_access import (  # noqa: F401 (fixtures)
    Aviary,
    Crawler,
    Matrix,
    Roles,
    aviary,
    crawler,
    every_caller,
    every_reader,
    matrix,
)
from tests.test_pages_records import BROWSER


def page_status(caller: str, record: Made) -> int:
    """Records of the table that are in the trash were public before."""
    if record.status == "trash":
        return 410
    return 200 if table.sees(caller, record) else 404


def path_of(record: Made) -> str:
    return f"//{record.kind}/{record.slug}/"


@every_caller
async def test_pages_of_records(roles: Roles, matrix: Matrix, caller: str) -> None:  # noqa: F811
    api: Api = roles[caller]
    for kind in POSTS:
        for record in matrix.for_caller(kind, caller):
            status, _ = await api.send("GET", path_of(record), headers=BROWSER)
            assert status == page_status(caller, record), record
            name = record.texts[table.NAMES[kind]]
            is_shown = status == 200 and table.opens(caller, record)
            assert (name in api.text) == is_shown, record
            assert ('type="password"' in api.text) == (status == 200 and not is_shown), record
            is_public = record.status == "publish" and not record.locked
            if status == 200 and kind == "event":
                assert ("noindex" in api.text, "og:title" in api.text) == (not is_public, is_public), record
            if status == 200 and not is_public:
                assert api.headers["Cache-Control"] == "no-store", record


@every_reader
async def test_no_page_shows_a_text_that_is_not_the_caller_s(
    crawler: Crawler, aviary: Aviary, caller: str  # noqa: F811
) -> None:  # fmt: skip
    for record in aviary.records:
        for path in (path_of(record), path_of(record).replace("__trashed", "")):
            await crawler.get(path)
    terms = [("category", "categories"), ("tag", "tags")]
    for number, _ in enumerate(aviary.terms):
        for name, _ in terms:
            assert (await crawler.get(f"//events/{name}/own-{number}/"))[0] == 200
    for path in ("//", "//events/month/2027-06/", "//events/list/", "//events/map/", "//embed/list",
                 "//sitemap.xml", *(f"//sitemap-{plural}-1.xml" for plural in POSTS.values())):  # fmt: skip
        assert (await crawler.get(path))[0] == 200, path
    for search in ("canary", "own"):
        assert (await crawler.get("//events/list/", search=search))[0] == 200
    assert not crawler.leaks, "\n".join(crawler.leaks)


async def test_the_sitemap_has_what_is_public_whoever_asks(roles: Roles, matrix: Matrix) -> None:  # noqa: F811
    for caller in CALLERS:
        for kind, plural in POSTS.items():
            await roles[caller].get(f"//sitemap-{plural}-1.xml")
            listed = {record.slug for record in matrix.of(kind) if f"/{record.slug}/<" in roles[caller].text}
            public = {one.slug for one in matrix.of(kind) if one.status == "publish" and not one.locked}
            assert listed == public, (caller, kind)
