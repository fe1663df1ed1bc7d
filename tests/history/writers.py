"""Writers: each runs random operations one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.history.deleting import Deleting
from tests.history.updating import Updating


class Writer(Updating, Deleting):
    """A client that runs all operations; the numbers say how often."""

    async def run(self, stop: asyncio.Event) -> None:
        operations: dict[Callable[[], Awaitable[None]], int] = {
            self.create: 8,
            self.create_twins: 2,
            self.update_fields: 4,
            self.append: 5,
            self.trash_or_restore: 4,
            self.trash_or_restore_venue: 2,
            self.rename: 5,
            self.move: 3,
            self.move_crosswise: 2,
            self.retag: 2,
            self.delete_tag: 1,
            self.grow_or_cut: 2,
        }
        while not stop.is_set():
            (operation,) = self.rng.choices([*operations], [*operations.values()])
            await operation()
            await asyncio.sleep(self.rng.uniform(0.05, 0.4))
