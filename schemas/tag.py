"""Event tags: flat terms."""

from __future__ import annotations

from schemas.kind import Kind
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
    sample={"name": "outdoor"},
)
