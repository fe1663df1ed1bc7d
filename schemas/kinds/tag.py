"""Event tags: terms without a hierarchy."""

from __future__ import annotations

from schemas.kind import Kind
from schemas.kinds.term import TermInput, TermListInput, TermResponse, normalize, represent
from schemas.language import Text

TAG = Kind(
    name="tag",
    plural="tags",
    name_field="name",
    id_space="term",
    body_schema=TermInput,
    query_schema=TermListInput,
    response_schema=TermResponse,
    normalize=normalize,
    represent=represent,
    page="events/tag",
    search_fields=("name", "slug"),
    embedded_fields=("name", "description"),
    example={"name": "beginners"},
    example_change={"description": "No experience needed"},
    summaries={
        "list": Text("List tags"),
        "create": Text("Create a tag"),
        "read": Text("Read a tag"),
        "update": Text("Update a tag"),
        "delete": Text("Delete a tag"),
    },
    label=Text("Tags"),
    form=("name", "description"),
)
