"""A lesson's course with three sound students, and what `workbook grade` makes of a class of damaged ones around them.

FOLDER/course/…         the course, the lesson released, nobody in it; each class is a copy
FOLDER/class/course/…   the class that is graded, and `log`, `stdout`, `stderr`, `tmp`, `data` beside it
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import nbformat

from autograder.common.result import Result
from autograder.course.lessons import load_lesson
from autograder.engine.source.notebook import exercise_sources
from autograder.grading.units import Unit, results_of
from autograder.quizzes import exams
from autograder.quizzes.grading import has_quiz, load_bank
from tests.autograder.nbgrader_course import Course, right_answers, with_solutions
from tests.fuzz.damage import damaged
from tests.fuzz.hand_in import HandIn, dumped, rich
from tests.fuzz.judge import Failure, Outcome, failures

ROOT = Path(__file__).resolve().parents[2]
STALL_SECONDS = 180.0  # without a word, on a machine that others use too
CHECK_STALL_SECONDS = 600.0  # where cells are checked for real
SEED_OF_EXAM = 77


#: Set, it ends the classes that run: each is begun again by the next run.
STOP = threading.Event()


class Fuzzed:
    """A lesson to fuzz. Making it releases the lesson and grades the sound students by themselves, by real checks."""

    def __init__(self, folder: Path, lesson_id: str) -> None:
        self.folder, self.lesson = folder, load_lesson(lesson_id)
        self.course = Course(folder, self.lesson.slug)
        self.sound = {name: self._sound(name) for name in ("a-sound", "m-sound", "z-sound")}
        self.known: dict[Unit, Result] = {}
        self.verdicts = folder / "verdicts.json"
        alone = self.grade({}, is_real=True)
        assert alone.status == 0, alone.printed
        self.expected = alone.sound
        self.known = self._known()
        told = [
            {"exercise": u.exercise_id, "source": u.source, "result": r.to_message()}
            for u, r in self.known.items()
        ]
        self.verdicts.write_text(json.dumps(told), encoding="utf-8")

    def hand_in(self, number: int, seed: int) -> tuple[HandIn, list[str]]:
        """A damaged one, made of what a sound student hands in, and the names of its damages."""
        bases = [lambda name=name: self._sound(name) for name in self.sound]
        return damaged(number, seed, bases)

    def failures_of(
        self, hand_ins: dict[str, HandIn], *, is_real: bool = False, as_json: bool = False
    ) -> tuple[int, list[Failure]]:
        """How many of them have a grade, and what is wrong with them: one that stops the class is named, and the class
        is graded again without it; where it is not told who did it, halves of the class are."""
        wrong: list[Failure] = []
        left = dict(hand_ins)
        while True:
            outcome = self.grade(left, is_real=is_real, as_json=as_json)
            found = failures(outcome, left, self.expected)
            if not outcome.is_over and outcome.in_hand in left:
                wrong += found
                del left[outcome.in_hand]
                continue
            unnamed = [each for each in found if each.student is None]
            if not unnamed or len(left) < 2:
                only = next(iter(left), None)
                graded = sum(
                    outcome.students[name]["score"] is not None for name in left if name in outcome.students
                )
                return graded, wrong + [
                    Failure(**vars(each) | {"student": each.student or only}) for each in found
                ]
            names, graded = list(left), 0
            for half in (names[::2], names[1::2]):
                more, their = self.failures_of(
                    {name: left[name] for name in half}, is_real=is_real, as_json=as_json
                )
                graded, wrong = graded + more, wrong + their
            if not wrong:  # each half by itself is well: it takes both
                wrong = found
            return graded, wrong

    def grade(self, hand_ins: dict[str, HandIn], *, is_real: bool = False, as_json: bool = False) -> Outcome:
        """Run the command on a class of these and the sound ones."""
        here = self.folder / "class"
        subprocess.run(["rm", "-rf", str(here)], check=True)  # which no depth of folders stops
        (here / "tmp").mkdir(parents=True)
        shutil.copytree(self.course.root, here / "course", symlinks=True)
        for each in (*self.sound.values(), *hand_ins.values()):
            each.write(here / "course" / "submitted")
        for unit, result in self.known.items():
            results_of(here / "course").put(unit, result)
        before = dict(_files(here))
        status = self._run(here, is_real, as_json)
        log = [
            json.loads(line) for line in (here / "log").read_text("ascii").splitlines() if line.endswith("}")
        ]
        printed = "".join((here / name).read_text("utf-8", "replace") for name in ("stdout", "stderr"))
        outcome = Outcome(status=status, log=log, printed=printed)
        if outcome.is_over:
            outcome.strangers = [*_strangers(before, dict(_files(here)), [*hand_ins, *self.sound])]
            outcome.sound = {name: self._grade_of(here / "course", name, outcome) for name in self.sound}
        return outcome

    def _run(self, here: Path, is_real: bool, as_json: bool) -> int | None:
        command = [sys.executable, "-m", "tests.fuzz.one_class", self.lesson.id, str(here / "log")]
        command += ([] if is_real else ["--verdicts", str(self.verdicts)]) + ["--json"] * as_json
        changed = {"WORKBOOK_DATA": str(here / "data"), "TMPDIR": str(here / "tmp"), "OMP_NUM_THREADS": "1"}
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        changed["PYTHONPATH"] = os.pathsep.join(paths)
        limit = CHECK_STALL_SECONDS if is_real else STALL_SECONDS
        with (
            (here / "stdout").open("wb") as out,
            (here / "stderr").open("wb") as err,
            subprocess.Popen(
                command,
                cwd=here / "course",
                env=os.environ | changed,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            ) as process,
        ):
            size, since = 0, time.monotonic()
            while process.poll() is None:
                time.sleep(0.05)
                now = (here / "log").stat().st_size if (here / "log").exists() else 0
                if now != size:
                    size, since = now, time.monotonic()
                if time.monotonic() - since > limit or STOP.is_set():
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    if STOP.is_set():
                        raise InterruptedError("stopped")
                    return None
            return process.returncode

    def _sound(self, name: str) -> HandIn:
        """All right; half of it; what is wrong or not begun."""
        slug, lesson_id = self.lesson.slug, self.lesson.id
        ids = [exercise.id for exercise in self.lesson.exercises]
        solved = {"a-sound": ids, "m-sound": ids[1::2], "z-sound": []}[name]
        release, source = (self.course.notebook(step, slug) for step in ("release", "source"))
        notebook = json.loads(nbformat.writes(with_solutions(release, source, *solved)))
        made = HandIn(student=name, folder=slug, notebook=f"{slug}.ipynb", answers=f"{slug}_answers.json")
        made.files[made.notebook] = dumped(rich(notebook)).encode()
        made.files["timestamp.txt"] = b"2027-02-01 12:00:00 UTC"
        if answers := self._answers(name):
            entries = {
                key: {"choice": choice, "first": choice, "tries": 1} for key, choice in answers.items()
            }
            if lesson_id == "09":
                entries["exam"] = {"seed": SEED_OF_EXAM, "attempt": 1, "handed_in": 1}
            document = {"format": 1, "lesson": lesson_id, "answers": entries}
            made.files[made.answers] = json.dumps(document, indent=1).encode()
        return made

    def _answers(self, name: str) -> dict[str, str]:
        if not has_quiz(self.lesson.id):
            return {}
        if self.lesson.id == "09":
            place = exams.Place(seed=SEED_OF_EXAM, attempt=1, handed_in=0)
            questions = exams.paper(load_bank("09"), place).questions
            right = {each.id: each.key for each in questions if each.key}
        else:
            right = right_answers(self.lesson.id)
        return dict(list(right.items())[: {"a-sound": None, "m-sound": 2, "z-sound": 1}[name]])

    def _known(self) -> dict[Unit, Result]:
        """The verdicts on the cells of the sound ones, which the first grading came to."""
        kept = results_of(self.folder / "class" / "course")
        sources = [exercise_sources(json.loads(each.bytes_of(each.notebook))) for each in self.sound.values()]
        units = {Unit(*cell) for cells in sources for cell in cells.items()}
        return {unit: result for unit in units if (result := kept.get(unit))}

    def _grade_of(self, course: Path, student: str, outcome: Outcome) -> Any:
        """All that makes up a student's grade: as told, by cell, and what is in the notebook that comes back."""
        from nbgrader.api import Gradebook

        slug = self.lesson.slug
        with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
            entered = gradebook.find_submission_notebook(slug, slug, student)
            scores = {grade.name: grade.auto_score for grade in entered.grades}
        folder = course / "autograded" / student / slug
        notebook = json.loads((folder / f"{slug}.ipynb").read_text(encoding="utf-8"))
        shown = [
            [cell["source"], [out.get("data") for out in cell.get("outputs", ())]]
            for cell in notebook["cells"]
        ]
        files = sorted(path.name for path in folder.iterdir())
        told = outcome.students.get(student)
        return {"told": told, "scores": scores, "files": files, "shown": _digest(json.dumps(shown).encode())}


def _files(root: Path) -> Iterator[tuple[str, str]]:
    """Every file below a folder with what it is; a link is not followed, and a pipe is not opened."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            try:
                mode = path.lstat().st_mode
                what = _digest(path.read_bytes()) if stat.S_ISREG(mode) else str(stat.S_IFMT(mode))
            except OSError:  # its path is longer than the system takes
                continue
            yield str(path.relative_to(root)), what


def _strangers(before: dict[str, str], after: dict[str, str], students: Iterable[str]) -> Iterator[str]:
    """What came, went or changed outside the places where it may. A student's name may be any text but has no `/`."""
    own = tuple(f"course/autograded/{student}" for student in students)
    ours = ("course/.workbook", "data", "log", "stdout", "stderr", "tmp", "course/autograded")
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) == after.get(path) or path.startswith("course/gradebook.db"):
            continue
        # An engine of a real check that compiles makes torch's folder for it.
        is_ours = path in ours or path.startswith(("course/.workbook/", "data/", "tmp/torchinductor_"))
        if not is_ours and not path.startswith(tuple(f"{each}/" for each in own)) and path not in own:
            yield f"{path!a}: " + (
                "new" if path not in before else "gone" if path not in after else "changed"
            )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:24]
