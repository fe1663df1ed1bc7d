"""The options of `kalends import`."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from datetime import date, timedelta
from getpass import getpass

from config import SettingError
from schemas import EVENT, KINDS
from service.commands.import_values import column_mapping, date_format, day
from service.commands.parser import Parser
from service.imports.options import ImportOptions

PASSWORD_VARIABLE = "IMPORT_PASSWORD"  # noqa: S105 - not the password itself
YEAR = timedelta(days=365)


def add_import_options(importing: Parser) -> None:
    importing.add_argument(
        "source",
        metavar="SOURCE",
        help="a file (NDJSON, iCalendar or CSV), - for standard input, the address of such a file, or the "
        "address of a site, such as https://example.org",
    )
    importing.add_argument(
        "--dry-run", action="store_true", help="show what would be imported; write nothing"
    )
    importing.add_argument(
        "--user",
        default="",
        metavar="NAME",
        help="user name at the site, to import unpublished records, too; the password is read from "
        f"{PASSWORD_VARIABLE} or asked for",
    )
    importing.add_argument(
        "--author", type=int, default=0, metavar="ID", help="author of records that have none (default: 0)"
    )
    _add_calendar_options(importing)
    _add_csv_options(importing)
    _add_ndjson_options(importing)


def _add_calendar_options(importing: Parser) -> None:
    group = importing.add_argument_group("iCalendar")
    group.add_argument(
        "--since",
        type=day,
        default=date.today() - YEAR,
        metavar="DATE",
        help="first day on which occurrences of recurring events are imported (default: a year ago)",
    )
    group.add_argument(
        "--until",
        type=day,
        default=date.today() + 2 * YEAR,
        metavar="DATE",
        help="day before which occurrences of recurring events are imported (default: in two years)",
    )


def _add_csv_options(importing: Parser) -> None:
    group = importing.add_argument_group("CSV")
    group.add_argument(
        "--map",
        type=column_mapping,
        action="append",
        default=[],
        metavar="NAME=COLUMN",
        help='treat the column NAME of the file as COLUMN, such as "Titel=Event Name"; can be repeated',
    )
    group.add_argument(
        "--date-format",
        type=date_format,
        default="",
        metavar="FORMAT",
        help="format of dates other than 2027-06-30, such as %%d.%%m.%%Y or %%m/%%d/%%Y",
    )


def _add_ndjson_options(importing: Parser) -> None:
    group = importing.add_argument_group("NDJSON")
    plurals = [kind.plural for kind in KINDS]
    group.add_argument(
        "--kind",
        choices=plurals,
        default=EVENT.plural,
        help=f"kind of the records: {', '.join(plurals)} (default: events)",
        metavar="KIND",
    )
    group.add_argument(
        "--ignore-unknown-fields",
        action="store_true",
        help="leave out unknown fields instead of refusing the records that have them",
    )


def import_options(arguments: Namespace) -> ImportOptions:
    if arguments.since >= arguments.until:
        raise SettingError("--since must be before --until")
    return ImportOptions(
        arguments.source,
        arguments.kind,
        arguments.author,
        arguments.ignore_unknown_fields,
        arguments.dry_run,
        arguments.user,
        read_password(arguments.user) if arguments.user else "",
        dict(arguments.map),
        arguments.date_format,
        arguments.since,
        arguments.until,
    )


def read_password(user: str) -> str:
    if password := os.environ.get(PASSWORD_VARIABLE):
        return password
    if not sys.stdin.isatty():
        raise SettingError(f"--user needs a password: set the variable {PASSWORD_VARIABLE}")
    return getpass(f"Password of {user}: ")
