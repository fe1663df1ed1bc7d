"""Browsing the editor in tests: pages are parsed, and their forms are sent as a browser sends them."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

from handlers.editor.cookie import COOKIE
from tests.conftest import Api

Pairs = list[tuple[str, str]]


@dataclass
class SentForm:
    """A form of a page, with what its inputs hold."""

    action: str
    method: str
    pairs: Pairs = field(default_factory=list)

    def named(self, **values: Any) -> Pairs:
        """The pairs to send, with other values for some names; None leaves a name out, a list repeats it.
        `venue_new__city` stands for `venue_new[city]`, `tags__` for `tags[]`."""
        changed = {_input_name(name): value for name, value in values.items()}
        kept = [pair for pair in self.pairs if pair[0] not in changed]
        for name, value in changed.items():
            many = value if isinstance(value, list) else [] if value is None else [value]
            kept += [(name, str(one)) for one in many]
        return kept

    def value(self, name: str) -> str:
        return next(value for sent, value in self.pairs if sent == name)


def _input_name(name: str) -> str:
    base, mark, inner = name.partition("__")
    return f"{base}[{inner}]" if mark else base


class Parser(HTMLParser):
    """Reads the forms of a page by the rules of HTML: what is not checked or selected is not sent."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.forms: list[SentForm] = []
        self.inputs: list[dict[str, str | None]] = []
        self.area: dict[str, Any] | None = None
        self.select: dict[str, Any] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "form":
            self.forms.append(SentForm(found.get("action") or "", found.get("method") or "get"))
        elif tag == "input":
            self._input(found)
        elif tag == "textarea":
            self.area = {"name": found["name"], "text": ""}
        elif tag == "select":
            self.inputs.append(found)
            self.select = {"name": found.get("name"), "first": None, "chosen": None}
        elif tag == "option" and self.select is not None:
            value = found.get("value") or ""
            self.select["first"] = value if self.select["first"] is None else self.select["first"]
            if "selected" in found:
                self.select["chosen"] = value

    def _input(self, found: dict[str, str | None]) -> None:
        self.inputs.append(found)
        kind = found.get("type") or "text"
        if found.get("name") and self.forms and (kind not in ("checkbox", "radio") or "checked" in found):
            value = found.get("value") or ""
            # Browsers remove line ends from inputs of one line, and send others as CR LF.
            value = "\n".join(value.splitlines()) if kind == "hidden" else value.replace("\r", "")
            self._add(str(found["name"]), value.replace("\n", "\r\n" if kind == "hidden" else ""))

    def _add(self, name: str, value: str) -> None:
        self.forms[-1].pairs.append((name, value))

    def handle_data(self, data: str) -> None:
        if self.area is not None:
            self.area["text"] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self.area is not None:
            text = self.area["text"].replace("\r\n", "\n").replace("\r", "\n").removeprefix("\n")
            self._add(self.area["name"], text.replace("\n", "\r\n"))
            self.area = None
        elif tag == "select" and self.select is not None:
            chosen = self.select["chosen"] if self.select["chosen"] is not None else self.select["first"]
            if self.select["name"] and chosen is not None:
                self._add(self.select["name"], chosen)
            self.select = None


@dataclass
class Page:
    """A page of the editor."""

    status: int
    text: str
    headers: Any

    @property
    def parsed(self) -> Parser:
        parser = Parser()
        parser.feed(self.text)
        return parser

    def form(self, end: str = "") -> SentForm:
        """The form whose address, without its query, ends like this; by default that of the record."""
        forms = [one for one in self.parsed.forms if one.method == "post"]
        if end:
            return next(one for one in forms if one.action.partition("?")[0].endswith(end))
        return next(one for one in forms if any(name == "was" for name, _ in one.pairs))

    @property
    def location(self) -> str:
        return str(self.headers["Location"])


class Editor:
    """A browser that has signed in with the token of a role, if it has one."""

    def __init__(self, api: Api, token: str = "") -> None:
        self.api, self.token = api, token

    async def send(self, method: str, path: str, data: Pairs | None = None, **headers: str) -> Page:
        sent = {"Cookie": f"{COOKIE}={self.token}"} if self.token else {}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        body = None
        if data is not None:
            body, sent["Content-Type"] = urlencode(data), "application/x-www-form-urlencoded"
        async with self.api.client.request(
            method, path, data=body, headers=sent, allow_redirects=False
        ) as answer:
            return Page(answer.status, await answer.text(), answer.headers)

    async def get(self, path: str) -> Page:
        return await self.send("GET", path)

    async def post(self, path: str, data: Pairs | None = None) -> Page:
        return await self.send("POST", path, data or [])

    async def submit(self, form: SentForm, **values: Any) -> Page:
        return await self.post(form.action, form.named(**values))

    async def follow(self, page: Page) -> Page:
        assert page.status == 303, page.text
        return await self.get(page.location)
