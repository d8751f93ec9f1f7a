"""What a cell causes at run time, itself or through a library, is told and flagged; what libraries do anyway is not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest

from autograder.course.lessons import load_lesson
from autograder.engine import told
from autograder.engine.check import check_source
from autograder.engine.job import Job
from autograder.engine.told import Deed
from autograder.engine.workers import CheckFailed, Worker

HARNESS = load_lesson("00").harness
SPEEDUP = """
@exercise("0.1")
def speedup(baseline_seconds, candidate_seconds):
    BODY
    if baseline_seconds <= 0 or candidate_seconds <= 0:
        raise ValueError
    return baseline_seconds / candidate_seconds
"""


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker()
    made.load(HARNESS, SPEEDUP.replace("BODY", "pass"), "speedup")
    yield made
    made.kill()


def _said(worker: Worker, cell: str, *, allowed: tuple[str, ...] = ()) -> list[str]:
    """What is said of a cell that is run, whatever `review` says of it."""
    worker.told.deeds.clear()
    with contextlib.suppress(CheckFailed):  # what it is told of may be closed to it as well
        worker.load(HARNESS, cell + "\n\ndef entry():\n    pass\n", "entry")
    worker.call("switches")
    return told.reasons(worker.told.deeds, allowed=allowed)


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("import sys; sys._getframe(0)", "uses `sys._getframe` (line 1)"),
        (
            "import sys\nfrom functools import reduce\nreduce(lambda _, n: sys._getframe(n), [0, 1])",
            "(line 3)",
        ),
        ("import inspect; inspect.stack()", "uses `sys._getframe` by `inspect.stack`"),
        ("import logging; logging.currentframe()", "uses `sys._getframe` by `logging.<lambda>`"),
        ("import sys; sys._current_frames()", "uses `sys._current_frames`"),
        ("import gc; gc.get_objects()", "uses `gc.get_objects`"),
        ("import gc; gc.get_referrers(gc)", "uses `gc.get_referrers`"),
        ("(lambda: (yield))().gi_frame", "uses `.gi_frame`"),
        ("import ctypes; ctypes.string_at(id(1), 4)", "uses `ctypes.string_at`"),
        (
            "import numpy as np; np.ctypeslib.as_ctypes(np.zeros(1))",
            "by `numpy.ctypeslib._ctypeslib.as_ctypes`",
        ),
        ("exec('1')", "runs text as code by `exec`"),
        ("eval('1')", "runs text as code by `exec`"),
        ("compile('1', 'torch/__init__.py', 'eval')", "runs text as code by `compile`"),
        ("import timeit; timeit.timeit('1', number=1)", "runs text as code by `timeit.timeit`"),
        ("import code; code.InteractiveInterpreter().runsource('1')", "runs text as code by `code."),
        ("import pickle; pickle.loads(b'cbuiltins\\nabs\\n.')", "unpickles `builtins.abs`"),
        (
            "import io, torch\nfile = io.BytesIO()\ntorch.save(Exception(), file)\nfile.seek(0)\n"
            "torch.load(file, weights_only=False)",
            "Exception` by `torch.serialization.load`",
        ),
        ("import os\nif not os.fork():\n    os._exit(0)", "starts a process by `os.fork`"),
        ("import os; os.posix_spawn('/bin/true', ['true'], {})", "starts a process by `os.posix_spawn`"),
        ("import subprocess; subprocess.run(['true'])", "starts a process by `subprocess.run`"),
        ("import os; os.system('true')", "starts a process by `os.system`"),
        (
            "import multiprocessing as m; p = m.Process(target=int); p.start(); p.join()",
            "starts a process by `multi",
        ),
        (
            "from torch.utils.data import DataLoader\nlist(DataLoader([1, 2], num_workers=1))",
            "starts a process by `torch.utils.data.dataloader.DataLoader.__iter__`",
        ),
        ("import wave", "imports `wave`"),
        ("__import__('wave')", "imports `wave`"),
        ("import importlib; importlib.import_module('chunk')", "by `importlib.import_module`"),
        ("import runpy; runpy.run_module('this')", "by `runpy.run_module`"),
        ("import socket; socket.socketpair()", "uses `socket.__new__`"),
        ("import marshal; marshal.loads(marshal.dumps(1))", "uses `marshal.loads`"),
        ("(lambda: 0).__code__.replace(co_name='f')", "uses `code.__new__`"),
        ("open('/'.join(['', 'pr' + 'oc', 'self', 'maps']))", "the system's own files, `/proc/self/maps`"),
        ("import os\nos.chdir('/')\nopen('pr' + 'oc/self/maps')", "the system's own files"),
        ("import os\nos.symlink('/pr' + 'oc/self', 'x')", "the system's own files"),
        ("import os\nos.listdir(b'/pr' + b'oc/self/fd')", "the system's own files"),
        (
            "import os\nlist(os.walk('/sy' + 's/kernel'))",
            "the system's own files, `/sys/kernel` by `os._walk`",
        ),
        (
            "from pathlib import Path\n(Path('/') / ('pr' + 'oc') / 'self' / 'maps').read_text()",
            "the system's own files, `/proc/self/maps` by `pathlib.Path.read_text`",
        ),
        (
            "from concurrent.futures import ThreadPoolExecutor as Pool\nwith Pool(1) as pool:\n"
            "    pool.submit(open, '/pr' + 'oc/self/maps').result()",
            "the system's own files, `/proc/self/maps` by `concurrent.futures.thread._WorkItem.run`",
        ),
        (
            "class A(str):\n    def startswith(self, *_): return False\nopen(A('/pr' + 'oc/self/maps'))",
            "own files",
        ),
        (
            "import io\nclass A:\n    def __fspath__(self): return 'loaded.json'\nio.FileIO(A())",
            "the system's own files",
        ),
        ("import io\nio.FileIO(3, closefd=False)", "the system's own files, `descriptor 3`"),
        ("import torch\ntorch.load('x.pt')", "opens the file `x.pt` by `torch.serialization.load`"),
        (
            "import numpy as np\nnp.savetxt('x', np.zeros(1))",
            "opens the file `x` by `numpy.lib._npyio_impl.savetxt`",
        ),
        ("import io\nio.open('x', 'w')", "opens the file `x`"),
        (
            "import gc\nfrom concurrent.futures import ThreadPoolExecutor as Pool\nwith Pool(1) as pool:\n"
            "    pool.submit(gc.get_objects).result()",
            "uses `gc.get_objects` by `concurrent.futures.thread._WorkItem.run`",
        ),
        (
            "from concurrent.futures import ThreadPoolExecutor as Pool\nwith Pool(1) as pool:\n"
            "    pool.submit(exec, '1').result()",
            "runs text as code by `concurrent.futures.thread._WorkItem.run`",
        ),
        (
            "import os, threading\nt = threading.Thread(target=os.posix_spawn, args=('/bin/true', ['true'], {}))\n"
            "t.start(), t.join()",
            "starts a process by `threading.Thread.run`",
        ),
        (
            "import contextlib, gc\nwith contextlib.ExitStack() as stack:\n    stack.callback(gc.get_objects)",
            "uses `gc.get_objects` by `contextlib.ExitStack.__exit__`",
        ),
        (
            "import functools\n@functools.singledispatch\ndef f(x): ...\n@f.register\ndef g(x: 'list[int]'): ...",
            "runs text as code by `functools.singledispatch",
        ),
        (
            "import torch.fx\nm = torch.fx.symbolic_trace(torch.nn.Linear(1, 1))\nm.recompile()\nm(torch.zeros(1))",
            "runs text as code by `torch.fx",
        ),
        (
            "import torch.fx\ng = torch.fx.symbolic_trace(torch.nn.Identity()).graph\n"
            "g.on_generate_code(lambda _: lambda body: ['import wave\\n', *body])\n"
            "m = torch.fx.GraphModule(torch.nn.Identity(), g)\nm.recompile()\nm(torch.zeros(1))",
            "imports `wave` (in code, or a thread, that a library runs for it)",
        ),
        (
            "from collections import namedtuple\n"
            + "".join(f"P{n} = namedtuple('P{n}', 'a b')\n" for n in range(300))
            + "exec('1')",
            "runs text as code by `exec` (line 302)",
        ),
    ],
)
def test_what_the_cell_does_or_has_done_is_said(worker: Worker, cell: str, says: str) -> None:
    said = _said(worker, cell)
    assert any(says in reason for reason in said), said
    assert all(reason.startswith("the cell ") for reason in said)


INNOCENT = """
import copy, dataclasses, enum, functools, inspect, io, logging, random, statistics, tempfile, traceback, typing
import warnings
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from tqdm import tqdm
import numpy as np
import torch
import torch.nn.functional as F

