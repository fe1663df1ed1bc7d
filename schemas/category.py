"""Event categories: hierarchical terms."""

from __future__ import annotations

from schemas.fields import Whole
from schemas.kind import Kind
from schemas.language import Text
from schemas.post import about
from schemas.term import TermInput, TermListInput, TermShape, represent, settle


class CategoryInput(TermInput):
    """Request body of a category."""

    parent = Whole(metadata=about(Text("parent category ID, 0 for none")))


class CategoryListInput(TermListInput):
    """Query parameters of the category list."""

    parent = Whole(metadata=about(Text("only children of this category ID; 0: only top-level ones")))


CATEGORY = Kind(
    name="category",
    plural="categories",
    title="name",
    ids="term",
    schema=CategoryInput,
    query=CategoryListInput,
    shape=TermShape,
    settle=settle,
    represent=represent,
    page="events/category",
    searched=("name", "slug"),
    copied=("name", "description", "parent"),
    sample={"name": "Workshops", "description": "Learn something in an afternoon"},
    sample_change={"description": "Courses of one afternoon or one evening"},
    summaries={
        "list": Text("List categories"),
        "create": Text("Create a category"),
        "read": Text("Read a category"),
        "update": Text("Update a category"),
        "delete": Text("Delete a category"),
    },
)
