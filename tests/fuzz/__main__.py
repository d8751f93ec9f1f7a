"""Thousands of damaged hand-ins through `workbook grade`, three sound students in each class of them.

    python -m tests.fuzz --results FILE             # 5,000 of them; a second run goes on where the first was ended
    python -m tests.fuzz --only 1234 --only 77      # these numbers of the seed by themselves

What a hand-in is follows from the seed and its number, and each failure names both. Every tenth class has its cells
checked for real, and in the others a cell that no sound student wrote is worth nothing (`one_class`). Exit status 1
when a class did not come to its end, a sound student got another grade, a hand-in has neither a grade nor a reason, or
what is printed or written is not as it must be.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.fuzz.fuzzed import STOP, Fuzzed
from tests.fuzz.hand_in import HandIn

LESSONS = ("00", "05", "09", "00")  # one exercise; a quiz and exercises without a clock; an exam
PER_CLASS = 50
REAL_EVERY = 10


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--number", type=int, default=5000, help="of damaged hand-ins")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--results", type=Path, help="keep each class there, and leave out those that are there"
    )
    parser.add_argument(
        "--only", type=int, action="append", help="a hand-in by its number, alone; repeatable"
    )
    parser.add_argument("--processes", type=int, default=1, help="classes at a time")
    parser.add_argument("--real", action="store_true", help="check every cell for real")
    arguments = parser.parse_args(argv)
    numbers: list[Sequence[int]] = [
        range(first, min(first + PER_CLASS, arguments.number))
        for first in range(0, arguments.number, PER_CLASS)
    ]
    if arguments.only:
        numbers = [[number] for number in arguments.only]
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    os.environ["WORKBOOK_DATA"] = str(folder)
    try:
        return _tell([*_run(numbers, arguments, folder)], arguments.seed)
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)  # which no depth of folders stops


def _run(classes: Sequence[Sequence[int]], arguments: Any, folder: Path) -> Iterator[dict[str, Any]]:
    """Each class as a line of the results."""
    kept = _kept(arguments.results, arguments.seed)
    names = [f"{numbers[0]}-{numbers[-1]}" for numbers in classes]
    yield from (kept[name] for name in names if name in kept)
    open_ = [(name, numbers) for name, numbers in zip(names, classes, strict=True) if name not in kept]
    workplaces: list[dict[str, Fuzzed]] = [{} for _ in range(arguments.processes)]
    one_at_a_time = threading.Lock()  # courses are made of one template

    def grade(name: str, numbers: Sequence[int]) -> dict[str, Any]:
        place = numbers[0] // PER_CLASS
        lesson = LESSONS[place % len(LESSONS)]
        is_real = arguments.real or place % REAL_EVERY == REAL_EVERY - 1
        mine = workplaces.pop()
        try:
            with one_at_a_time:
                if lesson not in mine:
                    mine[lesson] = Fuzzed(Path(tempfile.mkdtemp(dir=folder)), lesson)
            found = _graded(mine[lesson], numbers, arguments.seed, is_real)
            return {"class": name, "seed": arguments.seed} | found
        finally:
            workplaces.append(mine)

    with (
        ThreadPoolExecutor(arguments.processes) as pool,
        tqdm(total=sum(len(n) for _, n in open_), unit="hand-in") as bar,
    ):
        running = {pool.submit(grade, *each): len(each[1]) for each in open_}
        try:
            for future in as_completed(running):
                line = future.result()
                if arguments.results:
                    with arguments.results.open("a", encoding="utf-8") as file:
                        print(json.dumps(line), file=file)
                for failure in line["failures"]:
                    bar.write(_line(failure, arguments.seed), file=sys.stderr)
                bar.update(running[future])
                yield line
        except BaseException:
            STOP.set()
            pool.shutdown(cancel_futures=True)
            raise


def _graded(fuzzed: Fuzzed, numbers: Sequence[int], seed: int, is_real: bool) -> dict[str, Any]:
    """One class: who is in it, how many have a grade, and what is wrong."""
    made: dict[str, tuple[int, HandIn, list[str]]] = {}
    for number in numbers:
        hand_in, damages = fuzzed.hand_in(number, seed)
        if hand_in.student in (*made, *fuzzed.sound):  # two of one name are one folder
            hand_in.student = f"again {number:05d}"
        made[hand_in.student] = (number, hand_in, damages)
    students = {name: hand_in for name, (_, hand_in, _) in made.items()}
    place = numbers[0] // PER_CLASS
    as_json = bool((place + place // len(LESSONS)) % 2)  # each lesson comes both ways
    graded, wrong = fuzzed.failures_of(students, is_real=is_real, as_json=as_json)
    failures = []
    for each in wrong:
        who = made.get(each.student or "")
        which = {"number": who[0], "damages": who[2]} if who else {"number": None, "damages": []}
        failures.append(asdict(each) | which | {"lesson": fuzzed.lesson.id})
    return {"hand_ins": len(made), "graded": graded, "is_real": is_real, "failures": failures}


def _kept(results: Path | None, seed: int) -> dict[str, dict[str, Any]]:
    lines = results.read_text(encoding="utf-8").splitlines() if results and results.exists() else []
    return {line["class"]: line for line in map(json.loads, lines) if line["seed"] == seed}


def _line(failure: dict[str, Any], seed: int) -> str:
    """As ASCII: what is wrong may be what stands in it."""
    who = "the class" if failure["number"] is None else f"--seed {seed} --only {failure['number']}"
    return ascii(f"{failure['kind']}: {who} ({'; '.join(failure['damages'])}): {failure['what']}")[1:-1]


def _tell(found: list[dict[str, Any]], seed: int) -> int:
    failures = [failure for line in found for failure in line["failures"]]
    for failure in failures:
        print(_line(failure, seed))
    for kind, number in Counter(failure["kind"] for failure in failures).most_common():
        print(f"{number:6} {kind}")
    total, graded = (sum(line[name] for line in found) for name in ("hand_ins", "graded"))
    num_real = sum(line["is_real"] for line in found)
    print(
        f"{total:,} damaged hand-ins in {len(found)} classes with 3 sound students each, {num_real} of them checked "
        f"for real: {graded:,} grades, {len(failures)} failures"
    )
    return 1 if failures or not found else 0


if __name__ == "__main__":
    sys.exit(main())
