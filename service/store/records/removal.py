"""Deletes records: posts go to the trash, terms are removed for good. Publishes scheduled records."""

from __future__ import annotations

import logging

from schemas import KINDS
from schemas.caller import Caller, Role
from schemas.errors import InvalidFields, PreconditionFailed, Trashed
from schemas.kind import Document, Kind
from schemas.preconditions import NO_PRECONDITIONS, Preconditions, Versions
from schemas.site import Site
from service.changes.log import ChangeLog
from service.changes.log_rows import WITH_NUMBER
from service.mongo.bulk_writes import UNSTORABLE
from service.mongo.client import MALFORMED, Database
from service.mongo.loaders import Ref
from service.store.links.category_tree import CategoryTree
from service.store.links.fanout import Fanout
from service.store.records.updating import Updater

log = logging.getLogger("kalends.store")
SYSTEM = Caller(role=Role.ADMIN, bypasses_passwords=True)


class StatusChanges:
    """Changes the status of records: trash and publication."""

    def __init__(
        self,
        database: Database,
        site: Site,
        updater: Updater,
        tree: CategoryTree,
        fanout: Fanout,
        change_log: ChangeLog,
    ) -> None:
        self._database, self._site, self._log = database, site, change_log
        self._updater, self._tree, self._fanout = updater, tree, fanout

    async def delete(
        self, kind: Kind, ref: Ref, caller: Caller, preconditions: Preconditions = NO_PRECONDITIONS
    ) -> Document:
        stored = await self._updater.find(kind, ref)
        if not kind.is_post:
            await self._updater.check(stored, caller, preconditions)
            return await self._remove_term(kind, stored, preconditions.versions_to_remove(stored))

        def allow(stored: Document) -> None:
            if stored["status"] == "trash" and caller.may_write(stored):
                raise Trashed(kind=kind.name)

        change = {"status": "trash"}
        return await self._updater.update(kind, stored["_id"], change, caller, preconditions, allow=allow)

    async def _remove_term(self, kind: Kind, stored: Document, versions: Versions) -> Document:
        """Remove a term from the database and from events; its children move to its parent."""
        jobs = await self._tree.remove(kind, stored["_id"], versions)
        self._log.update_soon()
        await self._fanout.run_soon(jobs)
        return stored

    async def publish_due(self) -> None:
        """Publish the scheduled records whose publication date has come; one that is malformed or cannot be
        stored does not stop the others."""
        due = {"status": "future", "date_utc": {"$lte": self._site.now()}, **WITH_NUMBER}
        for kind in (kind for kind in KINDS if kind.is_post):
            async for record in self._database[kind.plural].find(due, {"_id": 1}):
                try:
                    publish = {"status": "publish"}
                    await self._updater.update(kind, record["_id"], publish, SYSTEM, allow=is_scheduled)
                except PreconditionFailed:
                    continue  # its status has changed meanwhile
                except (*MALFORMED, *UNSTORABLE, InvalidFields):
                    log.exception("%s %d cannot be published", kind.name, record["_id"])


def is_scheduled(stored: Document) -> None:
    if stored["status"] != "future":
        raise PreconditionFailed
