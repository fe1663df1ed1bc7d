"""The commands of `kalends`, with their options and help."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import Field
from typing import Any

from config import FIELDS
from config.version import VERSION
from schemas.caller import Role
from service.commands.import_options import add_import_options
from service.commands.parser import Parser
from service.commands.tokens import EXPIRY, expiry, number_from, token_name
from service.doctor.checks import CHECKS

EPILOG = (
    "Every setting can also be given as an environment variable: --port 9000 is KALENDS_PORT=9000. "
    "An option overrides the variable."
)
DATABASE_SETTINGS = ("mongodb_uri", "database", "data_dir", "log_level")
"""Settings that every command accepts; `serve` accepts all settings."""
CURRENCY_SETTINGS = ("currency_symbol", "currency_code", "currency_position")
SITE_SETTINGS = ("timezone", *CURRENCY_SETTINGS, "max_body")
"""Settings that affect how imported records are parsed."""


def parser() -> Parser:
    main = Parser("kalends", description="Kalends, a calendar-events service.", epilog=EPILOG)
    main.add_argument("--version", action="version", version=f"kalends {VERSION}")
    main.set_defaults(help=main.print_help)
    commands = main.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    serving = _command(
        commands,
        "serve",
        "serve the API, with an embedded MongoDB unless --mongodb-uri names your own",
        FIELDS,
    )
    serving.add_argument("--demo", action="store_true", help="fill an empty database with example events")
    filled = (*DATABASE_SETTINGS, "port", "base_url")
    _command(commands, "demo", "fill an empty database with example events", filled)
    _command(commands, "migrate", "upgrade the database to the stored form of this version")
    _add_import(commands)
    _add_export(commands)
    _add_doctor(commands)
    _add_dump(commands)
    _add_restore(commands)
    _add_token(commands)
    _add_webhook(commands)
    return main


def _add_import(commands: Any) -> None:
    what = "import records from a file, the address of a calendar, or a site of The Events Calendar"
    add_import_options(_command(commands, "import", what, (*DATABASE_SETTINGS, *SITE_SETTINGS)))


def _add_export(commands: Any) -> None:
    what = "write all records to standard output, in a form that `kalends import` reads"
    exporting = _command(commands, "export", what, (*DATABASE_SETTINGS, "base_url", "timezone"))
    exporting.add_argument(
        "--format",
        choices=["ndjson", "ics"],
        default="ndjson",
        metavar="FORMAT",
        help="ndjson: everything; ics: the published events as iCalendar (default: ndjson)",
    )


def _add_doctor(commands: Any) -> None:
    settings = (*DATABASE_SETTINGS, "timezone", *CURRENCY_SETTINGS, "changes_days")
    what = "check the database, beside a running service or without one, and print a line for each finding"
    checking = _command(commands, "doctor", what, settings)
    checking.add_argument("--repair", action="store_true", help="repair what was found")
    for check in CHECKS:
        checking.add_argument_group(f"check of {check.name}", check.about)


def _add_dump(commands: Any) -> None:
    dumping = _command(commands, "dump", "write the whole database, as it is at one moment, to a file")
    dumping.add_argument("file", metavar="FILE", help="the file to write; - for standard output")
    dumping.add_argument("--force", action="store_true", help="overwrite FILE if it exists")
    dumping.add_argument(
        "--with-tokens",
        action="store_true",
        help="include access tokens (as digests) and webhooks (with their secrets)",
    )


def _add_restore(commands: Any) -> None:
    restoring = _command(
        commands, "restore", "restore a file written by `kalends dump` into an empty database"
    )
    restoring.add_argument("file", metavar="FILE", help="the file to read")
    restoring.add_argument(
        "--replace", action="store_true", help="replace everything in a database that is not empty"
    )


def _add_token(commands: Any) -> None:
    actions = _group(commands, "token", "create, list and revoke access tokens")
    create = _command(actions, "create", "create a token and print it; it cannot be shown again")
    roles = [role.value for role in Role]
    create.add_argument(
        "--role",
        required=True,
        choices=roles,
        metavar="ROLE",
        help=f"what the token may do: {', '.join(roles)}",
    )
    create.add_argument(
        "--name", required=True, type=token_name, help="who uses the token, to recognize it in the list"
    )
    create.add_argument(
        "--expires", type=expiry, metavar="WHEN", help=f"{EXPIRY} (UTC, end of the day); default: never"
    )
    _command(actions, "list", "list the tokens with their role, last use and expiry")
    revoke = _command(actions, "revoke", "revoke a token; it stops working within seconds")
    revoke.add_argument(
        "id",
        type=number_from("token"),
        metavar="ID",
        help="number of the token, as `kalends token list` shows",
    )


def _add_webhook(commands: Any) -> None:
    actions = _group(commands, "webhook", "add, list, test, resume and remove webhooks")
    settings = (*DATABASE_SETTINGS, "webhook_networks")
    add = _command(actions, "add", "send changes to an address from now on, and print the secret", settings)
    add.add_argument("url", metavar="URL", help="the address, such as https://example.org/hook")
    add.add_argument("--kinds", default="", help="only changes to these kinds, such as events,venues")
    add.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="only events that match this filter of the event list, such as categories=jazz; can be repeated",
    )
    add.add_argument("--unpublished", action="store_true", help="also send records that are not public")
    _command(actions, "list", "list the webhooks with their state")
    for name, help in (
        ("test", "send a test message to a webhook"),
        ("resume", "resume sending to a paused webhook"),
        ("remove", "remove a webhook"),
    ):
        one = _command(actions, name, help, settings if name == "test" else DATABASE_SETTINGS)
        one.add_argument(
            "id",
            type=number_from("webhook"),
            metavar="ID",
            help="number of the webhook, as `kalends webhook list` shows",
        )
        if name == "resume":
            what = "skip all changes up to now, for example because they are no longer kept"
            one.add_argument("--from-now", action="store_true", help=what)


def _group(commands: Any, name: str, help: str) -> Any:
    """A command that has actions."""
    group = commands.add_parser(name, help=help, description=_sentence(help))
    group.set_defaults(help=group.print_help)
    return group.add_subparsers(dest="action", metavar="ACTION", title="actions")


def _command(commands: Any, name: str, help: str, settings: Iterable[str] = DATABASE_SETTINGS) -> Parser:
    """A command that takes settings as options."""
    command: Parser = commands.add_parser(name, help=help, description=_sentence(help), epilog=EPILOG)
    command.set_defaults(help=None)
    group = command.add_argument_group("settings")
    for one in (FIELDS[name] for name in settings):
        group.add_argument("--" + one.name.replace("_", "-"), metavar="VALUE", help=_help(one))
    return command


def _help(one: Field[Any]) -> str:
    default = one.metadata["unset"] or (one.default if one.default != () else "")
    if isinstance(default, tuple):
        default = ",".join(default)
    return f"{one.metadata['help']}" + (f" (default: {default})" if str(default) else "")


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."
