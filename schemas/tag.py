"""Event tags: terms without a hierarchy."""

from __future__ import annotations

from schemas.kind import Kind
from schemas.language import Text
from schemas.term import TermInput, TermListInput, TermShape, represent, settle

TAG = Kind(
    name="tag",
    plural="tags",
    title="name",
    ids="term",
    schema=TermInput,
    query=TermListInput,
    shape=TermShape,
    settle=settle,
    represent=represent,
    page="events/tag",
    searched=("name", "slug"),
    copied=("name", "description"),
    sample={"name": "beginners"},
    sample_change={"description": "No experience needed"},
    summaries={
        "list": Text("List tags"),
        "create": Text("Create a tag"),
        "read": Text("Read a tag"),
        "update": Text("Update a tag"),
        "delete": Text("Delete a tag"),
    },
)
