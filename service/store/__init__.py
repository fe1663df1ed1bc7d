"""The store: what handlers use to read and write records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from pymongo.errors import PyMongoError
from pymongo.monitoring import CommandListener

from schemas.errors import Unavailable
from schemas.site import Site
from service.background import BackgroundTasks
from service.changes.feed import ChangeFeed
from service.changes.log import ChangeLog
from service.changes.restores import refuse_restore
from service.changes.usage import UsageCounters
from service.changes.watcher import ChangeWatcher
from service.migrations import log_progress, prepare
from service.migrations.recount import recover
from service.mongo.abandoned_transactions import abort_abandoned_transactions
from service.mongo.client import Client, Database, close_client, connect, finish_transactions
from service.mongo.id_blocks import Ids
from service.mongo.instance import read_instance
from service.passwords import Passwords
from service.search import Vocabulary
from service.store.links.category_tree import CategoryTree
from service.store.links.fanout import Fanout
from service.store.lists.change_pages import Changes
from service.store.lists.pages import Lists
from service.store.lists.resolver import FilterResolver
from service.store.records.building import RecordBuilder
from service.store.records.creation import Creator
from service.store.records.idempotency import IdempotencyKeys
from service.store.records.reading import Reader
from service.store.records.removal import StatusChanges
from service.store.records.updating import Updater
from service.tokens import Tokens
from service.undo import UndoSteps

MAX_UPDATE_SECONDS = 5.0
"""How long maintenance waits for an update of the change log."""
CLOSE_SECONDS = 1.0
"""How long background tasks may take to finish; fan-out jobs that are left are resumed by maintenance."""


class Store:
    """Records of all kinds, their lists, and access tokens."""

    def __init__(self, database: Database, site: Site) -> None:
        self.client: Client = database.client
        self.database, self.site = database, site
        self.started = False
        self._instance: UUID | None = None
        self._tasks, self.passwords = BackgroundTasks(), Passwords()
        self.ids, self.feed = Ids(database), ChangeFeed(database)
        self.feed.restores.on_replaced = self._forget
        self.vocabulary = Vocabulary(database, self.ids)
        self.fanout = Fanout(database, site, self.feed, self._tasks)
        count = UsageCounters(database, self.feed, self.fanout.compare_copies).count
        self.log = ChangeLog(database, site, self.feed, count, self._tasks)
        self.tokens = Tokens(database, self.ids, self.feed, self._tasks)
        self.undo = UndoSteps(database, site, self.feed)
        self.resolver = FilterResolver(database, site, self.feed, self.vocabulary, self.log)
        self.lists = Lists(database, self.feed, self.resolver)
        self.page, self.scan, self.scan_all = self.lists.page, self.lists.scan, self.lists.scan_all
        self.changes = Changes(database, self.feed, self.lists, self.log).page
        self.wait_for_changes = ChangeWatcher(self.feed).wait
        self.reader = reader = Reader(database, self.feed, self.passwords, self.log)
        self.find, self.find_many = reader.find, reader.find_many
        self.read, self.head = reader.read, reader.head
        tree = CategoryTree(database, site, self.fanout)
        builder = RecordBuilder(database, site, self.feed, self.ids, self.vocabulary, tree)
        keys = IdempotencyKeys(database, site, self.feed)
        self.creator = Creator(database, self.feed, builder, self.passwords, self.fanout, self.log, keys)
        self.create, self.create_once = self.creator.create, self.creator.create_once
        self.replay = keys.replay
        self.updater = Updater(database, reader, builder, self.passwords, tree, self.fanout, self.log)
        self.update = self.updater.update
        status = StatusChanges(database, site, self.updater, tree, self.fanout, self.log)
        self.delete, self.publish_due = status.delete, status.publish_due

    async def start(self) -> None:
        """Bring the database to the form that this version needs; idempotent."""
        await self.database.command("ping")  # fail early: building indexes has a long timeout
        await refuse_restore(self.database)
        await prepare(self.database, log_progress)
        self.started = True

    @property
    def is_usable(self) -> bool:
        """Whether the database is set up, and is not being restored."""
        return self.started and not self.feed.restores.is_under_way

    async def require_usable(self) -> None:
        """Raise Unavailable until the database is set up, and while it is restored."""
        if not self.started:
            raise Unavailable
        if self.feed.restores.is_under_way:
            await self.feed.catch_up()

    def _forget(self) -> None:
        """Drop what is remembered of records that were replaced."""
        self._instance = None
        for memory in (self.ids, self.vocabulary, self.tokens):
            memory.forget()

    async def instance(self) -> UUID:
        """The identity of this calendar: the identifiers in feeds do not change with its address."""
        if self._instance is None:
            self._instance = await read_instance(self.database)
        return self._instance

    async def maintain(self) -> None:
        """Publish what is due; abort transactions and resume fan-out jobs of crashed processes, and count
        their events."""
        await abort_abandoned_transactions(self.client)  # also during a restore, which waits for them
        await self.feed.catch_up()  # raises UnderRestore while the records are replaced
        await self.publish_due()
        await self.fanout.resume_abandoned()
        if self.feed.has_lost_changes:
            await recover(self.database, log_progress, self.log.repair, self.feed.begun_at)
            self.feed.reopen()
        # Not longer: it may wait for the transaction of a crashed process, which the next run will abort.
        await self.log.wait_for_update(MAX_UPDATE_SECONDS)

    async def is_alive(self) -> bool:
        """Whether requests can be served: there is a primary, and the database is prepared."""
        try:
            async with asyncio.timeout(2):
                reply = await self.database.command("hello")
                await self.require_usable()
        except (PyMongoError, TimeoutError, Unavailable):
            return False
        return bool(reply["isWritablePrimary"])

    async def close(self) -> None:
        self.log.end_pause()
        await self._tasks.finish(CLOSE_SECONDS)
        await finish_transactions(CLOSE_SECONDS)
        await self.feed.close()
        self.feed.clock.end()
        self.passwords.close()


@asynccontextmanager
async def open_store(uri: str, name: str, site: Site) -> AsyncIterator[Store]:
    """Open a store that is ready for use."""
    async with unstarted_store(uri, name, site) as store:
        await store.start()
        yield store


@asynccontextmanager
async def unstarted_store(
    uri: str, name: str, site: Site, listeners: Sequence[CommandListener] = ()
) -> AsyncIterator[Store]:
    """Open a store whose database may not be usable yet; `service.process.maintenance` starts it. The
    listeners hear of every command that is sent to MongoDB."""
    client = connect(uri, listeners)
    try:
        store = Store(client[name], site)
        try:
            yield store
        finally:
            await store.close()
    finally:
        close_client(client)
