"""Answers the script of the editor: how a time or a cost that is being typed is understood."""

from __future__ import annotations

from aiohttp import web

from handlers.editor.frame import Frame
from handlers.editor.notes import cost_note
from handlers.editor.times import note_of, read_zone
from handlers.prepared_response import PreparedResponse

TEXT = {"Content-Type": "text/plain; charset=utf-8"}
MAX_TYPED = 500
"""Characters that are looked at."""


class PreviewPages:
    """The handlers of the previews."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    async def cost(self, request: web.Request) -> web.StreamResponse:
        page = self._frame.page(request)
        note = cost_note(page.value("value")[:MAX_TYPED], page)
        return PreparedResponse(note.encode(), TEXT).respond_to(request)

    async def time(self, request: web.Request) -> web.StreamResponse:
        page = self._frame.page(request)
        note = note_of(page.value("value")[:MAX_TYPED], read_zone(page.value("timezone")[:100], page), page)
        return PreparedResponse(note.encode(), TEXT).respond_to(request)
