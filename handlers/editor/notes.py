"""Notes beside the fields of a form: how a time or a cost is understood, and what visitors do not see."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from handlers.editor.forms import Form
from handlers.editor.forms.choices import linked_records
from handlers.editor.forms.times import Note, note_of, zone_of
from handlers.pages.context import PageContext
from schemas.kind import Kind
from schemas.language import Text, translate
from schemas.links import LinkList
from schemas.values.costs import read_cost

SKIPPED = Text(
    "The time that you entered does not exist on this day: the clocks are set forward. This one is used."
)
NOT_PUBLISHED = Text("Not published, so visitors do not see it with this event: {names}.")


def add_notes(form: Form, page: PageContext, shown: Mapping[str, Any]) -> None:
    """Say how the times and the cost of a form are understood, and to those who publish, what visitors will
    not see; `shown` is the stored record, if any."""
    skipped = page.value("skipped").split(",")
    for one in form.fields:
        typed = one.raw if isinstance(one.raw, str) else ""
        if one.widget.macro == "cost":
            one.note = cost_note(typed, page)
        elif one.widget.macro == "moment":
            utc = shown.get(f"utc_{one.name}", "")
            is_stored = one.widget.read(one.widget.show(shown.get(one.name))) == typed
            instant = datetime.fromisoformat(utc) if utc and is_stored else None
            note = note_of(typed, zone_of(form, one, page), page, instant)
            if one.name in skipped:
                note = Note(page.text(SKIPPED), is_warning=True)
            one.note, one.is_warning = note
        elif isinstance(one.schema_field, LinkList) and page.caller.publishes:
            names = unpublished(shown.get(one.name), one.schema_field.kind)
            one.note, one.is_warning = page.text(NOT_PUBLISHED, names=names) if names else "", True


def unpublished(linked: Any, kind: Kind) -> str:
    """The names of the linked records that are not public."""
    hidden = (one for one in linked_records(linked) if one.get("status", "publish") != "publish")
    return ", ".join(one[kind.name_field] for one in hidden)


def cost_note(typed: str, page: PageContext) -> str:
    """How a cost will be shown, and the prices that are read in it."""
    if not typed.strip():
        return ""
    try:
        cost = read_cost(typed, page.site.currency)
    except ValueError as error:
        return translate(error.args[0], page.language)
    if not cost.details["values"]:
        return page.text(Text("Shown as “{text}”; no price was found in it."), text=cost.text)
    prices = ", ".join(f"{value} {cost.details['currency_code']}" for value in cost.details["values"])
    return page.text(Text("Shown as “{text}”; read as {prices}."), text=cost.text, prices=prices)
