"""Result tables for the terminal."""

from __future__ import annotations

from typing import Any

from benchmarks.report.targets import SAME, ratio

HEAD = ("req/s", "p50 ms", "p99 ms", "max ms", "bytes", "cmd/req", "MB", "of constant", "Kalends is")
WIDTHS = (9, 9, 9, 9, 9, 8, 6, 12, 11)


def shown(number: float | None, digits: int = 3) -> str:
    """Formats a number with this many significant digits, and large ones without decimals."""
    if number is None:
        return ""
    if 0 < number < 0.1:
        return f"{number:.3f}"
    whole = len(str(int(number)))
    return f"{number:,.{0 if number >= 100 else max(0, digits - whole)}f}"


def times(number: float | None) -> str:
    return f"{shown(number)}×" if number is not None else ""


def line(title: str, cells: list[str]) -> str:
    aligned = (f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))
    return f"  {title:<36}" + "".join(aligned)


def workload_table(load: dict[str, Any], titles: dict[str, str]) -> str:
    systems = load["systems"]
    constant = systems.get("constant", {}).get("rate")
    lines = [f"\n{load['title']}", line("", list(HEAD))]
    for key, one in systems.items():
        memory = one["memory"] and one["memory"] / 1e6
        numbers = [one[name] for name in ("rate", "p50", "p99", "max", "size", "commands")] + [memory]
        share = times(one["rate"] / constant) if constant and key != "constant" else ""
        lead = times(ratio(systems, key)) if key != "kalends" else ""
        lines.append(line(titles[key], [*map(shown, numbers), share, lead]))
        lines += [f"    ERROR {error!r}" for error in one["errors"][:3]]
    lines += [f"  {note}" for note in load["notes"]]
    return "\n".join(lines)


def target_table(targets: list[dict[str, Any]]) -> str:
    lines = ["\nTargets: Kalends' requests per second divided by the other's, unless stated otherwise"]
    for one in targets:
        mark = "PASS" if one["passed"] else "MISSED"
        bound = f"≥ {one['least']:g}" if one["least"] else f"≤ {one['most']:,g}"
        reached = f"{shown(one['reached'])}{one['unit']}"
        lines.append(f"  {mark:<6} {one['title']:<52} {reached:>15}  ({bound}{one['unit']})")
    reached = sum(one["passed"] for one in targets)
    return "\n".join([*lines, f"  {reached} of {len(targets)} targets met"])


def comparison_table(one: dict[str, Any], other: dict[str, Any]) -> str:
    """The rate of Kalends with the larger number of events, relative to the smaller."""
    small, large = sorted((one, other), key=lambda result: int(result["events"]))
    lines = [f"Requests per second of Kalends with {large['events']:,} and with {small['events']:,} events"]
    for name, least in SAME.items():
        if name in small["workloads"] and name in large["workloads"]:
            few, many = (result["workloads"][name]["systems"]["kalends"]["rate"] for result in (small, large))
            mark = "PASS" if many / few >= least else "MISSED"
            title, share = small["workloads"][name]["title"], times(many / few)
            lines.append(
                f"  {mark:<6} {title:<28} {shown(many):>8} / {shown(few):>8} = {share}  (≥ {least:g}×)"
            )
    return "\n".join(lines)
