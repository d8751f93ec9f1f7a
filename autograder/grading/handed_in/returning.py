"""`workbook return`: the feedback of a class as the archive that the system takes for many students at once.

    COURSE/returned/LESSON-SYSTEM-NUMBER.zip

Each archive holds what no earlier one holds as it is. The archives are the whole memory of this: one that is deleted
has not been given back, and one is there whole or not at all.

    NAME_NUMBER_assignfeedback_file_SLUG.html    Moodle, a page. mod/assign/feedback/file/importziplib.php takes the
        participant from the second part and the plugin from the next two, in every version; a file without a folder.
    NAME_USER_ATTACHMENT_FILE    Canvas. app/models/abstract_assignment.rb, infer_comment_context_from_filename, takes
        the first two parts that are numbers for the user and one of the files that the user handed in, and shows what
        comes under that file's name. So it must be of that file's kind: a notebook for a notebook, a zip for a zip.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from autograder.common import one_line
from autograder.grading.gradebook import last_error, nbgrader_api, turn_of
from autograder.grading.handed_in.origins import Origin, origin_of
from autograder.grading.handed_in.returned import SYSTEMS, Returned
from autograder.grading.handed_in.whose import letters
from autograder.grading.marking import OnProgress, known_lesson
from autograder.grading.submissions import students_of
from autograder.grading.units import FOLDER, cannot_write
from course_lib.base import UserError, atomic_file, remove_leftovers

_ARCHIVE = re.compile(r"(?P<number>\d+)\.zip")
_PACKED = (1980, 1, 1, 0, 0, 0)  # the same feedback is the same file
_MAX_NAME = 80  # characters
_TAKEN_AS_OTHER = ("anon", "late")  # what Canvas reads at the beginning of a name
Make = Callable[[], bytes]


class _NothingNew(Exception):
    pass


def return_feedback(
    lesson_id: str, course: Path, system: str, *, on_progress: OnProgress = lambda *_: None
) -> Returned:
    """Make the page of each student anew, and an archive of what is new for a system.

    Args:
        system: "moodle" or "canvas".
        on_progress: gets the phase, whose feedback is made now, and how many there are.

    Raises:
        UserError: nobody handed in by this system, an earlier archive cannot be read, or nothing can be written.
    """
    lesson = known_lesson(lesson_id)
    names = students_of(course, lesson.slug)
    origins = {name: origin_of(course, lesson.slug, name) for name in names}
    if not any(origin and origin.system == system for origin in origins.values()):
        raise UserError(
            f"of nobody it is known that {lesson.id} was handed in by {SYSTEMS[system]}: collect the zip that it gives "
            f"(`workbook collect {lesson.id} FILE`); that keeps its numbers, also of what is there already"
        )
    found, folder = Returned(lesson.id, system), course / "returned"
    locks = course / FOLDER / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with FileLock(locks / f"return-{lesson.slug}.lock"):
        remove_leftovers(folder)  # of a run that was killed: nobody else writes here now
        before, number = _given_back(folder, f"{lesson.id}-{system}-")
        path = folder / f"{lesson.id}-{system}-{number + 1}.zip"
        try:
            with atomic_file(path) as temporary:
                pages = _Pages(course, lesson.slug)
                with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
                    for done, (student, origin) in enumerate(origins.items(), start=1):
                        _add(archive, pages, student, origin, before, found)
                        on_progress("feedback", done, len(origins))
                if not found.returned:
                    raise _NothingNew
        except _NothingNew:
            return found
        except UserError as error:
            raise (cannot_write(folder, error.__cause__) if error.__cause__ else error) from None
    return Returned(**vars(found) | {"archive": f"returned/{path.name}"})


class _Pages:
    """The feedback of the students of a lesson, made anew."""

    def __init__(self, course: Path, slug: str) -> None:
        self.course, self.slug, self.api = course, slug, nbgrader_api(course)

    def page(self, student: str) -> bytes:
        """The page, which is in `feedback` then as well. Raises UserError, without the name, where there is none."""
        outcome = self.api.generate_feedback(self.slug, student, force=True)
        if not outcome["success"]:
            raise UserError(last_error(outcome))
        place = self.api.coursedir.format_path(self.api.coursedir.feedback_directory, student, self.slug)
        return (self.course / place / f"{self.slug}.html").read_bytes()

    def notebook(self, student: str) -> bytes:
        """The same as a notebook."""
        from autograder.grading.nbgrader import feedback_notebook

        return feedback_notebook(self.api.coursedir, self.slug, student).encode()

    def is_graded(self, student: str) -> bool:
        place = self.api.coursedir.format_path(self.api.coursedir.autograded_directory, student, self.slug)
        return (self.course / place / f"{self.slug}.ipynb").is_file()


def _add(
    archive: zipfile.ZipFile,
    pages: _Pages,
    student: str,
    origin: Origin | None,
    before: dict[str, tuple[str, str]],
    found: Returned,
) -> None:
    """One student's feedback into the archive, or into the list that says why not."""
    if not pages.is_graded(student):
        found.ungraded.append(student)
        return
    try:
        with turn_of(pages.course, pages.api, student):
            page = pages.page(student)
            try:
                name, data = _entry(origin, found.system, pages.slug, page, lambda: pages.notebook(student))
            except UserError as error:
                found.elsewhere[student] = str(error)
                return
    except Exception as error:
        found.failed[student] = one_line(str(error) or type(error).__name__)
        return
    whose, content = _whose(name), hashlib.sha256(data).hexdigest()
    if whose in before and before[whose][0] == content:
        found.unchanged[student] = before[whose][1]
        return
    archive.writestr(_info(name), data)
    found.returned.append(student)


