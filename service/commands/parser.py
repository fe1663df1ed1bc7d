"""An argument parser whose error messages are short and suggest the closest match."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """Reports a mistyped option or command with a suggestion instead of the whole usage."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            what = "unknown option" if unknown[0].startswith("-") else "unexpected argument"
            self.error(f"{what} {unknown[0]}{nearest(unknown[0], self._option_string_actions)}")
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = list(action.choices)
            message = f"invalid choice: {value!r}{nearest(value, choices)} (choose from {', '.join(choices)})"
            raise argparse.ArgumentError(action, message)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\nTry '{self.prog} --help'.\n")


def nearest(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(str(word).partition("=")[0], list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""
