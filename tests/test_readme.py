"""The README tells the truth: its requests are sent, and its settings are the settings."""

from __future__ import annotations

import re
import shlex
from dataclasses import Field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from config import FIELDS
from schemas import KINDS
from service.mongodb_versions import RECOMMENDED_VERSIONS
from tests.conftest import Api
from tests.test_api_description import MORE_BODY, MORE_QUERY

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
FOLDERS = (".", "benchmarks", "deploy", "docs")
DOCUMENTS = [
    str(path.relative_to(ROOT)) for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.md"))
]


def requests() -> list[tuple[list[str], str]]:
    """The curl commands of the README with the output that is printed below each."""
    found = re.findall(r"\$ (curl .*)\n(\{.*)\n", README)
    return [(shlex.split(command), shown) for command, shown in found]


async def test_five_requests_answer_what_is_printed(api: Api) -> None:
    assert len(requests()) == 5
    for words, shown in requests():
        flags = dict(pairwise(words))
        data = [after for before, after in pairwise(words) if before == "-d"]
        address = next(word for word in words if word.startswith("$API")).removeprefix("$API")
        is_json = "-H" in flags
        headers = {"Content-Type": "application/json" if is_json else "application/x-www-form-urlencoded"}
        method = flags.get("-X", "POST" if data else "GET")
        body = "&".join(data).encode() if data else None
        await api.send(method, address, data=body, headers=headers)
        at = 0
        for part in (part for part in shown.split("…") if part):
            at = api.text.find(part, at)
            assert at >= 0, (part, api.text)
            at += len(part)


def default_of(one: Field[Any]) -> str:
    value = ",".join(one.default) if isinstance(one.default, tuple) else one.default
    return str(one.metadata["unset"] or (f"`{value}`" if value not in ("", None) else ""))


def test_every_setting_is_listed_with_its_default_and_meaning() -> None:
    rows = re.findall(r"^\| `KALENDS_(\w+)` \|(.*)\| (.*) \|$", README, re.MULTILINE)
    assert {name.lower(): (default.strip(), meaning) for name, default, meaning in rows} == {
        name: (default_of(one), one.metadata["help"]) for name, one in FIELDS.items()
    }


def test_the_asked_versions_of_mongodb_are_the_ones_that_are_warned_about() -> None:
    first, *others = (".".join(map(str, version)) for version in RECOMMENDED_VERSIONS)
    for text in (README, (ROOT / "SECURITY.md").read_text()):
        assert f"{', '.join([first, *others])} or newer" in text


def test_every_addition_to_the_interface_is_listed() -> None:
    section = README.split("## What Kalends adds to the interface")[1].split("\n## ")[0]
    listed: dict[str, set[str]] = {}
    for where, names in re.findall(r"^\| (.*?) \| (`.*?`) \|", section, re.MULTILINE):
        listed.setdefault(where, set()).update(re.findall(r"`(\w+)`", names))
    assert all("modified_after" in MORE_QUERY[f"/{kind.plural}"] for kind in KINDS)
    queries = {
        path if "{" in path else f"GET {path}": names - {"modified_after"}
        for path, names in MORE_QUERY.items()
    }
    expected = {f"`{where}`": names for where, names in queries.items() if names}
    expected["every list"] = {"modified_after"}
    bodies = {f"{plural.removesuffix('s')} fields": names for plural, names in MORE_BODY.items()}
    assert listed == expected | bodies | {"every route": {"lang"}, "every list and record": {"fields"}}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_to_a_file_or_heading_leads_somewhere(name: str) -> None:
    file = ROOT / name
    for address in re.findall(r"\]\((?!https?:)([^)\s]+)\)", file.read_text()):
        path, _, heading = address.partition("#")
        target = file.parent / path if path else file
        assert target.exists(), address
        assert not heading or heading in headings(target.read_text()), address


def headings(text: str) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
