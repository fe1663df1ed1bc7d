"""The routes of the editor."""

from __future__ import annotations

from aiohttp import web

from handlers.editor.frame import Frame
from handlers.editor.lists import ListPages
from handlers.editor.previews import PreviewPages
from handlers.editor.removal import RemovalPages
from handlers.editor.saving import SavingPages
from handlers.editor.session import FindCaller, SessionPages
from handlers.editor.undo import UndoPages
from handlers.records import Caches
from handlers.store_protocol import Store
from schemas import KINDS
from schemas.site import Site


def routes(store: Store, site: Site, caches: Caches, find_caller: FindCaller) -> list[web.RouteDef]:
    frame = Frame(store, site, caches)
    session, lists, saving = SessionPages(frame, find_caller), ListPages(frame), SavingPages(frame)
    removal, previews = RemovalPages(frame), PreviewPages(frame)
    plural = f"/edit/{{plural:{'|'.join(kind.plural for kind in KINDS)}}}"
    one = f"{plural}/{{id:[0-9]+}}"
    protected = [
        ("GET", "/edit", lists.home),
        ("GET", "/edit/", lists.home),
        ("GET", "/edit/review", lists.review),
        ("GET", "/edit/preview/cost", previews.cost),
        ("GET", "/edit/preview/time", previews.time),
        ("GET", plural, lists.index),
        ("GET", f"{plural}/new", saving.new),
        ("POST", f"{plural}/new", saving.create),
        ("GET", one, saving.edit),
        ("POST", one, saving.save),
        ("GET", f"{one}/delete", removal.confirm),
        ("POST", f"{one}/delete", removal.delete),
        ("POST", f"{one}/restore", removal.restore),
        ("POST", f"{one}/undo", UndoPages(frame).undo),
    ]
    return [
        web.get("/edit/sign-in", session.form),
        web.post("/edit/sign-in", session.sign_in),
        web.post("/edit/sign-out", session.sign_out),
        *(web.route(method, path, session.required(handler)) for method, path, handler in protected),
    ]
