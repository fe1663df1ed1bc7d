"""`kalends webhook`: add, list, test, resume and remove webhooks."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from time import monotonic
from typing import Any
from urllib.parse import urlencode, urlsplit

from config import SettingError, Settings
from schemas.caller import Role
from schemas.changes import EVENT_FILTERS, kinds_of
from schemas.errors import InvalidFields, Problems, reasons_of
from schemas.kind import Document
from service.commands.tokens import format_time, table
from service.database import opened
from service.store import Store
from service.store.webhooks import Subscription
from service.webhooks.addresses import AddressRefused, GuardedResolver, Network, check_url
from service.webhooks.delivery import caller_of, query_of
from service.webhooks.sending import Message, open_sender

HEADER = ("ID", "URL", "CHANGES", "LAST DELIVERY (UTC)", "STATE")


def webhook_command(arguments: Namespace, settings: Settings) -> Coroutine[Any, Any, int | None]:
    """The coroutine of an action; it returns the exit status, or None for success."""
    if arguments.action == "add":
        given = (arguments.url, arguments.kinds, arguments.filter)
        return add_webhook(settings, *given, unpublished=arguments.unpublished)
    if arguments.action == "list":
        return list_webhooks(settings)
    actions: dict[str, Callable[[Settings, int], Coroutine[Any, Any, int | None]]] = {
        "test": test_webhook,
        "resume": resume_webhook,
        "remove": remove_webhook,
    }
    return actions[arguments.action](settings, arguments.id)


async def add_webhook(
    settings: Settings, url: str, kinds: str, filters: Sequence[str], *, unpublished: bool
) -> None:
    await check_target(url, settings.webhook_networks)
    pairs = [("kinds", kinds)] if kinds else []
    query = urlencode([*pairs, *(split_filter(one) for one in filters)], safe=",")
    subscription = Subscription(url, query, Role.VIEWER if unpublished else None)
    async with opened(settings) as (store, location):
        webhook = await store.webhooks.add(subscription, await first_token(store, subscription))
        print(f"Webhook {webhook['_id']} added in {location}. Its secret is shown only now:", file=sys.stderr)
        print(webhook["secret"])


def split_filter(text: str) -> tuple[str, str]:
    name, is_given, value = text.partition("=")
    if not is_given or name not in EVENT_FILTERS:
        raise SettingError(
            f"--filter must be a filter of the event list such as categories=jazz, not {text!r}"
        )
    return name, value


async def first_token(store: Store, subscription: Subscription) -> str:
    """The token of this moment; a wrong filter is refused as the list refuses it."""
    try:
        query = query_of(subscription.query, store.site)
        page = await store.changes(kinds_of(query), query, caller_of(subscription.role), Problems())
    except InvalidFields as problem:
        raise SettingError(" ".join(reasons_of(problem))) from None
    return page.next


async def check_target(url: str, allowed: Sequence[Network]) -> None:
    """Refuse an address that nothing would be sent to."""
    try:
        check_url(url, allowed)
        await GuardedResolver(allowed).resolve(urlsplit(url).hostname or "")
    except (ValueError, AddressRefused) as error:
        raise SettingError(f"{url}: {error}") from None
    except OSError as error:
        raise SettingError(f"{url}: the host is unknown: {error.strerror or error}") from None


async def list_webhooks(settings: Settings) -> None:
    async with opened(settings) as (store, location):
        webhooks = await store.webhooks.all()
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
        hint = f"`kalends webhook resume {webhook['_id']}` continues"
        return f"paused; failing since {since}: {webhook['problem']}; {hint}"
    if webhook["problem"]:
        seconds = max(0, (webhook["next_attempt"] - now).total_seconds())
        return f"failing since {since}: {webhook['problem']}; next attempt in {seconds:.0f} s"
    return "up to date" if webhook["since"] == newest else "sending"


async def test_webhook(settings: Settings, id: int) -> int:
    """Send a test message; return 1 if it was not accepted."""
    async with opened(settings) as (store, location), open_sender(settings.webhook_networks) as sender:
        webhook = known(await store.webhooks.find(id), id, str(location))
        started = monotonic()
        now = store.site.now().isoformat()
        message = Message(f"{id}.test.{now}", f'{{"type":"test","timestamp":"{now}Z","data":{{}}}}'.encode())
        problem = await sender.send(webhook["url"], webhook["secret"], message)
        print(f"{webhook['url']}: {problem or f'accepted after {monotonic() - started:.1f} s'}")
        return 1 if problem else 0


async def resume_webhook(settings: Settings, id: int) -> None:
    async with opened(settings) as (store, location):
        webhook = known(await store.webhooks.find(id), id, str(location))
        await store.webhooks.resume(id)
        print(f"Webhook {webhook['_id']} continues in {location}")


async def remove_webhook(settings: Settings, id: int) -> None:
    async with opened(settings) as (store, location):
        known(await store.webhooks.find(id), id, str(location))
        await store.webhooks.remove(id)
        print(f"Webhook {id} removed from {location}")


def known(webhook: Document | None, id: int, location: str) -> Document:
    if webhook is None:
        raise SettingError(f"there is no webhook {id} in {location}")
    return webhook
