"""Checks the category tree: parents exist, nothing is below itself, and ancestors follow from parents."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from schemas.kind import Document
from schemas.kinds.category import CATEGORY
from service.doctor.findings import DatabaseCheck, Finding
from service.doctor.scope import Scope
from service.doctor.values import is_number
from service.mongo.client import Session
from service.store.links.copies import new_version

Tree = Mapping[int, Document]
KEPT = {"parent": 1, "ancestors": 1, "version": 1}


async def find(scope: Scope) -> list[Finding]:
    rows = scope.collection(CATEGORY.plural).find({}, KEPT)
    tree = {row["_id"]: row async for row in rows if is_number(row["_id"])}
    moved = _right_parents(tree)
    parents = {id: row.get("parent") for id, row in tree.items()} | moved
    scope.pending |= {(CATEGORY.plural, id): {"parent": parent} for id, parent in moved.items()}
    found = [_misplaced(scope, tree, id, moved) for id in moved]
    for id, row in tree.items():
        above = chain(parents, id)
        if id not in moved and row.get("ancestors") != above:
            problem = f"its ancestors are {row.get('ancestors')!r:.80}, not {above}"
            repair = partial(_repair, scope, {})
            found.append(Finding(f"category {id}", problem, "ancestors", repair=repair))
    return found


def _right_parents(tree: Tree) -> dict[int, int]:
    """The parents of categories whose stored parent does not exist, or is below them."""
    parents: dict[int, Any] = {id: row.get("parent") for id, row in tree.items()}
    moved = {id: _nearest(tree, id, set()) for id, parent in parents.items() if not _exists(tree, parent)}
    parents |= moved
    is_checked: set[int] = {0}
    for first in sorted(tree):
        path: list[int] = []
        at = first
        while at not in is_checked and at not in path:
            path.append(at)
            at = parents[at]
        if at in path:
            cycle = path[path.index(at) :]
            # The one whose ancestors do not fit its parent is the one that was moved.
            fits = {one: (_ancestors(tree, one) or [0])[-1] == parents[one] for one in cycle}
            chosen = min(cycle, key=lambda one: (fits[one], one))
            moved[chosen] = parents[chosen] = _nearest(tree, chosen, set(cycle))
        is_checked.update(path)
    return moved


def _exists(tree: Tree, parent: Any) -> bool:
    return is_number(parent) and (parent == 0 or parent in tree)


def _ancestors(tree: Tree, id: int) -> list[int]:
    stored = tree[id].get("ancestors")
    return [one for one in stored if is_number(one)] if isinstance(stored, list) else []


def _nearest(tree: Tree, id: int, cycle: set[int]) -> int:
    """The nearest stored ancestor that exists: a category keeps its place below those above its parent."""
    known = _ancestors(tree, id)
    return next((one for one in reversed(known) if one in tree and one != id and one not in cycle), 0)


def _misplaced(scope: Scope, tree: Tree, id: int, moved: Mapping[int, int]) -> Finding:
    stored = tree[id].get("parent")
    reason = "is below it" if _exists(tree, stored) else "does not exist"
    problem = f"its parent {stored!r:.40} {reason}; it belongs below {moved[id] or 'none'}"
    return Finding(f"category {id}", problem, "parent", repair=partial(_repair, scope, moved))


def chain(parents: Mapping[int, Any], id: int) -> list[int]:
    """The ancestors of a category, the topmost first, as far as they exist."""
    above: list[int] = []
    while (id := parents[id]) in parents and id not in above:
        above.insert(0, id)
    return above


def _has_parent(row: Document, parent: int) -> bool:
    return is_number(row.get("parent")) and bool(row["parent"] == parent)


async def _repair(scope: Scope, moved: Mapping[int, int]) -> None:
    """Give categories other parents, all of them at once, since none can be placed below a wrong one, and all
    categories the ancestors that follow from the parents."""
    terms = scope.database[CATEGORY.plural]

    async def work(session: Session) -> list[Document]:
        stored = {row["_id"]: row async for row in terms.find({}, KEPT, session=session)}
        # An earlier repair may have moved them already.
        left = {id: parent for id, parent in moved.items() if not _has_parent(stored.get(id, {}), parent)}
        parents = {id: row.get("parent") for id, row in stored.items()} | left
        for id, parent in left.items():
            change = new_version({"parent": parent}, scope.site.now())
            await terms.update_one({"_id": id}, change, session=session)
        for id, row in stored.items():
            if row.get("ancestors") != (above := chain(parents, id)):
                await terms.update_one({"_id": id}, {"$set": {"ancestors": above}}, session=session)
        return await scope.fanout.enqueue(CATEGORY, left, session)

    for job in await scope.tree.locked(work):
        await scope.fanout.run(job)


TREE = DatabaseCheck(
    "category tree",
    "a category has a parent that does not exist or is below it, or wrong ancestors: put below the nearest "
    "ancestor that exists, and ancestors computed again",
    find,
)
