"""One run of the benchmarks: starts the systems, checks that they agree, and measures the workloads."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from typing import Any

from benchmarks.load.beside import CHANGES, NEIGHBOUR, writing
from benchmarks.load.importing import imported
from benchmarks.load.steady import DATABASE
from benchmarks.measure import Pace, measure, requests_of
from benchmarks.meter import Meter
from benchmarks.prepare import agree, look_at_answers, look_at_data, make_collections
from benchmarks.ready import make_ready
from benchmarks.report.table import workload_table
from benchmarks.running import Running, running
from benchmarks.shared import Shared
from benchmarks.systems import NO_NODE, SYSTEMS, TWO, System, installed
from benchmarks.workloads import workloads
from benchmarks.workloads.asking import Asking
from benchmarks.workloads.workload import Workload

TITLES = {one.key: one.title for one in (*SYSTEMS, TWO)}
FAN_OUT = "Peers: not measured. They do not update copies, so renaming a venue changes no event."
NOTES = {
    "changing": ["The commands are those of the lists and of the changes."],
    "searches": ["Peers: a regular expression, since neither has an index for parts of words."],
    "search": ["Peers: a regular expression, since neither has an index for parts of words."],
    "start": ["The first list with each filter; nothing was requested before."],
    "import": ["The time includes the start of the process."],
    "fanout": [FAN_OUT, "One connection: the next change is sent when all events show the previous one."],
    "workers": ["On two cores the second process shares a core with mongod and the load generator."],
}


class Bench:
    """One run of the benchmarks."""

    def __init__(self, arguments: argparse.Namespace, shared: Shared) -> None:
        self._arguments = arguments
        self._shared = shared
        self._meter = Meter(shared.database)
        self._asking = Asking(shared.facts)
        self._stacks: dict[str, ExitStack] = {}
        self._running: dict[str, Running] = {}

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        for key in list(self._running):
            self.stop(key)

    def chosen(self) -> list[Workload]:
        known = workloads(self._asking, self._shared.facts, self._arguments.rounds)
        names = [load.name for load in known]
        only, skipped = (
            set(filter(None, text.split(","))) for text in (self._arguments.only, self._arguments.skip)
        )
        if unknown := (only | skipped).difference(names):
            sys.exit(f"unknown workloads: {', '.join(unknown)}; workloads: {', '.join(names)}")
        return [load for load in known if load.name in (only or names) and load.name not in skipped]

    def start(self, system: System) -> None:
        shared, stack = self._shared, ExitStack()
        context = running(system, self._arguments.python, shared.uri, shared.name, shared.facts)
        self._running[system.key] = stack.enter_context(context)
        self._stacks[system.key] = stack

    def stop(self, key: str) -> None:
        del self._running[key]
        self._stacks.pop(key).close()

    def restart(self, system: System) -> None:
        """Starts the system again in its place: it stays the first one."""
        self.stop(system.key)
        others = dict(self._running)
        self._running.clear()
        self.start(system)
        self._running |= others

    def run(self) -> dict[str, Any]:
        loads, shared = self.chosen(), self._shared
        look_at_data(shared.database, shared.facts)
        for system in SYSTEMS:
            if not installed(system):
                print(NO_NODE)
            elif any(not load.systems or system.key in load.systems for load in loads):
                self.start(system)
        self.prepare(loads)
        return {load.name: self.measured(load) for load in loads}

    def prepare(self, loads: list[Workload]) -> None:
        shared, kalends = self._shared, self._running["kalends"]
        look_at_answers(kalends, loads, shared.facts, lists=True)
        if shared.facts.listed and "motor" in self._running:
            make_ready(shared.database, shared.facts)
        agree(self._running.values(), loads, shared.facts)
        look_at_answers(kalends, loads, shared.facts, lists=False)
        make_collections(shared.database, self._asking.ids, shared.facts)
        self._meter.find_idle()

    def measured(self, load: Workload) -> dict[str, Any]:
        notes = list(NOTES.get(load.name, []))
        shown = {"title": load.title, "notes": notes, "systems": self.results(load, notes)}
        print(workload_table(shown, TITLES), flush=True)
        return shown

    def results(self, load: Workload, notes: list[str]) -> dict[str, Any]:
        given, shared = self._arguments, self._shared
        if load.imports:
            return {"kalends": imported(given.python, shared.uri, shared.name, load, shared.facts)}
        if load.fresh:
            self.restart(SYSTEMS[0])
        if load.two:
            self.start(TWO)
        wanted = ("kalends", TWO.key) if load.two else load.systems or tuple(self._running)
        systems = [one for key, one in self._running.items() if key in wanted]
        pace = Pace(load.connections or given.connections, given.seconds, given.rounds)
        with writing(self.job(load)) as written:
            found = measure(systems, load, pace, self._meter)
        if load.two:
            self.stop(TWO.key)
        if load.beside:
            notes.append(f"Written beside: {written['rate']:.1f} a second.")
            found["kalends"]["errors"] += written["errors"]
            shared.database.client.drop_database(DATABASE)
        return found

    def job(self, load: Workload) -> dict[str, Any] | None:
        """What is written beside the workload."""
        kalends = self._running["kalends"]
        match load.beside:
            case "changes":
                requests = requests_of(kalends, self._asking.moves())
                return {"rate": CHANGES, "port": kalends.port, "requests": requests}
            case "neighbour":
                return {"rate": NEIGHBOUR, "uri": self._shared.uri}
            case _:
                return None
