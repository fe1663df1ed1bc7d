"""The command line: `kalends`, or `python -m service`."""

from __future__ import annotations

import os
import signal

if os.getpid() == 1:  # in a container the kernel drops signals without a handler, also during the imports
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))

import argparse
import asyncio
import errno
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import uvloop
from pymongo.errors import PyMongoError

from config import FIELDS, SettingError, Settings, read_settings
from config.logs import configure
from schemas.errors import UnderRestore
from service.backup.dumping import DumpOptions, dump_database
from service.backup.format import BackupError
from service.backup.restore_command import RestoreOptions, restore_database
from service.changes.restores import RestoreUnderWay
from service.commands.arguments import parser
from service.commands.import_options import import_options
from service.commands.migrating import migrate_database
from service.commands.tokens import token_command
from service.commands.webhooks import webhook_command
from service.database import located
from service.demo.filling import fill_demo
from service.doctor.command import check_database
from service.embedded import EmbeddedError
from service.exporting import export_records
from service.failures import brief
from service.imports.command import import_source
from service.imports.item import SourceError
from service.migrations import DatabaseTooNew, FormUnknown
from service.process.serve import WorkersEnded, serve
from service.site import site_of

FAILURES = (
    *(EmbeddedError, WorkersEnded, DatabaseTooNew, FormUnknown, SourceError),
    *(BackupError, RestoreUnderWay, UnderRestore),
)
"""What a command may fail with; the message is one line for the operator."""
UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Why a file cannot be written, mostly standard output, though there is nothing wrong with the command."""


async def demo(settings: Settings) -> None:
    async with located(settings) as location:
        await fill_demo(location, site_of(settings))


def work(arguments: argparse.Namespace, settings: Settings) -> Coroutine[Any, Any, int | None]:
    """The coroutine of a command; it returns the exit status, or None for success."""
    commands: dict[str, Callable[[], Coroutine[Any, Any, int | None]]] = {
        "serve": lambda: serve(settings, demo=arguments.demo),
        "demo": lambda: demo(settings),
        "migrate": lambda: migrate_database(settings),
        "import": lambda: import_source(settings, import_options(arguments)),
        "export": lambda: export_records(settings, arguments.format),
        "doctor": lambda: check_database(settings, repairs=arguments.repair),
        "dump": lambda: dump_database(
            settings, DumpOptions(arguments.file, arguments.force, arguments.with_tokens)
        ),
        "restore": lambda: restore_database(settings, RestoreOptions(arguments.file, arguments.replace)),
        "token": lambda: token_command(arguments, settings),
        "webhook": lambda: webhook_command(arguments, settings),
    }
    return commands[arguments.command]()


def main() -> None:
    arguments = parser().parse_args()
    if arguments.help:  # no command, or a group without an action
        arguments.help()
        sys.exit(0)
    try:
        settings = read_settings(os.environ, {name: getattr(arguments, name, None) for name in FIELDS})
        configure(settings.log_level, settings.log_format)
        status = uvloop.run(work(arguments, settings))
        if sys.stdout:  # what is buffered may be what does not fit on the disk
            sys.stdout.flush()
        sys.exit(status)
    except SettingError as error:
        sys.exit(failed(str(error), 2))
    except KeyboardInterrupt:
        sys.exit(failed("stopped", 130))
    except asyncio.CancelledError:
        sys.exit(failed("stopped", 143))
    except FAILURES as error:
        sys.exit(failed(str(error), 1))
    except PyMongoError as error:
        sys.exit(failed(f"MongoDB cannot be used: {brief(error)}", 1))
    except BrokenPipeError:  # as in `kalends export | head`
        discard_output()
        sys.exit(1)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        discard_output()
        sys.exit(failed(f"cannot write {error.filename or 'the output'}: {error.strerror}", 1))


def discard_output() -> None:
    """Have the interpreter not fail again to write what is buffered when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def failed(line: str, status: int) -> int:
    """Print the reason in one line and return the exit status."""
    print(f"kalends: {line}", file=sys.stderr)
    return status


if __name__ == "__main__":
    main()
