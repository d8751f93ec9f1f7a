"""Quiz and prediction in a real kernel: shown, clicked, restored in the next kernel, silent on stderr."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.quizzes.grading import load_bank
from tests.kernels import run_all_cells

SLUG = "01_efficient_training_loops"
WIDGET = "application/vnd.jupyter.widget-view+json"
FIND = """
import ipywidgets
from ipywidgets.widgets.widget import _instances
def find(kind, text):
    return [w for w in _instances.values() if isinstance(w, kind) and text in w.description][-1]
"""


def _run(folder: Path, *cells: str) -> list[Any]:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    run_all_cells(notebook, folder)
    outputs = [cell.outputs for cell in notebook.cells]
    assert not [o for cell in outputs for o in cell if o.get("name") == "stderr" or o.output_type == "error"]
    return outputs


def _printed(outputs: list[Any]) -> str:
    return "".join(output.get("text", "") for output in outputs)


@pytest.mark.timeout(180)
def test_what_is_clicked_in_one_kernel_is_there_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("JPY_PARENT_PID", "")
    folder = tmp_path / "lesson"
    folder.mkdir()
    imports = "from autograder import check_quiz, compare, predict, predicted, quiz"
    first = _run(
        folder,
        imports,
        'quiz("01")',
        'predict("1a", "How many times fewer?", "×")',
        FIND
        + 'find(ipywidgets.RadioButtons, "question 2").value = "d"\nfind(ipywidgets.Text, "prediction").value = "4.5"',
        'compare("1a", 4.9, "×")',
    )
    note, shown = first[1]
    assert "Run this cell" in note.data["text/html"] and WIDGET in shown.data
    # A frontend without widgets shows the text of the same output.
    assert 'answer("01.1", "b")' in shown.data["text/plain"] and "01.10" in shown.data["text/plain"]
    card = first[4][0]
    assert "4.50×" in card.data["text/html"] and "4.90×" in card.data["text/html"]
    assert "predicted  4.50×" in card.data["text/plain"]
    assert WIDGET in first[4][-1].data  # the box for the reason

    kept = json.loads((folder / "01_efficient_training_loops_answers.json").read_text())["answers"]
    assert kept["01.2"]["choice"] == "d" and kept["predict:1a"]["value"] == 4.5

    second = _run(
        folder,
        imports,
        'quiz("01"); predict("1a", "How many times fewer?", "×")',
        FIND
        + 'print(find(ipywidgets.RadioButtons, "question 2").value, find(ipywidgets.Text, "prediction").value)',
        "predicted('1a')",
        'check_quiz("01")',
    )
    assert _printed(second[2]).strip() == "d 4.5"
    assert second[3][0].data["text/plain"] == "4.5"
    graded = second[4][-1]
    right = load_bank("01").questions[1].key == "d"
    assert graded.output_type == "execute_result"  # nbgrader reads the number from here
    assert graded.data["text/plain"] == f"{int(right)}"
    assert "Quiz 01" in graded.data["text/html"]


@pytest.mark.further
def _answered(path: Path) -> list[str]:
    return [*json.loads(path.read_text(encoding="utf-8"))["answers"]]


@pytest.mark.timeout(180)
def test_answers_stay_beside_the_notebook_wherever_a_cell_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    lesson, elsewhere, name = tmp_path / "lesson", tmp_path / "lesson" / "mine", f"{SLUG}_answers.json"
    elsewhere.mkdir(parents=True)
    imports, go, answers = (
        "from autograder import answer, predict",
        f"%cd -q {elsewhere}",
        'answer("01.2", "b")',
    )
    _run(lesson, imports, 'answer("01.1", "a")', go, answers, 'predict("1a", "How many?", value=2)')
    assert _answered(lesson / name) == ["01.1", "01.2", "predict:1a"]
    assert not (elsewhere / name).exists()
    (lesson / name).unlink()
    # Under a server of Jupyter the kernel began beside the notebook, whatever came before the import.
    monkeypatch.setenv("JPY_SESSION_NAME", str(lesson / "any.ipynb"))
    _run(lesson, go, imports, answers)
    assert _answered(lesson / name) == ["01.2"]
    monkeypatch.delenv("JPY_SESSION_NAME")
    # VS Code may start it elsewhere, and says which notebook it is.
    _run(elsewhere, f"__vsc_ipynb_file__ = {str(lesson / 'any.ipynb')!r}", imports, 'answer("01.3", "b")')
    assert _answered(lesson / name) == ["01.2", "01.3"]


@pytest.mark.timeout(180)
def test_an_exam_goes_on_in_the_next_kernel_and_is_handed_in_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("JPY_PARENT_PID", "")
    folder = tmp_path / "exam"
    folder.mkdir()
    imports = "from autograder import answer, check_quiz, exam"
    first = _run(
        folder,
        imports,
        'exam("09")',
        FIND + 'find(ipywidgets.RadioButtons, "question 1.2").value = "c"',
        'answer("09.1.3", "a")',
        'check_quiz("09")',
    )
    shown = first[1][1].data["text/plain"]
    assert WIDGET in first[1][1].data and "09.1.15" in shown
    assert _printed(first[3]) == "09.1.3 a\nsaved in 09_skill_exam_answers.json\n"
    assert "13 of 15 questions have no answer yet" in first[4][-1].data["text/html"]

    fill = "for n in range(1, 16): answer(f'09.1.{n}', 'b')"
    press = "buttons = [w for w in _instances.values() if isinstance(w, ipywidgets.Button)]\nbuttons[-1].click()\n"
    second = _run(
        folder,
        imports,
        'exam("09")',
        FIND + 'print(find(ipywidgets.RadioButtons, "question 1.2").value)',
        fill,
        FIND + press + "print(buttons[-1].description)",
        'exam("09")',
        'check_quiz("09")',
    )
    again = second[1][1].data["text/plain"]
    assert again.partition("\n")[0] == shown.partition("\n")[0] == "Quiz 09: Skill exam, attempt 1"
    questions = [line for line in shown.splitlines() if line.startswith("09.1.")]
    assert questions == [line for line in again.splitlines() if line.startswith("09.1.")]
    assert _printed(second[2]).strip() == "c"
    assert _printed(second[4]).strip() == "Begin another attempt"
    assert "Right" in second[5][1].data["text/plain"] or "Not this one" in second[5][1].data["text/plain"]
    graded = second[6][-1]
    assert graded.output_type == "execute_result" and 0 <= float(graded.data["text/plain"]) <= 15