P = namedtuple("P", "a b")
class N(typing.NamedTuple):
    a: int
T = typing.TypeVar("T")
@dataclasses.dataclass(frozen=True, order=True)
class D:
    a: int = 1
class E(enum.Enum):
    A = enum.auto()
@functools.singledispatch
def told(x): ...
@told.register
def _(x: int): ...
@functools.lru_cache
def kept(x): return x
logging.getLogger("cell").warning("looked at %s", 1)
warnings.warn("looked at")
with tempfile.TemporaryFile() as file:
    torch.save({"a": torch.zeros(2)}, file)
    file.seek(0)
    torch.load(file, weights_only=True)
model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout())
copy.deepcopy(model), copy.copy(D())
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
with torch.autocast("cpu", torch.bfloat16):
    loss = model(torch.ones(2, 3)).sum()
loss.backward()
optimizer.step(), scheduler.step()
inspect.signature(kept), dataclasses.replace(D(), a=2), statistics.median([1, 2])
list(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(4)), batch_size=2))
np.random.default_rng(0).permutation(4), random.Random(0).random(), np.linalg.norm(np.ones(3))
compiled = torch.compile(lambda x: x * 2, backend="eager")
compiled(torch.ones(2))
try:
    1 / 0
except ZeroDivisionError:
    logging.exception("looked at")
    traceback.format_exc()
