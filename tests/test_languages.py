"""Interface languages: the texts differ, and nothing else does."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from io import BytesIO
from string import Formatter
from typing import Any

import pytest
from babel.messages.pofile import read_po

from schemas.catalogues import PACKAGES, ROOT, templates, translations, updated_catalogue
from schemas.errors import NOUNS
from schemas.language import CATALOGUES, LANGUAGES, preferred
from tests.conftest import Api, MakeApi

TRANSLATED = LANGUAGES[1:]
every_language = pytest.mark.parametrize("language", LANGUAGES)
every_translation = pytest.mark.parametrize("language", TRANSLATED)

# (?lang=, Accept-Language, what is answered)
CHOICES = [
    (None, "", "en"),
    ("de", "", "de"),
    ("DE-at", "", "de"),
    ("de", "fr", "de"),
    ("xx", "fr", "fr"),
    ("xx", "", "en"),
    ("", "es", "es"),
    (None, "es-MX", "es"),
    (None, "fr;q=0.9, en;q=0.1", "fr"),
    (None, "en;q=0.1,fr;q=0.9", "fr"),
    (None, "de ; q=0.4, fr;q=0.3", "de"),
    (None, "it, de;q=0.5, fr;q=0.4", "de"),
    (None, "de, fr", "de"),
    (None, "FR-ca", "fr"),
    (None, "de;q=0, es;q=0.1", "es"),
    (None, "xx, tlh;q=0.8", "en"),
    (None, "*", "en"),
    (None, "*;q=0.1, de;q=0.5", "de"),
    (None, ";;;,,q=,=;-", "en"),
    (None, "de;q=much, fr;q=0.2", "fr"),
    (None, "de;q=-1", "en"),
    (None, "de;q=nan", "en"),
    (None, "de;q=²", "en"),
    (None, "de;q=٣", "en"),
    (None, "de;q=" + "9" * 400, "en"),
    (None, "déutsch, fr;q=0.1", "fr"),
    (None, "x" * 5000, "en"),
]


SAME_WORDS = {
    *("slug", "description", "province", "Name", "Status", "Status: {status}", "Token", "Website", "Actions"),
    *("Date", "Dates", "Image", "Pages", "No"),
}
"""Texts that are the same in English and another language."""


def placeholders(template: str) -> list[str]:
    return sorted(name for _, name, _, _ in Formatter().parse(template) if name is not None)


def written_templates() -> Iterator[str]:
    """What stands in `Text(…)`, read from the syntax tree; one that is no literal fails the test."""
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Text":
                match node.args:
                    case [ast.Constant(value=str(template))]:
                        yield template
                    case [ast.Attribute(attr="template")] | [ast.Name(id="template")]:
                        pass
                    case _:
                        pytest.fail(f"{path}:{node.lineno} is not a literal text")
    for path in sorted((ROOT / "handlers").rglob("*.html")):
        for _, template in re.findall(r"\b_\((['\"])(.*?)\1", path.read_text()):
            yield template


def texts(document: Any) -> Iterator[str]:
    """Every description and summary of a document; examples are data."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key in ("description", "summary") and isinstance(value, str):
                yield value
            elif key not in ("example", "examples"):
                yield from texts(value)
    elif isinstance(document, list):
        for value in document:
            yield from texts(value)


def without_texts(document: Any) -> Any:
    """A document without its descriptions and summaries; examples are data."""
    if isinstance(document, dict):
        return {
            key: value if key in ("example", "examples") else without_texts(value)
            for key, value in document.items()
            if not (key in ("description", "summary") and isinstance(value, str))
        }
    return [without_texts(value) for value in document] if isinstance(document, list) else document


def test_extraction_finds_every_text_of_the_code() -> None:
    assert sorted(set(written_templates())) == list(templates())


@every_translation
def test_catalogue_has_exactly_the_texts_of_the_code_all_translated(language: str) -> None:
    said = translations(language)
    assert said.keys() == templates().keys()
    assert [template for template, text in said.items() if not text.strip()] == []


@every_translation
def test_translations_keep_the_placeholders(language: str) -> None:
    said = translations(language)
    changed = [template for template in said if placeholders(template) != placeholders(said[template])]
    assert changed == []


@every_translation
def test_translations_end_like_the_english_text(language: str) -> None:
    """A sentence stays a sentence, a phrase a phrase."""
    said = translations(language)
    assert [one for one in said if one.endswith(".") != said[one].endswith(".")] == []
    assert [one for one in said if said[one] != said[one].strip()] == []


@every_translation
def test_catalogue_is_a_translation_and_not_a_copy(language: str) -> None:
    same = [template for template, text in translations(language).items() if template == text]
    assert set(same) <= SAME_WORDS


@every_translation
def test_catalogue_file_is_what_the_extraction_writes(language: str) -> None:
    path = CATALOGUES / f"{language}.po"
    is_current = path.read_bytes() == updated_catalogue(language)
    assert is_current, "run: python -m schemas.catalogues"  # a comparison of the bytes takes minutes to show
    with path.open("rb") as file:
        catalogue = read_po(file)
    assert b'"Project-Id-Version: kalends\\n"' in path.read_bytes()
    assert (str(catalogue.locale), catalogue.charset, catalogue.num_plurals) == (language, "utf-8", 2)
    assert not catalogue.obsolete
    assert not any(message.fuzzy for message in catalogue if message.id)
    assert not any(line for message in catalogue for _, line in message.locations)


def test_service_does_not_load_the_extraction() -> None:
    code = "import sys, service.__main__; sys.exit('schemas.catalogues' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize(("asked", "accepted", "language"), CHOICES)
def test_language_is_chosen_by_parameter_then_header(asked: str | None, accepted: str, language: str) -> None:
    assert preferred(asked, accepted) == language


