"""Kill what a learner works with at random moments, and look for what the learner had been told was saved.

    python -m tests.benchmarks.learner_kills --kills 120

`workbook start` serves a folder. In a kernel of its server, choices in the quiz of lesson 01 are clicked, as the
messages that a browser sends, and typed, while exercises 0.1 and 1.3 are checked. SIGKILL then hits the kernel, the
server or the engine, the last of which must leave the kernel at work. Told is what the page was sent: "saved" for an
answer, the end of the cell for a check. Linux: this process adopts every orphan, so that none can hide.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import psutil

from autograder.engine import evidence
from course_lib.base.errors import UserError
from course_lib.base.files import BUILDING
from tests.benchmarks.killed_grader import adopt_orphans, is_held
from tests.benchmarks.learner_page import SLUG, Server, Session, Told

TARGETS = ("kernel", "server", "kernel", "engine", "kernel", "server")
EARLY_SHARE = 0.2  # of the kills that fall while the lesson's cells are run; the others fall into the work
GONE_SECONDS = 20.0


def kept_answers(server: Server) -> dict[str, str]:
    """The choices in the answers file. Raises what reading it does."""
    path = server.folder / SLUG / f"{SLUG}_answers.json"
    if not path.exists():
        return {}
    return {key: entry["choice"] for key, entry in json.loads(path.read_bytes())["answers"].items()}


def look(server: Server, told: Told) -> list[str]:
    """What is missing or left, a line each."""
    wrong = []
    try:
        kept = kept_answers(server)
    except (OSError, ValueError, KeyError) as error:
        return [f"answers: {error}"]
    for question, place in told.saved.items():
        # The one acknowledged or a later one: what was on its way when the kernel died may have arrived.
        if kept.get(question) not in (possible := told.choices[question][place:]):
            wrong.append(f"answer {question}: {kept.get(question)} is none of {possible}")
    wrong += [f"answers set aside: {path}" for path in server.folder.glob("*/*damaged*")]
    return wrong + _progress(server, told) + _evidence(server, told) + _left(server)


def _progress(server: Server, told: Told) -> list[str]:
    if not (path := server.data / "progress.sqlite3").exists():
        return ["progress: not there"] if told.num_answers or told.checks else []
    wrong = []
    with contextlib.closing(sqlite3.connect(path, timeout=0)) as database:
        database.execute("BEGIN IMMEDIATE")  # held by nobody
        if database.execute("PRAGMA quick_check").fetchone()[0] != "ok":
            wrong.append("progress: damaged")
        rows = Counter(database.execute("SELECT kind, name, json_extract(more, '$.verdict') FROM events"))
    num_answers = sum(number for (kind, _, _), number in rows.items() if kind == "answer")
    if num_answers < told.num_answers:
        wrong.append(f"progress: {num_answers} answers of {told.num_answers}")
    for (exercise_id, verdict), number in Counter(check[:2] for check in told.checks).items():
        if rows["exercise", exercise_id, verdict] < number:
            wrong.append(f"progress: {rows} has not {number} checks of {exercise_id} with {verdict}")
    return wrong


def _evidence(server: Server, told: Told) -> list[str]:
    wrong = []
    for exercise_id, verdict, path in told.checks:
        if verdict == "error" and path is None:
            continue  # the engine was killed, and the learner was told so
        try:
            if evidence.read(Path(str(path)))["result"]["verdict"] != verdict:
                wrong.append(f"evidence of {exercise_id}: another verdict")
        except UserError as error:
            wrong.append(f"evidence of {exercise_id}: {error}")
    for path in (server.data / "evidence").glob("*.json"):
        with contextlib.suppress(UserError):
            evidence.read(path)
            continue
        wrong.append(f"evidence: {path.name} cannot be read")
    return wrong


def _left(server: Server) -> list[str]:
    folders = (server.folder, server.data)
    left = [f"file left: {path}" for folder in folders for path in folder.rglob(f"{BUILDING}*")]
    return left + [f"lock held: {path}" for path in (server.data / "locks").glob("*.lock") if is_held(path)]


def _is_engine(process: psutil.Process) -> bool:
    try:
        return "autograder.engine.service" in process.cmdline()
    except psutil.Error:  # it ended meanwhile, as the sandbox's first try does
        return False


def one_kill(
    server: Server, session: Session, target: str, rng: random.Random, most_seconds: float
) -> tuple[str, list[str]]:
    """Kill while the learner opens the lesson or works. Returns what it fell into, and what was wrong then or after."""
    before, killed, hit = kept_answers(server), threading.Event(), list[psutil.Process]()
    family = [session.kernel]
    is_early = not session.is_open and target != "engine" and rng.random() < EARLY_SHARE

    def kill() -> None:
        with contextlib.suppress(psutil.Error):  # a kernel that has just ended, or a child that has
            family.extend(session.kernel.children(recursive=True))
        try:
            if target == "engine":
                found = [process for process in family if _is_engine(process)]
            else:
                found = [session.kernel if target == "kernel" else server.server()]
            for process in found:
                process.kill()
                hit.append(process)
        finally:
            killed.set()

    timer = threading.Timer(rng.uniform(0.0, most_seconds), kill)
    if is_early:
        timer.start()
    wrong = []
    if session.is_open or session.open_lesson(killed):
        if not is_early:
            timer.start()
        while not killed.is_set():
            session.work()
    fell_into = (
        "checks" if session.is_pending("check") else "clicks" if session.is_pending("answer") else "opening"
    )
    timer.join()
    if not hit:
        wrong.append("nothing was killed")
    session.listen(0.2)  # what had left the kernel before
    if target == "engine":  # the kernel lives on: all that was asked for is done, and the next check works
        wrong += session.goes_on()
    else:
        session.close()
        if target == "server" and "ended by itself" not in (said := server.words_after_kill()):
            wrong.append(f"workbook start said: {said}")
        _, alive = psutil.wait_procs(family, timeout=GONE_SECONDS)
        for process in alive:
            with contextlib.suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE:
                    wrong.append(f"left running: {process}")
                    process.kill()
    wrong += [
        f"{question}: {shown} was shown, {before[question]} kept"
        for question, shown in session.restored.items()
        if question in before and shown != before[question] and session.is_new
    ]
    session.is_new = False
    return fell_into, wrong + session.problems + look(server, session.told)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    adopt_orphans()
    rng, told, bad = random.Random(arguments.seed), Told(), 0
    rows: dict[str, Counter[str]] = {target: Counter() for target in dict.fromkeys(TARGETS)}
    with tempfile.TemporaryDirectory() as temporary:
        server = Server(Path(temporary))
        try:
            most_seconds = 2 * _seconds_of_a_check(server, told, rng)
            session = None
            for number in range(arguments.kills):
                target = TARGETS[number % len(TARGETS)]
                server.start()
                session = session or Session(*server.new_kernel(), told, rng, mark=f"session {number}")
                before = told.num_answers, len(told.checks)
                fell_into, wrong = one_kill(server, session, target, rng, most_seconds)
                session = session if target == "engine" else None
                rows[target].update(
                    kills=1,
                    answers=told.num_answers - before[0],
                    **{"checks done": len(told.checks) - before[1]},
                )
                rows[target].update({fell_into: 1, "wrong": len(wrong)})
                bad += bool(wrong)
                for line in wrong:
                    print(f"kill {number} of the {target}: {line}", file=sys.stderr, flush=True)
                if number % 10 == 9:
                    print(f"{number + 1} kills, {bad} with something wrong", file=sys.stderr, flush=True)
            works = _works_after_all(server, told, rng)
        finally:
            server.stop()
    columns = ("kills", "opening", "clicks", "checks", "answers", "checks done", "wrong")
    print(
        "| killed | kills | while opening | in a click | in a check | answers saved | checks done | wrong |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for target, row in rows.items():
        print(f"| {target} | {' | '.join(str(row[column]) for column in columns)} |")
    print(json.dumps({"kills": arguments.kills, "bad": bad, "works_after_all": works}))
    return int(bool(bad or not works))


def _seconds_of_a_check(server: Server, told: Told, rng: random.Random) -> float:
    """Of a click and a check that nobody kills."""
    server.start()
    session = Session(*server.new_kernel(), told, rng, mark="before all")
    session.open_lesson(threading.Event())
    begun = time.monotonic()
    if wrong := session.goes_on() + session.problems:
        raise SystemExit(f"the lesson does not run: {wrong}")
    session.close()
    return time.monotonic() - begun


def _works_after_all(server: Server, told: Told, rng: random.Random) -> bool:
    server.start()
    session = Session(*server.new_kernel(), told, rng, mark="after all")
    session.open_lesson(threading.Event())
    wrong = session.goes_on() + session.problems + look(server, told)
    session.close()
    for line in wrong:
        print(f"after all: {line}", file=sys.stderr)
    return not wrong


if __name__ == "__main__":
    raise SystemExit(main())
