"""The command line: `kalends`, or `python -m service`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Coroutine, Iterable
from typing import Any

import uvloop
from pymongo.errors import PyMongoError

from config import FIELDS, SettingError, Settings, read_settings
from config.logs import configure
from schemas import EVENT, KINDS
from schemas.caller import Role
from service.demo import fill
from service.embedded import EmbeddedError
from service.importing import import_file
from service.serve import WorkersEnded, opened, serve

EPILOG = "Every setting can also be given as a variable, such as KALENDS_PORT=9000; flags win."
WHERE_DATA_IS = ("mongodb_uri", "database", "data_dir", "log_level")
"""Settings of the commands that do not serve."""
SITE = ("timezone", "currency_symbol", "currency_code", "currency_position", "max_body")
"""Settings that decide what is made of a record that comes in."""


def parser() -> argparse.ArgumentParser:
    main = argparse.ArgumentParser("kalends", description="A calendar-events service.", epilog=EPILOG)
    commands = main.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serving = _command(
        commands, "serve", "serve the API, with an embedded MongoDB unless one is named", FIELDS
    )
    serving.add_argument("--demo", action="store_true", help="fill an empty database with a season of events")
    _command(commands, "demo", "fill an empty database with a season of events")
    importing = _command(
        commands,
        "import",
        "import records from a file with one JSON object on each line",
        (*WHERE_DATA_IS, *SITE),
    )
    importing.add_argument("file", metavar="FILE", help="the file; - for the standard input")
    plurals = [kind.plural for kind in KINDS]
    importing.add_argument(
        "--kind", choices=plurals, default=EVENT.plural, help="what the lines are (default events)"
    )
    importing.add_argument(
        "--author", type=int, default=0, metavar="ID", help="author of records that name none (default 0)"
    )
    token = commands.add_parser("token", help="make, list and revoke access tokens")
    actions = token.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = _command(actions, "create", "make a token; it is printed once, as the last line")
    create.add_argument("--role", required=True, choices=[role.value for role in Role], help="what it may do")
    create.add_argument("--name", required=True, help="whose it is")
    _command(actions, "list", "list the tokens")
    revoke = _command(actions, "revoke", "revoke a token; it stops working within seconds")
    revoke.add_argument("id", type=int, help="its number in the list")
    return main


def _command(
    commands: Any, name: str, help: str, settings: Iterable[str] = WHERE_DATA_IS
) -> argparse.ArgumentParser:
    """A command that takes settings as flags."""
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=help, description=help[0].upper() + help[1:] + ".", epilog=EPILOG
    )
    for one in (FIELDS[name] for name in settings):
        default = f" (default {one.default})" if str(one.default) and one.default != () else ""
        flag = "--" + one.name.replace("_", "-")
        command.add_argument(flag, metavar="VALUE", help=str(one.metadata["help"]) + default)
    return command


async def make_token(settings: Settings, role: str, name: str) -> None:
    async with opened(settings) as store:
        print(await store.tokens.create(name, Role(role)))


async def list_tokens(settings: Settings) -> None:
    async with opened(settings) as store:
        for token in await store.tokens.list():
            print(f"{token['_id']:>6}  {token['role']:<12} {token['name']}")


async def revoke_token(settings: Settings, id: int) -> None:
    async with opened(settings) as store:
        if not await store.tokens.revoke(id):
            raise SettingError(f"there is no token {id}")
        print(f"Token {id} is revoked.")


async def fill_demo(settings: Settings) -> None:
    async with opened(settings) as store:
        made = await fill(store)
        print(f"{made} events made." if made else "There are events already; nothing was changed.")


def work(arguments: argparse.Namespace, settings: Settings) -> Coroutine[Any, Any, int | None]:
    """What the command does; it answers its exit status, or nothing for success."""
    if arguments.command == "serve":
        return serve(settings, demo=arguments.demo)
    if arguments.command == "demo":
        return fill_demo(settings)
    if arguments.command == "import":
        return import_file(settings, arguments.file, arguments.kind, arguments.author)
    if arguments.action == "create":
        return make_token(settings, arguments.role, arguments.name)
    return list_tokens(settings) if arguments.action == "list" else revoke_token(settings, arguments.id)


def main() -> None:
    arguments = parser().parse_args()
    try:
        settings = read_settings(os.environ, {name: getattr(arguments, name, None) for name in FIELDS})
        configure(settings.log_level, settings.log_format)
        sys.exit(uvloop.run(work(arguments, settings)))
    except SettingError as error:
        sys.exit(failed(str(error), 2))
    except KeyboardInterrupt:
        sys.exit(failed("stopped", 130))
    except (EmbeddedError, WorkersEnded) as error:
        sys.exit(failed(str(error), 1))
    except PyMongoError as error:
        sys.exit(failed(f"MongoDB cannot be used: {str(error).partition(', Timeout:')[0]}", 1))


def failed(line: str, status: int) -> int:
    """One line that says why, and the exit status."""
    print(f"kalends: {line}", file=sys.stderr)
    return status


if __name__ == "__main__":
    main()
