"""Updates the translation catalogues from the code: `python -m schemas.catalogues`.

Every `Text("…")` in the code, and every `_("…")` in templates, becomes an entry in each catalogue. Existing
translations are kept, new messages are added untranslated, and entries that are no longer in the code are
removed. The service does not import this module.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from schemas.language import CATALOGUES, LANGUAGES

ROOT = Path(__file__).parent.parent
PACKAGES = ("config", "schemas", "handlers", "service")
METHODS = [("**.py", "python"), ("**/templates/**.html", "jinja2")]
# No dates in the header: a catalogue changes only when a message does.
HEADER = """\
# {name} texts of Kalends.
msgid ""
msgstr ""
"Project-Id-Version: kalends\\n"
"Language: {language}\\n"
"Plural-Forms: {plurals}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"

"""


def templates() -> dict[str, list[str]]:
    """Every message template in the code, with the files that use it."""
    found: dict[str, set[str]] = {}
    for package in PACKAGES:
        for name, _, message, _, _ in extract_from_dir(
            ROOT / package, METHODS, keywords={"Text": None, "_": None}, comment_tags=()
        ):
            assert isinstance(message, str)
            found.setdefault(message, set()).add(f"{package}/{name}")
    return {message: sorted(found[message]) for message in sorted(found)}


def translations(language: str) -> dict[str, str]:
    """The current translations in a catalogue; empty if the file does not exist."""
    path = CATALOGUES / f"{language}.po"
    if not path.exists():
        return {}
    with path.open("rb") as file:
        return {str(message.id): str(message.string or "") for message in read_po(file) if message.id}


def updated_catalogue(language: str) -> bytes:
    """The updated catalogue file: exactly the messages in the code, in alphabetical order."""
    known = translations(language)
    catalogue = Catalog(language)
    for message, files in templates().items():
        catalogue.add(message, known.get(message, ""), locations=[(name, 0) for name in files])
    entries = BytesIO()
    write_po(entries, catalogue, width=100, omit_header=True, sort_output=True, include_lineno=False)
    name = catalogue.locale.english_name if catalogue.locale else language
    header = HEADER.format(name=name, language=language, plurals=catalogue.plural_forms)
    return header.encode() + entries.getvalue().strip() + b"\n"


def main() -> None:
    for language in LANGUAGES[1:]:
        (CATALOGUES / f"{language}.po").write_bytes(updated_catalogue(language))
        missing = [message for message, text in translations(language).items() if not text]
        print(f"{language}: {len(missing)} untranslated messages", *missing, sep="\n  ")


if __name__ == "__main__":
    main()
