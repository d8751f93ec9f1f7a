"""What a person is asked to look at, and what nobody is bothered with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autograder.course.lessons import LOW_PRECISION, find_exercise, lesson_ids, load_lesson
from autograder.engine.review import reasons
from autograder.engine.source.notebook import as_python
from tests.autograder.solutions import alternative_sources, reference_sources
from tests.exploits.all_cases import HONEST


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("import gc\ngc.get_objects()", "gc.get_objects"),
        ("import sys\nsys._getframe(1)", "private part"),
        ("from sys import modules", "sys.modules"),
        ("import torch\ntorch.Tensor.item = f", "replaces `torch.Tensor.item`"),
        ("from torch import nn\nM = nn.Module\nM.__call__ = f", "replaces `M.__call__`"),
        ("type(model).forward = f", "replaces"),
        ("import torch\nclass A:\n    def near(self): pass\ntorch.near(1).value = f", "replaces"),
        ("setattr(model, name, f)", "setattr"),
        ("setattr(model, '_modules', f)", "setattr"),
        ("import torch\nsetattr(torch, 'stack', f)", "setattr"),
        ("import torch\nsetattr(torch.nn, 'Linear', f)", "setattr"),
        ("setattr(type(model).forward, 'stack', f)", "setattr"),
        ("def f(self, thing):\n    object.__setattr__(thing, 'value', 1)", "__setattr__"),
        ("def f(self, name):\n    object.__setattr__(self, name, 1)", "__setattr__"),
        ("def f(self):\n    object.__setattr__(self, '_parts', 1)", "__setattr__"),
        ("getattr(torch, 'st' + 'ack')", "name of an attribute"),
        ("getattr(f, '__globals__')", "__globals__"),
        ("for name in ('sum', '__globals__'):\n    getattr(f, name)", "__globals__"),
        ("def f(x, name='sum'):\n    return getattr(x, name)\nf(x, a + b)", "name of an attribute"),
        ("def f(x, name):\n    return getattr(x, name)\nf(x, 'sum')\ng = f", "name of an attribute"),
        ("def f(x, name):\n    return getattr(x, name)\nf(*both)", "name of an attribute"),
        ("def f(x, *name):\n    return getattr(x, name)\nf(x, 'sum')", "name of an attribute"),
        (
            "class A:\n    def __init__(self, x, name='sum'):\n        getattr(x, name)\nA(f, a + b)",
            "name of an attribute",
        ),
        ("@evil\ndef f(x, name='sum'):\n    return getattr(x, name)\nf(x)", "name of an attribute"),
        (
            "def f(x, name='sum'):\n    return getattr(x, name)\nmethodcaller('f', x, a + b)",
            "name of an attribute",
        ),
        ("name = 'sum'\nmatch a + b:\n    case name:\n        getattr(x, name)", "name of an attribute"),
        ("name = 'sum'\nname += suffix\ngetattr(x, name)", "name of an attribute"),
        ("name = name\ngetattr(x, name)", "name of an attribute"),
        ("[getattr(x, name) for name in dir(x)]", "name of an attribute"),
        ("both = [lambda name: getattr(x, name)]", "name of an attribute"),
        ("exec('x')", "exec"),
        ("import torch\nclass A: pass\ntorch = A()\nsetattr(torch, name, f)", "setattr"),
        ("import torch\nvars(torch)['stack'] = f", "vars"),
        ("import torch\nvars(torch).update(stack=f)", "vars"),
        ("vars(type(model)).update(forward=f)", "vars"),
        ("vars(model).update(**parts)", "vars"),
        ("vars(model).update(_modules=f)", "vars"),
        ("def f(self):\n    return vars()", "vars"),
        ("model.__dict__['forward'] = f", "__dict__"),
        (
            "class A:\n    def __get__(self, it, kind):\n        return it.__dict__['f']\nA().__get__(torch, None)",
            "__dict__",
        ),
        ("hook.__closure__[0].cell_contents", "__closure__"),
        ("import os\nos.write(4, b'')", "os.write"),
        ("from os import fork", "os.fork"),
        ("open('f')", "open"),
        ("import threading", "one thread"),
        ("with torch.autocast('cpu'): pass", "autocast"),
        ("import autograder.lessons.lesson_01", "private part"),
    ],
)
def test_means_that_no_exercise_needs_are_noted(cell: str, says: str) -> None:
    assert any(says in reason for reason in reasons(cell, counts=True))


@pytest.mark.parametrize(
    "cell",
    [
        "class A:\n    def near(self): pass\ndef f(a):\n    a.near(1).value += 1",
        "self.epoch = 1",
        "import torch\ntorch.backends.cudnn.benchmark = False",
        "import gc\ngc.disable()",
        "import logging\nlogging.getLogger(__name__).info('x')",
        "def main(): pass\nif __name__ == '__main__':\n    main()",
        "import warnings\nwith warnings.catch_warnings():\n    warnings.warn('x', stacklevel=2)",
        "import os\nos.environ.get('HOME')",
        "import sys\nprint(sys.version)",
        "for p in model.parameters():\n    p.grad = None",
        "import torch\ntorch._foreach_mul_(grads, 0.5)\ntorch.set_num_threads(1)",
        "from typing import NamedTuple\nclass P(NamedTuple):\n    a: int\nnew = P(1)._replace(a=2)._asdict()",
        "class A:\n    def f(self):\n        setattr(self, 'x', self._y)\n        return A._z",
        "with torch.autocast('cpu', enabled=False): pass",
        "getattr(batch, 'labels', None)",
        "for name in ('sum', 'mean'):\n    getattr(losses, name)()",
        "how = 'sum' if is_last else 'mean'\n[getattr(losses, how)() for how in ('max', 'min')]",
        "def f(x, how='mean'):\n    return getattr(x, how)()\nf(x)\nf(x, how='max')",
        "setattr(dataset, 'rng', generator)",
        "setattr(info.dataset, 'rng', generator)",
        "vars(info.dataset).update(rng=generator)",
        "class A:\n    def __post_init__(self):\n        object.__setattr__(self, 'total', 1)",
        "for name, child in model._modules.items():\n    print(name)",
        "class A:\n    def load(self, state):\n        for name in state:\n            setattr(self.a, name, 1)",
        "class A: pass\na = A()\ngetattr(a, kind)()",
        "class A:\n    def state(self):\n        return vars(self) | vars(self.scale) | self.__dict__",
        "class A:\n    def __get__(self, it, kind=None):\n        return it.__dict__[self.name]",
        "def is_view(a, b):\n    return a.data_ptr() == b.data_ptr()",
        "import os\ndef read(path: str | os.PathLike[str]): pass",
        "class A:\n    def f(self, names):\n        return [getattr(self, name) for name in names]",
        "from autograder import check, exercise",
        "def broken(:",
        "\0",
        "x = " + "(" * 1000,
    ],
)
def test_what_honest_cells_do_is_not(cell: str) -> None:
    assert reasons(cell, counts=True) == []


@pytest.mark.parametrize("lesson_id", lesson_ids())
def test_references_are_above_suspicion(lesson_id: str) -> None:
    for exercise in load_lesson(lesson_id).exercises:
        source = reference_sources(lesson_id)[exercise.id]
        found = reasons(source, counts=True, allowed=exercise.means, given=load_lesson(lesson_id).harness)
        assert found == []


def _right_solutions() -> Iterator[tuple[str, str, str]]:
    for lesson_id in lesson_ids():
        for exercise_id, source in reference_sources(lesson_id).items():
            yield "reference", exercise_id, source
        for name, sources in alternative_sources(lesson_id).items():
            yield from ((name, exercise_id, source) for exercise_id, source in sources.items())
    # What a person may be asked to look at has been told apart by hand.
    yield from ((case.name, case.exercise, case.source) for case in HONEST if not case.may_be_flagged)


def test_at_most_one_right_solution_in_a_hundred_is_noted() -> None:
    noted, num_solutions = [], 0
    for name, exercise_id, source in _right_solutions():
        lesson, exercise = find_exercise(exercise_id)
        num_solutions += 1
        if found := reasons(
            as_python(source),
            counts=exercise.kinds == ("property", "count") and not exercise.clock,
            allowed=exercise.means,
            given=lesson.harness,
        ):
            noted.append((name, exercise_id, found))
    assert num_solutions > 250
    assert len(noted) <= num_solutions / 100, noted


def test_16_bit_numbers_are_noted_only_where_they_are_not_asked_for() -> None:
    cell = "with torch.autocast('cpu', torch.bfloat16):\n    loss = model(x)"
    assert reasons(cell, counts=True)
    assert reasons(cell, counts=True, allowed=LOW_PRECISION) == []


def test_what_an_exercise_is_about_is_not_noted() -> None:
    cell = "import os\nos.fsync(1)\nos.write(1, b'')"
    assert len(reasons(cell, counts=True)) == 2
    (reason,) = reasons(cell, counts=True, allowed=("os.fsync",))
    assert "os.write" in reason


@pytest.mark.parametrize(
    ("cell", "allowed"),
    [
        ("from torch.utils.data import DataLoader\nDataLoader(d, num_workers=4)", ("num_workers",)),
        ("from torch.utils.data import DataLoader\nDataLoader(d, num_workers=4)", ("multiprocessing",)),
        ("from concurrent.futures import ProcessPoolExecutor", ("multiprocessing",)),
        ("import multiprocessing\nmultiprocessing.get_context('fork').Pool(2)", ("multiprocessing",)),
        ("from pathlib import Path\nPath('x').read_text()\nopen('x')", ("open",)),
        ("import tempfile\nimport zipfile", ("open",)),
        ("for block in model.blocks:\n    block.forward = f", (".forward",)),
        ("block.__class__ = A", ("__class__",)),
        ("import torch\ngetattr(torch, name)", ("getattr(torch, …)",)),
    ],
)
def test_what_an_exercise_declares_is_not_noted(cell: str, allowed: tuple[str, ...]) -> None:
    assert reasons(cell, counts=False)
    assert reasons(cell, counts=False, allowed=allowed) == []


@pytest.mark.parametrize(
    ("cell", "allowed"),
    [
        ("import torch\ntorch.nn.Linear.forward = f", (".forward",)),
        ("type(model).forward = f", (".forward",)),
        ("import torch\nsetattr(torch.Tensor, name, f)", ("setattr",)),
        ("import torch\nput = lambda k: setattr(k, name, f)\nput(torch.Tensor)", ("setattr",)),
        ("import numpy as np\ngetattr(np, name)", ("getattr(torch, …)",)),
        ("import torch\ngetattr(torch, name).fork()", ("getattr(torch, …)",)),
        ("model.__class__.__bases__", ("__class__",)),
        ("open('/proc/self/mem', 'wb')", ("open",)),
        ("import os\nos.fork()", ("open", "multiprocessing")),
    ],
)
def test_what_an_exercise_declares_opens_nothing_else(cell: str, allowed: tuple[str, ...]) -> None:
    assert reasons(cell, counts=False, allowed=allowed)


def test_what_the_exercise_hands_in_has_attributes_and_methods_of_its_own() -> None:
    harness = "class Run:\n    def stop(self):\n        self.num_seen = 1\n"
    assert reasons("run.num_seen", counts=False)
    assert reasons("run.num_seen", counts=False, given=harness) == []
    (reason,) = reasons("run.stop = f", counts=False, given=harness)
    assert "replaces `run.stop`" in reason


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param("x = " + "+1" * 60_000, id="deep"),
        pytest.param("x = " + "-" * 60_000 + "1", id="deep by signs"),
        pytest.param("x" + ".a" * 20_000, id="a long chain"),
        pytest.param("x = 1\n" * 2_500_000, id="5 MB"),
        pytest.param("import torch\n" + "t = t.a\n" + "t = torch\n", id="a name of itself"),
        pytest.param("a0 = 1\n" + "".join(f"a{n} = a{n - 1}.os\n" for n in range(1, 9_000)), id="chained"),
    ],
)
def test_what_cannot_be_read_is_noted(cell: str) -> None:
    assert reasons(cell, counts=True)


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param("x = " + "(" * 600 + "1" + ")" * 600, id="600 parentheses, which Python refuses"),
        pytest.param("def f():\n" + "".join(f"    x{n} = 0\n" for n in range(12_000)), id="many names"),
        pytest.param("".join(f"x{n} = x{n - 1}\n" for n in range(1, 10_000)), id="each the one before"),
    ],
)
def test_what_is_long_and_plain_is_read(cell: str) -> None:
    assert reasons(cell, counts=True) == []


def test_60_000_names_are_noted_for_their_length_alone() -> None:
    (reason,) = reasons("def f():\n" + "".join(f"    x{n} = 0\n" for n in range(60_000)), counts=True)
    assert "too long to be read" in reason


def test_threads_are_suspect_only_where_counts_would_miss_them() -> None:
    assert reasons("import threading", counts=False) == []
