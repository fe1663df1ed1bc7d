"""Webhooks: every change is delivered in its order, signed, at least once, and nowhere it must not go."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ThreadedResolver, web
from aiohttp.test_utils import TestServer
from pymongo.errors import AutoReconnect
from standardwebhooks.webhooks import Webhook as Verifier

from config import SettingError, Settings
from schemas.caller import Role
from schemas.site import Site
from schemas.values.dates import EPOCH
from service.app import CHANGES, create_app
from service.commands import webhooks as commands
from service.store import Store, open_store
from service.webhooks.addresses import AddressRefused, GuardedResolver, check_address, check_url
from service.webhooks.delivery import delivering
from service.webhooks.subscriptions import GIVE_UP_AFTER, Subscription, Webhooks, pause_after
from tests.checker import until
from tests.conftest import Api
from tests.test_changes import token_of
from tests.test_faults import running

LOCAL = (ip_network("127.0.0.0/8"),)


class Receiver:
    """An endpoint that records the messages that it accepts."""

    def __init__(self) -> None:
        self.status = 204
        self.messages: list[dict[str, Any]] = []
        self.requests: list[tuple[Any, bytes]] = []
        self.url = ""
        self.kill_at = 0
        self.kills: Callable[[], None] = lambda: None

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.requests.append((request.headers, body))
        if self.status == 204:
            self.messages.append(json.loads(body))
        if len(self.messages) == self.kill_at:
            self.kills()
        return web.Response(status=self.status, headers={"Location": "/elsewhere"})

    @property
    def changes(self) -> list[tuple[str, int]]:
        return [(message["type"], message["data"]["id"]) for message in self.messages]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made, app = Receiver(), web.Application()
    app.router.add_post("/hook", made.handle)
    async with TestServer(app) as server:
        made.url = str(server.make_url("/hook"))
        yield made


@asynccontextmanager
async def sending(store: Store) -> AsyncIterator[None]:
    """What a serving process does."""
    settings = replace(Settings(), webhook_networks=LOCAL)
    async with delivering(store, create_app(settings, store)[CHANGES], settings):
        yield


async def add(api: Api, receiver: Receiver, query: str = "", role: Role | None = None) -> Any:
    subscription = Subscription(receiver.url, query, role)
    return await Webhooks(api.store).add(subscription, await commands.next_token(api.store, subscription))


async def comes(condition: Callable[[], bool]) -> None:
    async def holds() -> bool:
        return condition()

    await until(holds)


async def test_changes_are_delivered_in_order_and_signed(api: Api, receiver: Receiver) -> None:
    webhook = await add(api, receiver)
    async with sending(api.store):
        event = await api.event(venue={"venue": "Hall"})
        await api.patch(f"/events/{event['id']}", {"title": "New"})
        await api.delete(f"/events/{event['id']}")
        await comes(lambda: ("events.trashed", event["id"]) in receiver.changes)
    assert receiver.changes[0] == ("venues.created", event["venue"]["id"])
    assert receiver.changes[-1] == ("events.trashed", event["id"])
    assert receiver.messages[0]["data"]["record"]["venue"] == "Hall"
    for headers, body in receiver.requests:
        assert Verifier(webhook["secret"]).verify(body, dict(headers)) == json.loads(body)
    ids = [headers["webhook-id"] for headers, _ in receiver.requests]
    assert len(set(ids)) == len(ids)


async def test_a_webhook_gets_the_changes_of_its_filter_and_caller(api: Api, receiver: Receiver) -> None:
    await api.made("categories", name="Jazz")
    await add(api, receiver, "kinds=events&categories=jazz")
    async with sending(api.store):
        draft = (await api.event(categories=["jazz"], status="draft"))["id"]
        await api.event(categories=["Rock"])
        public = (await api.event(categories=["jazz"]))["id"]
        await comes(lambda: bool(receiver.messages))
        assert receiver.changes == [("events.created", public)]
        await api.patch(f"/events/{public}", {"categories": ["Rock"]})
        await api.patch(f"/events/{draft}", {"status": "publish"})
        await comes(lambda: len(receiver.messages) == 3)
        assert receiver.changes[1:] == [("events.left", public), ("events.created", draft)]


async def test_with_a_role_unpublished_records_are_sent(api: Api, receiver: Receiver) -> None:
    await add(api, receiver, "kinds=events", Role.VIEWER)
    async with sending(api.store):
        draft = (await api.event(status="draft"))["id"]
        await comes(lambda: receiver.changes == [("events.created", draft)])


async def test_a_failure_that_nobody_expects_is_logged_and_delivery_goes_on(
    api: Api, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("service.webhooks.delivery.PAUSE_SECONDS", 0.01)
    await add(api, receiver, "kinds=events")
    any_active, calls = Webhooks.any_active, list[int]()

    async def broken(webhooks: Webhooks) -> bool:
        calls.append(1)
        if len(calls) < 4:
            raise KeyError("number")
        return await any_active(webhooks)

    monkeypatch.setattr(Webhooks, "any_active", broken)
    async with sending(api.store):
        event = (await api.event())["id"]
        await comes(lambda: receiver.changes == [("events.created", event)])
    (logged,) = (record for record in caplog.records if record.exc_info)
    assert logged.getMessage() == "sending webhooks failed; retrying", "once, not in every round"


@pytest.mark.parametrize("status", [500, 302, 404])
async def test_after_a_failure_later_changes_wait(
    api: Api, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr("service.webhooks.delivery.PAUSE_SECONDS", 0.1)
    monkeypatch.setattr("service.webhooks.subscriptions.FIRST_PAUSE_SECONDS", 0)
    webhook = await add(api, receiver, "kinds=events")
    receiver.status = status
    async with sending(api.store):
        ids = [(await api.event(f"Event {number}"))["id"] for number in range(3)]
        await comes(lambda: len(receiver.requests) >= 3)
        found = await Webhooks(api.store).find(webhook["_id"])
        assert found is not None
        assert found["problem"].startswith(f"status {status}")
        assert {json.loads(body)["data"]["id"] for _, body in receiver.requests} == {ids[0]}
        assert len({headers["webhook-id"] for headers, _ in receiver.requests}) == 1
        receiver.status = 204
        await comes(lambda: receiver.changes == [("events.created", id) for id in ids])

        async def is_healthy() -> bool:
            found = await Webhooks(api.store).find(webhook["_id"])
            return bool(found and found["problem"] == "" and found["failing_since"] is None)

        await until(is_healthy)


async def test_a_failure_in_the_middle_keeps_the_order_of_a_record(
    api: Api, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change is sent with the record as it is then, so a receiver never goes back to an earlier state."""
    monkeypatch.setattr("service.webhooks.delivery.PAUSE_SECONDS", 0.1)
    monkeypatch.setattr("service.webhooks.subscriptions.FIRST_PAUSE_SECONDS", 0)
    await add(api, receiver, "kinds=events")
    async with sending(api.store):
        event, other = (await api.event("Title 0"))["id"], (await api.event("Other"))["id"]
        await comes(lambda: len(receiver.messages) == 2)
        receiver.status = 503
        for number in (1, 2):
            await api.patch(f"/events/{event}", {"title": f"Title {number}"})
        await api.patch(f"/events/{other}", {"title": "Another"})
        await comes(lambda: len(receiver.requests) >= 5)
        receiver.status = 204
        await comes(lambda: len(receiver.messages) == 5)
    assert receiver.changes[2:] == [("events.changed", id) for id in (event, event, other)]
    titles = [one["data"]["record"]["title"] for one in receiver.messages if one["data"]["id"] == event]
    assert titles == sorted(titles)
    assert titles[-1] == "Title 2"
    accepted = list(dict.fromkeys(headers["webhook-id"] for headers, _ in receiver.requests))
    assert len(accepted) == 5


