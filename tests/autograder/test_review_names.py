"""Names of attributes that are made as a cell runs: no binding that Python has hides one from the reader."""
# ruff: noqa: E501

from __future__ import annotations

import ast

import pytest

from autograder.course.lessons import find_exercise
from autograder.engine.review import reasons

BOUND_IN_OTHER_WAYS = {
    "method by its class": "from contextlib import contextmanager as thing\nclass Look:\n    def at(self, name):\n        return getattr(self, name)\nif not thing:\n    thing = 'shape'\nLook.at(thing, '__globals__')",
    "import as": "from x import y as name\nif 0:\n    name = 'shape'\ngetattr(f, name)",
    "import": "import name\nif 0:\n    name = 'shape'\ngetattr(f, name)",
    "import dotted": "import name.x\nif 0:\n    name = 'shape'\ngetattr(f, name)",
    "a function": "def name(): pass\nif 0:\n    name = 'shape'\ngetattr(f, name)",
    "a class": "class name(str): pass\nif 0:\n    name = 'shape'\ngetattr(f, name)",
    "except": "name = 'shape'\ntry:\n    g()\nexcept E as name:\n    getattr(f, name)",
    "except star": "name = 'shape'\ntry:\n    g()\nexcept* E as name:\n    getattr(f, name)",
    "walrus": "name = 'shape'\nif (name := a + b):\n    getattr(f, name)",
    "a walrus in a comprehension": "name = 'shape'\n[(name := a) for _ in x]\ngetattr(f, name)",
    "with": "name = 'shape'\nwith g() as name:\n    getattr(f, name)",
    "with, a tuple": "name = 'shape'\nwith g() as (name, b):\n    getattr(f, name)",
    "for": "name = 'shape'\nfor name in g():\n    getattr(f, name)",
    "a loop over pairs": "name = 'shape'\nfor name, b in g():\n    getattr(f, name)",
    "async for": "async def h():\n    name = 'shape'\n    async for name in g():\n        getattr(f, name)",
    "a comprehension": "name = 'shape'\n[getattr(f, name) for name in g()]",
    "a comprehension within another": "name = 'shape'\n[getattr(f, name) for _ in b for name in g()]",
    "a comprehension of a dict": "name = 'shape'\n{getattr(f, name): 1 for name, _ in g()}",
    "match as": "name = 'shape'\nmatch g():\n    case str() as name:\n        getattr(f, name)",
    "match star": "name = 'shape'\nmatch g():\n    case [*name]:\n        getattr(f, name)",
    "match rest": "name = 'shape'\nmatch g():\n    case {**name}:\n        getattr(f, name)",
    "match kw": "name = 'shape'\nmatch g():\n    case object(x=name):\n        getattr(f, name)",
    "match seq": "name = 'shape'\nmatch g():\n    case [1, name]:\n        getattr(f, name)",
    "global": "name = 'shape'\ndef g(x):\n    global name\n    name = x\ngetattr(f, name)",
    "nonlocal": "def h():\n    name = 'shape'\n    def g(x):\n        nonlocal name\n        name = x\n    g(a)\n    getattr(f, name)",
    "tuple": "name = 'shape'\nname, b = g()\ngetattr(f, name)",
    "chain": "name = 'shape'\nb = name = g()\ngetattr(f, name)",
    "starred": "name = 'shape'\n*name, = g()\ngetattr(f, name)",
    "added to": "name = 'shape'\nname += x\ngetattr(f, name)",
    "annotated": "name: str = 'shape'\nname: str = g()\ngetattr(f, name)",
    "annotated only": "name: str\nif 0:\n    name = 'shape'\nfrom q import *\ngetattr(f, name)",
    "deleted": "name = 'shape'\ndel name\ngetattr(f, name)",
    "the text of the cell": "'''__globals__'''\nif 0:\n    __doc__ = 'shape'\ngetattr(f, __doc__)",
    "the name of a class": "class __globals__:\n    if 0:\n        __qualname__ = 'shape'\n    getattr(f, __qualname__)",
    "mangled": "_A__n = '__glob' + 'als__'\nclass A:\n    def g(self):\n        return getattr(f, __n)\nif 0:\n    __n = 'shape'",
    "mangled 2": "if 0:\n    _A__n = 'shape'\nclass A:\n    global __n\n    __n = g()\ngetattr(f, _A__n)",
    "star": "from string import *\nif 0:\n    digits = 'shape'\ngetattr(f, digits)",
    "lambda": "g = lambda name='shape': getattr(f, name)\ng(x)",
    "all arguments": "def g(*name):\n    getattr(f, name)\ng('shape')",
    "all keywords": "def g(**name):\n    getattr(f, name)\ng(name='shape')",
    "called with a list": "def g(x, name):\n    getattr(x, name)\ng(f, 'shape')\ng(*h)",
    "called with a dict": "def g(x, name='shape'):\n    getattr(x, name)\ng(f)\ng(f, **h)",
    "by place alone": "def g(x, name, /, **k):\n    getattr(x, name)\ng(f, a + b, name='shape')",
    "by place alone, hidden": "def g(x, name, /, **k):\n    getattr(x, name)\ng(f, '__globals__', name='shape')",
    "aliased": "def g(x, name='shape'):\n    getattr(x, name)\nh = g\nh(f, a)",
    "in a list": "def g(x, name='shape'):\n    getattr(x, name)\n[g][0](f, a)",
    "handed on": "def g(x, name='shape'):\n    getattr(x, name)\nlist(map(g, [f], [a]))",
    "returned": "def h():\n    def g(x, name='shape'):\n        getattr(x, name)\n    return g\nh()(f, a)",
    "default": "def g(x, name='shape'):\n    getattr(x, name)\ndef h(k=g):\n    k(f, a)",
    "defaults": "def g(x, name='shape'):\n    getattr(x, name)\ng.__defaults__ = (a,)\ng(f)",
    "class body": "class A:\n    def g(x, name='shape'):\n        return getattr(x, name)\n    y = g(f, a + b)",
    "method default": "class A:\n    def forward(self, x, name='shape'):\n        return getattr(x, name)\nA()(f, a)",
    "run": "import threading\nclass T(threading.Thread):\n    def run(self, name='shape'):\n        getattr(f, name)\nT(args=(a,)).run()",
    "json": "import json\nclass J(json.JSONEncoder):\n    def default(self, o='shape'):\n        return getattr(f, o)\njson.dumps(x, cls=J)",
    "handler": "import logging\nclass H(logging.Handler):\n    def emit(self, record='shape'):\n        getattr(f, record)",
    "static": "class A:\n    @staticmethod\n    def at(x, name='shape'):\n        return getattr(x, name)\nA.at(f, 'shape')",
    "classmethod": "class A:\n    @classmethod\n    def at(cls, x, name='shape'):\n        return getattr(x, name)\nA.at(f, 'shape')\n[A][0].at(f, a)",
    "assigned method": "class A: pass\ndef at(self, name='shape'):\n    return getattr(f, name)\nA.__call__ = at\nA()(a)",
    "class attr": "class A:\n    call = None\ndef at(self, name='shape'):\n    return getattr(f, name)\nA.call = at\nA().call(a)",
    "loop f": "def g(x, name='shape'):\n    getattr(x, name)\nfor h in (g,):\n    h(f, a)",
    "two of a name": "def g(x, name='shape'):\n    getattr(x, name)\nh = g\ndef g(x): pass\nh(f, a)",
    "decorated": "@d\ndef g(x, name='shape'):\n    getattr(x, name)\ng(f)",
    "decorator": "def g(name='shape'):\n    getattr(f, name)\n@g\ndef h(): pass",
    "named": "def g(x, name='shape'):\n    getattr(x, name)\ngetattr(m, 'g')(f, a)\ng(f)",
    "never called": "def g(x, name='shape'):\n    getattr(x, name)",
    "yield send": "def g():\n    name = 'shape'\n    name = yield\n    getattr(f, name)",
    "async with": "async def h():\n    name = 'shape'\n    async with g() as name:\n        getattr(f, name)",
    "attr tuple": "import operator\nclass A:\n    names = ('shape',)\nsetattr(A(), 'na' + 'mes', x)\noperator.attrgetter(*A().names)(f)",
    "star tuple": "import operator\nnames = ('shape',)\nfor names in g(): pass\noperator.attrgetter(*names)(f)",
    "star tuple of itself": "import operator\nnames = (*names,)\noperator.attrgetter(*names)(f)",
    "getattr list mutated": "names = ['shape']\nnames.append(a)\nfor name in names:\n    getattr(f, name)",
    "format": "text = '{0.shape}'\nimport text\ntext.format(f)",
    "module as mangled": "import sys as _A__s\nclass A:\n    def g(self):\n        return __s.modules['harness']",
    "module as mangled 2": "class A:\n    global __s\n    import sys as __s\n_A__s.modules['harness']",
    "module as mangled 3": "class A:\n    def g(self):\n        global __s\n        __s = __import__('sys')\nA().g()\n_A__s.modules['harness']",
    "private of another": "class Foo:\n    def g(self, other):\n        self.__bar = 1\n        return other.__bar.__globals__",
    "own by mangled": "_B__a = f\nclass A: pass\nclass B:\n    def g(self):\n        return getattr(__a, n + m)\nif 0:\n    __a = A()",
    "own by star": "from contextlib import *\nclass A: pass\nif 0:\n    suppress = A()\ngetattr(suppress, n + m)",
    "own by unlisted star": "from logging import *\nif 0:\n    class setLogRecordFactory: pass\nsetLogRecordFactory(f)",
    "vars leak": "import torch\nseen = []\n[v for v in vars(torch).values() if seen.append(v) or isinstance(v, torch.dtype)]",
    "vars leak 2": "import torch\nseen = []\n[v for v in vars(torch).values() if isinstance(1, torch.dtype) or seen.append(v)]",
    "vars leak 3": "import torch\nseen = [0]\n[v for seen[0] in vars(torch).values() if isinstance(v, torch.dtype)]",
    "vars leak 4": "import torch\n[v for v in vars(torch).values() if not isinstance(v, torch.dtype)]",
    "vars leak 5": "import torch\n[v for v in vars(torch).values() if isinstance(v, torch.dtype) or v]",
    "vars leak 6": "import torch\n[w for (w, v) in [(1, 2)] for w in vars(torch).values() if isinstance(v, torch.dtype)]",
    "vars leak 7": "import torch\ndef isinstance(a, b):\n    return True\n[v for v in vars(torch).values() if isinstance(v, torch.dtype)]",
    "a class of a type": "class A(type(model)): pass\na = A()\ngetattr(a, n + m)",
    "by a property of a class": "class A:\n    x = property(lambda self: getattr(self, a + b))\nA.x.fget(f)",
    "by a property of another's": "class A:\n    x = property(lambda self, other=f: getattr(other, a + b))",
    "by what is called a property": "def property(g):\n    return g(f)\nclass A:\n    x = property(lambda self: getattr(self, a + b))",
    "by a lambda of a class": "class A:\n    x = staticmethod(lambda self: getattr(self, a + b))\nA.x(f)",
    "by a property that binds anew": "class A:\n    x = property(lambda self: (self := f) and getattr(self, a + b))",
    "a property of a class of a type": "class A(type(model)):\n    x = property(lambda self: getattr(self, a + b))",
}  # fmt: skip
TAKEN_FOR_MORE_THAN_A_DTYPE = {
    "attribute": "getattr(torch, a + b).modules",
    "call": "getattr(torch, a + b)(x)",
    "subscript": "getattr(torch, a + b)[0]",
    "name": "t = getattr(torch, a + b)\nt.modules",
    "name 2": "def g():\n    t = getattr(torch, a + b)\n    def h():\n        return t.modules",
    "tuple": "t, u = getattr(torch, a + b), 1\nt.modules",
    "list": "[getattr(torch, a + b)][0].modules",
    "dict": "d = {'a': getattr(torch, a + b)}\nd['a'].modules",
    "setdefault": "d = {}\nd.setdefault(1, getattr(torch, a + b)).modules",
    "append": "d = []\nd.append(getattr(torch, a + b))",
    "argument": "def g(m):\n    return m.modules\ng(getattr(torch, a + b))",
    "argument to": "class A:\n    def to(self, m):\n        return m.modules\nA().to(getattr(torch, a + b))",
    "argument to by an attribute": "class A:\n    def to(self, dtype):\n        return dtype.modules\nx.y.to(dtype=getattr(torch, a + b))",
    "return": "def g():\n    return getattr(torch, a + b)\ng().modules",
    "yield": "def g():\n    yield getattr(torch, a + b)\nnext(g()).modules",
    "lambda": "(lambda: getattr(torch, a + b))().modules",
    "attribute of itself": "class A:\n    def __init__(self):\n        self.m = getattr(torch, a + b)\nA().m.modules",
    "class attr": "class A:\n    m = getattr(torch, a + b)\nA.m.modules",
    "class walrus": "class A:\n    (m := getattr(torch, a + b))\nA.m.modules",
    "for": "for m in (getattr(torch, a + b),):\n    m.modules",
    "walrus": "if (m := getattr(torch, a + b)):\n    m.modules",
    "walrus in list": "[m := getattr(torch, a + b)][0].modules",
    "if": "(getattr(torch, a + b) if x else 1).modules",
    "or": "(None or getattr(torch, a + b)).modules",
    "default": "def g(m=getattr(torch, a + b)):\n    m.modules",
    "eq": "class A:\n    def __eq__(self, other):\n        return other.modules\nA() == getattr(torch, a + b)",
    "in": "getattr(torch, a + b) in [A()]",
    "raise": "assert False, getattr(torch, a + b)",
    "raise 2": "raise E(getattr(torch, a + b))",
    "match": "match getattr(torch, a + b):\n    case m:\n        m.modules",
    "with": "with getattr(torch, a + b) as m:\n    m.modules",
    "partial": "import functools\nfunctools.partial(getattr, torch, a + b)().modules",
    "partial dtype": "import functools\nfunctools.partial(f, dtype=getattr(torch, a + b))()",
    "dtype own": "def tensor(dtype):\n    return dtype.modules\ntensor(dtype=getattr(torch, a + b))",
    "dtype bound": "torch_tensor = f if x else torch.tensor\ntorch_tensor(dtype=getattr(torch, a + b))",
    "checkpoint": "from torch.utils.checkpoint import checkpoint\ncheckpoint(f, dtype=getattr(torch, a + b))",
    "two targets": "d = {}\nx = d['m'] = getattr(torch, a + b)",
    "getattr": "getattr(getattr(torch, a + b), 'modules')",
    "getattr default": "getattr(x, 'zz', getattr(torch, a + b)).modules",
    "of another": "import sys\ngetattr(sys, a + b)",
    "called torch": "import math as torch\ngetattr(torch, a + b)",
    "called torch 2": "def g(torch, n):\n    return getattr(torch, n)",
    "called torch 3": "torch = f\nt = getattr(torch, a + b)",
    "nn": "getattr(torch.nn, a + b)",
    "print": "print(getattr(torch, a + b))",
    "os": "os = getattr(torch, a + b)\nos.open(x)",
    "type": "type(getattr(torch, a + b))",
    "vars": "vars(getattr(torch, a + b))",
    "dir": "[n for n in dir(getattr(torch, a + b))]",
    "str own": "def str(m):\n    return m.modules\nstr(getattr(torch, a + b))",
    "global": "def g():\n    global t\n    t = getattr(torch, a + b)\ng()\nt.modules",
    "zeros_like": "torch.zeros_like(x, dtype=getattr(torch, a + b))",
    "f-string": "f'{getattr(torch, a + b).modules}'",
    "partly": "t = getattr(torch, a + b).nn",
    "deleted": "del getattr(torch, a + b).x",
    "store": "getattr(torch, a + b).x = 1",
    "name store": "t = getattr(torch, a + b)\nt.x = 1",
    "name item": "t = getattr(torch, a + b)\nt[0] = 1",
    "hasattr": "hasattr(getattr(torch, a + b), 'x')",
    "star": "g(*getattr(torch, a + b))",
    "added to": "t = getattr(torch, a + b)\nt += A()",
    "binop": "getattr(torch, a + b) + A()",
}  # fmt: skip
TAKEN_FOR_A_DTYPE = {
    "guarded": "t = getattr(torch, n, None)\nif not isinstance(t, torch.dtype):\n    raise ValueError(n)\ntorch.empty(1, dtype=t)",
    "to": "torch.tensor(x).to(getattr(torch, n))",
    "view": "torch.frombuffer(bytearray(raw), dtype=torch.uint8).clone().view(getattr(torch, n)).reshape(s)",
    "dtype": "torch.tensor(x, dtype=getattr(torch, n))",
    "is": "if getattr(torch, n) is torch.float32: pass",
    "f": "f'{getattr(torch, n)}'",
    "own": "class A:\n    def f(self, n):\n        t = getattr(self, n)\n        return t.shape",
    "certain": "for n in ('sum', 'mean'):\n    getattr(torch, n)(x).shape",
    "private": "class A:\n    def __init__(self):\n        self.__x = 1\n    def f(self):\n        return self.__x + self.__g()\n    def __g(self):\n        return 1",
    "vars": "{str(v): v for v in vars(torch).values() if isinstance(v, torch.dtype)}",
    "vars 2": "{n: v for n, v in vars(torch).items() if isinstance(v, torch.dtype)}",
    "function": "def g(x, how='mean'):\n    return getattr(x, how)()\ng(x)\ng(x, how='max')\ng(x, 'min' if y else 'sum')",
}  # fmt: skip
BESIDE_ITS_MEMORY = {
    "rows counted by their numbers": "import torch.nn.functional as F\nF.embedding(i, w, scale_grad_by_freq=True)",
    "rows counted, a layer": "from torch import nn\nnn.Embedding(4, 1, scale_grad_by_freq=x)",
    "rows alone": "import torch.nn.functional as F\nF.embedding(i, w, sparse=True)",
    "where each maximum was": "import torch.nn.functional as F\nF.max_pool2d(x, 2, return_indices=True)",
    "where each maximum was, by its layer": "from torch import nn\nnn.MaxPool1d(2)",
    "where each maximum was, adapted": "from torch import nn\nnn.AdaptiveMaxPool1d(2)",
    "weights whose size is known": "from torch import nn\nnn.LSTM(3, 3)",
    "lengths": "from torch.nn.utils.rnn import pack_padded_sequence",
    "edges in no order": "import torch\ntorch.histogram(x, edges)",
    "sizes of a step": "import torch\ntorch._fused_adamw_(p, g, m, v, [], steps)",
    "a buffer that grows": "import torch\nb = bytearray(64)\nt = torch.frombuffer(b, dtype=torch.uint8)\nb.extend(b)",
    "a buffer that is handed in": "import torch\ndef f(b):\n    return torch.frombuffer(b, dtype=torch.uint8)",
    "a buffer of an object": "import torch\ntorch.frombuffer(self.b, dtype=torch.uint8)",
    "a buffer of another name": "import torch\nb = bytearray(64)\na = b\ntorch.frombuffer(a, dtype=torch.uint8)\nb.clear()",
    "a buffer by a walrus": "import torch\ntorch.frombuffer(b := bytearray(64), dtype=torch.uint8)\nb.clear()",
    "a buffer by its name": "import torch\ntorch.frombuffer(buffer=b, dtype=torch.uint8)",
    "a buffer that a function gives": "import torch\nb = bytearray(64)\ndef read():\n    return b\ntorch.frombuffer(read(), dtype=torch.uint8)",
    "a buffer of no copy": "import torch\nb = bytearray(64)\ntorch.asarray(b)",
    "memory that was given back, by a dict": "import numpy as np\na = np.zeros(9)\na.resize(10**6, **how)",
    "an iterator's buffer": "import numpy as np\nnp.nditer(a, flags=['buffered'])",
    "a place in a table of numbers": "import numpy as np\nnp.random.MT19937().state",
}  # fmt: skip
PLAIN = {
    "rows": "import torch.nn.functional as F\nF.embedding(i, w, sparse=False)",
    "bytes": "import torch\ntorch.frombuffer(bytearray(raw), dtype=torch.int64)",
    "a part of bytes": "import torch\ntorch.frombuffer(raw[8:16], dtype=torch.int64)",
    "bytes of a file": "import io, torch\nb = io.BytesIO()\ntorch.frombuffer(b.getvalue(), dtype=torch.uint8)",
    "joined": "import torch\nm = bytearray().join(rows)\ntorch.frombuffer(m, dtype=torch.int64).view(2, 3)",
    "a fused step": "import torch\ntorch.optim.AdamW(model.parameters(), fused=True)",
    "a property by a lambda": "class A:\n    best = property(lambda self: self._state[0])\n    def __init__(self):\n        self._state = [1]",
    "what an error says": "import traceback\ntraceback.format_exception_only(type(error), error)",
    "no gradients": "import contextlib\nhow = {1: contextlib.nullcontext}\nfor p in model.parameters():\n    p.grad = None",
    "its own private names": "class A:\n    def __init__(self):\n        self.__x = 1\n    def f(self):\n        return self.__x + self.__g()\n    def __g(self):\n        return 1",
}  # fmt: skip


