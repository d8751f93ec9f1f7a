"""A lesson's main path can be done in ninety minutes."""

from __future__ import annotations

import nbformat
import pytest

from tools.lesson_sizes import RELEASE, size_of

RESHAPED = [
    "01_efficient_training_loops",
    "02_mixed_precision",
    "03_batch_size_and_accumulation",
    "04_checkpointing_and_early_stopping",
    "05_hyperparameter_tuning",
]


@pytest.mark.parametrize("name", RESHAPED)
def test_the_main_path_is_short(name: str) -> None:
    size = size_of(nbformat.read(RELEASE / name / f"{name}.ipynb", as_version=4))
    assert size.words <= 2_500 and size.lines <= 350


def test_what_is_folded_or_in_more_does_not_count() -> None:
    def markdown(text: str) -> nbformat.NotebookNode:
        return nbformat.v4.new_markdown_cell(text)

    hidden = nbformat.v4.new_code_cell("a = 1\nb = 2", metadata={"jupyter": {"source_hidden": True}})
    notebook = nbformat.v4.new_notebook(
        cells=[
            markdown(
                "# One two\n\n<details><summary>Hint</summary>\n\nfour\n\n</details> [three](a/b.ipynb#c-d)"
            ),
            hidden,
            nbformat.v4.new_code_cell('@exercise("1.1")\n\ndef f(): ...'),
            markdown("## More\n\nfive"),
            nbformat.v4.new_code_cell("c = 3"),
        ]
    )
    size = size_of(notebook)
    assert (size.words, size.lines, size.before_exercise) == (3, 2, 2)
    assert (size.more_words, size.more_lines) == (2, 1)
