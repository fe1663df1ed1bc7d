"""Whatever is written, what is shown is safe to put into a page; what is harmless comes back as written."""

from __future__ import annotations

import html
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import EVENT, KINDS, Kind
from schemas.values.sanitizing import ATTRIBUTES, TAGS, plain_text, safe_html
from tests.conftest import Api
from tests.test_importing import Importer

ATTACKS = (
    "<script>alert(1)</script>",
    "<SCRIPT SRC=https://evil.example/x.js></SCRIPT>",
    "<<b>script>alert(1)</script>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<img src=x onerror=alert(1)>",
    "<img src=x onerror=alert(1)",
    '"><svg/onload=alert(1)>',
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
    "<a href='javascript:alert(1)'>x</a>",
    "<a href='java&#115;cript:alert(1)'>x</a>",
    "<a href=' &#1; javascript:alert(1)'>x</a>",
    "<a href='data:text/html;base64,PHNjcmlwdD4='>x</a>",
    "<iframe src=https://evil.example></iframe>",
    "<form action=https://evil.example><input name=password></form>",
    "<object data=x></object><embed src=x>",
    "<style>body{display:none}</style>",
    "<p style='background:url(javascript:alert(1));position:fixed;top:0'>x</p>",
    "<div id=login name=login onclick=alert(1)>x</div>",
    "<base href=https://evil.example><meta http-equiv=refresh content=0>",
    "<!--<img src=--><img src=x onerror=alert(1)//-->",
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
    "<textarea><img title=\"</textarea><img src=x onerror=alert(1)>\"></textarea>",
    "<?php echo 1 ?><![CDATA[<img src=x onerror=alert(1)>]]>",
    "<details open ontoggle=alert(1)>x</details>",
    "<video src=javascript:alert(1) poster=javascript:alert(1) onerror=alert(1)></video>",
)  # fmt: skip
HARMLESS = (
    "I <3 jazz",
    "Tom & Jerry",
    "R&B, AT&T & 5 > 3",
    "&lt;script&gt; is a tag",
    "caf&eacute; & co.",
    "a\r\nb",
    "",
)
HARMLESS_HTML = (
    *HARMLESS,
    "<p>R&B & Soul <3</p>",
    "<p>Tom &amp; Jerry</p>\r\n<p>5 &gt; 3 &lt; 4</p>",
    "one<br />two<br>three",
    '<a href="https://example.org/?a=1&amp;b=2" target="_blank">x</a>',
    '<h2 class="wp-block-heading">Programme</h2><ul><li>one</li></ul>',
    '<img src="https://example.org/a.png" alt="A" width="3">',
    '<table><tbody><tr><td colspan="2">x</td></tr></tbody></table>',
    '<p style="text-align:center">x</p>',
)
MARKED_UP = ("description", "excerpt")
UNCHECKED = ("slug", "status", "timezone", "password", "new_password")
"""Texts of which nothing but letters, digits and a few marks is taken, or that nobody is shown."""


