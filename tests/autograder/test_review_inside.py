"""Means of getting inside a library by what it hands out itself, and what honest cells do with the same words.

Each is a cell of its own, grouped by the kind of its trick, as in `test_review_means`.
"""
# ruff: noqa: E501

from __future__ import annotations

import ast

import pytest

from autograder.engine.review import reasons

CLASSES_THAT_NOBODY_NAMED = {
    "of a stream": "import sys\ntype(sys.stderr)(3)",
    "of a stream's inside": "import sys\nRaw = type(sys.stderr.buffer.raw)\nRaw(3)",
    "of a stream's inside, by detach": "import sys\nsys.stdout.detach()",
    "of a stream by an alias": "from sys import stderr as s\ns.buffer.raw",
    "of a function": "def f(): pass\ntype(f)(c, {})",
    "of an argument": "def f(x):\n    return type(x)(3)",
    "of a value of a library": "import torch\ntype(torch.float32)()",
    "kept": "K = {}\nK['a'] = type(x)\nK['a'](3)",
    "kept on itself": "class A:\n    def f(self, x):\n        self.kind = type(x)",
    "returned": "def f(x):\n    return type(x)\nf(y)(3)",
    "by partial": "import functools\nfunctools.partial(type(x), 3)()",
    "in a list": "a, b = [type(x), 1]\na(3)",
    "handed to its own function": "def make(kind):\n    return kind(3)\nmake(type(x))",
    "by an if": "(type(x) if y else int)(3)",
    "by a walrus": "(k := type(x))(3)",
    "by the class of an object": "x.__class__(3)",
}
MEMORY = {
    "an array over bytes": "import numpy as np\nnp.ndarray((1,), dtype=object, buffer=b)",
    "an array over bytes, by place": "import numpy as np\nnp.ndarray((1,), object, b)",
    "an array over bytes, starred": "import numpy as np\nnp.ndarray(*how)",
    "an array over bytes, by a dict": "import numpy as np\nnp.ndarray((1,), **how)",
    "an array over bytes, handed on": "import functools, numpy as np\nfunctools.partial(np.ndarray, (1,), object)(b)",
    "an array over bytes, by its new": "import numpy as np\nnp.ndarray.__new__(np.ndarray, (1,), object, b)",
    "an array over bytes, a class of its own": "import numpy as np\nclass A(np.ndarray): pass\nA((1,), object, b)",
    "an array over bytes, by its parent": (
        "import numpy as np\nclass A(np.ndarray):\n    def __new__(cls, b):\n        return super().__new__(cls, (1,), object, b)"
    ),
    "a record array over bytes": "import numpy as np\nnp.recarray((1,), dtype=[('a', object)], buf=b)",
    "records over bytes": "import numpy as np\nnp.rec.array(b, dtype=[('a', object)])",
    "indices that nobody looks at": "import scipy.sparse",
    "indices that nobody looks at, of torch": "import torch\ntorch.sparse_csr_tensor(a, b, c)",
    "indices that nobody looks at, by a method": "x.to_sparse_csr().col_indices()[0] = 9",
    "rows that nobody looks at": "from scipy.linalg import lu_solve",
    "rows that nobody looks at, of torch": "import torch\ntorch.linalg.lu_solve(a, b, c)",
    "the functions of a library's library": "from scipy.linalg import get_blas_funcs",
    "a function's address": "import numpy as np\nnp.random.PCG64().cffi",
    "names worked out": "class A:\n    def __getattr__(self, name):\n        if name.endswith('y_interface__'):\n            return d\n        raise AttributeError",
    "names worked out, in a table": "class A:\n    def __getattr__(self, name):\n        return self.d[name[::-1]]",
    "names worked out, by a lambda": "class A:\n    __getattr__ = lambda self, name: d",
    "names worked out, by another function": "class A:\n    __getattr__ = look",
    "names worked out, in a condition": "class A:\n    if True:\n        def __getattr__(self, name):\n            return d",
    "names worked out, decorated": "class A:\n    @d\n    def __getattr__(self, name):\n        return self[name]",
    "a name of its class made": "class A: pass\nsetattr(A, '__array_' + x, d)",
    "a name of its class made, by type": "class A:\n    def f(self):\n        setattr(type(self), a + b, d)",
    "a name of its class made, as cls": "class A:\n    @classmethod\n    def f(cls, name):\n        setattr(cls, name, d)",
    "an enumeration of made names": "import enum\nenum.Enum('A', {'X': 1, a + b: d})",
    "an enumeration of made names, in a list": "import enum\nenum.Enum('A', [('X', 1), (a + b, d)])",
    "an enumeration of made names, by a name": "import enum\nenum.Enum('A', names)",
}
NAMES_OF_ITS_OWN_FOR_OTHERS = {
    "the dict of all hooks": "def hooks_dict_ref(): pass\nmodel.register_forward_hook(f).hooks_dict_ref()",
    "the dict of all hooks, by a text": "NAMES = 'hooks_dict_ref'\nhandle.hooks_dict_ref()",
    "the dict of all hooks, by a keyword": "dict(hooks_dict_ref=1)\nhandle.hooks_dict_ref()",
    "the dict of all hooks, by a field": "class A:\n    hooks_dict_ref = None\nhandle.hooks_dict_ref()",
    "the dict of all hooks, by getattr": "class A:\n    hooks_dict_ref = None\ngetattr(handle, 'hooks_dict_ref')()",
    "the dict of all hooks, by a pattern": "class A:\n    hooks_dict_ref = None\nmatch handle:\n    case object(hooks_dict_ref=h):\n        h()",
    "another's hook": "handle = model.register_forward_hook(f)\nhandle.id = handle.id - 1\nhandle.remove()",
    "another's hook, its name its own": "class A:\n    id = 1\nhandle.id -= 1",
    "another's hook, by setattr": "setattr(handle, 'id', 1)",
    "a graph": "def graph(): pass\nmodule.graph.nodes",
    "the text of a graph": "def on_generate_code(): pass\nx.on_generate_code(f)",
    "a frame of a task": "import asyncio\nSAYS = 'get_stack'\nasyncio.current_task().get_stack()",
    "what a dispatch calls": "class A:\n    register = registry = 1\nkind.register(f)",
    "another process": "SAYS = 'subprocess_exec'\nloop.subprocess_exec(f, '/bin/true')",
    "what is kept in what it was handed": "NAMES = '_losses'\ndel run._losses[:]",
    "what is kept in it, by a keyword": "dict(_losses=1)\nrun._losses.clear()",
    "what is kept in it, stored": "def _losses(): pass\nrun._losses = []",
    "the originals of a copy": "import copy\nmemo = {}\ncopy.deepcopy(model, memo)",
    "the originals of a copy, by name": "import copy\ncopy.deepcopy(model, memo=d)",
    "the originals of a copy, from within": (
        "import copy\nclass A:\n    def __deepcopy__(self, memo):\n        FOUND.extend(memo[id(memo)])\n        return self\ncopy.deepcopy([model, A()])"
    ),
    "the originals of a copy, partly": "import copy, functools\nfunctools.partial(copy.deepcopy, model)(d)",
}
TEXT_THAT_IS_RUN = {
    "a backend": "import torch\ntorch.compile(f, backend=look)",
    "a backend, a lambda": "import torch\ntorch.compile(f, backend=lambda g, x: g)",
    "a backend of a model": "model.compile(backend=look)",
    "a backend, decorating": "import torch\n@torch.compile(backend=look)\ndef f(x): pass",
    "a backend by a dict": "import torch\ntorch.compile(f, **how)",
    "a backend by partial": "import functools, torch\nfunctools.partial(torch.compile, backend=look)(f)",
    "a backend as a value": "import torch\n[torch.compile][0](f, backend=look)",
    "passes of the compiler": "import torch\ntorch.compile(f, options={'post_grad_custom_post_pass': look})",
    "passes of the compiler, kept": "import torch\ntorch.compile(f, options=o)",
    "a text for an annotation": "def f(x: 'Note[print.__self__]'): pass",
    "a text for an annotation, a part": "import typing\ndef f(x: typing.Optional['print.__self__']): pass",
    "a text for an annotation, in a list": "def f(x: list['print.__self__']): pass",
    "a text for an annotation, of what is returned": "def f() -> 'print.__self__': pass",
    "a text for an annotation, of a field": "class A:\n    x: 'print.__self__' = 1",
    "a text for an annotation, of a module": "import torch\ndef f(x: 'torch.hub.load'): pass",
    "a text within a text": "def f(x: 'list[\"print.__self__\"]'): pass",
    "a made text for an annotation": "def f(x: 'No' + 'te'): pass",
    "a made text for an annotation, a part": "import typing\nT = 'No' + 'te[x]'\ndef f(x: typing.Optional[T]): pass",
    "a made text for an annotation, by an alias": "import typing\nT = 'a' + 'b'\nO = typing.Optional[T]\ndef f(x: O): pass",
    "a made text for an annotation, kept as text": "T = 'print.__self__'\ndef f(x: T): pass",
    "a made text for an annotation, formatted": "def f(x: f'{a}'): pass",
    "a made text for an annotation, by a call": "def f(x: make()): pass",
    "a made text for an annotation, an argument": "def f(t):\n    def g(x: t): pass\n    return g",
    "annotations of pipes": "from torch.utils.data import IterDataPipe",
}
FILES_BY_OTHERS = {
    "a text written for it": "from course_lib.callbacks import atomic_write_text\natomic_write_text(p, 'x')",
    "a tensor written for it": "import torch\ntorch.save(x, 'x.pt')",
    "a tensor written for it, at a path": "import torch\nfrom pathlib import Path\ntorch.save(x, f=Path('a') / 'x.pt')",
    "a tensor written for it, by a name": "import torch\nname = 'x.pt'\ntorch.save(x, name)",
    "a file made for it": "import course_lib.callbacks as c\nc.atomic_file(p)",
}
DESCRIPTORS = {
    "copied": "import os\nos.dup(3)",
    "closed": "import os\nos.close(3)",
    "replaced": "import os\nos.dup2(1, 3)",
    "written to": "import os\nos.write(4, b'x')",
    "opened": "open(3, 'rb', closefd=False)",
    "opened by os": "import os\nos.fdopen(5)",
}
GROUPS = {
    "descriptor": DESCRIPTORS,
    "class": CLASSES_THAT_NOBODY_NAMED,
    "memory": MEMORY,
    "name": NAMES_OF_ITS_OWN_FOR_OTHERS,
    "text": TEXT_THAT_IS_RUN,
    "file": FILES_BY_OTHERS,
}  # fmt: skip
MEANS = [
    pytest.param(cell, id=f"{group}: {name}")
    for group, cells in GROUPS.items()
    for name, cell in cells.items()
]


