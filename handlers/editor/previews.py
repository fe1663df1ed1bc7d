"""Answers the script of the editor: how a time or a cost that is being typed is understood."""

from __future__ import annotations

from aiohttp import web

from handlers.editor.forms.times import Note, note_of, read_zone
from handlers.editor.frame import Frame
from handlers.editor.notes import cost_note
from handlers.responses import json_response

MAX_TYPED = 500
"""Characters that are looked at."""


class PreviewPages:
    """The handlers of the previews."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    async def cost(self, request: web.Request) -> web.StreamResponse:
        page = self._frame.page(request)
        return self._answer(request, Note(cost_note(page.value("value")[:MAX_TYPED], page)))

    async def time(self, request: web.Request) -> web.StreamResponse:
        page = self._frame.page(request)
        zone = read_zone(page.value("timezone")[:100], page)
        return self._answer(request, note_of(page.value("value")[:MAX_TYPED], zone, page))

    def _answer(self, request: web.Request, note: Note) -> web.StreamResponse:
        return json_response(note._asdict(), 200, {"Cache-Control": "private, no-cache"})
