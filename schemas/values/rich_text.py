"""Turns a description into HTML for a page. What is stored may be HTML or plain text; the last step is always
the cleaner, so that nothing else has to be trusted."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import nh3
from linkify_it import LinkifyIt
from markupsafe import Markup, escape

from schemas.values.sanitizing import without_unclosed

TABLES = ("table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td")
LISTS = ("ul", "ol", "li", "dl", "dt", "dd")
HEADINGS = ("h3", "h4", "h5", "h6")
PARTS = ("blockquote", "details", "div", "figcaption", "figure", "hr", "p", "pre", "summary")
BLOCKS = frozenset((*TABLES, *LISTS, *HEADINGS, *PARTS))
MARKS = ("abbr", "b", "cite", "code", "del", "em", "i", "ins", "kbd", "mark", "q", "s", "samp", "small", "u")
INLINE = frozenset((*MARKS, "a", "br", "img", "span", "strong", "sub", "sup", "time", "wbr"))
ATTRIBUTES = {
    "*": {"dir", "lang", "title"},
    "a": {"href", "hreflang"},
    "img": {"src", "alt", "width", "height"},
    "ol": {"start", "reversed"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "time": {"datetime"},
}
CLEANER = nh3.Cleaner(
    tags=set(BLOCKS | INLINE),
    attributes=ATTRIBUTES,
    set_tag_attribute_values={"img": {"loading": "lazy", "referrerpolicy": "no-referrer"}},
    url_schemes={"http", "https", "mailto", "tel"},
    url_relative="deny",
    link_rel="nofollow noopener ugc",
)
PAGE_HEADING = re.compile(r"<(/?)h[12](?=[\s/>])", re.IGNORECASE)
"""Headings of the page itself; those of a description are below them."""
BLOCK_TAG = re.compile(rf"</?(?:{'|'.join(sorted(BLOCKS))})(?=[\s/>])")
CLEAN_TAG = re.compile(r"""(<(?:[^<>"]|"[^"]*")*>)""")
"""A tag as the cleaner writes it: its values are in double quotes."""
UNLINKED = ("a", "code", "kbd", "pre", "samp")
"""Elements in which addresses stay text."""
MAX_LINKIFIED = 10_000
"""Characters of a text that are searched for addresses: it takes a tenth of a second at the most."""
LINKIFIER = LinkifyIt()


def rich_text(text: str) -> Markup:
    """A description as HTML: without scripts and styles, with paragraphs, addresses as links."""
    shown = "".join(_linked(paragraphs(_cleaned(text))))
    return Markup(CLEANER.clean(shown))  # noqa: S704 (the cleaner's output)


def excerpt(text: str, limit: int = 200) -> str:
    """The beginning of a description as plain text, for search engines and previews."""
    plain = " ".join(html.unescape(CLEAN_TAG.sub(" ", _cleaned(text))).split())
    return plain if len(plain) <= limit else plain[:limit].rsplit(" ", 1)[0] + "…"


def _cleaned(text: str) -> str:
    return CLEANER.clean(PAGE_HEADING.sub(r"<\1h3", without_unclosed(text)))


def paragraphs(cleaned: str) -> str:
    """Text outside of blocks becomes paragraphs: blank lines separate them, line breaks are kept."""
    done: list[str] = []
    text, depth = "", 0
    for part in CLEAN_TAG.split(cleaned.replace("\r\n", "\n")):
        is_block = BLOCK_TAG.match(part)
        if is_block and not depth:
            done.append(_paragraphs_of(text))
            text = ""
        if is_block and part not in ("<hr>", "<hr/>"):
            depth += -1 if part.startswith("</") else 1
        if is_block or depth:
            done.append(part)
        else:
            text += part
    return "".join([*done, _paragraphs_of(text)])


def _paragraphs_of(text: str) -> str:
    parts = re.split(r"\n\s*\n", re.sub(r"(<br>)\n", r"\1", text).strip())
    return "".join("<p>{}</p>".format(part.strip().replace("\n", "<br>")) for part in parts if part.strip())


def _linked(cleaned: str) -> Iterator[str]:
    """The parts of cleaned HTML; web and mail addresses in its text become links."""
    inside, left = 0, MAX_LINKIFIED
    for part in CLEAN_TAG.split(cleaned):
        if part.startswith("<"):
            name = re.match(r"</?([a-z0-9]*)", part)
            if name and name[1] in UNLINKED:
                inside += -1 if part.startswith("</") else 1
            # Screen readers would read the address of an image without this.
            has_alt = not part.startswith("<img") or ' alt="' in part
            yield part if has_alt else part.replace("<img", '<img alt=""', 1)
        elif inside or len(part) > left:
            yield part
        else:
            left -= len(part)
            yield _with_links(html.unescape(part))


def _with_links(text: str) -> str:
    parts, end = [], 0
    for found in LINKIFIER.match(text) or ():
        # Without a scheme only `www.` is certain: `end.Is` may be a missing space.
        if found.schema in ("http:", "https:", "mailto:") or found.raw.lower().startswith("www."):
            link = f'<a href="{escape(found.url)}">{escape(found.text)}</a>'
            parts += [str(escape(text[end : found.index])), link]
            end = found.last_index
    return "".join([*parts, str(escape(text[end:]))])