@pytest.mark.parametrize("cell", MEANS)
def test_a_means_is_seen(cell: str) -> None:
    ast.parse(cell)  # or it is no means at all
    assert reasons(cell, counts=False)


@pytest.mark.parametrize(
    "cell",
    [
        "import sys\nprint('x', file=sys.stderr)\nsys.stdout.write('x')\nsys.stdout.flush()",
        "if type(x) is not type(y) or type(x) in (int, str):\n    raise TypeError(f'{type(x).__name__} {type(y)}')",
        "kinds = {int: 1}\nkinds[type(x)]\nlen({type(one) for one in values} & {int})",
        "class A:\n    def f(self):\n        return type(self)(1)",
        "def lower(kind):\n    class Lower(kind):\n        def forward(self, x):\n            return kind.forward(self, x)\n    return Lower\nlower(type(block))",
        "import numpy as np\nisinstance(x, np.ndarray)\nnp.ndarray((2, 3), np.float32)",
        "import numpy as np\ndef f(x: np.ndarray) -> 'np.ndarray | None': pass",
        "class A(dict):\n    __getattr__ = dict.__getitem__",
        "class A:\n    def __getattr__(self, name):\n        try:\n            return self.parts[name]\n        except KeyError:\n            raise AttributeError(name) from None",
        "class A(dict):\n    def __getattr__(self, name):\n        if name in self:\n            return self[name]\n        raise AttributeError(name)",
        "class A:\n    def load(self, state):\n        self.__dict__.update(state)\n        for name, value in state.items():\n            setattr(self, name, value)",
        "import enum\nenum.Enum('A', 'x y z')\nenum.Enum('B', ['x', 'y'])\nenum.Enum('C', {'x': 1})\nenum.Enum(1)",
        "import copy\nclass A:\n    def __deepcopy__(self, memo):\n        new = A()\n        memo[id(self)] = new\n        new.x = copy.deepcopy(self.x, memo)\n        return new\ncopy.deepcopy(model)",
        "handle = model.register_forward_hook(f)\nhandle.remove()",
        "import torch\ntorch.compile(f, backend='eager')\ntorch.compile(f, mode='reduce-overhead', fullgraph=True)",
        "import torch\n@torch.compile\ndef f(x):\n    return x\ng = torch.compile(f, options={'triton.cudagraphs': True})",
        "backend = 'inductor' if fast else 'eager'\nmodel.compile(backend=backend)",
        "class A:\n    def f(self, other: 'A', *, how: 'list[int] | None' = None) -> 'tuple[A, ...]': pass",
        "from typing import Annotated, Literal, Optional, TypeVar\nT = TypeVar('T', bound='A')\nWay = Literal['a.b', 'c']\ndef f(x: T, y: Literal['a.b'], z: Way, w: Annotated[int, 'x.y'], v: Optional['A']) -> 'T': pass",
        "import re\nimport torch\nBatch = dict[str, torch.Tensor]\ndef f(x: Batch, y: re.Pattern, z: 'Batch') -> 'Batch': pass",
        "from collections import namedtuple\nP = namedtuple('P', 'x y')\ndef f(x: P, y: 'not a type at all'): pass",
        "class A:\n    def __init__(self):\n        self._kept = {}\ndef total(things):\n    return sum(len(one._kept) for one in things)",
    ],
)  # fmt: skip
def test_what_honest_cells_do_with_the_same_words_is_not(cell: str) -> None:
    assert reasons(cell, counts=False) == []