def _named(*groups: dict[str, str]) -> list[object]:
    return [pytest.param(cell, id=name) for cells in groups for name, cell in cells.items()]


@pytest.mark.parametrize("cell", _named(BOUND_IN_OTHER_WAYS, BESIDE_ITS_MEMORY))
def test_a_means_is_seen(cell: str) -> None:
    ast.parse(cell)  # or it is no means at all
    assert reasons(cell, counts=False)


@pytest.mark.parametrize("cell", _named(PLAIN))
def test_what_is_plain_is_not_noted(cell: str) -> None:
    assert reasons(cell, counts=False) == []


@pytest.mark.parametrize("cell", _named(TAKEN_FOR_MORE_THAN_A_DTYPE))
def test_what_torch_has_under_a_made_name_is_a_dtype_or_a_reason_to_look(cell: str) -> None:
    allowed = find_exercise("4.1")[1].allows
    assert "getattr(torch, …)" in allowed
    assert reasons(f"import torch\n{cell}", counts=False, allowed=allowed)


@pytest.mark.parametrize("cell", _named(TAKEN_FOR_A_DTYPE))
def test_a_dtype_by_its_name_is_not_noted_where_it_is_asked_for(cell: str) -> None:
    assert reasons(f"import torch\n{cell}", counts=False, allowed=find_exercise("4.1")[1].allows) == []
