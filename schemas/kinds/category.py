"""Event categories: hierarchical terms."""

from __future__ import annotations

from schemas.fields import Whole
from schemas.kind import Kind
from schemas.kinds.post import describe
from schemas.kinds.term import TermInput, TermListInput, TermResponse, normalize, represent
from schemas.language import Text


class CategoryInput(TermInput):
    """Request body of a category."""

    parent = Whole(
        metadata=describe(
            Text("parent category ID, 0 for none"),
            label=Text("Parent category"),
            widget="parent",
        )
    )


class CategoryListInput(TermListInput):
    """Query parameters of the category list."""

    parent = Whole(metadata=describe(Text("only children of this category ID; 0: only top-level ones")))


CATEGORY = Kind(
    name="category",
    plural="categories",
    name_field="name",
    id_space="term",
    body_schema=CategoryInput,
    query_schema=CategoryListInput,
    response_schema=TermResponse,
    normalize=normalize,
    represent=represent,
    page="events/category",
    search_fields=("name", "slug"),
    embedded_fields=("name", "description", "parent"),
    example={"name": "Workshops", "description": "Learn something in an afternoon"},
    example_change={"description": "Courses of one afternoon or one evening"},
    summaries={
        "list": Text("List categories"),
        "create": Text("Create a category"),
        "read": Text("Read a category"),
        "update": Text("Update a category"),
        "delete": Text("Delete a category"),
    },
    label=Text("Categories"),
    form=("name", "parent", "description"),
)