@pytest.mark.parametrize("cell", DESCRIPTORS.values())
def test_a_descriptor_that_it_has_not_opened_is_seen_where_files_are_asked_for(cell: str) -> None:
    allowed = ("open", *(f"os.{name}" for name in ("close", "dup", "dup2", "fdopen", "write")))
    assert reasons(cell, counts=False, allowed=allowed)
    assert (
        reasons(
            cell.replace("3", "file").replace("4", "file").replace("5", "file"), counts=False, allowed=allowed
        )
        == []
    )


def test_a_progress_bar_of_its_own_is_called_by_another_thread() -> None:
    plain = "from tqdm import tqdm\nimport sys\nfor x in tqdm(range(9), file=sys.stderr):\n    pass"
    assert reasons(plain, counts=True) == []
    for cell in (
        "from tqdm import tqdm\nclass Bar(tqdm):\n    def refresh(self): pass",
        "from tqdm import tqdm\nclass File:\n    def write(self, text): pass\ntqdm(x, file=File())",
    ):
        assert reasons(cell, counts=True)
        assert reasons(cell, counts=False) == []


def test_what_may_be_called_may_not_be_handed_on() -> None:
    cell = "import functools\nfunctools.partial(getattr, print)('__self__')"
    assert reasons(cell, counts=False, allowed=("getattr", "setattr"))


def test_a_text_among_a_harnesss_keys_frees_no_attribute_of_a_library() -> None:
    harness = "KEYS = ['hooks_dict_ref']\nclass Run:\n    def __init__(self):\n        self._seen = 1\n"
    assert reasons("handle.hooks_dict_ref()", counts=False, given=harness)
    cell = "class A:\n    def __init__(self):\n        self._seen = 0\nrun._seen"
    assert reasons(cell, counts=False, given=harness)
