"""Code blocks of a page, run in their order in one namespace; `print(…)  # this` must print this."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any


def python_blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def run_blocks(page: Path, text: str) -> dict[str, Any]:
    """Returns the namespace. An error names the line of `page`; `text` is a part of it."""
    whole, namespace = page.read_text(encoding="utf-8"), {"__name__": "blocks"}
    for block in python_blocks(text):
        first = whole[: whole.index(block)].count("\n")
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile("\n" * first + block, str(page), "exec"), namespace)
        promised = re.findall(r"^ *print\(.*\)  # (.+)$", block, re.MULTILINE)
        if promised:
            assert output.getvalue().splitlines() == promised, f"{page.name}, block at line {first + 1}"
    return namespace
