"""Peer: Eve on the same collection, with its default features; run by gunicorn."""

from __future__ import annotations

import os
from typing import Any

from eve import Eve

TEXT = {"type": "string", "nullable": True}
FLAG = {"type": "boolean"}
WHOLE = {"type": "integer"}
TIME = {"type": "datetime"}
COPIES: dict[str, Any] = {"type": "list", "schema": {"type": "dict", "allow_unknown": True}}
EVENT: dict[str, Any] = {
    **dict.fromkeys(("title", "description", "excerpt", "slug", "timezone", "website", "status"), TEXT),
    **dict.fromkeys(("all_day", "show_map", "show_map_link", "hide_from_listings"), FLAG),
    **dict.fromkeys(("sticky", "featured", "ticketed", "locked"), FLAG),
    **dict.fromkeys(("start", "end", "start_utc", "end_utc"), TIME),
    **dict.fromkeys(("author", "post_parent", "version"), WHOLE),
    **dict.fromkeys(("venue", "organizer", "categories", "tags"), COPIES),
    "cost": {"type": "dict", "allow_unknown": True},
    "image": {"type": "dict", "nullable": True, "allow_unknown": True},
}
BY_ID = {"schema": {"_id": WHOLE, **EVENT}, "item_url": "int"}
DOMAIN: dict[str, Any] = {
    "events": {
        **BY_ID,
        "additional_lookup": {"url": r'regex("[a-z][\w-]*")', "field": "slug"},
    },
    "bench_eve_new": {"schema": EVENT, "resource_methods": ["GET", "POST"]},
    "bench_eve_changed": {**BY_ID, "item_methods": ["GET", "PATCH"]},
}
SETTINGS = {
    "DOMAIN": DOMAIN,
    "MONGO_URI": os.environ["BENCH_URI"],
    "MONGO_DBNAME": os.environ["BENCH_DATABASE"],
    "MONGO_WRITE_CONCERN": {"w": "majority"},
    "MONGO_QUERY_BLACKLIST": ["$where"],  # the search workload needs $regex
    "RENDERERS": ["eve.render.JSONRenderer"],
    "LAST_UPDATED": "modified_utc",
    "DATE_CREATED": "date_utc",
    "IF_MATCH": False,  # the records have no ETag from Eve, which would hash each of them on every read
    "OPTIMIZE_PAGINATION_FOR_SPEED": os.environ.get("BENCH_TOTALS") == "0",
}
app = Eve(settings=SETTINGS)
