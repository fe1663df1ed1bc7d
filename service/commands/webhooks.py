"""`kalends webhook`: add, list, test, resume and remove webhooks."""

from __future__ import annotations

import socket
import sys
from argparse import Namespace
from collections.abc import Callable, Coroutine, Sequence
from time import monotonic
from typing import Any
from urllib.parse import urlencode, urlsplit

from config import SettingError, Settings
from schemas.caller import Role
from schemas.changes import EVENT_FILTERS, kinds_of
from schemas.errors import InvalidFields, Problems, TokenExpired, reasons_of
from schemas.kind import Document
from service.commands.webhook_list import advice, list_webhooks
from service.database import opened
from service.store import Store
from service.webhooks.addresses import AddressRefused, GuardedResolver, Network, check_url
from service.webhooks.queries import caller_of, query_of, reason_of
from service.webhooks.sending import Message, open_sender
from service.webhooks.subscriptions import Subscription, Webhooks


def webhook_command(arguments: Namespace, settings: Settings) -> Coroutine[Any, Any, int | None]:
    """The coroutine of an action; it returns the exit status, or None for success."""
    if arguments.action == "add":
        given = (arguments.url, arguments.kinds, arguments.filter)
        return add_webhook(settings, *given, unpublished=arguments.unpublished)
    if arguments.action == "list":
        return list_webhooks(settings)
    if arguments.action == "resume":
        return resume_webhook(settings, arguments.id, from_now=arguments.from_now)
    actions: dict[str, Callable[[Settings, int], Coroutine[Any, Any, int | None]]] = {
        "test": test_webhook,
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
        try:
            webhook = await Webhooks(store).add(subscription, await next_token(store, subscription))
        except InvalidFields as problem:
            raise SettingError(" ".join(reasons_of(problem))) from None
        print(f"Webhook {webhook['_id']} added in {location}. Its secret is shown only now:", file=sys.stderr)
        print(webhook["secret"])


def split_filter(text: str) -> tuple[str, str]:
    name, is_given, value = text.partition("=")
    if not is_given or name not in EVENT_FILTERS:
        raise SettingError(
            f"--filter must be a filter of the event list such as categories=jazz, not {text!r}"
        )
    return name, value


async def next_token(store: Store, subscription: Subscription, since: str | None = None) -> str:
    """The token of this moment, or the next one after another. A wrong filter is refused as the list refuses
    it, and an expired token as `/changes` does."""
    query = query_of(subscription.query, store.site) | {"since": since}
    page = await store.changes(kinds_of(query), query, caller_of(subscription.role), Problems())
    return page.next


async def check_target(url: str, allowed: Sequence[Network]) -> None:
    """Refuse an address that nothing would be sent to."""
    try:
        check_url(url, allowed)
        await GuardedResolver(allowed).resolve(urlsplit(url).hostname or "", family=socket.AF_UNSPEC)
    except (ValueError, AddressRefused) as error:
        raise SettingError(f"{url}: {error}") from None
    except OSError as error:
        raise SettingError(f"{url}: the host is unknown: {error.strerror or error}") from None


async def test_webhook(settings: Settings, id: int) -> int:
    """Send a test message; return 1 if it was not accepted."""
    async with opened(settings) as (store, location), open_sender(settings.webhook_networks) as sender:
        webhook = known(await Webhooks(store).find(id), id, str(location))
        started = monotonic()
        now = store.site.now().isoformat()
        message = Message(f"{id}.test.{now}", f'{{"type":"test","timestamp":"{now}Z","data":{{}}}}'.encode())
        problem = await sender.send(webhook["url"], webhook["secret"], message)
        print(f"{webhook['url']}: {problem or f'accepted after {monotonic() - started:.1f} s'}")
        return 1 if problem else 0


async def resume_webhook(settings: Settings, id: int, *, from_now: bool = False) -> None:
    """Continue a webhook, unless the reason for which it was paused would pause it again at once."""
    async with opened(settings) as (store, location):
        webhooks = Webhooks(store)
        webhook = known(await webhooks.find(id), id, str(location))
        subscription = Subscription(webhook["url"], webhook["query"], webhook["role"])
        try:
            token = await next_token(store, subscription, None if from_now else webhook["since"])
        except (TokenExpired, InvalidFields) as problem:
            what_to_do = advice(id, is_expired=isinstance(problem, TokenExpired))
            raise SettingError(f"webhook {id} cannot continue: {reason_of(problem)}; {what_to_do}") from None
        await webhooks.resume(id, token if from_now else None)
        print(f"Webhook {id} continues in {location}")


async def remove_webhook(settings: Settings, id: int) -> None:
    async with opened(settings) as (store, location):
        webhooks = Webhooks(store)
        known(await webhooks.find(id), id, str(location))
        await webhooks.remove(id)
        print(f"Webhook {id} removed from {location}")


def known(webhook: Document | None, id: int, location: str) -> Document:
    if webhook is None:
        raise SettingError(f"there is no webhook {id} in {location}")
    return webhook
