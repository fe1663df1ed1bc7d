"""Compares our answers with recorded ones of the reference service."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

KINDS = {
    "events": "event",
    "venues": "venue",
    "organizers": "organizer",
    "categories": "category",
    "tags": "tag",
}
LINKS = {"categories": "category", "tags": "tag", "venue": "venue", "organizer": "organizer"}
Ids = Mapping[tuple[str | None, int], int]
"""(kind, recorded id) -> the id that our record of the same request got."""


def by_rule(row: Mapping[str, Any], recorded: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded answer, changed where we differ by a rule and not by the case."""
    status, code, path = recorded.get("status"), recorded.get("code"), row["path"]
    plural, _, item = path.strip("/").partition("/")
    kind, name = KINDS.get(plural), row["name"]
    known = plural in (*KINDS, "doc", "") and (not item or item.isdigit())
    if code == "rest_no_route" and known and row["method"] != "GET":
        return {"status": 405}
    if row["method"] not in ("GET", "HEAD", "OPTIONS") and row.get("who") is None and status != 404:
        return {"status": 401, "code": "rest_forbidden"}
    if code in ("rest-event-not-found", "rest-invalid-event-id") or (
        kind and item and status == 400 and recorded.get("params") in (["id"], ["slug"])
    ):
        trashed = any(word in name for word in ("deleted", "twice", "trashed"))
        return {"status": (404, 410)} if trashed else {"status": 404, "code": f"{kind}-not-found"}
    if code == "event-no-longer-available" or ("read_deleted" in name and kind not in ("category", "tag")):
        return {"status": 410, "code": f"{kind}-is-in-trash"}
    if recorded.get("list") in ("categories", "tags") and not recorded["ids"] and recorded["prev"]:
        return {"status": 404}
    if status and status >= 500:
        return {"status": 409 if code == "duplicate_term_slug" else 400}
    kept = {key: value for key, value in recorded.items() if (key, value) != ("code", "rest_invalid_param")}
    return kept | ({"record": _with_maps(row, recorded["record"])} if recorded.get("record") else {})


def _with_maps(row: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """Maps are shown unless they are turned off; in the reference they are not unless they are turned on."""
    sent = row["body"] if isinstance(row.get("body"), dict) else {}
    return {name: value for name, value in record.items() if not name.startswith("show_map") or name in sent}


def differences(
    row: Mapping[str, Any], want: Mapping[str, Any], status: int, body: Any, ids: Ids
) -> Iterator[str]:
    """One line for each thing that differs; `field: …` where it is a field of a record."""
    allowed = want["status"] if isinstance(want["status"], tuple) else (want["status"],)
    body = body if isinstance(body, dict) else {}
    if status not in allowed:
        yield f"status {status}, expected {want['status']}"
    elif status >= 400:
        yield from _error(want, body)
    elif "list" in want:
        yield from _list(want, body, ids)
    else:
        for name, value in (want.get("record") or {}).items():
            yield from _field(name, value, body, ids)


def _error(want: Mapping[str, Any], body: Mapping[str, Any]) -> Iterator[str]:
    if want.get("code") and body.get("code") != want["code"]:
        yield f"code {body.get('code')}, expected {want['code']}"
    named = set((body.get("data") or {}).get("params") or ())
    if not set(want.get("params", ())) <= named:
        yield f"params {sorted(named)}, expected {want['params']}"


def _list(want: Mapping[str, Any], body: Mapping[str, Any], ids: Ids) -> Iterator[str]:
    kind = KINDS[want["list"]]
    if want["list"] not in body:
        yield f"no list of {want['list']}"
        return
    got = [record["id"] for record in body[want["list"]]]
    expected = [ids.get((kind, id)) for id in want["ids"]]
    if want["total"] != len(want["ids"]) or None in expected:
        return  # a page of a longer list, or one with records that we refused to make
    if sorted(got) != sorted(expected):  # the reference orders by wall clocks, we by instants
        yield f"records {got}, expected {expected}"
    if body["total"] != want["total"]:
        yield f"total {body['total']}, expected {want['total']}"
    for key, flag in (("next_rest_url", "next"), ("previous_rest_url", "prev")):
        if (key in body) != want[flag]:
            yield f"{key} is {'there' if key in body else 'absent'}"


def _field(name: str, value: Any, body: Mapping[str, Any], ids: Ids) -> Iterator[str]:
    got = (body.get("cost_details") or {}).get("values") if name == "values" else body.get(name)
    if name in LINKS and isinstance(value, list):
        linked = got if isinstance(got, list) else [got]
        got = sorted(record["id"] for record in linked)
        if None in (mapped := [ids.get((LINKS[name], id)) for id in value]):
            return
        value = sorted(mapped)
    if name == "parent":
        value = ids.get(("category", value), value)
    if name == "slug" and not re.fullmatch(r"[a-z0-9-]+", str(value)):
        return  # the reference percent-encodes what we transliterate, and gives drafts none
    if name == "timezone":
        value, got = str(value).casefold(), str(got).casefold()
    if got != value:
        yield f"{name}: {got!r}, expected {value!r}"
