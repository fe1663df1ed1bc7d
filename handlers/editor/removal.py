"""Moves records to the trash and back; removes terms, after a page that says what that means."""

from __future__ import annotations

from aiohttp import web

from handlers.editor.conflicts import replaced_version
from handlers.editor.form_pages import id_in
from handlers.editor.forms import stored_digests, stored_form
from handlers.editor.frame import Frame, edit_link, kind_of, see_other
from handlers.editor.records import ask_password, find, find_own, password_in
from handlers.records import require_writer
from handlers.requests import body_values
from schemas.errors import PasswordNeeded, PreconditionFailed, Problems, Trashed
from schemas.preconditions import Preconditions


class RemovalPages:
    """The handlers of trash, deletion and restoring."""

    def __init__(self, frame: Frame) -> None:
        self._frame, self._store = frame, frame.store

    async def confirm(self, request: web.Request) -> web.StreamResponse:
        kind, caller = kind_of(request), require_writer(request, kind_of(request))
        record = await find_own(self._frame, kind, id_in(request, kind), caller)
        if not kind.is_post:  # with the present number of its events
            record = {**record, **await self._store.head(kind, record["_id"], caller, None)}
        was = stored_digests(kind, record, self._frame.page(request))
        return await self._frame.respond(request, "confirm.html", kind=kind, record=record, was=was)

    async def delete(self, request: web.Request) -> web.StreamResponse:
        kind, caller = kind_of(request), require_writer(request, kind_of(request))
        sent, page, id = await body_values(request), self._frame.page(request), id_in(request, kind)
        current = stored_form(kind, await find(self._frame, kind, id, caller), page)
        versions = frozenset([version]) if (version := replaced_version(current, sent)) else None
        try:
            await self._store.delete(kind, id, caller, Preconditions(password_in(sent) or None, versions))
        except PasswordNeeded as problem:
            return await ask_password(self._frame, request, kind, problem)
        except PreconditionFailed:
            return see_other(request, edit_link(page, f"/edit/{kind.plural}/{id}", notice="changed"))
        except Trashed:  # somebody else was first
            pass
        notice = {"notice": "trashed", "id": id} if kind.is_post else {"notice": "deleted"}
        return see_other(request, edit_link(page, f"/edit/{kind.plural}", **notice))

    async def restore(self, request: web.Request) -> web.StreamResponse:
        """Give a record in the trash the status that it had before."""
        kind, caller = kind_of(request), require_writer(request, kind_of(request))
        sent, page = await body_values(request), self._frame.page(request)
        record = await find_own(self._frame, kind, id_in(request, kind), caller)
        password, id, notice = password_in(sent) or None, record["_id"], "restored"
        if record.get("status") == "trash":
            data = {"status": record.get("trashed_from") or "draft"}
            version = replaced_version(stored_form(kind, record, page), sent) or record["version"]
            conditions = Preconditions(password, frozenset([version]))
            try:
                await self._store.update(kind, id, data, caller, conditions, Problems())
            except PasswordNeeded as problem:
                return await ask_password(self._frame, request, kind, problem)
            except PreconditionFailed:
                notice = "undo-changed"
        return see_other(request, edit_link(page, f"/edit/{kind.plural}/{id}", notice=notice))
