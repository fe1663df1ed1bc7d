"""Which keys of a record a response contains: `fields=id,title,venue.city`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from marshmallow import Schema, fields
from marshmallow.fields import Field

from schemas.errors import InvalidFields
from schemas.language import Text

Tree = dict[str, "Tree"]
"""Key -> the keys below it; an empty tree selects all of them."""


@dataclass(frozen=True)
class Selection:
    """The keys to include, by name and as a tree."""

    names: tuple[str, ...]
    tree: Tree

    def of(self, record: Any) -> Any:
        return pick(record, self.tree)


@lru_cache(1000)
def select(response_schema: type[Schema], names: tuple[str, ...]) -> Selection:
    """The selection of these names, each of which must be in the schema of the representation."""
    schema = response_schema()
    if unknown := [name for name in names if not is_known(schema, name.split("."))]:
        raise InvalidFields({"fields": Text("Unknown field: {name}.", name=", ".join(unknown))})
    return Selection(names, tree_of(names))


def tree_of(names: tuple[str, ...]) -> Tree:
    tree: Tree = {}
    for name in sorted(names, key=len, reverse=True):  # `venue` overrides `venue.city`
        *path, last = name.split(".")
        below = tree
        for key in path:
            below = below.setdefault(key, {})
        below[last] = {}
    return tree


def pick(value: Any, tree: Tree) -> Any:
    """Reduces the value, or each item of a list, to the keys in the tree."""
    if isinstance(value, list):
        return [pick(item, tree) for item in value]
    if not isinstance(value, dict) or not tree:
        return value
    return {key: pick(one, tree[key]) for key, one in value.items() if key in tree}


def is_known(response_schema: Schema, path: list[str]) -> bool:
    """Whether the path leads to a field. Below a field without a schema (`json_ld`) any path is accepted."""
    by_key = {field.data_key or name: field for name, field in response_schema.fields.items()}
    if (field := by_key.get(path[0])) is None:
        return False
    if len(path) == 1 or isinstance(field, fields.Dict):
        return True
    return any(is_known(below, path[1:]) for below in schemas_below(field))


def schemas_below(field: Field[Any]) -> Iterator[Schema]:
    if isinstance(field, fields.Nested):
        yield field.schema
    for inner in (field.inner,) if isinstance(field, fields.List) else field.metadata.get("one_of", ()):
        yield from schemas_below(inner)