class Elements(HTMLParser):
    """Finds every element and attribute that a lenient parser sees."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [(tag, "", ""), *((tag, name, value or "") for name, value in attrs)]

    def handle_decl(self, decl: str) -> None:
        self.found.append(("!", decl, ""))

    handle_pi = handle_comment = unknown_decl = handle_decl


def elements(text: str) -> list[tuple[str, str, str]]:
    parser = Elements()
    # As a client shows it: a tag that is not closed would swallow what follows.
    parser.feed(f"<h1>{text}</h1><p title='after'>")
    parser.close()
    assert parser.found[0] == ("h1", "", "")
    assert parser.found[-2:] == [("p", "", ""), ("p", "title", "after")], text
    return parser.found[1:-2]


def is_safe(text: str, *, marked_up: bool) -> None:
    for tag, name, value in elements(text):
        assert marked_up, (tag, text)
        assert tag in TAGS, text
        assert not name or name in ATTRIBUTES["*"] | ATTRIBUTES.get(tag, set()), text
        plain = "".join(html.unescape(value).split()).lower()
        assert not plain.startswith(("javascript:", "data:", "vbscript:")), text
        assert "url(" not in plain, text


@pytest.mark.parametrize("text", ATTACKS)
def test_attacks_are_disarmed(text: str) -> None:
    is_safe(plain_text(text), marked_up=False)
    is_safe(safe_html(text), marked_up=True)
    is_safe(safe_html(f"<p>Before</p>{text}<b>after</b>"), marked_up=True)


@pytest.mark.parametrize("text", HARMLESS_HTML)
def test_harmless_html_comes_back_as_written(text: str) -> None:
    assert safe_html(text) == text


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_comes_back_as_written(text: str) -> None:
    assert plain_text(text) == text


@pytest.mark.parametrize(
    ("text", "plain", "why"),
    [
        ("<b>Jazz</b> night", "Jazz night", "the text of a tag stays"),
        ("x<y and z", "x< y and z", "a tag that is never closed is text"),
        ("a <b c", "a < b c", "a tag that is never closed is text"),
        ("<<<b>b>b>x", "x", "a tag may be put together by the removal of another"),
        ("<!-- note -->x<?pi?>", "x", "comments are no text"),
        ("1 < 2 > 1", "1 < 2 > 1", "these are no tags"),
        ("5 <<b>a lot</b>", "5 < a lot", "neither is what the tags around it leave"),
        ("<<b>b> <<<b>b>b>x<", " x<", "one after the other"),
    ],
)
def test_plain_text(text: str, plain: str, why: str) -> None:
    assert plain_text(text) == plain, why


@pytest.mark.parametrize(
    ("text", "safe", "why"),
    [
        ("<p>R&B</p><script>x</script>", "<p>R&amp;B</p>", "the content of a script is no text"),
        ("Bring <foo and drinks", "Bring &lt;foo and drinks", "a tag that is never closed is text"),
        ("<p>a</p> b <c", "<p>a</p> b &lt;c", "a tag that is never closed is text"),
        ("<!-- a <b>c</b>", "&lt;!-- a <b>c</b>", "so is a comment"),
        (
            '<p>Come to <a href="https://x.org>our site</a>.</p><p>Doors open at 8</p>',
            '<p>Come to &lt;a href="https://x.org&gt;our site.</p><p>Doors open at 8</p>',
            "so is a tag with a missing quote",
        ),
        ("<a title=it's>x</a>", '<a title="it\'s">x</a>', "a quote inside of a value is none"),
        ('<p title="<script>">x</p>', '<p title="&lt;script&gt;">x</p>', "no tag hides in an attribute"),
        ("<P>x", "<p>x</p>", "tags are closed"),
        ("<form>x</form>", "x", "the text of a tag stays"),
    ],
)
def test_safe_html(text: str, safe: str, why: str) -> None:
    assert safe_html(text) == safe, why


MARKS = ("<", ">", '"', "'", "&", "&lt;", "<!--", "-->", "</p>", "<p ", "=")
PIECES = st.sampled_from([*ATTACKS, *HARMLESS_HTML, *MARKS])


@given(st.lists(PIECES | st.text(max_size=5), max_size=6).map("".join))
def test_any_text_is_safe_and_is_not_changed_twice(text: str) -> None:
    shown, marked_up = plain_text(text), safe_html(text)
    is_safe(shown, marked_up=False)
    is_safe(marked_up, marked_up=True)
    assert plain_text(shown) == shown
    assert safe_html(marked_up) == marked_up


@pytest.mark.parametrize("tag", ["<div>", "<b>", "<table>", "<div></b>", "<a"])
async def test_deep_nesting_is_refused(api: Api, tag: str) -> None:
    status, problem = await api.post("/venues", {"venue": "Hall", "description": tag * 10_000})
    assert (status, list(problem["data"]["params"])) == (400, ["description"])


def test_end_tags_that_may_be_omitted_are_no_nesting() -> None:
    rows = "<tr><td>Mon<td>19:00" * 200
    assert safe_html(f"<table>{rows}</table>").count("<td>") == 400


@pytest.mark.parametrize("piece", [" ", "\t", "<!--", "=", "<p>", "<hr>"])
async def test_long_texts_are_stored_and_shown(api: Api, piece: str) -> None:
    """What takes time that grows with the square of the length would take minutes."""
    text = "<b>x</b>" + piece * (40_000 // len(piece)) + "z"
    event = await api.event("Long", description=text)
    for path in (f"/events/{event['id']}", f"/events/{event['id']}.ics", f"//event/{event['slug']}/"):
        assert (await api.send("GET", path))[0] == 200, path


@pytest.mark.parametrize(("title", "description"), [("<a" * 250, ""), ("x", "&" * 60_000 + "<script>")])
async def test_limits_are_those_of_what_is_stored(api: Api, title: str, description: str) -> None:
    times = {"start_date": "2027-06-01", "end_date": "2027-06-01"}
    status, problem = await api.post("/events", {"title": title, "description": description, **times})
    assert (status, "characters" in str(problem["data"]["params"])) == (400, True)


def texts_in(shown: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """(key, text) of everything that an answer says."""
    if isinstance(shown, dict):
        for key, value in shown.items():
            yield from texts_in(value, key)
    elif isinstance(shown, list):
        for value in shown:
            yield from texts_in(value, name)
    elif isinstance(shown, str):
        yield name, shown


def attacked(kind: Kind, attack: str) -> dict[str, Any]:
    """A body with the attack in every field that takes a text."""
    body: dict[str, Any] = {}
    for name, field in kind.body_schema().fields.items():
        if name in ("website", "image"):
            body[name] = "https://example.org/" + attack.replace(" ", "")
        elif name in ("start_date", "end_date"):
            body[name] = "2027-05-01"
        elif name in ("categories", "tags"):
            body[name] = [f"{attack} {name}"]
        elif name == "cost" or (type(field).__name__ in ("PlainText", "Html", "Name", "Numeral")):
            body[name] = f"{attack} {name}"
        else:
            assert type(field).__name__ in KNOWN_FIELDS or name in UNCHECKED, name
    return body


KNOWN_FIELDS = ("Whole", "When", "Flag", "Number", "MailAddress", "TermLinks", "PostLinks")


def check_answer(shown: Any) -> None:
    for name, text in texts_in(shown):
        is_safe(text, marked_up=name in MARKED_UP)
        assert not text.startswith("http") or not set(text) & set("<>\"'`"), text


@pytest.mark.parametrize("attack", ATTACKS)
async def test_no_field_of_any_representation_carries_an_attack(api: Api, attack: str) -> None:
    for kind in KINDS:
        body = attacked(kind, attack)
        if kind.name == "event":
            body |= {
                name: [attacked(other, attack)] for other in KINDS for name in [other.name] if name in body
            }
        status, made = await api.post(f"/{kind.plural}", body)
        if status == 400:  # an address that is none at all
            assert set(made["data"]["params"]) <= {"website", "image", "venue", "organizer"}, made
            body = {name: value for name, value in body.items() if name not in made["data"]["params"]}
            made = await api.made(kind.plural, **body)
        path = f"/{kind.plural}/{made['id']}"
        query = {"starts_after": "2001-01-01", "hide_empty": "0"}
        answers = [made, (await api.get(path))[1], (await api.get(f"/{kind.plural}", **query))[1]]
        answers.append((await api.patch(path, body))[1])
        answers.append((await api.delete(path))[1])
        for shown in answers:
            check_answer(shown)


async def test_an_import_is_cleaned_like_a_request(api: Api, mongodb_uri: str, tmp_path: Path) -> None:
    importer = Importer(mongodb_uri, api.store, tmp_path)
    lines = [attacked(EVENT, attack) | {"website": None, "image": None} for attack in ATTACKS]
    status, _, errors = await importer.run(lines)
    assert status == 0, errors
    _, page = await api.get("/events", starts_after="2001-01-01", per_page="100")
    assert page["total"] == len(ATTACKS)
    check_answer(page)
