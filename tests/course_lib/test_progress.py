"""What a person sees while a run goes on: in a notebook one output that changes in place, elsewhere a line."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

from course_lib.runs.record import MAX_POINTS, LivePlot
from course_lib.training.callbacks import TrainState

RUN = """
from course_lib.training.callbacks import TrainState
from course_lib.runs.record import LivePlot

live, state = LivePlot(), TrainState()
for state.step in range(1, 2001):
    live.on_record(state, {"kind": "train", "step": state.step, "loss": 2 / state.step, "learning_rate": 1e-3})
    if state.step % 500 == 0:
        live.on_record(state, {"kind": "validation", "step": state.step, "loss": 0.5})
live.on_end(state)
"""


@pytest.mark.timeout(180)
def test_a_notebook_shows_one_figure_that_is_drawn_anew_and_not_at_every_record() -> None:
    shown: list[tuple[str, dict[str, Any]]] = []
    manager, client = start_new_kernel()
    try:
        reply = client.execute_interactive(
            RUN, timeout=120, output_hook=lambda said: shown.append((said["msg_type"], said["content"]))
        )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert reply["content"]["status"] == "ok", reply["content"]
    outputs = [(kind, content) for kind, content in shown if kind not in ("status", "execute_input")]
    assert outputs[0][0] == "display_data" and {kind for kind, _ in outputs[1:]} == {"update_display_data"}
    assert len({content["transient"]["display_id"] for _, content in outputs}) == 1
    assert len(outputs) < 20
    last = outputs[-1][1]["data"]
    assert "2,000 steps" in last["text/plain"] and "validation loss 0.500" in last["text/plain"]
    assert "<svg" not in last["text/html"] and "<script" not in last["text/html"]
    loss, rate = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]+)" alt="([^"]+)"', last["text/html"])
    assert "train from 2" in loss[1] and "to 0.001 at 2000" in loss[1] and "Learning rate" in rate[1]
    assert base64.b64decode(loss[0]).count(b"<use") < 3 * MAX_POINTS


def test_a_terminal_gets_one_line_at_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    for enabled in (True, False):
        live, state = LivePlot(enabled=enabled), TrainState(step=8)
        live.on_record(state, {"kind": "train", "step": 8, "loss": 1.25, "learning_rate": 1e-3})
        live.on_end(state)
    out, err = capfd.readouterr()
    assert out == "" and err.count("\n") == 1 and "loss 1.250" in err