async def test_requests_are_answered_in_the_language_they_choose(api: Api) -> None:
    expected = {language: translations(language) for language in TRANSLATED}
    english = "Event not found."
    for asked, accepted, language in CHOICES:
        params = {} if asked is None else {"lang": asked}
        headers = {"Accept-Language": accepted}
        status, problem = await api.send("GET", "/events/1", params=params, headers=headers)
        said = not_found_in(expected[language])[english] if language in expected else english
        assert (status, problem["message"]) == (404, said), (asked, accepted[:40])


def not_found_in(catalogue: Mapping[str, str]) -> dict[str, str]:
    """What is said of a record of each kind that is not there."""
    template = "{kind} not found."
    return {
        template.format(kind=noun): catalogue[template].format(kind=catalogue[noun])
        for noun in NOUNS.values()
    }


async def refusals(api: Api, roles: dict[str, Api], language: str) -> dict[str, tuple[int, Any]]:
    """One refusal of each sort, in one language."""
    asked = {"params": {"lang": language}}
    locked = await api.event(password="secret")
    trashed = await api.event()
    await api.delete(f"/events/{trashed['id']}")
    draft = await api.event(status="draft")
    bad = {"title": " ", "start_date": "30.2.", "end_date": "2027-02-30", "cost": True, "timezone": "Mars"}
    plain = {"data": b"x", "headers": {"Content-Type": "text/plain"}}
    large = {"data": BytesIO(b" " * 2_000_000), "headers": {"Content-Type": "application/json"}}
    return {
        "missing": await api.post("/events", {}, **asked),
        "invalid": await api.post("/events", bad, **asked),
        "json": await api.post("/events", [], **asked),
        "unknown link": await api.post("/events", {"title": "A", "start_date": "now", "end_date": "now",
                                                   "venue": [4711]}, **asked),
        "token": await roles["public"].post("/events", {}, **asked),
        "role": await roles["viewer"].post("/events", {}, **asked),
        "password": await api.get(f"/events/{locked['id']}", lang=language),
        "draft": await roles["public"].get(f"/events/{draft['id']}", lang=language),
        "record": await api.get("/events/4711", lang=language),
        "route": await api.get("/nothing", lang=language),
        "page": await api.get("/events", lang=language, page="99"),
        "method": await api.send("PUT", "/events", **asked),
        "trash": await api.get(f"/events/{trashed['id']}", lang=language),
        "large": await api.post("/events", **asked, **large),
        "type": await api.post("/events", **asked, **plain),
    }  # fmt: skip


async def test_error_messages_are_translated_and_nothing_else_of_them(
    api: Api, roles: dict[str, Api]
) -> None:
    answers = {language: await refusals(api, roles, language) for language in LANGUAGES}
    for name, (status, english) in answers["en"].items():
        said = [answers[language][name] for language in TRANSLATED]
        assert {got for got, _ in said} == {status}, name
        assert {problem["code"] for _, problem in said} == {english["code"]}, name
        messages = {problem["message"] for _, problem in said} | {english["message"]}
        assert len(messages) == len(LANGUAGES), (name, messages)
        assert not any("{" in message for message in messages), (name, messages)
    statuses = [status for status, _ in answers["en"].values()]
    assert statuses == [400, 400, 400, 400, 401, 403, 403, 403, 404, 404, 404, 405, 410, 413, 415]


async def test_what_is_wrong_with_each_field_is_translated(api: Api, roles: dict[str, Api]) -> None:
    answers = {language: (await refusals(api, roles, language))["invalid"][1] for language in LANGUAGES}
    fields = {language: answers[language]["data"]["params"] for language in LANGUAGES}
    assert set(fields["en"]) == {"title", "start_date", "end_date", "cost", "timezone"}
    for language in TRANSLATED:
        assert fields[language].keys() == fields["en"].keys()
        assert all(fields[language][name] != fields["en"][name] for name in fields["en"])


@every_language
async def test_names_of_fields_are_not_translated(api: Api, language: str) -> None:
    """Some fields are called like words that have a translation."""
    venue = await api.made("venues", venue="Hall")
    for name in ("description", "address", "city", "country", "province", "state"):
        status, problem = await api.patch(f"/venues/{venue['id']}?lang={language}", {name: 5})
        assert (status, list(problem["data"]["params"])) == (400, [name])
        assert f" {name}." in problem["message"].replace("\u00a0", " ")


@every_language
async def test_values_that_were_sent_are_not_translated(api: Api, language: str) -> None:
    for value in ("city", "description"):
        status, problem = await api.get("/events", lang=language, categories=value)
        assert (status, value in problem["data"]["params"]["categories"]) == (400, True)


@pytest.mark.parametrize("path", ["/doc", "/openapi.json", "/"])
async def test_structure_is_the_same_in_all_languages_and_texts_are_not(make_api: MakeApi, path: str) -> None:
    # Each language gets an application of its own, so that nothing kept from one shows in the next.
    said = {language: (await (await make_api()).get(path, lang=language))[1] for language in LANGUAGES}
    for language in TRANSLATED:
        assert without_texts(said[language]) == without_texts(said["en"])
        pairs = list(zip(texts(said["en"]), texts(said[language]), strict=True))
        catalogue = translations(language) | not_found_in(translations(language))
        assert [english for english, text in pairs if text != catalogue.get(english)] == []
        assert sum(english != text for english, text in pairs) > 0.9 * len(pairs)


async def test_language_of_a_document_does_not_stick(api: Api) -> None:
    first = (await api.get("/doc"))[1]["info"]["description"]
    other = (await api.get("/doc", lang="fr"))[1]["info"]["description"]
    assert first != other
    assert (await api.get("/doc"))[1]["info"]["description"] == first
