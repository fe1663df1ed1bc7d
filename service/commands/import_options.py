"""The options of `kalends import`."""

from __future__ import annotations

import os
import re
import sys
from argparse import ArgumentTypeError, Namespace
from datetime import date, datetime, timedelta
from getpass import getpass

from config import SettingError
from schemas import EVENT, KINDS
from service.commands.parser import Parser, nearest
from service.imports.csv.columns import KNOWN
from service.imports.options import ImportOptions

PASSWORD_VARIABLE = "IMPORT_PASSWORD"  # noqa: S105 - not the password itself
YEAR = timedelta(days=365)
EXAMPLE = date(2027, 6, 30)


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
        help='a column with another name, such as "Titel=Event Name"; can be repeated',
    )
    group.add_argument(
        "--date-format",
        type=date_format,
        default="",
        metavar="FORMAT",
        help="form of dates other than 2027-06-30, such as %%d.%%m.%%Y or %%m/%%d/%%Y",
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


def day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"must be a date such as 2027-06-30, not {text!r}") from None


def date_format(text: str) -> str:
    """A form of dates in which a date is written and read again unchanged; the default is none."""
    try:
        is_complete = datetime.strptime(EXAMPLE.strftime(text), text).date() == EXAMPLE
    except (ValueError, re.error):  # of regular expressions if a part is there twice
        is_complete = False
    if text and not is_complete:
        raise ArgumentTypeError(
            f"must be a form with day, month and year, each once, such as %d.%m.%Y, not {text!r}"
        )
    return text


def column_mapping(text: str) -> tuple[str, str]:
    """The name of a column in the file, and the known column that it is."""
    name, _, column = text.rpartition("=")
    if not name.strip() or column.strip().casefold() not in KNOWN:
        raise ArgumentTypeError(
            f"must be NAME=COLUMN with a known column such as Event Name, not {text!r}"
            f"{nearest(column.strip(), KNOWN.values())}"
        )
    return name.strip(), column.strip()


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