def _entry(origin: Origin | None, system: str, slug: str, page: bytes, notebook: Make) -> tuple[str, bytes]:
    """Name and content in the archive. Raises UserError, which says why the system cannot take it."""
    if origin is None:
        raise UserError("it is not known that it came from there: collect that system's zip again")
    if origin.system != system:
        raise UserError(f"came from {SYSTEMS.get(origin.system, 'elsewhere')}")
    if not origin.number:
        raise UserError("its name had no number of the student: a group's, or anonymous")
    if system == "moodle":
        return f"{_fit(origin.name)}_{origin.number}_assignfeedback_file_{slug}.html", page
    for ending, data in _KINDS.items():
        for file, attachment in sorted(origin.files.items(), key=lambda item: slug not in item[0]):
            if file.lower().endswith(ending):
                begin = letters(origin.name)[:_MAX_NAME]
                begin = f"x{begin}" if begin in _TAKEN_AS_OTHER or not begin.isalpha() else begin
                return f"{begin}_{origin.number}_{attachment}_{slug}{ending}", data(slug, page, notebook)
    raise UserError(
        "neither a notebook nor a zip was handed in, and Canvas shows feedback under the name of such a file"
    )


_KINDS: dict[str, Callable[[str, bytes, Make], bytes]] = {
    ".ipynb": lambda slug, page, notebook: notebook(),
    ".zip": lambda slug, page, notebook: _zipped(f"{slug}.html", page),
    ".html": lambda slug, page, notebook: page,
}


def _zipped(name: str, data: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_info(name), data)
    return packed.getvalue()


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _PACKED)
    info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
    return info


def _fit(name: str) -> str:
    """A name that a student chose as the beginning of a file's: no folder, no part of its own, and not hidden."""
    kept = "".join(sign for sign in name if sign.isalnum() or sign in " -.'")[:_MAX_NAME]
    return kept.strip(" -.'") or "student"


def _whose(name: str) -> str:
    """The number of the student in the name of an entry."""
    return name.split("_")[1]


def _given_back(folder: Path, begin: str) -> tuple[dict[str, tuple[str, str]], int]:
    """Number of the student → hash of what was given back last, and in which archive; and the last archive's number."""
    found: dict[str, tuple[str, str]] = {}
    paths = {
        int(match["number"]): path
        for path in folder.glob(f"{begin}*")
        if (match := _ARCHIVE.fullmatch(path.name.removeprefix(begin)))
    }
    for _, path in sorted(paths.items()):
        try:
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    found[_whose(name)] = (hashlib.sha256(archive.read(name)).hexdigest(), path.name)
        except Exception as error:
            why = one_line(str(error), 160) or type(error).__name__
            raise UserError(
                f"{path} cannot be read ({why}): if it was not uploaded, delete it, and what it held goes into the "
                "next archive; else put your copy back"
            ) from None
    return found, max(paths, default=0)