def test_pauses_grow_for_three_days() -> None:
    pauses = [pause_after(attempts) for attempts in range(40)]
    assert pauses[:3] == [timedelta(seconds=seconds) for seconds in (5, 10, 20)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == timedelta(hours=4)


async def test_it_is_paused_in_the_end_and_can_be_resumed(
    api: Api, receiver: Receiver, capsys: pytest.CaptureFixture[str], settings: Settings
) -> None:
    webhook = await add(api, receiver, "kinds=events")
    hooks, id = api.store.database["webhooks"], webhook["_id"]
    receiver.status = 500
    long_ago = api.store.site.now() - GIVE_UP_AFTER
    await hooks.update_one({"_id": id}, {"$set": {"failing_since": long_ago, "attempts": 30}})
    async with sending(api.store):
        event = (await api.event())["id"]

        async def is_paused() -> bool:
            found = await Webhooks(api.store).find(id)
            return bool(found and found["state"] == "paused")

        await until(is_paused)
        await commands.list_webhooks(settings)
        shown = capsys.readouterr().out
        assert f"paused; failing since {long_ago:%Y-%m-%d %H:%M}: status 500; " in shown
        assert f"`kalends webhook resume {id}`" in shown
        receiver.status = 204
        await commands.resume_webhook(settings, id)
        await api.event("Another")
        await comes(lambda: ("events.created", event) in receiver.changes)


async def test_expired_tokens_and_wrong_filters_pause_a_webhook(api: Api, receiver: Receiver) -> None:
    category = (await api.made("categories", name="Jazz"))["id"]
    wrong = await add(api, receiver, "categories=jazz")
    expired = await add(api, receiver)
    await api.delete(f"/categories/{category}")
    await api.store.database["webhooks"].update_one({"_id": expired["_id"]}, {"$set": {"since": "0abc-7"}})
    problems: dict[int, str] = {}

    async def are_paused() -> bool:
        found = await Webhooks(api.store).all()
        problems.update({one["_id"]: one["problem"] for one in found if one["state"] == "paused"})
        return len(problems) == 2

    async with sending(api.store):
        await api.event()
        await until(are_paused)
    assert problems[wrong["_id"]] == "categories: Category 'jazz' not found"
    assert "not kept any more" in problems[expired["_id"]]


async def paused(api: Api, number: int) -> None:
    """Until this many webhooks are paused."""

    async def are_paused() -> bool:
        return [one["state"] for one in await Webhooks(api.store).all()].count("paused") == number

    await until(are_paused)


async def test_it_continues_when_its_category_exists_again(
    api: Api, receiver: Receiver, capsys: pytest.CaptureFixture[str], settings: Settings
) -> None:
    category = (await api.made("categories", name="Jazz"))["id"]
    id = (await add(api, receiver, "kinds=events&categories=jazz"))["_id"]
    async with sending(api.store):
        await api.delete(f"/categories/{category}")
        await paused(api, 1)
        with pytest.raises(
            SettingError, match=f"webhook {id} cannot continue: categories: Category 'jazz' not"
        ):
            await commands.resume_webhook(settings, id)
        await api.made("categories", name="Jazz")
        event = (await api.event(categories=["jazz"]))["id"]
        await commands.resume_webhook(settings, id)
        await comes(lambda: receiver.changes == [("events.created", event)])
    await commands.list_webhooks(settings)
    assert "not found" not in capsys.readouterr().out


async def test_after_an_expired_token_it_continues_from_now(
    api: Api, receiver: Receiver, capsys: pytest.CaptureFixture[str], settings: Settings
) -> None:
    id = (await add(api, receiver, "kinds=events"))["_id"]
    await api.event("Not kept")
    await token_of(api)
    await api.store.database["changes"].delete_many({})
    async with sending(api.store):
        await paused(api, 1)
        await commands.list_webhooks(settings)
        shown = capsys.readouterr().out
        assert "changes that were to be sent next are not kept any more; " in shown
        assert f"`kalends webhook resume {id} --from-now`" in shown
        with pytest.raises(SettingError, match=f"webhook resume {id} --from-now"):
            await commands.resume_webhook(settings, id)
        await commands.resume_webhook(settings, id, from_now=True)
        await commands.list_webhooks(settings)
        assert "up to date" in capsys.readouterr().out
        event = (await api.event("New"))["id"]
        await comes(lambda: receiver.changes == [("events.created", event)])


async def test_two_processes_deliver_once_and_one_takes_over(
    pair: tuple[Api, Api], receiver: Receiver, mongodb_uri: str
) -> None:
    await add(pair[0], receiver, "kinds=events")
    ids = []
    async with open_store(mongodb_uri, pair[0].store.database.name, Site()) as third:
        async with sending(pair[0].store), sending(third):
            ids += [(await pair[at % 2].event(f"Event {at}"))["id"] for at in range(10)]
            await comes(lambda: len(receiver.messages) >= 10)
        async with sending(pair[1].store):
            ids.append((await pair[0].event("Last"))["id"])
            await comes(lambda: len(receiver.messages) >= 11)
    assert receiver.changes == [("events.created", id) for id in ids]


async def test_a_webhook_of_a_dead_process_is_taken_over(api: Api, receiver: Receiver) -> None:
    webhook = await add(api, receiver)
    held = {"holder": "dead", "held_until": api.store.site.now() + timedelta(minutes=1)}
    await api.store.database["webhooks"].update_one({"_id": webhook["_id"]}, {"$set": held})
    await api.event()
    assert await Webhooks(api.store).claim([], "") == []
    await release(api, webhook["_id"])
    async with sending(api.store):
        await comes(lambda: bool(receiver.messages))


@pytest.mark.slow
async def test_after_a_kill_the_last_message_comes_again(
    api: Api, receiver: Receiver, settings: Settings, tmp_path: Path
) -> None:
    """The process is killed after the second message has arrived, and before it notes that."""
    webhook = await add(api, receiver, "kinds=events")
    options = {"MONGODB_URI": settings.mongodb_uri, "DATABASE": settings.database}
    options["WEBHOOK_NETWORKS"] = "127.0.0.0/8"
    async with running(tmp_path / "first", **options) as first:
        receiver.kill_at, receiver.kills = 2, first.process.kill
        ids = [(await api.event(f"Event {number}"))["id"] for number in range(3)]
        assert await first.end() == -signal.SIGKILL
    await release(api, webhook["_id"])
    async with running(tmp_path / "second", **options):
        await comes(lambda: len(receiver.messages) >= 4)
    assert receiver.changes == [("events.created", ids[number]) for number in (0, 1, 1, 2)]
    sent = [headers["webhook-id"] for headers, _ in receiver.requests]
    assert sent[1] == sent[2]
    assert len(set(sent)) == 3
    for headers, body in receiver.requests:
        Verifier(webhook["secret"]).verify(body, dict(headers))


async def release(api: Api, id: int) -> None:
    """As if the lease of a dead process had run out."""
    await api.store.database["webhooks"].update_one({"_id": id}, {"$set": {"held_until": EPOCH}})


async def test_a_removed_webhook_gets_nothing_more(api: Api, receiver: Receiver, settings: Settings) -> None:
    gone, kept = await add(api, receiver), await add(api, receiver)
    await commands.remove_webhook(settings, gone["_id"])
    async with sending(api.store):
        await api.event()
        await comes(lambda: bool(receiver.messages))
    assert [headers["webhook-id"].partition(".")[0] for headers, _ in receiver.requests] == [str(kept["_id"])]


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1"),
        *("100.64.0.1", "::1", "fe80::1", "fd00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "ff02::1", "::"),
        *("１２７.0.0.1", "127。0。0。1", "①27.0.0.1", "fec0::1", "64:ff9b:1::7f00:1", "2002:7f00:1::"),
        *("::7f00:1", "::ffff:0:7f00:1", "192.0.0.8", "192.88.99.1", "5f00::1"),
    ],
)
def test_private_addresses_are_refused(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(AddressRefused):
        check_url(f"http://{host}/hook", ())
    check_address("8.8.8.8", ())
    check_address("2001:4860:4860::8888", ())
    check_url(f"http://{host}/hook", (ip_network("0.0.0.0/0"), ip_network("::/0")))


@pytest.mark.parametrize("host", ["localhost", "2130706433", "0x7f.1", "127.1"])
async def test_names_of_private_addresses_are_refused(host: str) -> None:
    with pytest.raises(AddressRefused):
        await GuardedResolver(()).resolve(host)


async def test_nothing_is_sent_to_a_private_address(api: Api, receiver: Receiver) -> None:
    await add(api, receiver)
    settings = Settings()
    async with delivering(api.store, create_app(settings, api.store)[CHANGES], settings):
        await api.event()

        async def is_refused() -> bool:
            return "private address" in (await Webhooks(api.store).all())[0]["problem"]

        await until(is_refused)
    assert receiver.requests == []


@pytest.fixture
def settings(store: Store, mongodb_uri: str) -> Settings:
    return replace(Settings(), mongodb_uri=mongodb_uri, database=store.database.name, webhook_networks=LOCAL)


async def test_the_command_line(
    api: Api, receiver: Receiver, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    await api.made("categories", name="Jazz")
    filters = ["categories=jazz", "featured=true"]
    await commands.add_webhook(settings, receiver.url, "events", filters, unpublished=True)
    secret = capsys.readouterr().out.strip()
    assert await commands.test_webhook(settings, 1) == 0
    headers, body = receiver.requests[0]
    assert Verifier(secret).verify(body, dict(headers))["type"] == "test"
    receiver.status = 418
    assert await commands.test_webhook(settings, 1) == 1
    assert "status 418" in capsys.readouterr().out
    await commands.list_webhooks(settings)
    shown = capsys.readouterr().out
    assert "kinds=events&categories=jazz&featured=true (also unpublished)" in shown
    assert secret not in shown
    assert "up to date" in shown


Command = Callable[[Settings], Awaitable[Any]]
REFUSED: list[tuple[Command, str]] = [
    (lambda s: commands.add_webhook(s, "ftp://example.org", "", [], unpublished=False), "such as https://"),
    (lambda s: commands.add_webhook(s, "http://u:p@127.0.0.1/", "", [], unpublished=False), "a user name"),
    (lambda s: commands.add_webhook(s, "http://10.0.0.1/", "", [], unpublished=False), "private address"),
    (lambda s: commands.add_webhook(s, "http://127.0.0.1/", "cats", [], unpublished=False), "kinds: Must be"),
    (
        lambda s: commands.add_webhook(s, "http://127.0.0.1/", "", ["tags=none"], unpublished=False),
        "tags: Tag 'none' not found.",
    ),
    (lambda s: commands.add_webhook(s, "http://127.0.0.1/", "", ["jazz"], unpublished=False), "--filter"),
    (lambda s: commands.add_webhook(s, "http://127.0.0.1/", "", ["a=b"], unpublished=False), "--filter"),
    (lambda s: commands.test_webhook(s, 9), "no webhook 9"),
    (lambda s: commands.resume_webhook(s, 9), "no webhook 9"),
    (lambda s: commands.remove_webhook(s, 9), "no webhook 9"),
]


@pytest.mark.parametrize(("command", "message"), REFUSED)
async def test_what_the_command_line_refuses(settings: Settings, command: Command, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        await command(settings)


async def test_a_hanging_endpoint_does_not_delay_others(
    api: Api, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, release = Receiver(), asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        await release.wait()
        return web.Response()

    app = web.Application()
    app.router.add_post("/hook", hang)
    async with TestServer(app) as server:
        slow.url = str(server.make_url("/hook"))
        await add(api, slow)
        await add(api, receiver)
        async with sending(api.store):
            await api.event()
            await comes(lambda: bool(receiver.messages))
        release.set()


async def test_an_outage_of_the_database_is_logged_without_a_traceback(
    api: Api, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("service.webhooks.delivery.PAUSE_SECONDS", 0.1)
    await add(api, receiver)
    checkpoint, outages = api.store.log.checkpoint, [AutoReconnect("down"), AutoReconnect("down")]

    async def fails() -> Any:
        current = asyncio.current_task()
        is_delivering = current is not None and "_deliver_or_log" in repr(current.get_coro())
        if outages and is_delivering:
            raise outages.pop()
        return await checkpoint()

    monkeypatch.setattr(api.store.log, "checkpoint", fails)
    async with sending(api.store):
        await api.event()
        await comes(lambda: bool(receiver.messages))
    assert outages == []
    said = [one for one in caplog.records if one.name == "kalends.webhooks" and one.levelname != "INFO"]
    assert {(one.levelname, one.exc_info) for one in said} == {("WARNING", None)}


async def test_a_receiver_may_have_an_ipv6_address_only(monkeypatch: pytest.MonkeyPatch) -> None:
    families: list[int] = []

    async def resolve(resolver: Any, host: str, port: int = 0, family: int = socket.AF_INET) -> list[Any]:
        families.append(family)
        return []

    monkeypatch.setattr(ThreadedResolver, "resolve", resolve)
    await commands.check_target("https://six.example.org/", ())
    assert families == [socket.AF_UNSPEC]
