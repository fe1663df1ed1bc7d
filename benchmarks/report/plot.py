"""The chart: requests per second of every system on each workload, on a logarithmic scale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from benchmarks.report.table import times
from benchmarks.report.targets import ratio

COLOURS = {
    "kalends": "#c2410c",
    "constant": "#d5dce6",
    "motor": "#a3aebd",
    "eve": "#0f766e",
    "beanie": "#3b5b92",
    "beanie_fast": "#96add6",
    "fastify": "#7c5e99",
}
INK, FAINT, GRID = "#1f2937", "#6b7280", "#e5e7eb"
WIDTH, HEAD, FOOT, BAR = 9.0, 1.12, 0.3, 0.135
"""In inches."""
HEADING = 1.9
"""Height of a workload's heading, in bars."""
DPI = 200
SHOWN = ("changing", "start")
"""Workloads of Kalends alone that are drawn."""
Loads = list[dict[str, Any]]


def draw(result: dict[str, Any], path: Path) -> None:
    """Draws two columns: different requests first, then the workloads that the peers support too."""
    mpl.rcParams.update({"font.family": "DejaVu Sans", "font.size": 8, "text.color": INK})
    found = result["workloads"]
    loads = [load for name, load in found.items() if name in SHOWN or "beanie" in load["systems"]]
    half = next(at for at in range(len(loads) + 1) if height_of(loads[:at]) >= height_of(loads) / 2)
    columns = [loads[:half], loads[half:]]
    rows = max(map(height_of, columns))
    height = HEAD + rows * BAR + FOOT
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, facecolor="white")
    limits = scale(loads)
    for at, column in enumerate(columns):
        box = (0.02 + at * 0.5, FOOT / height, 0.46, rows * BAR / height)
        fill(figure.add_axes(box), column, rows, limits)
    write_head(figure, result, height)
    figure.savefig(path)


def height_of(loads: Loads) -> float:
    return sum(len(load["systems"]) + HEADING for load in loads)


def scale(loads: Loads) -> tuple[float, float]:
    """Axis limits, with room for the smallest bar and for a label beside the largest."""
    rates = [one["rate"] for load in loads for one in load["systems"].values() if one["rate"]]
    return min(rates) / 2, max(rates) * 5


def fill(axes: Axes, loads: Loads, rows: float, limits: tuple[float, float]) -> None:
    at = 0.0
    for load in loads:
        text(axes, at + HEADING / 2 - 0.15, load["title"])
        at += HEADING
        for key, one in load["systems"].items():
            axes.barh(at, max(one["rate"], limits[0]), height=0.84, color=COLOURS[key], linewidth=0)
            strong = "bold" if key == "kalends" else "normal"
            label = f" {label_of(load['systems'], key)}"
            axes.text(max(one["rate"], limits[0]), at, label, va="center", fontsize=6.4, weight=strong)
            at += 1
    frame(axes, rows, limits)


def text(axes: Axes, at: float, title: str) -> None:
    axes.text(0, at, title, transform=axes.get_yaxis_transform(), va="center", fontsize=8.5, weight="bold")


def label_of(systems: dict[str, Any], key: str) -> str:
    """The rate and, for other systems, how many times as fast Kalends is."""
    rate = systems[key]["rate"]
    shown = f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
    lead = ratio(systems, key) if key != "kalends" else None
    return f"{shown}   ({times(lead)})" if lead is not None else shown


def frame(axes: Axes, rows: float, limits: tuple[float, float]) -> None:
    axes.set_xscale("log")
    axes.set_xlim(*limits)
    axes.set_ylim(rows, 0)
    axes.set_yticks([])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.tick_params(axis="x", which="both", colors=FAINT, length=0, labelsize=7)
    axes.grid(axis="x", which="major", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)


def write_head(figure: Figure, result: dict[str, Any], height: float) -> None:
    about = result["machine"]
    said = f"Requests per second with {result['events']:,} events"
    figure.text(0.02, 1 - 0.25 / height, said, fontsize=13, weight="bold", va="center")
    facts = (
        "In parentheses: how many times as fast Kalends is. One process each, in turns, on "
        f"{about['cores']} cores shared with MongoDB {about['mongodb']} and the load generator. Log scale."
    )
    figure.text(0.02, 1 - 0.48 / height, facts, fontsize=7, color=FAINT, va="center")
    handles = [Patch(color=colour, label=result["titles"][key]) for key, colour in COLOURS.items()]
    place = (0.012, 1 - 0.6 / height)
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=place,
        ncols=4,
        frameon=False,
        fontsize=7.2,
        handlelength=1,
        handleheight=1,
        columnspacing=1.6,
    )
