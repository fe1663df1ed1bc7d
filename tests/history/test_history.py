"""Nothing that was acknowledged is lost, doubled or taken back, whatever dies meanwhile.

`make soak MINUTES=30` runs it for as long as asked; HISTORY_SEED repeats the choices of an earlier run.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from tests.history.faults import KINDS
from tests.history.run import run

SECONDS = float(os.environ.get("HISTORY_SECONDS", "60"))
SEED = int(os.environ.get("HISTORY_SEED", "0")) or secrets.randbelow(2**31) + 1


async def test_no_acknowledged_write_is_lost(tmp_path: Path) -> None:
    history = await run(tmp_path, SECONDS, SEED)
    print(f"HISTORY_SEED={SEED}", *sorted(history.outcomes.items()), sep="\n")
    log = f"HISTORY_SEED={SEED}; see history.jsonl and the logs in {tmp_path}"
    assert not history.violations, "\n".join([log, *history.violations[:40]])
    faults = {name for (operation, name) in history.outcomes if operation == "fault"}
    assert faults == {kind.__name__ for kind in KINDS} | {"healed"}
    acknowledged = {operation for (operation, outcome) in history.outcomes if outcome == "acknowledged"}
    assert {"create", "create twin", "append", "move", "retag", "trash events"} <= acknowledged
