"""Descriptions on pages: plain text becomes paragraphs, and nothing in them can run or break the page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.values.rich_text import MAX_LINKIFIED, excerpt, rich_text
from tests.html_reader import HtmlReader

LINK = 'rel="nofollow noopener ugc"'
TEXTS = [
    ("one\ntwo\n\nthree", "<p>one<br>two</p><p>three</p>", "lines and paragraphs"),
    ("one\r\n\r\ntwo", "<p>one</p><p>two</p>", "line ends of Windows"),
    ("a <b>c\n\nd</b>", "<p>a <b>c</b></p><p><b>d</b></p>", "a tag over two paragraphs"),
    ("<p>a\n\nb</p>", "<p>a\n\nb</p>", "paragraphs of its own are kept"),
    ("Tom & Jerry &amp; 5 < 6", "<p>Tom &amp; Jerry &amp; 5 &lt; 6</p>", "signs are signs"),
    ("see https://a.org/?x=1&y=2.",
     f'<p>see <a href="https://a.org/?x=1&amp;y=2" {LINK}>https://a.org/?x=1&amp;y=2</a>.</p>', "web"),
    ("www.a.org", f'<p><a href="http://www.a.org" {LINK}>www.a.org</a></p>', "web without a scheme"),
    ("to me@a.org!", f'<p>to <a href="mailto:me@a.org" {LINK}>me@a.org</a>!</p>', "mail"),
    ("Beginn.Es gibt", "<p>Beginn.Es gibt</p>", "a missing space is no address"),
    ("<code>http://a.org</code>", "<p><code>http://a.org</code></p>", "code stays code"),
    ('<a href="http://b.org">http://a.org</a>', f'<p><a href="http://b.org" {LINK}>http://a.org</a></p>',
     "a link stays what it is"),
    ("<h1>A</h1><h2 class='x'>B</h2><h4>C</h4>", "<h3>A</h3><h3>B</h3><h4>C</h4>", "below the page's own"),
    ("<p style='color:red' class='x' id='y'>a</p>", "<p>a</p>", "no style, no names"),
    ("<a href='javascript:alert(1)'>a</a>", f"<p><a {LINK}>a</a></p>", "no script in an address"),
    ("<a href='/edit?x'>a</a>", f"<p><a {LINK}>a</a></p>", "no way into this site by its own name"),
    ("<video src='http://a.org/v'>v</video>", "<p>v</p>", "what the policy of the page forbids"),
    ("left <b onclick=", "<p>left &lt;b onclick=</p>", "an unclosed tag is text"),
    ("", "", "nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shown", "why"), TEXTS, ids=[why for _, _, why in TEXTS])
def test_texts(text: str, shown: str, why: str) -> None:
    assert str(rich_text(text)) == shown


def test_images_are_lazy_and_have_a_text() -> None:
    (image,) = HtmlReader(rich_text("<img src='https://a.org/i.png' onerror='x'>")).of("img")
    assert image == {
        "src": "https://a.org/i.png", "alt": "", "loading": "lazy", "referrerpolicy": "no-referrer",
    }  # fmt: skip
    (named,) = HtmlReader(rich_text("<img src='https://a.org/i.png' alt='A tree'>")).of("img")
    assert named["alt"] == "A tree"


def test_only_the_beginning_of_a_long_text_is_searched_for_addresses() -> None:
    shown = rich_text("<p>http://a.org</p><p>" + "x" * MAX_LINKIFIED + "</p><p>http://b.org</p>")
    assert [one["href"] for one in HtmlReader(shown).of("a")] == ["http://a.org", "http://b.org"]
    assert "<a" not in rich_text("http://a.org " * MAX_LINKIFIED)


def test_an_excerpt_is_short_and_plain() -> None:
    assert excerpt("<p>Tom &amp; <b>Jerry</b></p><script>x</script><p>run</p>") == "Tom & Jerry run"
    long = excerpt("word " * 100)
    assert len(long) <= 201
    assert long.endswith("word…")


PIECES = st.sampled_from([
    "<script>", "</script>", "<img src=x onerror=alert(1)>", "<a href=", "javascript:alert(1)", "'", '"', ">",
    "<", "<b", "</b>", "<style>", "<p style=x:y>", "<svg onload=alert(1)>", "<!--", "-->", "<h1", "</main>",
    "</article>", "<textarea>", "<title>", "<plaintext>", "<table><td>", "&lt;script&gt;", "&#60;b&#62;",
    "https://a.org/\"onclick=x", "a@b.org", "www.a.org/<i>", "\n\n", "\r", "\0", " ", "<iframe srcdoc='",
    "<form action=//evil>", "<math><mi xlink:href=data:x>", "<template>", "<noscript>", "]]>", "<![CDATA[",
])  # fmt: skip


@given(st.lists(PIECES | st.text(max_size=8), max_size=14))
def test_nothing_runs_and_nothing_stays_open(pieces: list[str]) -> None:
    shown = rich_text("".join(pieces))
    page = HtmlReader(f"<main>{shown}</main><footer>")
    assert page.dangers == []
    assert page.open == ["footer"], shown
    assert not {tag for tag, _ in page.elements} & {"script", "form", "textarea", "title", "svg", "template"}
    assert all(attributes.get("rel") == "nofollow noopener ugc" for attributes in page.of("a"))
