"""Progress of a long command: a bar on a terminal, an occasional line elsewhere."""

from __future__ import annotations

import time
from typing import TextIO

BAR_WIDTH = 30
UPDATE_SECONDS = {True: 0.1, False: 5.0}
"""Seconds between updates, by whether the stream is a terminal."""
CLEAR_LINE = "\r\x1b[K"


class Progress:
    """Prints progress and other lines to one stream without mixing them up."""

    def __init__(self, stream: TextIO, size: int) -> None:
        self._stream, self.size = stream, size
        self._is_terminal = stream.isatty()
        self._started_at = self._updated_at = time.monotonic()

    def print_line(self, line: str) -> None:
        print((CLEAR_LINE if self._is_terminal else "") + line, file=self._stream)

    def show(self, position: int, records: int) -> None:
        now = time.monotonic()
        if now - self._updated_at < UPDATE_SECONDS[self._is_terminal]:
            return
        self._updated_at = now
        line = self._line(position, records, now - self._started_at)
        print(
            *([CLEAR_LINE, line] if self._is_terminal else [line, "\n"]),
            sep="",
            end="",
            file=self._stream,
            flush=True,
        )

    def clear(self) -> None:
        if self._is_terminal:
            print(CLEAR_LINE, end="", file=self._stream, flush=True)

    def _line(self, position: int, records: int, seconds: float) -> str:
        rate = f"{records} records, {records / seconds:.0f} a second"
        if not self.size:
            return rate
        fraction = min(position / self.size, 1)
        left = round(seconds / fraction - seconds) if fraction else 0
        bar = "█" * round(fraction * BAR_WIDTH) if self._is_terminal else ""
        prefix = f"{bar:·<{BAR_WIDTH}} " if self._is_terminal else ""
        return f"{prefix}{fraction:4.0%}  {rate}, {left // 60}:{left % 60:02} left"
