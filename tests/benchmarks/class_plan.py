"""Machines, hours and money for 100, 10,000 and 1,000,000 submissions a week, simulated from measured costs.

    python -m tests.benchmarks.class_plan [--plot docs/images/class_plan.png] [--price 0.0425] [--minutes 2]

Submissions arrive before a deadline, wait for a lane (a core that checks one unit at a time), then for a writer of the
gradebook; both queues are first come, first served. Times of checks are drawn from those measured: of
`class_throughput` where that was run, else of `class_costs`, and so is the share that a person looks at; all other
costs are of `class_costs`. The checks of one submission run one after the other; what was inconclusive runs again.

When students hand in: of about 1,000 students, 1 in 8 in the last 10 minutes, 3 in 4 on the last day and 1 in 6 on the
day before (S. Anand, "Halving a deadline costs 1.4% of marks each time", github.com/sanand0/blog, 2025-02-08, three
online quizzes). His "around 4 hours" is taken for the median; between these points the logarithm of the time is even.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).with_name("results")
SIZES = (100, 10_000, 1_000_000)  # submissions a week
HOUR = 3600.0
CORES = 16  # of a machine, each a lane
#: US dollars an hour of a core: c5.4xlarge, 16 vCPU, $0.68 on demand in us-east-1, in an example of Amazon's EC2 Auto
#: Scaling guide ("Spot price per unit hour example", read 2026-11-22), which says that it is not current: put in yours.
PRICE = 0.68 / 16
MINUTES = 2.0  # of a person for a submission that has something to look at: an assumption
HANDED_IN = ((1 / 60, 0.0), (1 / 6, 1 / 8), (4.0, 1 / 2), (24.0, 3 / 4), (48.0, 11 / 12), (168.0, 1.0))
MOST = 100_000  # submissions that share a queue
SPARE = 0.8  # of the time that the writers alone may take


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Of one submission.

    Attributes:
        check_seconds: of the checks that were measured; an inconclusive one counts twice.
        checks: how many a submission needs, on average. Of equal cells one counts.
        writer_seconds: of nbgrader's autograde on a processor, by kind of database.
        bytes: on the disk. looks: share with something for a person. export_seconds: of a row of the export.
    """

    check_seconds: np.ndarray
    checks: float
    writer_seconds: dict[str, float]
    bytes: float
    looks: float
    export_seconds: float
    source: str

    @property
    def work_seconds(self) -> float:
        """Of a lane for a submission, on average."""
        return float(self.check_seconds.mean()) * self.checks

    @property
    def write_seconds(self) -> float:
        """Of a writer: of several, which PostgreSQL alone allows, where it was measured."""
        return self.writer_seconds.get("postgresql", self.writer_seconds["sqlite"])

    def draw(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """The seconds that each of `number` submissions keeps a lane."""
        fraction, least = math.modf(self.checks)
        counts = int(least) + (rng.random(number) < fraction)
        drawn = rng.choice(self.check_seconds, size=int(counts.sum()))
        ends = np.concatenate([[0.0], drawn.cumsum()])[counts.cumsum()]
        return np.diff(ends, prepend=0.0)


def read_costs(folder: Path = RESULTS) -> Costs:
    own = json.loads((folder / "class_costs.json").read_text(encoding="utf-8"))
    found, number, looks, source = own, own["submissions"], own["looks"], "class_costs.json"
    if (large := folder / "class_throughput.json").exists():
        found, source = json.loads(large.read_text(encoding="utf-8")), large.name
        students = [each for lesson in found["ours"].values() for each in lesson["students"].values()]
        number, looks = len(students), sum(bool(each["look"] or each["error"]) for each in students)
    seconds = [each["seconds"] * (1 + (each["verdict"] == "inconclusive")) for each in found["checks"]]
    (few, many), times = map(int, own["export_seconds"]), [*own["export_seconds"].values()]
    return Costs(
        check_seconds=np.array(seconds),
        checks=len(seconds) / number,
        writer_seconds={name: each["processor"] for name, each in own["gradebook_seconds"].items() if each},
        bytes=sum(own["bytes"].values()),
        looks=looks / number,
        export_seconds=(times[1] - times[0]) / (many - few),
        source=source,
    )


def arrivals(number: int, rng: np.random.Generator) -> np.ndarray:
    """When each was handed in, in seconds from the deadline, first one first: all are below zero."""
    hours, shares = zip(*HANDED_IN, strict=True)
    return np.sort(-HOUR * np.exp(np.interp(rng.random(number), shares, np.log(hours))))


def served(ready: np.ndarray, work: np.ndarray, servers: int) -> np.ndarray:
    """When each job ends, in the order given: `ready` must not fall. The next free server takes the next job."""
    free = [-math.inf] * min(servers, len(ready))
    ends = np.empty(len(ready))
    for index, (begin, seconds) in enumerate(zip(ready.tolist(), work.tolist(), strict=True)):
        ends[index] = end = max(begin, free[0]) + seconds
        heapq.heapreplace(free, end)
    return ends


def last_result(ready: np.ndarray, work: np.ndarray, lanes: int, write: float, writers: int) -> float:
    """Seconds from the deadline to the last grade in the gradebook."""
    checked = np.sort(ready + work if lanes >= len(ready) else served(ready, work, lanes))
    return float(served(checked, np.full(len(ready), write), writers).max())


def least(is_enough: Callable[[int], bool], at_least: int = 1) -> int:
    """The smallest number from `at_least` on for which it holds, of a claim that holds for all larger ones."""
    low, high, step = at_least - 1, at_least, max(1, at_least // 32)
    while not is_enough(high):
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def needed(ready: np.ndarray, work: np.ndarray, write: float, within: float) -> tuple[int, int]:
    """Writers and lanes with which the last result is there `within` seconds of the deadline."""
    time = within - ready[0]  # from the first that is handed in
    writers = least(
        lambda n: last_result(ready, work, len(ready), write, n) <= SPARE * within,
        math.ceil(len(ready) * write / time),
    )
    lanes = least(
        lambda n: last_result(ready, work, n, write, writers) <= within, math.ceil(work.sum() / time)
    )
    return writers, lanes


def plan(costs: Costs, number: int, price: float, minutes: float, rng: np.random.Generator) -> dict[str, Any]:
    """The row of a table: what `number` submissions a week take.

    Of more than `MOST` one part is simulated: that many queues side by side, each with its lanes and writers.
    """
    share = math.ceil(number / MOST)
    ready, work = arrivals(number // share, rng), costs.draw(number // share, rng)
    at_once, write = np.zeros(len(ready)), costs.write_seconds
    found: dict[str, Any] = {"number": number, "core_hours": number * costs.work_seconds / HOUR}
    for hours in (24, 1):
        for name, come in (("after", at_once), ("as_they_come", ready)):
            writers, lanes = needed(come, work, write, hours * HOUR)
            found[f"{name}_{hours}"] = writers * share, lanes * share
    writer_hours = number * write / HOUR
    return found | {
        "writer_hours": writer_hours,
        "usd": (found["core_hours"] + writer_hours) * price,
        "gigabytes": number * costs.bytes / 1e9,
        "export_hours": number * costs.export_seconds / HOUR,
        "people_hours": number * costs.looks * minutes / 60,
    }


def table(costs: Costs, rows: list[dict[str, Any]]) -> str:
    def machines(need: tuple[int, int]) -> str:
        writers, lanes = need
        return f"{math.ceil(lanes / CORES):,} ({lanes:,} and {writers:,})"

    lines = {
        "lanes' work, core hours": [f"{row['core_hours']:,.1f}" for row in rows],
        "gradebook's work, hours": [f"{row['writer_hours']:,.2f}" for row in rows],
        f"machines of {CORES} cores (lanes and writers), all after the deadline, within 24 h": [
            machines(row["after_24"]) for row in rows
        ],
        "the same within 1 h": [machines(row["after_1"]) for row in rows],
        "machines, graded as it comes, within 24 h": [machines(row["as_they_come_24"]) for row in rows],
        "the same within 1 h of the deadline": [machines(row["as_they_come_1"]) for row in rows],
        "US dollars a week, of hours that work": [f"{row['usd']:,.2f}" for row in rows],
        "disk a week, GB": [f"{row['gigabytes']:,.2f}" for row in rows],
        "export, hours": [f"{row['export_hours']:,.3f}" for row in rows],
        "people, hours": [f"{row['people_hours']:,.1f}" for row in rows],
    }
    write = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in costs.writer_seconds.items())
    return "\n".join(
        [
            f"Checks ({costs.source}): {costs.checks:.2f} a submission, {costs.check_seconds.mean():.1f} s each, "
            f"{costs.work_seconds:.0f} s of a lane. Gradebook: {write}. {costs.bytes / 1e6:.2f} MB. "
            f"{costs.looks:.0%} with something to look at",
            "",
            "| a week | " + " | ".join(f"{row['number']:,}" for row in rows) + " |",
            "|---|" + "---|" * len(rows),
            *(f"| {name} | {' | '.join(cells)} |" for name, cells in lines.items()),
        ]
    )


def plot(costs: Costs, path: Path, rng: np.random.Generator) -> None:
    """Hours to the last result by the number of lanes, everything graded after the deadline."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    write = costs.write_seconds
    for number, mark, color in zip(SIZES, "os^", ("C0", "C1", "C2"), strict=True):
        work, lanes = costs.draw(number, rng), np.unique(np.geomspace(1, 20_000, 22).astype(int))
        for writers, style in ((1, ":"), (math.ceil(number * write / (SPARE * HOUR)), "-")):
            hours = [last_result(np.zeros(number), work, n, write, writers) / HOUR for n in lanes]
            label = f"{number:,} submissions, {writers:,} writer{'s' * (writers > 1)}"
            axes.plot(lanes, hours, style, color=color, marker=mark, markersize=3.5, label=label)
            if writers == 1 and style == ":" and math.ceil(number * write / (SPARE * HOUR)) == 1:
                break
    for hours, name in ((1, "1 hour"), (24, "1 day"), (168, "1 week")):
        axes.axhline(hours, color="0.6", linewidth=0.8)
        axes.annotate(name, (1, hours), color="0.35", va="bottom", fontsize=8)
    axes.set(xscale="log", yscale="log", xlabel="lanes (cores that check)", ylabel="hours to the last result")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--price", type=float, default=PRICE, help="US dollars an hour of a core")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of a person for a look")
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    costs, rng = read_costs(), np.random.default_rng(0)
    print(table(costs, [plan(costs, n, arguments.price, arguments.minutes, rng) for n in SIZES]))
    if arguments.plot:
        plot(costs, arguments.plot, rng)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
