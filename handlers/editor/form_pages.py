"""The forms: new records, copies of others, changes to stored ones, and what is said about mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from handlers.editor.conflicts import merge, plain
from handlers.editor.forms import Form, empty_form, record_form, stored_digests
from handlers.editor.forms.choices import Choices
from handlers.editor.frame import Frame, kind_of
from handlers.editor.lists import may_write
from handlers.editor.notes import add_notes
from handlers.editor.records import find, unlock
from handlers.pages.context import PageContext
from handlers.records import path_ref
from schemas.errors import DuplicateTermSlug, Forbidden, InvalidFields, Problem, TermExists, Trashed
from schemas.kind import Document, Kind
from schemas.kinds.event_representation import is_locked
from schemas.language import Text, translate

NOT_COPIED = ("slug", "date", "author", "password", "status")
REFUSED = (InvalidFields, TermExists, DuplicateTermSlug)
"""What the store says about wrong values."""
NAME_TAKEN = Text(
    "There is one with this name already. To create another one, fill in “Address of the page” under “More”."
)
"""What is said instead of the message for programs."""


class FormPages:
    """Makes forms and the pages that show them."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self._choices = frame, Choices(frame.finder)

    async def empty(self, kind: Kind, page: PageContext) -> Form:
        form = empty_form(kind, page.caller, page.site)
        await self._choices.fill(form, page, {})
        return form

    async def copied(self, kind: Kind, page: PageContext, id: int, password: str) -> Form:
        """The form of a new record with the values of another one."""
        record = await find(self.frame, kind, id, page.caller)
        if record.get("status") == "trash":
            raise Trashed(kind=kind.name)
        await unlock(self.frame, kind, record, page.caller, password)
        form, shown = await self.empty(kind, page), kind.represent(kind, record, page.records)
        name = page.text(Text("Copy of {name}"), name=shown[kind.name_field])
        was, status = form.was, "draft" if page.caller.publishes else form.text("status")
        form.show({**shown, kind.name_field: name, **dict.fromkeys(NOT_COPIED), "status": status})
        form.was = was
        await self._choices.fill(form, page, shown)
        return form

    async def stored(self, kind: Kind, page: PageContext, record: Document) -> Form:
        shown = kind.represent(kind, record, page.records)
        form = record_form(kind, record, shown, page.caller)
        await self._choices.fill(form, page, shown, record["_id"])
        return form

    async def respond(
        self,
        request: web.Request,
        form: Form,
        record: Mapping[str, Any] | None = None,
        status: int = 200,
        **values: object,
    ) -> web.StreamResponse:
        """The page of a form; that of a stored record says what can be done with it."""
        page, kind = self.frame.page(request), form.kind
        shown = kind.represent(kind, record, page.records) if record else {}
        add_notes(form, page, shown)
        name = shown.get(kind.name_field) or kind.summaries["create"]
        known = {"problem": "", "differences": None, "is_protected": bool(record and is_locked(record))}
        return await self.frame.respond(
            request, "form.html", status, **known | values, form=form, kind=kind, shown=shown, name=name
        )

    async def respond_readonly(
        self, request: web.Request, form: Form, record: Mapping[str, Any]
    ) -> web.StreamResponse:
        page = self.frame.page(request)
        rows = [(one.label, plain(one, page)) for one in form.fields if one.raw]
        name = record[form.kind.name_field]
        return await self.frame.respond(request, "readonly.html", kind=form.kind, rows=rows, name=name)

    async def refuse(
        self, request: web.Request, form: Form, problem: Problem, record: Document | None = None
    ) -> web.StreamResponse:
        """The form with messages beside its fields, and everything that was typed."""
        language = self.frame.page(request).language
        params = params_of(problem, form.kind)
        by_key = {one.key: one for one in form.each()}
        for name, text in params.items():
            if name in by_key:
                by_key[name].problem = translate(text, language)
        for one in form.fields:
            if any(inner.problem for inner in one.new):
                one.problem = ""  # it would only repeat them
        others = [translate(text, language) for name, text in params.items() if name not in by_key]
        return await self.respond(request, form, record, 400, problem=" ".join(others))

    async def forbid(
        self, request: web.Request, form: Form, problem: Forbidden, record: Document
    ) -> web.StreamResponse:
        """The form with everything that was typed, and that it cannot be saved."""
        told = translate(problem.text, self.frame.page(request).language)
        return await self.respond(request, form, record, 403, problem=told)

    async def conflict(self, request: web.Request, typed: Form, record: Document) -> web.StreamResponse:
        """Both versions side by side, and a form that is based on the current one."""
        page = self.frame.page(request)
        current = await self.stored(typed.kind, page, record)
        current.password, current.removes_password = typed.password, typed.removes_password
        differences = merge(typed, current, page)
        return await self.respond(request, current, record, 412, differences=differences)

    async def edit(self, request: web.Request, record: Document, password: str) -> web.StreamResponse:
        """The form of a stored record; without inputs for those who may not change it."""
        page, kind = self.frame.page(request), kind_of(request)
        if record.get("status") == "trash":
            allowed = may_write(page.caller, kind, record)
            was = stored_digests(kind, record, page)
            return await self.frame.respond(
                request, "trashed.html", kind=kind, record=record, allowed=allowed, was=was
            )
        await unlock(self.frame, kind, record, page.caller, password)
        form = await self.stored(kind, page, record)
        form.password = password
        if not may_write(page.caller, kind, record):
            return await self.respond_readonly(request, form, record)
        return await self.respond(request, form, record)


def params_of(problem: Problem, kind: Kind) -> dict[str, str]:
    """Messages by the fields of forms."""
    if isinstance(problem, InvalidFields):
        names = {"new_password": "password", "date_utc": "date"}
        return {names.get(name, name): text for name, text in problem.params.items()}
    if isinstance(problem, TermExists):
        return {kind.name_field: NAME_TAKEN}
    return {"slug": problem.text}


def id_in(request: web.Request, kind: Kind) -> int:
    return int(path_ref(request, kind))
