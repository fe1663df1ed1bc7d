"""Saves forms: creates and updates records as the API does, and keeps what is needed to undo a change."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from handlers.editor.conflicts import replaced_version
from handlers.editor.form_pages import REFUSED, FormPages, id_in
from handlers.editor.forms import Form, stored_form
from handlers.editor.forms.conversions import as_line
from handlers.editor.forms.times import skipped_times
from handlers.editor.frame import Frame, edit_link, kind_of, see_other
from handlers.editor.records import ask_password, find, password_in, unlock, was_in
from handlers.editor.undo import undo_values
from handlers.records import require_writer
from handlers.requests import body_values
from handlers.responses.conditions import form_conditions
from schemas.errors import Forbidden, PasswordNeeded, PreconditionFailed
from schemas.kind import Document, Kind
from schemas.preconditions import Preconditions


class SavingPages:
    """The handlers of the forms."""

    def __init__(self, frame: Frame) -> None:
        self._frame, self._store, self._forms = frame, frame.store, FormPages(frame)

    async def new(self, request: web.Request) -> web.StreamResponse:
        kind, page = kind_of(request), self._frame.page(request)
        require_writer(request, kind)
        original = page.value("copy")
        if not (original.isdecimal() and original.isascii() and len(original) < 19):
            return await self._forms.respond(request, await self._forms.empty(kind, page))
        try:
            return await self._copy(request, int(original), "")
        except PasswordNeeded:  # asked for at the address of the event, which wrong ones are counted for
            return see_other(request, edit_link(page, f"/edit/{kind.plural}/{original}", copy=1))

    async def _copy(self, request: web.Request, id: int, password: str) -> web.StreamResponse:
        form = await self._forms.copied(kind_of(request), self._frame.page(request), id, password)
        return await self._forms.respond(request, form)

    async def create(self, request: web.Request) -> web.StreamResponse:
        kind, page = kind_of(request), self._frame.page(request)
        caller = require_writer(request, kind)
        sent = await body_values(request)
        form = await self._forms.empty(kind, page)
        form.was, form.key = was_in(sent) or form.was, as_line(sent.get("form_key")) or form.key
        form.take(sent)
        data, problems = form.load(form.values, page.site)
        try:
            conditions = form_conditions(form.key, kind, caller, sent)
            created = await self._store.create_once(kind, data, caller, problems, conditions)
        except REFUSED as problem:
            return await self._forms.refuse(request, form, problem)
        return self._saved(request, form, created.record, "created")

    async def edit(self, request: web.Request) -> web.StreamResponse:
        kind, page = kind_of(request), self._frame.page(request)
        record = await find(self._frame, kind, id_in(request, kind), page.caller)
        try:
            return await self._forms.edit(request, record, "")
        except PasswordNeeded as problem:
            return await ask_password(self._frame, request, kind, problem)

    async def save(self, request: web.Request) -> web.StreamResponse:
        """Save a form. If only the password of the event was sent, show the form, or that of a copy: viewers
        may do the former, too."""
        kind, sent, page = kind_of(request), await body_values(request), self._frame.page(request)
        is_form, is_copy = "was" in sent, bool(page.value("copy"))
        caller = require_writer(request, kind) if is_form or is_copy else page.caller
        record = await find(self._frame, kind, id_in(request, kind), caller)
        try:
            if is_form:
                await unlock(self._frame, kind, record, caller, password_in(sent))
                return await self._update(request, kind, record, sent)
            if is_copy:
                return await self._copy(request, record["_id"], password_in(sent))
            return await self._forms.edit(request, record, password_in(sent))
        except PasswordNeeded as problem:
            return await ask_password(self._frame, request, kind, problem)

    async def _update(
        self, request: web.Request, kind: Kind, record: Document, sent: dict[str, Any]
    ) -> web.StreamResponse:
        page = self._frame.page(request)
        form = await self._forms.stored(kind, page, record)
        form.version = replaced_version(form, sent)
        form.was, form.password = was_in(sent), password_in(sent)
        form.take(sent)
        data, problems = form.load(form.values, page.site)
        conditions = Preconditions(form.password or None, frozenset([form.version]))
        try:
            saved = await self._store.update(kind, record["_id"], data, page.caller, conditions, problems)
        except REFUSED as problem:
            return await self._forms.refuse(request, form, problem, record)
        except Forbidden as problem:  # an editor has published it meanwhile
            return await self._forms.forbid(request, form, problem, record)
        except PreconditionFailed:
            current = await find(self._frame, kind, record["_id"], page.caller)
            return await self._forms.conflict(request, form, current)
        if saved["version"] == record["version"]:
            return self._saved(request, form, saved, "unchanged")
        undo = undo_values(form, record, kind.represent(kind, record, page.records))
        key = ""
        if undo:
            key = await self._store.undo.keep(kind, saved, undo, stored_form(kind, saved, page).was)
        return self._saved(request, form, saved, "saved", undo=key)

    def _saved(
        self, request: web.Request, form: Form, record: Document, notice: str, undo: str = ""
    ) -> web.StreamResponse:
        page, path = self._frame.page(request), f"/edit/{form.kind.plural}/{record['_id']}"
        skipped = ",".join(skipped_times(form, page))
        return see_other(request, edit_link(page, path, notice=notice, undo=undo, skipped=skipped))
