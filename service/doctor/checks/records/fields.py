"""Checks that the fields of records have values of the right types, which all other checks rely on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any, NamedTuple

from marshmallow import fields

from schemas import BY_NAME
from schemas.fields import FALSE, TRUE, Flag, Number, Picture, Status, When, Zoned
from schemas.kind import Document, Kind, reader_of
from schemas.values.slugs import slug_of
from service.doctor.evidence import copied, copied_version, counted, last_fact, original_name
from service.doctor.findings import REMOVED, Finding, RecordCheck
from service.doctor.mending import mend
from service.doctor.scope import Scope
from service.doctor.values import (
    are_counters,
    is_change,
    is_hash,
    is_image,
    is_number,
    is_past,
    is_slug,
    is_status,
    is_text,
    is_time,
    or_none,
)

CANNOT: Any = object()
"""Stands for a value that cannot be restored."""
ADVICE = "send a new value with the editor or the API"
NOT_STORED = ("date", "new_password", "start_date", "end_date")
"""Fields of requests that are stored in another form."""
Restore = Callable[[Scope, Kind, Document], Awaitable[Any]]


class Rule(NamedTuple):
    """The values that a field may have, and how a valid one is found if it has none."""

    name: str
    expected: str
    is_valid: Callable[[Any], bool]
    restore: Restore
    shows: bool = True
    """Whether a finding may show the value."""
    is_slow: bool = False
    """Whether it takes long to find a valid value, so that this is only done for the repair."""


async def _first_of(scope: Scope, kind: Kind, record: Document, *, name: str, default: Any) -> Any:
    """The value in a copy of the record, or in what its last change has told, or a default."""
    rule = next(rule for rule in rules_of(kind) if rule.name == name)
    for value in (await copied(scope, kind, record, name), last_fact(record, name)):
        if value is not None and rule.is_valid(value):
            return value
    return default


def first_of(name: str, default: Any) -> Restore:
    return partial(_first_of, name=name, default=default)


async def new_slug(scope: Scope, kind: Kind, record: Document) -> str:
    known = await copied(scope, kind, record, "slug")
    texts = [text for text in (record.get("slug"), record.get(kind.name_field)) if isinstance(text, str)]
    made = [slug for text in texts if (slug := slug_of(text, ""))]
    wanted = known if isinstance(known, str) and is_slug(known) else next(iter(made), kind.name)
    return await scope.slugs.free(kind.plural, wanted, record["_id"])


async def _flag(scope: Scope, kind: Kind, record: Document, *, name: str) -> bool:
    """The flag that a value of another type stands for."""
    value = record.get(name)
    word = str(value).lower().removesuffix(".0")
    if word in TRUE | FALSE:
        return word in TRUE
    return bool(await _first_of(scope, kind, record, name=name, default=name.startswith("show_map")))


async def now(scope: Scope, kind: Kind, record: Document) -> datetime:
    return scope.site.now()


async def publication(scope: Scope, kind: Kind, record: Document) -> datetime:
    found: datetime = await _first_of(scope, kind, record, name="date_utc", default=None)
    modified = record.get("modified_utc")
    return found or (modified if isinstance(modified, datetime) else scope.site.now())


async def as_text(scope: Scope, kind: Kind, record: Document, *, name: str) -> Any:
    value = record[name]
    known = await copied(scope, kind, record, name)
    return known if isinstance(known, str) else str(value) if isinstance(value, int | float) else CANNOT


def rule_of(  # noqa: PLR0911 - one for each class of fields
    kind: Kind, name: str, one: fields.Field[Any]
) -> Rule | None:
    """The rule of a field that requests can have."""
    if name in (*NOT_STORED, "slug", kind.name_field) or isinstance(one, Zoned | When):
        return None
    if isinstance(one, Status):
        return Rule(name, "a status", is_status, first_of(name, "draft"))
    if isinstance(one, Flag):
        return Rule(name, "true or false", lambda value: isinstance(value, bool), partial(_flag, name=name))
    if isinstance(one, Picture):
        return Rule(name, "an image", or_none(is_image), first_of(name, REMOVED))
    if name == "password":
        return Rule(name, "the hash of a password", or_none(is_hash), _cannot, shows=False)
    if isinstance(one, fields.String):
        is_valid = or_none(lambda value: isinstance(value, str))
        return Rule(name, "a text", is_valid, partial(as_text, name=name))
    if isinstance(one, fields.Integer) and name != "parent":
        return Rule(name, "a whole number", is_number, first_of(name, 0))
    return None


def rules_of(kind: Kind) -> tuple[Rule, ...]:
    return _rules(kind.name)


@cache
def _rules(name: str) -> tuple[Rule, ...]:
    """The rules of a kind: from its schema, and for what all records have. Times, coordinates, parents and
    links are left to other checks."""
    kind = BY_NAME[name]
    sent = reader_of(kind.body_schema).fields.items()
    declared = [
        rule for name, one in sent if not isinstance(one, Number) and (rule := rule_of(kind, name, one))
    ]
    shared = [
        Rule(kind.name_field, "a text", is_text, original_name),
        Rule("slug", "a slug", is_slug, new_slug),
        Rule("modified_utc", "a time that has come", is_past, now),
        Rule("version", "a positive whole number", partial(is_number, least=1), copied_version),
    ]
    is_key = or_none(lambda value: isinstance(value, bytes))
    shared.append(Rule("import_key", "a key of an import", is_key, _removed))
    shared.append(Rule("last_change", "a change", or_none(is_change), _removed))
    if kind.is_post:
        shared.append(Rule("date_utc", "a time", is_time, publication))
    if kind.embedded_fields:
        shared.append(Rule("events", "usage counters", are_counters, counted, is_slow=True))
    return (*shared, *declared)


async def _cannot(scope: Scope, kind: Kind, record: Document) -> Any:
    return CANNOT


async def _removed(scope: Scope, kind: Kind, record: Document) -> Any:
    return REMOVED


async def find(scope: Scope, kind: Kind, records: Sequence[Document]) -> list[Finding]:
    found = []
    for record in records:
        for rule in rules_of(kind):
            if not rule.is_valid(record.get(rule.name)):
                value = CANNOT if rule.is_slow else await rule.restore(scope, kind, record)
                repair = partial(_restore, scope, kind, record["_id"], rule) if rule.is_slow else None
                found.append(_finding(kind, record, rule, value, repair))
        last = record.get("last_change")
        told = last.get("version") if isinstance(last, dict) else None
        if is_number(told) and is_number(record.get("version")) and record["version"] < told:
            problem = f"its version {record['version']} is lower than that of its last change, {told}"
            change = {"version": await copied_version(scope, kind, record)}
            found.append(Finding(f"{kind.name} {record['_id']}", problem, "version", record["_id"], change))
    return found


async def _restore(scope: Scope, kind: Kind, id: int, rule: Rule) -> None:
    # The repair of other fields may just have changed the version.
    if record := await scope.collection(kind.plural).find_one({"_id": id}):
        await mend(scope, kind, record, {rule.name: await rule.restore(scope, kind, record)})


def _finding(kind: Kind, record: Document, rule: Rule, value: Any, repair: Any) -> Finding:
    is_missing = rule.name not in record
    shown = f"{record[rule.name]!r:.60}, not {rule.expected}" if rule.shows and not is_missing else ""
    problem = f"{rule.name} is {'missing' if is_missing else shown or f'not {rule.expected}'}"
    change = {} if value is CANNOT else {rule.name: value}
    subject, id = f"{kind.name} {record['_id']}", record["_id"]
    return Finding(subject, problem, rule.name, id, change, repair, advice=ADVICE)


FIELDS = RecordCheck(
    "fields",
    "a field is missing or has a wrong type: restored from copies of the record, or to its default",
    find,
    is_required=True,
)
