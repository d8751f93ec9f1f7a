"""One check in a process apart from the learner's kernel: a request on stdin, events as JSON lines on stdout."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any, NoReturn


def main() -> None:
    """Read {"exercise_id", "source"}, run the check, write progress events and one result event."""
    # Whatever a library prints must not come between the lines of the protocol.
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    signal.signal(signal.SIGTERM, _stop)
    request = json.load(sys.stdin)

    def say(event: dict[str, Any]) -> None:
        lines.write(json.dumps(event) + "\n")
        lines.flush()

    def progress(text: str, fraction: float) -> None:
        say({"event": "progress", "text": text, "fraction": fraction})

    from autograder.engine import check_source

    result = check_source(request["exercise_id"], request["source"], on_progress=progress)
    say({"event": "result", "result": result})


def _stop(_signal: int, _frame: object) -> NoReturn:
    raise SystemExit(1)  # so that `finally` blocks end the workers


if __name__ == "__main__":
    main()
