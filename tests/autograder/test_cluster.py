"""Grading on a Dask cluster: a real scheduler and real workers, each a process of its own, on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import autograder
from autograder.grading.executors import cluster
from autograder.grading.units import Unit, check_unit
from course_lib.base.errors import UserError
from tests.autograder.nbgrader_course import LESSON_00, LESSON_01, Course, cell, with_solutions

PATIENCE = 120.0
LANE = ("--nthreads", "1", "--resources", "lane=1")
STUB = Unit("0.1", "x = 1\n")  # no solution
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Machines:
    """A scheduler on loopback, and the workers that a test starts."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._processes = folder, contextlib.ExitStack()
        self.address, file = "", folder / "scheduler.json"
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))

        def is_told() -> bool:
            with contextlib.suppress(OSError, ValueError):  # not there, or not whole yet
                self.address = str(json.loads(file.read_text(encoding="utf-8"))["address"])
            return bool(self.address)

        try:
            wait_until(is_told)
        except BaseException:
            self.close()
            raise

    def worker(self, name: str, *options: str, **environment: str) -> psutil.Process:
        """One more, ready. What its checks leave is in a folder of its own."""
        from distributed import Client

        environment = {"WORKBOOK_DATA": str(self.folder / name)} | environment
        started = self._start("worker", self.address, "--no-nanny", "--name", name, *options, **environment)
        with Client(self.address, set_as_default=False) as client:

            def is_there() -> bool:
                assert started.is_running(), (self.folder / f"worker-{name}.log").read_text()
                workers = client.scheduler_info(n_workers=-1)["workers"].values()
                return name in [worker["name"] for worker in workers]

            wait_until(is_there)
        return started

    def _start(self, program: str, *options: str, **environment: str) -> psutil.Process:
        own = {"OMP_NUM_THREADS": "1", "DASK_TEMPORARY_DIRECTORY": str(self.folder / "dask")}
        command = [sys.executable, "-m", f"distributed.cli.dask_{program}", "--no-dashboard", *options]
        log = (self.folder / f"{program}.log").open("ab")
        self._processes.callback(log.close)
        process = psutil.Popen(
            command, cwd=self.folder, env=os.environ | own | environment, stdout=log, stderr=log
        )
        self._processes.callback(end, process)
        return process

    def close(self) -> None:
        self._processes.close()


def end(process: psutil.Process) -> list[psutil.Process]:
    """SIGKILL, as a machine that loses its power; returns what the process had started."""
    if not process.is_running():
        return []
    started = process.children(recursive=True)
    process.kill()
    process.wait()
    return started


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    found = Machines(tmp_path)
    yield found
    found.close()


