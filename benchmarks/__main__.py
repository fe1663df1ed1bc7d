"""Command line of the benchmarks: `make bench`, or `python -m benchmarks`."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.measure import Meter, measure
from benchmarks.plot import draw
from benchmarks.prepare import agree, look_at_answers, look_at_data, make_collections
from benchmarks.shared import Shared, shared_database
from benchmarks.systems import ROOT, SYSTEMS, TWO, Running, System, running
from benchmarks.table import comparison_table, target_table, workload_table
from benchmarks.targets import judged
from benchmarks.workloads import Asking, Workload, workloads

RESULTS = ROOT / "benchmarks" / "results"
TITLES = {one.key: one.title for one in (*SYSTEMS, TWO)}
FAN_OUT = "Peers: not measured. They do not update copies, so renaming a venue changes no event."
NOTES = {
    "search": ["Peers: a regular expression, since neither has an index for parts of words."],
    "fanout": [FAN_OUT, "One connection: the next change is sent when all events show the previous one."],
    "workers": ["On two cores the second process shares a core with mongod and the load generator."],
}


def parser() -> argparse.ArgumentParser:
    main = argparse.ArgumentParser("benchmarks", description="Compare Kalends with its limits and its peers.")
    main.add_argument("--events", type=int, default=20_000, help="number of events in the database")
    main.add_argument("--seconds", type=float, default=3, help="duration of one measurement")
    main.add_argument("--rounds", type=int, default=3, help="number of measurements; the median is reported")
    main.add_argument("--only", default="", help="workloads to run, comma-separated")
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


class Bench:
    """One run of the benchmarks."""

    def __init__(self, arguments: argparse.Namespace, shared: Shared, stack: ExitStack) -> None:
        self._arguments = arguments
        self._shared = shared
        self._stack = stack
        self._meter = Meter(shared.database)
        self._asking = Asking(shared.facts)

    def chosen(self) -> list[Workload]:
        known = workloads(self._asking, self._shared.facts)
        only = set(filter(None, self._arguments.only.split(",")))
        if unknown := only - {load.name for load in known}:
            sys.exit(
                f"ONLY: unknown: {', '.join(unknown)}; workloads: {', '.join(load.name for load in known)}"
            )
        return [load for load in known if not only or load.name in only]

    def start(self, system: System, stack: ExitStack) -> Running:
        shared = self._shared
        return stack.enter_context(
            running(system, self._arguments.python, shared.uri, shared.name, shared.facts)
        )

    def run(self) -> dict[str, Any]:
        loads, shared = self.chosen(), self._shared
        look_at_data(shared.database, shared.facts)
        systems = [self.start(system, self._stack) for system in SYSTEMS]
        look_at_answers(systems[0], loads, shared.facts, lists=True)
        agree(systems, shared.facts)
        look_at_answers(systems[0], loads, shared.facts, lists=False)
        make_collections(shared.database, self._asking.ids, shared.facts)
        self._meter.find_idle()
        return {load.name: self.measured(load, systems) for load in loads}

    def measured(self, load: Workload, systems: list[Running]) -> dict[str, Any]:
        given = self._arguments
        with ExitStack() as stack:
            taking_part = [systems[0], self.start(TWO, stack)] if load.two else systems
            connections = load.connections or given.connections
            found = measure(taking_part, load, connections, given.seconds, given.rounds, self._meter)
        shown = {"title": load.title, "notes": NOTES.get(load.name, [])}
        shown["systems"] = found
        print(workload_table(shown, TITLES), flush=True)
        return shown


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    with ExitStack() as stack:
        public = arguments.readers == "public"
        shared = stack.enter_context(shared_database(arguments.python, arguments.events, public))
        found = Bench(arguments, shared, stack).run()
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
    print(target_table(result["targets"], result["workloads"], TITLES))
    if arguments.only:
        print("\nResults not saved: only some of the workloads were measured.")
    else:
        keep(result)
    broken = [load["title"] for load in result["workloads"].values() if failed(load)]
    if broken:
        sys.exit(f"Errors in: {', '.join(broken)}")


if __name__ == "__main__":
    main()
