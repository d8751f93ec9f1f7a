"""The whole build: from the real lessons' text to source, release and quiz."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import nbformat
import pytest

from autograder.notebooks.building import build
from course_lib.base.errors import UserError
from tests.autograder.nbgrader_course import LESSON_00, LESSON_01, NOTEBOOKS, cell


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what the build reads, and nothing that it writes."""
    shutil.copytree(NOTEBOOKS / "lessons", tmp_path / "notebooks" / "lessons")
    shutil.copy(NOTEBOOKS / "nbgrader_config.py", tmp_path / "notebooks")
    return tmp_path


def run(project: Path, *, check: bool = False) -> list[str]:
    return build(check=check, notebooks_dir=project / "notebooks", package_dir=project / "autograder")


def contents(project: Path) -> dict[str, bytes]:
    return {str(p.relative_to(project)): p.read_bytes() for p in sorted(project.rglob("*")) if p.is_file()}


def test_build_names_what_it_wrote_and_then_has_nothing_to_do(project: Path) -> None:
    written = run(project)
    assert {
        f"notebooks/release/{LESSON_01}/{LESSON_01}.ipynb",
        "autograder/lessons/lesson_01/quiz.json",
        "autograder/course/course.json",
    } <= set(written)
    assert set(written) <= set(contents(project))
    assert run(project) == [] and run(project, check=True) == []


@pytest.mark.further
def test_one_lesson_built_alone_changes_its_own_part_of_the_outline(project: Path) -> None:
    run(project)
    text = project / "notebooks" / "lessons" / f"{LESSON_01}.py"
    said = text.read_text(encoding="utf-8").replace("*About 90 minutes", "*About 120 minutes")
    text.write_text(said, encoding="utf-8")
    outline = project / "autograder" / "course" / "course.json"
    before = json.loads(outline.read_text(encoding="utf-8"))
    assert "autograder/course/course.json" in run(project, check=True)
    folders = {"notebooks_dir": project / "notebooks", "package_dir": project / "autograder"}
    assert "autograder/course/course.json" in build(["01"], **folders)
    after = json.loads(outline.read_text(encoding="utf-8"))
    assert list(after) == list(before) and after.pop("01") == before.pop("01") | {"minutes": 120}
    assert after == before
    text.write_text(said.replace("*About 120 minutes", "*About two hours"), encoding="utf-8")
    with pytest.raises(UserError, match=rf"{LESSON_01}\.py: begin with a heading .* minutes"):
        build(["01"], **folders)


def test_two_builds_are_equal_to_the_byte(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    shutil.copytree(project / "notebooks", other / "notebooks")
    run(project), run(other)
    assert contents(project) == contents(other)


def test_check_writes_nothing_and_names_drift(project: Path) -> None:
    run(project)
    shutil.rmtree(project / "notebooks" / "source")  # a fresh clone has none, and that is no drift
    assert run(project, check=True) == []
    release = project / "notebooks" / "release" / LESSON_01 / f"{LESSON_01}.ipynb"
    release.write_bytes(release.read_bytes().replace(b"check", b"chuck", 1))
    gone = project / "notebooks" / "release" / "05_gone" / "05_gone.ipynb"
    gone.parent.mkdir()
    gone.write_text("{}", encoding="utf-8")
    before = contents(project)
    assert run(project, check=True) == [
        f"notebooks/release/{LESSON_01}/{LESSON_01}.ipynb",
        "notebooks/release/05_gone/05_gone.ipynb (no lesson text makes it: delete it)",
    ]
    assert contents(project) == before


def test_release_holds_the_exercises_and_no_solution(project: Path) -> None:
    run(project)
    source, release = (
        nbformat.read(project / "notebooks" / step / LESSON_01 / f"{LESSON_01}.ipynb", as_version=4)
        for step in ("source", "release")
    )
    nbformat.validate(source), nbformat.validate(release)
    assert [c.id for c in source.cells] == [c.id for c in release.cells]
    for number in range(1, 7):
        solved, stub = (cell(notebook, f"exercise-1-{number}") for notebook in (source, release))
        assert "### BEGIN SOLUTION" in solved.source
        assert 'raise NotImplementedError("not written yet")' in stub.source
        check = cell(release, f"check-1-{number}")
        assert check.metadata.deletable is False and check.metadata.editable is False
        compile(stub.source, stub.id, "exec")
    text = json.dumps(release)
    assert "SOLUTION" not in text and '"outputs": [{' not in text


def test_committed_release_is_what_the_text_says() -> None:
    assert build(check=True) == []


def test_a_folder_without_lessons_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no lesson texts in .*: run this in a checkout"):
        build(notebooks_dir=tmp_path)


def test_a_lesson_without_code_is_a_user_error(project: Path) -> None:
    lessons = project / "notebooks" / "lessons"
    shutil.copy(lessons / f"{LESSON_00}.py", lessons / "77_nothing.py")
    with pytest.raises(UserError, match=r"no lesson '77'.*add autograder/lessons/lesson_77"):
        run(project)


def test_a_build_leaves_the_course_alone(project: Path) -> None:
    """No gradebook appears, and an instructor's answers in a release folder are not touched."""
    answers = project / "notebooks" / "release" / LESSON_01 / f"{LESSON_01}_answers.json"
    answers.parent.mkdir(parents=True)
    answers.write_text("{}", encoding="utf-8")
    before = Path.cwd(), dict(os.environ)
    run(project)
    assert answers.exists() and not list(project.rglob("*.db"))
    assert (Path.cwd(), dict(os.environ)) == before
