"""Undoes a change: sets the changed fields back, unless the record was changed again."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from handlers.editor.conflicts import same_version
from handlers.editor.form_pages import id_in
from handlers.editor.forms import Form, stored_form
from handlers.editor.forms.conversions import ids_of
from handlers.editor.forms.times import with_times
from handlers.editor.frame import Frame, edit_link, kind_of, see_other
from handlers.editor.records import ask_password, find_own, password_in
from handlers.records import require_writer
from handlers.requests import body_values
from schemas.errors import InvalidFields, PasswordNeeded, PreconditionFailed, Problems
from schemas.kind import Document, load
from schemas.preconditions import Preconditions

INSTANTS = {"start_date": "start_utc", "end_date": "end_utc", "date": "date_utc"}
"""Times that are set back by their instant: a wall-clock time may occur twice."""


def undo_values(saved: Form, record: Document, shown: Document) -> Document:
    """The values of the fields that were changed, as they were before: in the record, and as the API shows
    it. A password cannot be read back."""
    names = [one.name for one in with_times(saved) if one.name != "password"]
    return {name: _value(name, record, shown, is_link=name in saved.kind.links) for name in names}


def _value(name: str, record: Document, shown: Document, *, is_link: bool) -> Any:
    if field := INSTANTS.get(name):
        return f"{record[field].isoformat()}Z"
    if is_link:
        visible = ids_of(shown[name])
        return [copy["_id"] for copy in record[name] if str(copy["_id"]) in visible]
    # What is only derived from other fields is not stored.
    return "" if record.get(name) is None else shown[name]


class UndoPages:
    """The handler of undo."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    async def undo(self, request: web.Request) -> web.StreamResponse:
        kind, caller = kind_of(request), require_writer(request, kind_of(request))
        sent, page = await body_values(request), self._frame.page(request)
        record = await find_own(self._frame, kind, id_in(request, kind), caller)
        key = sent.get("key")
        step = await self._frame.store.undo.find(kind, record["_id"], key) if isinstance(key, str) else None
        notice = "undo-expired"
        if step:
            data = load(kind.slug_update_schema, step["values"], self._frame.site, partial=True)
            current = stored_form(kind, record, page)
            version = same_version(current, step["version"], step.get("was") or {})
            conditions = Preconditions(password_in(sent) or None, frozenset([version]))
            try:
                await self._frame.store.update(kind, record["_id"], data, caller, conditions, Problems())
                notice = "undone"
            except (PreconditionFailed, InvalidFields):  # changed again, or a linked record is gone
                notice = "undo-changed"
            except PasswordNeeded as problem:
                return await ask_password(self._frame, request, kind, problem)
        return see_other(request, edit_link(page, f"/edit/{kind.plural}/{record['_id']}", notice=notice))
