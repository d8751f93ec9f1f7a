"""Run an example as a program and keep its model's weights. Usage: run_example.py EXAMPLE OUT [KILL_AT_STEP].

With a step, the process kills itself, as `kill -9` would, right after that update.
"""

import os
import runpy
import signal
import sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook


def main(example, out, kill_at=0):
    num_steps = 0

    def count(*_):
        nonlocal num_steps
        num_steps += 1
        if num_steps == int(kill_at):
            os.kill(os.getpid(), signal.SIGKILL)

    register_optimizer_step_post_hook(count)
    model = runpy.run_path(example, run_name="__main__")["model"]
    torch.save(model.state_dict(), f"{out}-{os.environ.get('RANK', '0')}.pt")


if __name__ == "__main__":
    main(*sys.argv[1:])
