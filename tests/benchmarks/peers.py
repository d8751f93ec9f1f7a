"""course_lib beside the libraries that people would pick instead: time per step, time to a given F1, peak memory.

    python -m tests.benchmarks.peers [--quick] [--threads 1] [--parts steps race memory] [--out FOLDER]

Every system has the same model, texts, seeds, optimizer, schedule and machine, and a process of its own that stays
alive; one works while the others sleep. Rounds are interleaved, in random order; tables show medians and ratios.
Writes `peers.json` (all samples, hardware, versions) and `peers.md` into the folder, and prints the tables.

- steps: equal batches for all, fp32; seconds per update, data loading and optimizer included, after a warm-up.
- race: seconds until the validation macro-F1 is reached, with the same optimizer, peak learning rate, schedule and
  number of steps for all. Each library computes as its documentation advises (`peers_systems`), and batches so too
  (`--batches own`), or all are handed the batches of our sampler (`--batches ours`), which they pad as they do.
- memory: equal batches in a fresh process; what training adds to the process at its peak.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from course_lib.base.machine import hardware

ROOT = Path(__file__).resolve().parents[2]
OURS, HAND = "course_lib", "hand-written"
PEERS = ("fabric", "lightning", "accelerate", "hf-trainer")
BUCKETED = "hand-written + our buckets"
TUTORIAL = "hand-written, AdamW not fused"
RACE_CASE: dict[str, Any] = {"precision": "bf16-mixed"}
QUICK = {"num_train": 200, "num_validation": 60, "d_model": 16, "num_layers": 1, "max_length": 32}


class Worker:
    """A process with one system."""

    def __init__(self, system: str, threads: int) -> None:
        environment = os.environ | {
            "OMP_NUM_THREADS": str(threads),
            "TOKENIZERS_PARALLELISM": "false",
            "HF_HUB_OFFLINE": "1",
        }
        self.system = system
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.peers_worker", system, str(threads)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("PEERS_VERBOSE") else subprocess.DEVNULL,
            text=True,
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to one request. Raises RuntimeError with the worker's traceback when it has none."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the process ended"}
        if "error" in answer:
            raise RuntimeError(f"{self.system}: {answer['error']}")
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def interleave(
    workers: dict[str, Worker], rounds: int, requests: Callable[[str, int], dict[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """Every system once a round, in random order. `requests(name, round)` is what it is asked."""
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in workers}
    for number in range(rounds):
        for name in random.sample(list(workers), len(workers)):
            answers[name].append(workers[name].ask(**requests(name, number)))
            print(f"round {number + 1}/{rounds}: {name}", file=sys.stderr, flush=True)
    return answers


def batches(case: dict[str, Any], num_batches: int, seed: int) -> list[list[int]]:
    """What all systems train on in the same order: buckets of similar length."""
    from course_lib.data.batching import BucketBatchSampler
    from tests.benchmarks.peers_case import Case, stores

    settings = Case(**case)
    train, _ = stores(settings)
    sampler = BucketBatchSampler(train.lengths, settings.micro_batch_size, seed=seed)
    chosen: list[list[int]] = []
    while len(chosen) < num_batches:
        chosen += list(sampler)
        sampler.set_epoch(sampler.epoch + 1)
    return chosen[:num_batches]


def chosen(arguments: argparse.Namespace, *names: str) -> list[str]:
    """Those of `names` that were asked for; what others are compared with is always there."""
    wanted = arguments.systems or names
    return [name for name in names if name in wanted or name in (OURS, HAND, TUTORIAL)]


def with_workers(names: Iterable[str], threads: int, measure: Callable[[dict[str, Worker]], Any]) -> Any:
    workers = {name: Worker(HAND if name == TUTORIAL else name, threads) for name in names}
    try:
        return measure(workers)
    finally:
        for worker in workers.values():
            worker.close()


def steps(arguments: argparse.Namespace) -> dict[str, Any]:
    case = {"micro_batch_size": arguments.micro_batch_size} | (QUICK if arguments.quick else {})
    count, warmup, rounds = (6, 2, 1) if arguments.quick else (120, 20, arguments.rounds)

    def requests(name: str, number: int) -> dict[str, Any]:
        own = case | {"is_fused": name != TUTORIAL}
        return {"do": "time_steps", "case": own, "order": batches(case, count, number), "warmup": warmup}

    names = chosen(arguments, OURS, HAND, TUTORIAL, *PEERS)
    answers = with_workers(names, arguments.threads, lambda workers: interleave(workers, rounds, requests))
    times = {name: [answer["step_time"] for answer in found] for name, found in answers.items()}
    return {"case": case, "warmup": warmup, "steps": count, "step_time": times}


def race(arguments: argparse.Namespace) -> dict[str, Any]:
    case = RACE_CASE | {"max_steps": arguments.max_steps, "optimizer": arguments.optimizer}
    case |= QUICK if arguments.quick else {}
    is_ours = arguments.batches == "ours"
    if arguments.quick:
        case |= {"max_steps": 6}
    names = chosen(arguments, OURS, *([HAND] if is_ours else [BUCKETED]), *PEERS)

    def measure(workers: dict[str, Worker]) -> dict[str, Any]:
        # This also warms everybody up: what is imported late is imported now. `fit` takes no workers.
        num_workers = {
            name: better_num_workers(worker, case, arguments.quick) for name, worker in workers.items()
        } | {OURS: 0}

        def requests(name: str, number: int) -> dict[str, Any]:
            own = case | {"num_workers": num_workers[name], "seed": number}
            target = 0.0 if arguments.quick else arguments.target
            return {
                "do": "race",
                "case": own,
                "target": target,
                "every": 2 if arguments.quick else arguments.every,
                "order": batches(own, own["max_steps"], number) if is_ours else None,
            }

        rounds = 1 if arguments.quick else arguments.race_rounds
        return {"num_workers": num_workers, "answers": interleave(workers, rounds, requests)}

    shown = case | {"batches": arguments.batches}
    return {"case": shown, "target": arguments.target, **with_workers(names, arguments.threads, measure)}


def better_num_workers(worker: Worker, case: dict[str, Any], is_quick: bool) -> int:
    """0 or 1 data loader processes, whichever runs faster here: on a small machine the advice may not hold."""
    count = 4 if is_quick else 60
    times = {}
    for number in (0, 1):
        own = case | {"num_workers": number, "max_steps": count}
        times[number] = worker.ask(
            do="time_steps", case=own, order=batches(case, count, 0), warmup=count // 2
        )
    return min(times, key=lambda number: times[number]["step_time"])


def memory(arguments: argparse.Namespace) -> dict[str, Any]:
    """A fresh process each time: one that trained before keeps what its allocator has."""
    case = {"micro_batch_size": 64} | (QUICK if arguments.quick else {})
    count, rounds = (3, 1) if arguments.quick else (40, 3)
    names = chosen(arguments, OURS, HAND, *PEERS)
    peaks: dict[str, list[int]] = {}
    for number in range(rounds):
        order = batches(case, count, number)
        for name in random.sample(names, len(names)):
            request = {"do": "memory", "case": case, "order": order}
            answers = with_workers(
                [name],
                arguments.threads,
                lambda workers, request=request: next(iter(workers.values())).ask(**request),
            )
            peaks.setdefault(name, []).append(answers["peak_bytes"])
    return {"case": case, "peak_bytes": peaks}


def ratios(
    samples: dict[str, Sequence[float | None]], base: str
) -> list[tuple[str, float | None, float | None]]:
    """(name, median, median over rounds of its value / the base's value), best first. None: not reached."""
    rows = []
    for name, values in samples.items():
        pairs = [(value, reference) for value, reference in zip(values, samples[base], strict=True)]
        known = [
            value / reference for value, reference in pairs if value is not None and reference is not None
        ]
        is_complete = len(known) == len(pairs)
        finite = [value for value in values if value is not None]
        rows.append(
            (
                name,
                statistics.median(finite) if is_complete else None,
                statistics.median(known) if is_complete else None,
            )
        )
    return sorted(rows, key=lambda row: float("inf") if row[1] is None else row[1])


def table(
    title: str, unit: str, rows: list[tuple[str, float | None, float | None]], base: str, scale: float
) -> str:
    lines = [f"**{title}**", "", f"| system | {unit} | / {base} |", "|---|---|---|"]
    for name, median, ratio in rows:
        cells = ("not reached", "") if median is None else (f"{median * scale:.1f}", f"{ratio:.2f}")
        lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def markdown(result: dict[str, Any]) -> str:
    parts = []
    if "steps" in result:
        found = result["steps"]
        rows = ratios(found["step_time"], HAND)
        parts.append(table(f"Time per step, equal batches: {describe(found['case'])}", "ms", rows, HAND, 1e3))
        ratio = {name: ratio for name, _, ratio in ratios(found["step_time"], TUTORIAL)}[OURS]
        parts[-1] += f"\n\n{OURS} / {TUTORIAL}: {ratio:.2f}"
    if "race" in result:
        found = result["race"]
        for clock, says in (("seconds", "Time"), ("cpu_seconds", "CPU time")):
            times = {
                name: [answer[clock] for answer in answers] for name, answers in found["answers"].items()
            }
            title = f"{says} to macro-F1 {found['target']}: {describe(found['case'])}"
            parts.append(table(title, "s", ratios(times, OURS), OURS, 1.0))
        ours = found["answers"][OURS]
        for name in ("pad_fraction", "data_wait_fraction"):
            share = statistics.median(answer[name] for answer in ours)
            parts.append(f"{OURS}, {name}: {share:.2%}")
    if "memory" in result:
        found = result["memory"]
        rows = ratios(found["peak_bytes"], OURS)
        parts.append(
            table(f"Memory that training adds: {describe(found['case'])}", "MiB", rows, OURS, 2**-20)
        )
    parts.append("Load average " + " to ".join(f"{load:.1f}" for load in result["load"]))
    return "\n\n".join(parts) + "\n"


def default_of(key: str) -> Any:
    from course_lib.runs.config import TrainConfig

    return getattr(TrainConfig(data="docstrings"), key)


def describe(case: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in case.items())


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="tiny, to see that all of it works")
    parser.add_argument("--threads", type=int, default=1, help="of torch, in each process")
    parser.add_argument("--parts", nargs="+", default=[*PARTS], choices=[*PARTS])
    parser.add_argument("--systems", nargs="+", default=None, help="only these, of all in peers_systems")
    parser.add_argument("--micro-batch-size", type=int, default=16, help="of the steps part")
    parser.add_argument("--rounds", type=int, default=9, help="of the steps part")
    parser.add_argument("--race-rounds", type=int, default=3, help="of the race, a seed each")
    parser.add_argument("--batches", default="own", choices=["own", "ours"], help="of the race: whose")
    parser.add_argument(
        "--optimizer", default=default_of("optimizer"), help="of the race: one name for all systems"
    )
    parser.add_argument("--target", type=float, default=0.65, help="macro-F1 of the race")
    parser.add_argument("--max-steps", type=int, default=1000, help="of the race: the schedule ends there")
    parser.add_argument("--every", type=int, default=50, help="steps between evaluations in the race")
    parser.add_argument("--out", type=Path, help="folder for peers.json and peers.md")
    arguments = parser.parse_args(argv)
    packages = ("torch", "lightning", "accelerate", "transformers", "numpy")
    result: dict[str, Any] = {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": hardware(),
        "threads": arguments.threads,
        "load": [os.getloadavg()[0]],
        "versions": {name: version(name) for name in packages},
    }
    for part in arguments.parts:
        result[part] = PARTS[part](arguments)
    result["load"].append(os.getloadavg()[0])
    text = markdown(result)
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "peers.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
        (arguments.out / "peers.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "steps": steps,
    "race": race,
    "memory": memory,
}

if __name__ == "__main__":
    raise SystemExit(main())
