"""A cache of responses for single records."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from handlers.answers import JSON, entity_tag, to_json
from handlers.memory import Drawer, Memory
from handlers.ports import Head, Ref
from handlers.replies import Answer
from handlers.shelf import State, selected, state_of
from schemas.event_view import is_locked
from schemas.kind import Document, Kind, View

FORM = 2
"""Part of every ETag. Increment it when the representation changes, to invalidate clients' cached copies."""
Key = tuple[Hashable, ...]


class Single(NamedTuple):
    """A cached response, the state of its record, and the database clock in which it is current."""

    answer: Answer
    state: State
    clock: Hashable | None

    def holds(self, clock: Hashable | None) -> bool:
        """Whether it can be sent without another query: nothing at all has been written since."""
        return clock is not None and self.clock == clock

    def shows(self, kind: Kind, head: Head) -> bool:
        """Whether the record is unchanged."""
        return self.state == state_of(kind, head)


class Singles:
    """Cached responses by kind, id or slug, and view."""

    def __init__(self, memory: Memory) -> None:
        self._memory = Drawer[Single](memory, "singles")

    def take(self, kind: Kind, ref: Ref, view: View) -> Single | None:
        """The cached response, which may be stale."""
        return self._memory.take(key_of(kind, ref, view))

    def render(self, kind: Kind, ref: Ref, record: Document, view: View, clock: Hashable | None) -> Answer:
        shown = kind.represent(kind, record, view)
        if kind.json_ld:
            shown["json_ld"] = kind.json_ld(kind, record, view)
        headers = {"Content-Type": JSON, "ETag": self.tag(kind, record, view)}
        answer = Answer(selected(to_json(shown), view), headers)
        return self.keep(kind, ref, record, view, clock, answer)

    def tag(self, kind: Kind, head: Head, view: View, occasion: str = "read") -> str:
        """The ETag of a record, derived from everything its representation depends on."""
        version, events = state_of(kind, head)
        depends = (FORM, view.site.facts, view.key, occasion, kind.name, head["_id"], version, events)
        return entity_tag(version, repr(depends).encode())

    def keep(
        self,
        kind: Kind,
        ref: Ref,
        head: Head,
        view: View,
        clock: Hashable | None,
        answer: Answer,
    ) -> Answer:
        # Without a clock the cached response is never sent unchecked: each request needs the password.
        true_for = None if is_locked(head) else clock
        kept = Single(answer, state_of(kind, head), true_for)
        self._memory.keep(key_of(kind, ref, view), kept, answer.size)
        return answer


def key_of(kind: Kind, ref: Ref, view: View) -> Key:
    return (view.key, kind.name, ref)
