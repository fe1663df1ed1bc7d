"""Command line of the benchmarks: `make bench`, or `python -m benchmarks`."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.report import machine
from benchmarks.report.plot import draw
from benchmarks.report.table import comparison_table, target_table
from benchmarks.report.targets import judged
from benchmarks.run import TITLES, Bench
from benchmarks.running import ROOT
from benchmarks.shared import shared_database

RESULTS = ROOT / "benchmarks" / "results"


def parser() -> argparse.ArgumentParser:
    main = argparse.ArgumentParser("benchmarks", description="Compare Kalends with its limits and its peers.")
    main.add_argument("--events", type=int, default=20_000, help="number of events in the database")
    main.add_argument("--seconds", type=float, default=3, help="duration of one measurement")
    main.add_argument("--rounds", type=int, default=3, help="number of measurements; the median is reported")
    main.add_argument("--only", default="", help="workloads to run, comma-separated")
    main.add_argument("--skip", default="", help="workloads not to run, comma-separated")
    main.add_argument(
        "--readers",
        choices=("open", "public"),
        default="open",
        help="what readers see: open (all but the trash) or public",
    )
    main.add_argument("--connections", type=int, default=32, help="number of concurrent connections")
    main.add_argument("--python", default=str(ROOT / ".venv/bin/python"), help="Python that runs Kalends")
    main.add_argument("--compare", nargs=2, type=Path, metavar="RESULT", help="compare two results and exit")
    return main


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    with ExitStack() as stack:
        public = arguments.readers == "public"
        shared = stack.enter_context(shared_database(arguments.python, arguments.events, public))
        found = stack.enter_context(Bench(arguments, shared)).run()
        mongodb = shared.database.client.server_info()["version"]
        return {
            "events": arguments.events,
            "seconds": arguments.seconds,
            "rounds": arguments.rounds,
            "readers": arguments.readers,
            "machine": machine.facts(shared.facts.versions, mongodb),
            "titles": TITLES,
            "workloads": found,
            "targets": judged(found),
        }


def keep(result: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    readers = "" if result["readers"] == "open" else f"-{result['readers']}"
    path = RESULTS / f"{result['events']}{readers}.json"
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    draw(result, path.with_suffix(".png"))
    print(f"\nWritten: {path.relative_to(ROOT)} and {path.with_suffix('.png').relative_to(ROOT)}")


def failed(load: dict[str, Any]) -> bool:
    return any(one["errors"] for one in load["systems"].values())


def main() -> None:
    arguments = parser().parse_args()
    # Exiting this way runs the context managers, which stop the child processes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if arguments.compare:
        print(comparison_table(*(json.loads(path.read_text()) for path in arguments.compare)))
        return
    result = run(arguments)
    print(target_table(result["targets"]))
    if arguments.only:
        print("\nResults not saved: only some of the workloads were measured.")
    else:
        keep(result)
    broken = [load["title"] for load in result["workloads"].values() if failed(load)]
    if broken:
        sys.exit(f"Errors in: {', '.join(broken)}")


if __name__ == "__main__":
    main()