def grade(course: Course, lesson: str, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "autograder.cli.main", "grade", lesson, "--json", *options]
    ran = subprocess.run(command, cwd=course.root, env=course.environment(), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return dict(json.loads(ran.stdout))


def make_class(folder: Path) -> Course:
    """Five who wrote a thing each in lesson 00, one who wrote what another did, and a property exercise of 01."""
    course = Course(folder, LESSON_00, LESSON_01)
    for number in range(5):
        notebook = course.notebook("source", LESSON_00)
        cell(notebook, "exercise-0-1").source += f"\nNUMBER = {number}\n"
        course.submit(f"student-{number}", LESSON_00, notebook)
    course.submit("the-same", LESSON_00, notebook)
    course.submit("nothing", LESSON_00, course.notebook("release", LESSON_00))
    release, source = course.notebook("release", LESSON_01), course.notebook("source", LESSON_01)
    course.submit("stub", LESSON_01, release)
    course.submit("right", LESSON_01, with_solutions(release, source, "1.4"))
    return course


def outcome(course: Course, slug: str, found: dict[str, Any]) -> dict[str, Any]:
    """What the gradebook and the kept results hold, whoever checked."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as gradebook:
        entered = Counter(each.student.id for each in gradebook.assignment_submissions(slug))
    kept = [
        path.relative_to(course.root) for path in course.root.glob(f".workbook/results/{int(slug[:2])}.*/*")
    ]
    cells = {name: course.scores(name, slug) for name in entered}
    return {"students": found["students"], "entered": entered, "cells": cells, "kept": sorted(kept)}


def test_a_worker_dies_and_nothing_is_lost_or_graded_twice(tmp_path: Path, machines: Machines) -> None:
    course, alone = make_class(tmp_path / "class"), tmp_path / "alone"
    shutil.copytree(course.root, alone)
    lost, stays = machines.worker("lost", *LANE), machines.worker("stays", *LANE)
    command = [
        sys.executable,
        "-m",
        "autograder.cli.main",
        "grade",
        "0",
        "--cluster",
        machines.address,
        "--json",
    ]
    with subprocess.Popen(
        command, cwd=course.root, env=course.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        # Both have checked something, so that both are at it: there is more to do than that.
        wait_until(lambda: all(any((tmp_path / name).rglob("*.html")) for name in ("lost", "stays")))
        engines = end(lost)
        printed, said = run.communicate()
    assert (run.returncode, b"Traceback" in said) == (0, False), said.decode()
    found = json.loads(printed)
    assert engines and not psutil.wait_procs(engines, timeout=30)[1], "engines end with their worker"
    assert (found["checked"], found["graded"]) == (6, 7), "two wrote the same: it is checked once"

    assert stays.is_running()
    again = grade(course, "0", "--cluster", machines.address)
    assert (again["checked"], again["students"]) == (0, found["students"])
    checked = Counter(path.name for path in tmp_path.glob("*/evidence/*.json"))
    assert len(checked) == 5
    assert sum(checked.values()) <= 6, "but for what the lost one was just telling, nothing ran twice"
    at_home = {path.name for path in (course.data / "evidence" / "cluster").glob("*.json")}
    assert at_home == checked.keys(), "evidence outlives the worker"

    of_the_cluster = {LESSON_00: outcome(course, LESSON_00, found)}
    of_the_cluster[LESSON_01] = outcome(course, LESSON_01, grade(course, "1", "--cluster", machines.address))
    assert of_the_cluster[LESSON_01]["cells"]["right"]["check-1-4"] > 0
    machines.close()
    course.root = alone
    for slug in (LESSON_00, LESSON_01):
        assert outcome(course, slug, grade(course, slug[:2])) == of_the_cluster[slug]


def test_what_a_cluster_lacks_is_one_line(tmp_path: Path, machines: Machines) -> None:
    def says(required: str | None = None) -> str:
        with pytest.raises(UserError) as error, cluster(machines.address, required) as executor:
            executor.submit(check_unit, STUB).result(PATIENCE)
        return str(error.value)

    assert "has no worker; on each machine, run: dask worker" in says()
    end_of = machines.worker("no-lane", "--nthreads", "1")
    assert "has a lane for timed work" in says()
    end(end_of)

    package = tmp_path / "other" / "autograder"
    shutil.copytree(Path(autograder.__file__).parent, package, ignore=shutil.ignore_patterns("labextension"))
    with (package / "engine.py").open("a", encoding="utf-8") as file:
        file.write("# another version\n")
    end_of = machines.worker("older", *LANE, PYTHONPATH=str(package.parent))
    assert "does not run this version of the workbook" in says()
    end(end_of)

    for module in package.iterdir():
        shutil.rmtree(module) if module.is_dir() else module.unlink()
    (package / "__init__.py").write_text("raise ModuleNotFoundError('no autograder', name='autograder')\n")
    end_of = machines.worker("bare", *LANE, PYTHONPATH=str(package.parent))
    assert "install the same version on every worker" in says()
    end(end_of)

    machines.worker("weak", *LANE, PATH=str(tmp_path))
    assert "sandbox level 'bubblewrap' is required, and the worker on" in says("bubblewrap")

    with pytest.raises(UserError, match="went away"), cluster(machines.address) as executor:
        in_hand = executor.submit(check_unit, STUB)
        machines.close()
        in_hand.result(PATIENCE)
    assert "no Dask scheduler answers at" in says()


def test_without_the_extra_it_names_it(tmp_path: Path) -> None:
    (tmp_path / "distributed.py").write_text("raise ModuleNotFoundError(name='distributed')\n")
    ran = subprocess.run(
        [sys.executable, "-m", "autograder.cli.main", "grade", "0", "--cluster", "tcp://127.0.0.1:1"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1), ran.stderr
    assert "training-workbook[cluster]" in ran.stderr
