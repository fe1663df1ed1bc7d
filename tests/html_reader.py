"""Reads HTML as a browser would: the tags in it with their attributes, and what is wrong with them."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "wbr", "circle", "path"}
IMPLIED = {"p", "li", "dt", "dd", "tr", "td", "th", "tbody", "thead", "tfoot", "option"}
"""Elements whose end tags may be missing."""
SCHEMES = ("http:", "https:", "mailto:", "tel:", "webcal:", "/", "?", "#")
ADDRESSES = ("href", "src", "action", "formaction", "poster", "data", "srcset", "xlink:href")


class HtmlReader(HTMLParser):
    """The elements of a document, its text, and the tags that are open at its end."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open[-1] != tag and self.open[-1] in IMPLIED:
            self.open.pop()
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["script"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def dangers(self) -> list[str]:
        """Whatever could run or load something: other scripts than ours, handlers, styles, addresses."""
        found = []
        for tag, attributes in self.elements:
            is_data = attributes.get("type") == "application/ld+json"
            is_own = attributes.get("src", "").startswith("/assets/")
            if tag in ("style", "iframe", "object", "embed", "base") or (
                tag == "script" and not (is_own or is_data)
            ):
                found.append(tag)
            for name, value in attributes.items():
                shady = name in ADDRESSES and not value.strip().lower().startswith(SCHEMES)
                if name.startswith("on") or name in ("style", "srcdoc") or shady:
                    found.append(f"{tag} {name}={value}")
        return found
