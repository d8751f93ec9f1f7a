"""What `workbook build` has written down of the lessons' texts (`notebooks/describing`)."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any


@functools.cache
def written() -> dict[str, dict[str, Any]]:
    """By lesson id, in order: `title`, `minutes`, `goals`, `sections` and `exercises` with their `hints`."""
    text = Path(__file__).with_name("course.json").read_text(encoding="utf-8")
    lessons: dict[str, dict[str, Any]] = json.loads(text)
    return lessons
