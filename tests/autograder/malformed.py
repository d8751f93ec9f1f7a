"""Submissions as they really come: more than 200 broken, odd and hostile files, made from one good notebook."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

Notebook = dict[str, Any]
ODD_VALUES: tuple[Any, ...] = (
    None,
    3,
    2.5,
    True,
    "text",
    [],
    {},
    [None],
    {"a": None},
    "\ud800",
    "\x00",
    "9" * 400,
)


def corpus(notebook: Notebook) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each file."""
    text = json.dumps(notebook, indent=1)
    yield from _not_json(text)
    yield from _encodings(text)
    for field in ("cells", "metadata", "nbformat", "nbformat_minor"):
        for index, value in enumerate(ODD_VALUES):
            yield f"top-{field}-{index}", _dumped(notebook | {field: value})
    for field in ("cell_type", "source", "metadata", "outputs", "id", "execution_count"):
        for index, value in enumerate(ODD_VALUES):
            yield (
                f"cell-{field}-{index}",
                _dumped(_each(notebook, lambda cell, f=field, v=value: cell | {f: v})),
            )
    for index, value in enumerate(ODD_VALUES):
        mark = {"nbgrader": value}
        yield f"nbgrader-{index}", _dumped(_each(notebook, lambda cell, m=mark: cell | {"metadata": m}))
        yield f"grade-id-{index}", _dumped(_each(notebook, lambda cell, v=value: _marked(cell, grade_id=v)))
        yield f"points-{index}", _dumped(_each(notebook, lambda cell, v=value: _marked(cell, points=v)))
        yield f"cells-of-{index}", _dumped(notebook | {"cells": [value, *notebook["cells"], value]})
    yield from _handled(notebook)


def _not_json(text: str) -> Iterator[tuple[str, bytes]]:
    chance = random.Random(0)
    for index in range(30):
        yield f"cut-{index}", text.encode()[: chance.randrange(len(text))]
    for index in range(30):
        data = bytearray(text.encode())
        for _ in range(20):
            data[chance.randrange(len(data))] = chance.randrange(256)
        yield f"flipped-{index}", bytes(data)
    for name, data in {
        "empty": b"",
        "zeros": bytes(1000),
        "html": b"<!doctype html><title>Sign in</title>",
        "zip": b"PK\x03\x04" + bytes(range(256)),
        "list": b"[]",
        "null": b"null",
        "number": b"1e999",
        "nan": b'{"cells": NaN}',
        "deep": b"[" * 100_000,
        "deep-dict": b'{"cells":' * 50_000,
        "twice": (text + text).encode(),
        "merge-conflict": text.replace(' "cells"', '<<<<<<< mine\n "cells"', 1).encode(),
    }.items():
        yield name, data


def _encodings(text: str) -> Iterator[tuple[str, bytes]]:
    accented = text.replace("course", "cöurse")
    for encoding in ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "latin-1"):
        yield (
            f"encoding-{encoding}",
            json.dumps(json.loads(accented), ensure_ascii=False).encode(encoding, "replace"),
        )


def _handled(notebook: Notebook) -> Iterator[tuple[str, bytes]]:
    """What people and their editors do."""
    cells = notebook["cells"]
    output = {"output_type": "stream", "name": "stdout", "text": "9" * 5_000_000}
    others: dict[str, Notebook] = {
        "no-cells": notebook | {"cells": []},
        "reversed": notebook | {"cells": cells[::-1]},
        "doubled": notebook | {"cells": cells * 2},
        "no-ids": _each(
            notebook | {"nbformat_minor": 2}, lambda cell: {k: v for k, v in cell.items() if k != "id"}
        ),
        "one-id": _each(notebook, lambda cell: cell | {"id": "same"}),
        "no-marks": _each(notebook, lambda cell: cell | {"metadata": {}}),
        "all-locked": _each(notebook, lambda cell: _marked(cell, locked=True, grade=True, points=1e9)),
        "all-markdown": _each(notebook, lambda cell: cell | {"cell_type": "markdown"}),
        "large-outputs": _each(
            notebook, lambda cell: cell | {"outputs": [output]} if cell is cells[-1] else cell
        ),
        "other-kernel": notebook
        | {"metadata": {"kernelspec": {"name": "julia-1.9", "display_name": "Julia"}}},
        "python-2": notebook | {"metadata": {"kernelspec": {"name": "python2", "display_name": "Python 2"}}},
        "format-3": {
            "nbformat": 3,
            "metadata": {},
            "worksheets": [{"cells": [c | {"input": c["source"]} for c in cells]}],
        },
        "format-99": notebook | {"nbformat": 99},
        "other-course": notebook | {"cells": [c for c in cells if "exercise" not in "".join(c["source"])]},
        "old-schema": _each(notebook, lambda cell: _marked(cell, schema_version=1)),
        "new-schema": _each(notebook, lambda cell: _marked(cell, schema_version=99)),
        "shell-lines": _each(
            notebook, lambda cell: cell | {"source": "!rm -rf ~\n" + "".join(cell["source"])}
        ),
        "carriage-returns": _each(
            notebook, lambda cell: cell | {"source": "".join(cell["source"]).replace("\n", "\r\n")}
        ),
        "tabs": _each(
            notebook, lambda cell: cell | {"source": "".join(cell["source"]).replace("    ", "\t")}
        ),
        "many-cells": notebook
        | {"cells": [*cells, *({"cell_type": "markdown", "metadata": {}, "source": ""},) * 6000]},
    }
    for name, made in others.items():
        yield name, _dumped(made)


def _each(notebook: Notebook, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Notebook:
    return notebook | {"cells": [change(cell) for cell in notebook["cells"]]}


def _marked(cell: dict[str, Any], **fields: Any) -> dict[str, Any]:
    made = copy.deepcopy(cell)
    made["metadata"]["nbgrader"] = (
        made["metadata"].get("nbgrader", {"grade_id": "x", "grade": False}) | fields
    )
    return made


def _dumped(notebook: Notebook) -> bytes:
    return json.dumps(notebook).encode()
