"""`kalends webhook list`: what each webhook is sent, and its state."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime

from config import Settings
from schemas.errors import Problems
from schemas.kind import Document
from service.commands.tokens import format_time, table
from service.database import opened
from service.webhooks.queries import caller_of
from service.webhooks.subscriptions import Webhooks

HEADER = ("ID", "URL", "CHANGES", "LAST DELIVERY (UTC)", "STATE")


async def list_webhooks(settings: Settings) -> None:
    async with opened(settings) as (store, location):
        webhooks = await Webhooks(store).all()
        newest = (await store.changes([], {}, caller_of(None), Problems())).next
        now = store.site.now()
    if webhooks:
        print(table([HEADER, *(row(webhook, newest, now) for webhook in webhooks)]))
    print(f"{len(webhooks) or 'No'} webhook{'s' * (len(webhooks) != 1)} in {location}", file=sys.stderr)


def row(webhook: Document, newest: str, now: datetime) -> Sequence[str]:
    changes = webhook["query"] or "all"
    seen = changes + (" (also unpublished)" if webhook["role"] else "")
    delivered = format_time(webhook["delivered_utc"], "never")
    return str(webhook["_id"]), webhook["url"], seen, delivered, state_of(webhook, newest, now)


def state_of(webhook: Document, newest: str, now: datetime) -> str:
    """What the operator should know, in one line."""
    since = format_time(webhook["failing_since"])
    if webhook["state"] == "paused":
        what_to_do = advice(webhook["_id"], is_expired=webhook.get("is_expired", False))
        return f"paused; failing since {since}: {webhook['problem']}; {what_to_do}"
    if webhook["problem"]:
        seconds = max(0, (webhook["next_attempt"] - now).total_seconds())
        return f"failing since {since}: {webhook['problem']}; next attempt in {seconds:.0f} s"
    return "up to date" if webhook["since"] == newest else "sending"


def advice(id: int, *, is_expired: bool) -> str:
    """What continues a webhook that was paused."""
    if is_expired:
        return f"`kalends webhook resume {id} --from-now` skips the lost changes, and sends later ones"
    return f"once that is fixed, `kalends webhook resume {id}` continues"
