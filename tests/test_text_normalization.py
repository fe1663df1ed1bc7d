"""The text that search compares: what HTML shows, without case and accents."""

from __future__ import annotations

import html
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as some

from schemas.values import text_normalization
from schemas.values.text_normalization import fold, without_markup
from tests.conftest import Api

SHOWN = [
    ("<b>W</b>orkshop", "workshop", "an inline tag inside a word"),
    ("W<I CLASS='x'>ork</I>shop", "workshop", "any case, with attributes"),
    ("H<sub>2</sub>O", "h2o", "subscripts"),
    ("long<wbr/>word", "longword", "where a line may break"),
    ("work<!-- <p>note</p> -->shop", "workshop", "a comment shows nothing"),
    ("<p>one</p><p>two</p>", "one two", "paragraphs"),
    ("one<br>two<br/>three", "one two three", "line breaks"),
    ("one<img src=x>two", "one two", "images"),
    ("<li><b>one</b></li><li><b>two</b></li>", "one two", "inline tags within blocks"),
    ("<bdo>a</bdo>b<body>c", "ab c", "the whole name of a tag counts"),
    ("<x-tag>one</x-tag>two", "one two", "unknown elements"),
    ("jazz <foo and the rest", "jazz <foo and the rest", "a tag that is never closed"),
    ("jazz <foo and <b>the</b> rest", "jazz <foo and the rest", "not closed before the next one"),
    ("jazz <b", "jazz <b", "nor at the end"),
    ("jazz</p", "jazz</p", "nor a closing tag"),
    ("I <3 jazz", "i <3 jazz", "not a tag"),
    ("1<2 and 3>2", "1<2 and 3>2", "not a tag either"),
    ("<a title='1 < 2 > 0'>one</a> two", "one two", "brackets in an attribute"),
    ("<a title='never closed>one</a> two", "<a title='never closed>one two", "a quote that stays open"),
    ("Rock &amp; Roll", "rock & roll", "entities"),
    ("&lt;b&gt;", "<b>", "an entity is no tag"),
    ("&am<b></b>p;", "&amp;", "tags part entities"),
    ("one<script>if (a<b) {}</script>two", "one two", "scripts"),
    ("one<style>p {}</STYLE >two", "one two", "styles"),
    ("one</script>two", "one two", "the end of a script that never began"),
]


@pytest.mark.parametrize(("text", "shown"), [row[:2] for row in SHOWN], ids=[row[2] for row in SHOWN])
def test_without_markup(text: str, shown: str) -> None:
    assert fold(without_markup(text)) == shown


@pytest.mark.parametrize(
    "part", ["<a", "<a ", "<a '", "<a\"<a'", "<a''", '<a "\'"', "</", "<a<!--", "<b>", "<", "&lt", '<a="" ']
)
def test_hostile_text_takes_linear_time(part: str) -> None:
    """Quadratic, this would last hours."""
    assert "jazz" in without_markup("jazz " + part * 100_000)


@pytest.mark.parametrize("part", ["\u0300\u0316", "\u0f73", "\u0345\u0301", "ẛ̣"])
def test_accents_are_folded_in_linear_time(part: str) -> None:
    """Ordered all at once, some of them would take minutes."""
    assert fold("Jazz" + part * 500_000 + "night").startswith("jazz")


@given(some.lists(some.sampled_from(["a", "İ", "ß", "\u0300", "\u0316", "\u0345", "\u0f73", "ΐ", "각", "ﷺ"])))
def test_folding_piece_by_piece_makes_no_difference(chars: list[str]) -> None:
    text = "".join(chars)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_normalization, "FOLDED_CHARS", 1)
        by_character = fold(text)
    assert fold(text) == by_character


parts = some.one_of(
    some.sampled_from(["one", "Two", " ", "&amp;", "& ", "'", '"', ">", "=", "1 < 2"]),
    some.sampled_from(["<b>", "</b>", "<P>", "</P>", "<br/>", "<a href='x'>", '<img alt="<">', "<!-- b -->"]),
)


class Reader(HTMLParser):
    """What the standard library takes for text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.read = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.read += "" if tag in ("a", "b") else " "

    def handle_endtag(self, tag: str) -> None:
        self.handle_starttag(tag, None)

    def handle_data(self, data: str) -> None:
        self.read += data

    def handle_entityref(self, name: str) -> None:
        self.read += html.unescape(f"&{name};")


@given(some.lists(parts, max_size=12).map("".join))
def test_agrees_with_a_parser(text: str) -> None:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert fold(without_markup(text)) == fold(reader.read)


async def test_search_finds_what_is_shown(api: Api) -> None:
    found = [
        await api.event("Shown", description="<b>W</b>orkshop", excerpt="<p>for</p><p>all</p>"),
        await api.event("Open", description="a <foo workshop for all"),
    ]
    for search in ("workshop", "for all"):
        assert await api.ids("events", search=search) == [event["id"] for event in found]
    assert await api.ids("events", search="forall") == []
