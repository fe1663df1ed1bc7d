"""Connections on which the driver refuses sessions: those that it opened to a member that was about to step
down, and keeps when the member is primary again."""

from __future__ import annotations

from typing import Any

import pytest
from pymongo.errors import ConfigurationError
from pymongo.synchronous.client_session import ClientSession

from service.mongo.client import in_transaction
from tests.checker import differences
from tests.conftest import Api
from tests.samples import TIMES

BODY = {"title": "Concert", "venue": {"venue": "Hall"}, "tags": ["Rock"], **TIMES}


def refuse_all(api: Api) -> None:
    """Have the driver refuse sessions on all connections that it keeps."""
    for server in api.store.client.delegate._topology._servers.values():
        for connection in server.pool.conns:
            connection.supports_sessions = False


@pytest.fixture
def refused(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Refuse sessions on the connection that the first command with the name `param` is to be sent on."""
    names, apply_to = [request.param], ClientSession._apply_to

    def refuse(session: Any, command: Any, is_retryable: bool, preference: Any, connection: Any) -> Any:
        if next(iter(command)) in names and session.in_transaction:
            names.clear()
            connection.supports_sessions = False
        return apply_to(session, command, is_retryable, preference, connection)

    monkeypatch.setattr(ClientSession, "_apply_to", refuse)
    return names


async def test_a_transaction_is_stored_with_new_connections(api: Api) -> None:
    await api.event("Other")
    refuse_all(api)
    assert (await api.post("/events", BODY))[0] == 201
    assert await differences(api.store) == []


@pytest.mark.parametrize("refused", ["insert", "commitTransaction"], indirect=True)
async def test_a_transaction_whose_session_is_refused_on_the_way_is_stored_once(
    api: Api, refused: list[str]
) -> None:
    status, event = await api.post("/events", BODY)
    assert (status, refused) == (201, [])
    assert await api.ids("events") == [event["id"]]
    assert await api.ids("venues") == [event["venue"]["id"]]
    assert await differences(api.store) == []


@pytest.mark.parametrize("refused", ["abortTransaction"], indirect=True)
async def test_a_transaction_that_could_not_be_aborted_fails_with_its_own_error(
    api: Api, refused: list[str]
) -> None:
    async def work(session: Any) -> None:
        await api.store.database["meta"].insert_one({"_id": "test"}, session=session)
        raise ValueError

    with pytest.raises(ValueError):
        await in_transaction(api.store.database, work)
    assert refused == []
    assert await api.store.database["meta"].find_one({"_id": "test"}) is None


async def test_a_feed_is_read_again_with_new_connections(api: Api) -> None:
    await api.event("Concert")
    refuse_all(api)
    assert [(await api.get("/events.csv"))[0] for _ in range(2)] == [503, 200]


async def test_without_new_connections_a_transaction_fails_for_ever(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this fails, the driver accepts sessions again, and new connections are not needed any more."""
    monkeypatch.setattr("service.mongo.client.replace_connections", lambda client: None)
    monkeypatch.setattr("service.mongo.client.MAX_TRANSACTION_SECONDS", 0.1)
    await api.event("Other")
    refuse_all(api)

    async def work(session: Any) -> None:
        await api.store.database["meta"].find_one({}, session=session)

    with pytest.raises(ConfigurationError):
        await in_transaction(api.store.database, work)