with ThreadPoolExecutor(2) as pool:
    list(pool.map(torch.ones, range(3)))
for _ in tqdm(range(3)):
    pass
np.asarray([torch.ones(1), torch.ones(1)]), np.array([model, model], dtype=object), dir(model), np.asarray(D())
"""


def test_what_libraries_do_anyway_is_not_said(worker: Worker) -> None:
    assert _said(worker, INNOCENT, allowed=("open",)) == []  # it makes a temporary file
    assert not worker.told.flags


def test_to_open_files_opens_not_the_systems(worker: Worker) -> None:
    assert _said(worker, "open('x', 'w').close()", allowed=("open",)) == []
    assert _said(worker, "\nopen('/dev/null').close()", allowed=("open",)) == []
    assert _said(worker, "\n\nopen('/pr' + 'oc/self/maps').close()", allowed=("open",))


_AT = "{'data': (id(KEPT), True), 'shape': (2,), 'typestr': '<u8', 'version': 3}"
_NAME = "'__array_' + 'interface__'"


@pytest.mark.parametrize(
    "way",
    [
        f"class A: pass\na = A()\na.__dict__[{_NAME}] = {_AT}",
        f"class A: pass\na = A()\nvars(a).update({{{_NAME}: {_AT}}})",
        f"class A: pass\na = A()\nsetattr(a, {_NAME}, {_AT})",
        f"class A: pass\na = A\nsetattr(A, {_NAME}, {_AT})",
        f"import types\na = types.SimpleNamespace(**{{{_NAME}: {_AT}}})",
        f"class A:\n    def __getattr__(self, name):\n        if name == {_NAME}:\n            return {_AT}\n"
        "        raise AttributeError(name)\na = A()",
        "import torch\nclass A(torch.nn.Module):\n    def __init__(self):\n"
        f"        self._buffers = {{{_NAME}: {_AT}}}\na = A()",
        f"from scipy.optimize import OptimizeResult\na = OptimizeResult()\na[{_NAME}] = {_AT}",
        f"import copy\nclass A:\n    def __getstate__(self):\n        return {{{_NAME}: {_AT}}}\na = copy.copy(A())",
        "class A:\n    turn = 0\n    def __getattr__(self, name):\n        A.turn += 1\n        if A.turn % 2:\n"
        f"            raise AttributeError(name)\n        return {_AT}\na = A()",
    ],
)
def test_no_object_says_where_its_values_lie(worker: Worker, way: str) -> None:
    worker.told.flags.clear()
    cell = f"import numpy as np\nKEPT = []\n{way}\nFOUND = []\nFOUND.append(np.asarray(a))\ndef entry(): return 1\n"
    with pytest.raises(CheckFailed, match="memory is not open to your code"):
        worker.load(HARNESS, cell, "entry")
    worker.call("switches")
    assert any("memory of its choice" in flag for flag in worker.told.flags)


def test_what_an_exercise_asks_for_is_not_said(worker: Worker) -> None:
    loader = "from torch.utils.data import DataLoader\nlist(DataLoader([1, 2], num_workers=1))"
    assert _said(worker, loader, allowed=("num_workers",)) == []
    process = "import multiprocessing as m; p = m.Process(target=int); p.start(); p.join()"
    assert _said(worker, process, allowed=("multiprocessing",)) == []
    assert _said(worker, "\nimport os\nif not os.fork():\n    os._exit(0)", allowed=("num_workers",))


def test_what_the_harness_does_while_the_cell_waits_is_the_harnesss(worker: Worker) -> None:
    worker.told.deeds.clear()
    harness = HARNESS + "\ndef ask():\n    learner(lambda: exec('1'))\n"
    worker.load(harness, "def entry(callback):\n    callback()\n", "entry")
    worker.call("ask")
    assert not worker.told.deeds


def test_the_flag_is_on_the_result_and_cannot_be_taken_back_by_catching_the_error() -> None:
    body = (
        "import functools, sys\n    try:\n        functools.reduce(lambda _, n: sys._getframe(n), [0, 1])\n"
    )
    source = SPEEDUP.replace("BODY", body + "    except PermissionError:\n        pass")
    result = check_source("0.1", source)
    assert result.verdict == "pass"
    assert any("sys._getframe" in reason for reason in result.review)


def test_of_a_line_that_was_read_before_nothing_is_said_again_and_there_is_an_end() -> None:
    many = [Deed("sys._getframe", "", line, "", "") for line in range(1, 40)]
    said = told.reasons(many, allowed=(), read=["the cell uses `sys._getframe` (line 1)"])
    assert said[0] == "the cell uses `sys._getframe` (line 2)"
    assert len(said) == 8


def test_what_it_does_in_any_worker_that_holds_it_is_looked_at() -> None:
    """Some checks load the cell a second time, such as to go on from a checkpoint."""
    cell = SPEEDUP.replace("BODY", "import gc; gc.get_objects()")
    job = Job("0.1", "speedup", cell, HARNESS, np.random.default_rng(0))
    try:
        job.twin(SPEEDUP.replace("BODY", "import gc; gc.get_referrers(gc)"))
        job.learner()
        with contextlib.suppress(CheckFailed):
            job.worker("again", job.source).call("speedups", pairs=[[1.0, 2.0]])
    finally:
        job.close()
    assert len(job.review) == 1 and "gc.get_objects" in job.review[0]
