"""Reads the change log for a caller: every change since a token, with the head of the record as it is now."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pymongo.errors import PyMongoError

from schemas import BY_PLURAL, EVENT, KINDS
from schemas.caller import Caller
from schemas.errors import InvalidFields, Problems, TokenExpired, Unavailable
from schemas.kind import Document, Kind
from schemas.language import Text
from schemas.results import ChangesPage, VisibleChange
from service.changes.feed import ChangeFeed
from service.changes.log import ChangeLog
from service.changes.log_rows import LOG, Checkpoint
from service.mongo.client import Database, collections
from service.mongo.loaders import HEAD_FIELDS, RecordLoader
from service.store.lists.change_visibility import ChangeVisibility
from service.store.lists.pages import Lists
from service.store.lists.query import ListQuery

TOKEN = re.compile(r"(?P<log>[0-9a-f]{1,20})-(?P<number>[0-9]{1,18})", re.ASCII)


class Changes:
    """Finds changes."""

    def __init__(self, database: Database, feed: ChangeFeed, lists: Lists, log: ChangeLog) -> None:
        self._feed, self._lists, self._log = feed, lists, log
        self._collection, self._heads = collections(database), RecordLoader(database, HEAD_FIELDS)

    async def page(
        self, kinds: Sequence[Kind], params: Mapping[str, Any], caller: Caller, problems: Problems
    ) -> ChangesPage:
        """The next changes after the token `since`; none without one."""

        async def read(filter: ListQuery) -> ChangesPage:
            await self._log.catch_up()
            page = await self._page(kinds, params, filter, caller)
            await self._feed.catch_up()
            return page

        try:
            return await self._lists.read(EVENT, {**params, "any_date": True}, caller, problems, read)
        except PyMongoError as error:  # streams go on when MongoDB is available again
            raise Unavailable from error

    async def _page(
        self, kinds: Sequence[Kind], params: Mapping[str, Any], filter: ListQuery, caller: Caller
    ) -> ChangesPage:
        checkpoint = await self._log.checkpoint()
        if not params.get("since"):
            return ChangesPage([], token(checkpoint, checkpoint.number), False)
        since = number_in(params["since"], checkpoint)
        rows = await self._rows(since, kinds, params["limit"] + 1)
        has_more, rows = len(rows) > params["limit"], rows[: params["limit"]]
        last = rows[-1]["_id"] if rows else since
        end = last if has_more else max(last, checkpoint.number)
        if end == since:
            return ChangesPage([], token(checkpoint, end), False)
        await self._require_all(since, end)
        shows_trash = "trash" in (params.get("status") or ())
        visible = await self._visible(rows, filter, caller, checkpoint, shows_trash=shows_trash)
        return ChangesPage(visible, token(checkpoint, end), has_more)

    async def _require_all(self, since: int, end: int) -> None:
        """Raise TokenExpired if a change after a number is not kept any more. They may expire in another
        order than that of their numbers, if the setting is changed."""
        between = {"_id": {"$gt": since, "$lte": end}}
        if await self._collection(LOG).count_documents(between, hint="_id_") != end - since:
            raise TokenExpired

    async def _rows(self, since: int, kinds: Sequence[Kind], limit: int) -> list[Document]:
        query: Document = {"_id": {"$gt": since}}
        if len(kinds) < len(KINDS):
            query["kind"] = {"$in": [kind.plural for kind in kinds]}
        # Without a batch size the rest of a long log would be sent after the first hundred rows.
        found = self._collection(LOG).find(query).sort("_id", 1).limit(limit).batch_size(limit)
        return await found.to_list(limit)

    async def _visible(
        self,
        rows: Sequence[Document],
        filter: ListQuery,
        caller: Caller,
        checkpoint: Checkpoint,
        *,
        shows_trash: bool,
    ) -> list[VisibleChange]:
        heads = await self._heads.load_many((row["kind"], row["id"]) for row in rows)
        matching = await self._matching(rows, filter)
        of_events, of_others = ChangeVisibility(caller, filter, shows_trash), ChangeVisibility(caller)
        visible = []
        for row in rows:
            head, is_event = heads.get((row["kind"], row["id"])), row["kind"] == EVENT.plural
            is_matching = row["id"] in matching if is_event else of_others.sees(head)
            visibility = of_events if is_event else of_others
            if action := visibility.action(row, head, is_matching=is_matching):
                shown = head if is_matching else None
                kind, at = BY_PLURAL[row["kind"]], token(checkpoint, row["_id"])
                visible.append(VisibleChange(at, kind, row["id"], action, row["at"], shown))
        return visible

    async def _matching(self, rows: Sequence[Document], filter: ListQuery) -> set[int]:
        """The ids of the events that match the filter now."""
        ids = {row["id"] for row in rows if row["kind"] == EVENT.plural}
        wanted = filter.within({"_id": {"$in": sorted(ids)}})
        return {row["_id"] async for row in self._collection(EVENT.plural).find(wanted.filter, {"_id": 1})}


def number_in(since: str, checkpoint: Checkpoint) -> int:
    """The number in a token. Tokens of another log, and of one that was begun anew, have expired."""
    if (parts := TOKEN.fullmatch(since)) is None:
        raise InvalidFields({"since": Text("Must be a token that an earlier response has returned.")})
    number = int(parts["number"])
    if parts["log"] != checkpoint.log or number > checkpoint.number:
        raise TokenExpired
    return number


def token(checkpoint: Checkpoint, number: int) -> str:
    return f"{checkpoint.log}-{number}"
