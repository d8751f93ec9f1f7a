"""Means of reaching what no exercise needs, written in full knowledge of the reader: none of them goes unseen.

Each is a cell of its own, grouped by the kind of its trick. Names that a cell does not bind, such as `model`, are what
an exercise hands to it.
"""
# ruff: noqa: E501

from __future__ import annotations

import ast

import pytest

from autograder.engine.review import reasons

A_MODULE_BEHIND_ANOTHER = {
    "builtins of torch": "import torch\ntorch.builtins.exec('x')",
    "ctypes of numpy": "import numpy as np\nnp.ctypeslib.as_array(1)",
    "os of contextlib": "import contextlib\ncontextlib.os.fork()",
    "threading of logging": "import logging\nlogging.threading.Thread()",
    "a private package": "import torch\ntorch.utils.data._utils.worker",
    "os of random": "import random\nrandom._os.fork()",
    "by from": "from torch import builtins",
    "by from and as": "from contextlib import sys as quiet\nquiet.modules",
    "by star": "from contextlib import *\nfrom torch import *\nbuiltins.exec('x')\nhub.load('x')\nos.fork()",
    "nested import": "def f():\n    import torch.overrides as o\n    return o",
    "conditional import": "if True:\n    import subprocess as torch\nelse:\n    import torch\ntorch.run('x')",
    "imported in a try": "try:\n    import torch._C as C\nexcept ImportError:\n    C = None",
    "relative import": "from . import worker",
    "relative import of a parent": "from ..inside import guard as g",
    "an alias": "import torch\nt = torch\nt.builtins",
    "an alias of an alias": "import numpy as np\na = np\nb = a\nc = b\nc.f2py",
    "an alias told before it is known": "b = a\na = c\nimport torch as c\nb.builtins",
    "unpacked": "import torch, math\na, (b, c) = math, (torch, 1)\nb.builtins",
    "a walrus": "import torch\nif (t := torch):\n    t.builtins",
    "a loop": "import torch, math\nfor m in (math, torch):\n    m.builtins",
    "a comprehension": "import torch, math\n[m.builtins for m in (math, torch)]",
    "a default value": "import torch\ndef f(t=torch):\n    return t.builtins",
    "a default of a lambda": "import torch\nf = lambda *, t=torch: t.builtins",
    "an if": "import torch, math\nt = torch if x else math\nt.builtins",
    "an or": "import torch\nt = None or torch\nt.builtins",
    "a global": "import torch\ndef f():\n    global t\n    t = torch\ndef g():\n    return t.builtins",
    "a nonlocal": "import torch\ndef f():\n    t = 1\n    def g():\n        nonlocal t\n        t = torch\n    return t.builtins",
    "a list": "import torch\n[torch][0].builtins",
    "a dict": "import torch\n{'t': torch}['t'].os",
    "an argument": "import torch\ndef f(t):\n    return t.os\nf(torch)",
    "a value that is returned": "import torch\ndef f():\n    return torch\nf().os",
    "a value that is yielded": "import torch\ndef f():\n    yield torch\nnext(f()).os",
    "an attribute of a class": "import torch\nclass A:\n    t = torch\nA.t.builtins",
    "an import in a class": "class A:\n    import torch\nA.torch.builtins",
    "an attribute of itself": "import torch\nclass A:\n    def __init__(self):\n        self.t = torch\n        self.t.os",
    "a match": "import torch\nmatch torch:\n    case t:\n        t.os",
    "a pattern of a sequence": "import torch\nmatch [torch]:\n    case [t]:\n        t.os",
    "a module in a with": "import torch, contextlib\nwith contextlib.nullcontext(torch) as t:\n    t.os",
    "starred": "import torch\na, *b = 1, torch\nb[0].os",
    "an exception's argument": "import torch\ntry:\n    raise ValueError(torch)\nexcept ValueError as e:\n    e.args[0].os",
    "a chain of aliases": "import torch\nt0 = torch\n" + "".join(f"t{n} = t{n - 1}\n" for n in range(1, 30)) + "t29.os",
    "its name in the cell's own class": "import pathlib\nclass A:\n    _flavour = os = 1\nmodel._flavour.os.fork()",
    "a decorator": "import torch\n@torch.jit.script\ndef f(x):\n    return x",
    "by star, lower": "from torch import *\nmodel.to(bfloat16)",
    "by the module's own getattr": "import torch\ntorch.__getattr__('o' + 's')",
    "by getattr, on its way": "import torch\ngetattr(torch, 'utils').cpp_extension",
    "copied": "import copy, torch\ncopy.copy(torch).os",
    "a keyword": "import torch\ndict(t=torch)['t'].os",
    "a set": "import torch\nnext(iter({torch})).os",
    "a lambda": "import torch\n(lambda: torch)().os",
    "an awaited one": "import torch\nasync def f():\n    return torch",
    "a subscript's key": "import torch\nd = {}\nd[0] = torch\nd[0].os",
    "sent to a generator": "import torch\ng.send(torch)",
    "compared": "import torch\n[m for m in things if m == torch][0].os",
    "a private name of the cell's own": "from pathlib import Path\nclass A:\n    _flavour = 1\nPath('x')._flavour",
}  # fmt: skip
FRAMES_AND_DUNDERS = {
    "globals of a function": "def f(): pass\nf.__globals__",
    "globals of a method": "class A:\n    def f(self): pass\nA().f.__func__.__globals__",
    "self of a builtin": "len.__self__",
    "builtins": "__builtins__['exec']",
    "loader": "__loader__.load_module('os')",
    "spec": "__spec__",
    "all classes": "().__class__.__base__.__subclasses__()",
    "of its own class": "class A:\n    def f(self):\n        return self.__class__.__mro__[-1].__subclasses__()",
    "a generator's frame": "g = (x for x in ())\ng.gi_frame.f_back",
    "a generator's, its name its own": "class A:\n    gi_frame = f_back = f_locals = 1\ng = (x for x in ())\ng.gi_frame.f_back.f_locals",
    "a coroutine's frame": "async def f(): pass\nf().cr_frame",
    "a traceback": "try:\n    1 / 0\nexcept Exception as e:\n    e.__traceback__.tb_frame",
    "a traceback by sys": "import sys\nsys.exc_info()[2].tb_frame",
    "a traceback handed over": "class A:\n    def __exit__(self, kind, error, trace):\n        trace.tb_frame.f_back",
    "sys._getframe": "import sys\nsys._getframe(1)",
    "from sys": "from sys import _getframe as f\nf(1)",
    "inspect": "import inspect\ninspect.currentframe()",
    "a closure": "hook.__closure__[0].cell_contents",
    "a pattern": "match f:\n    case object(__globals__=g):\n        g",
    "a pattern of a frame": "match f:\n    case object(gi_frame=g):\n        g",
    "positional patterns": "class A:\n    __match_args__ = ('f_back',)\nmatch A():\n    case A(x):\n        x",
    "str.format": "'{0.__globals__[seed]}'.format(f)",
    "str.format, kept": "t = '{0.f_back}'\nprint(t.format(f))",
    "str.format in a spec": "'{0:{1.__class__}}'.format(1, f)",
    "str.format, handed on": "list(map('{0.__code__}'.format, [f]))",
    "str.format, unbound": "str.format('{0.__globals__}', f)",
    "a template worked out": "('{0.__glo' + 'bals__}').format(f)",
    "format_map": "'{f.__globals__}'.format_map({'f': f})",
    "string.Formatter": "import string\nstring.Formatter().get_field('0.__globals__', [f], {})",
    "an f-string": "f'{f.__globals__}'",
    "an f-string in a spec": "f'{1:{f.__globals__}}'",
    "a default value": "def f(x, g=len.__self__): pass",
    "a decorator": "@f.__globals__['x']\ndef g(): pass",
    "a lambda": "f = lambda g: g.__globals__",
    "an annotation": "def f(x: g.__globals__): pass",
    "an annotation that is code": "import functools\n@functools.singledispatch\ndef f(x): pass\n@f.register\ndef g(x: '__import__(1)'): pass",
    "an annotation within another": "def f(x: list['exec(1)']): pass",
    "a bound of a type": "def f(x: int) -> g.__globals__: pass",
    "a hook's dict": "model._forward_hooks",
    "the module of a caller": "import __main__",
    "a property's getter": "class A:\n    @property\n    def f(self): pass\nA.f.fget",
    "dict of a class": "class A: pass\nA.__dict__['x'].__globals__",
    "dict of another": "model.__dict__['forward'] = f",
    "wrapped": "f.__wrapped__",
    "by its getattribute": "object.__getattribute__(f, 'x')",
    "by descriptors": "type(f).__dict__",
    "dict of its own class": "class A:\n    def f(self): pass\nA.__dict__['f'](len)",
    "dict of its own class, by itself": "class A:\n    def f(self):\n        return self.__class__.__dict__",
    "vars of its own class": "class A:\n    def f(self): pass\nvars(A)['f'](len)",
    "a text that formats itself": "class S(str): pass\nS('{0.__globals__}').format(f)",
    "a text that formats by its parent": (
        "class S(str):\n    def format(self, x):\n        return super().format(x)\nS('{0.__globals__}').format(f)"
    ),
    "what is logged": "import logging\nlogging.Formatter('{msg.__globals__}', style='{')",
    "what is logged, in short": "import logging\nlogging.basicConfig(format='{msg.__globals__}', style='{')",
    "an exception's context": "try:\n    f()\nexcept Exception as e:\n    e.__context__",
    "types of functions, by their class": "type(f)(c, {})\ntype(f).__code__",
    "an annotation of a field": "class A:\n    __annotations__ = {'x: int = exec(1)': int}",
    "an annotation of a field, added": "class A:\n    pass\nA.__annotations__['x = exec(1)'] = int",
    "an annotation of a field, in its body": "class A:\n    __annotations__['x = exec(1)'] = int",
    "what a class tells of itself": "class A:\n    pass\nA.mro()[-1].__subclasses__()",
}  # fmt: skip
NAMES_MADE_AS_IT_RUNS = {
    "getattr": "getattr(model, 'for' + 'ward')",
    "getattr of a module": "import torch\ngetattr(torch, 'o' + 's')",
    "getattr, by a list": "import torch\n[getattr(torch, n) for n in dir(torch)]",
    "getattr of a forbidden name": "getattr(f, '__globals__')",
    "getattr of a frame": "getattr(g, 'gi_frame')",
    "getattr with a default": "import torch\ngetattr(torch, 'builtins', None)",
    "hasattr": "hasattr(model, a + b)",
    "getattr as a value": "g = [getattr][0]\ng(model, a)",
    "getattr, an alias": "g = getattr\ng(model, a + b)",
    "getattr, an alias of a constant": "g = getattr\ng(f, '__globals__')",
    "getattr by map": "list(map(getattr, [f], ['__globals__']))",
    "getattr by partial": "import functools\nfunctools.partial(getattr, f, '__globals__')()",
    "getattr by partial, without its name": "import functools\nfunctools.partial(getattr, f)('__globals__')",
    "getattr by reduce": "import functools\nfunctools.reduce(getattr, ['a', 'b'], f)",
    "getattr with stars": "getattr(*both)",
    "getattr as a default": "def f(x, n, get=getattr):\n    return get(x, n)",
    "getattr as an attribute": "class A:\n    get = getattr\nA.get(f, a)",
    "attrgetter": "import operator\noperator.attrgetter('__globals__')(f)",
    "attrgetter, dotted": "from operator import attrgetter as a\na('x.f_back')(f)",
    "attrgetter, worked out": "import operator\noperator.attrgetter(a + b)(f)",
    "attrgetter as a value": "import operator\nlist(map(operator.attrgetter, names))",
    "methodcaller": "import operator\noperator.methodcaller('__reduce__')(f)",
    "methodcaller of format": "import operator\noperator.methodcaller('format', f)(text)",
    "globals": "globals()['x']",
    "locals": "locals()['x']",
    "vars": "import torch\nvars(torch)['o' + 's']",
    "vars without the test": "import torch\n[v for v in vars(torch).values()]",
    "vars by map": "import torch\nlist(map(vars, [torch]))",
    "eval": "eval('x')",
    "exec": "exec('x')",
    "exec, an alias": "e = exec\ne('x')",
    "exec, unbound later": "if 0:\n    exec = 1\nexec('x')",
    "exec, deleted": "exec = 1\ndel exec\nexec('x')",
    "compile": "compile('x', 'x', 'exec')",
    "import by name": "__import__('o' + 's')",
    "importlib": "import importlib\nimportlib.import_module('os')",
    "runpy": "import runpy\nrunpy.run_path('x')",
    "pydoc": "import pydoc\npydoc.locate('os.fork')",
    "pkgutil": "import pkgutil\npkgutil.resolve_name('os:fork')",
    "a module by sys": "import sys\nsys.modules['os']",
    "types of functions": "import types\ntypes.FunctionType(c, {})",
    "timeit": "import timeit\ntimeit.timeit('x')",
    "torch's timer": "from torch.utils.benchmark import Timer",
    "torch.fx": "import torch.fx\ntorch.fx.symbolic_trace(f)",
    "types by their texts": "import typing\ntyping.get_type_hints(f)",
    "dataclasses of texts": "import dataclasses\ndataclasses.make_dataclass('A', ['x'])",
    "code": "import code\ncode.interact()",
    "self in a method, handed another": (
        "import torch\nclass A:\n    def f(self, n):\n        return getattr(self, n)\nA.f(torch.compile, '__glob' + 'als__')"
    ),
    "self, by its class as a value": (
        "import torch\nclass A:\n    def f(self, n):\n        return getattr(self, n)\n"
        "def call(k):\n    k.f(torch.compile, '__glob' + 'als__')\ncall(A)"
    ),
    "self, by getattr": (
        "import torch\nclass A:\n    def f(self, n):\n        return getattr(self, n)\ngetattr(A, 'f')(torch.compile, a + b)"
    ),
    "self, by a pattern": (
        "import torch\nclass A:\n    def f(self, n):\n        return getattr(self, n)\n"
        "match A:\n    case object(f=g):\n        g(torch.compile, a + b)"
    ),
    "self, by methodcaller": (
        "import operator\nclass A:\n    def f(self, n):\n        return getattr(self, n)\n"
        "operator.methodcaller('f', len, a + b)(A)"
    ),
    "self, by a property's register": (
        "class A:\n    @evil.register\n    def f(self, n):\n        return getattr(self, n)"
    ),
    "a class, by getattr": "class A: pass\ngetattr(A, a + b)",
    "its own tensor": "import torch\nclass A(torch.Tensor): pass\na = A()\ngetattr(a, b + c)()",
    "its own, made by a parent": (
        "import torch\nclass B:\n    def __new__(cls):\n        return torch.compile\nclass A(B): pass\na = A()\ngetattr(a, n)"
    ),
    "its own, made by a false exercise": (
        "def exercise(i):\n    return lambda c: lambda: len\n@exercise('1')\nclass A: pass\na = A()\ngetattr(a, n)"
    ),
    "what a with gives": (
        "import contextlib\nclass A(contextlib.nullcontext): pass\nwith A(len) as a:\n    getattr(a, n)"
    ),
    "what its own with gives, assigned": "class A:\n    __enter__ = lambda self: len\nwith A() as a:\n    getattr(a, n)",
    "what its own with gives, bound anew": (
        "class A:\n    def __enter__(self):\n        self = len\n        return self\nwith A() as a:\n    getattr(a, n)"
    ),
    "its own, by an assigned __new__": (
        "class A:\n    __new__ = staticmethod(lambda cls: len)\na = A()\ngetattr(a, n)"
    ),
    "its own, by a __new__ in a condition": (
        "class A:\n    if True:\n        def __new__(cls):\n            return len\na = A()\ngetattr(a, n)"
    ),
    "what its own with gives": (
        "class A:\n    def __enter__(self):\n        return len\nwith A() as a:\n    getattr(a, n)"
    ),
    "self, decorated": (
        "def d(f):\n    f(len, 'x')\nclass A:\n    @d\n    def f(self, n):\n        return getattr(self, n)"
    ),
    "self, in the class's body": (
        "class A:\n    def f(self, n):\n        return getattr(self, n)\n    f(len, a + b)"
    ),
    "self, a static method": "class A:\n    @staticmethod\n    def f(self, n):\n        return getattr(self, n)",
    "self, bound anew": "class A:\n    def f(self, n):\n        self = len\n        return getattr(self, n)",
    "made by its own __new__": (
        "import torch\nclass A:\n    def __new__(cls):\n        return torch.compile\na = A()\ngetattr(a, n)"
    ),
    "made by a decorator": "def d(c):\n    return lambda: len\n@d\nclass A: pass\na = A()\ngetattr(a, n)",
}  # fmt: skip
STORES_INTO_A_LIBRARY = {
    "a function of a module": "import torch\ntorch.stack = f",
    "a method of a class": "import torch\ntorch.Tensor.item = f",
    "deleted": "import torch\ndel torch.Tensor.item",
    "added to": "import time\ntime.x += 1",
    "a target of a loop": "import torch\nfor torch.stack in [f]:\n    pass",
    "a target of a with": "import torch\nwith f() as torch.stack:\n    pass",
    "one of a tuple": "import torch\na, torch.stack = 1, f",
    "a comprehension's": "import torch\n[0 for torch.stack in [f]]",
    "annotated": "import torch\ntorch.stack: int = f",
    "setattr": "import torch\nsetattr(torch, 'stack', f)",
    "setattr, partial": "import torch, functools\nfunctools.partial(setattr, torch.Tensor, 'item', f)()",
    "setattr, called later": "import torch, contextlib\nwith contextlib.ExitStack() as s:\n    s.callback(setattr, torch.Tensor, 'item', f)",
    "setattr, mapped": "list(map(setattr, [model], ['forward'], [f]))",
    "delattr": "import torch\ndelattr(torch.Tensor, 'item')",
    "object.__setattr__": "object.__setattr__(model, 'forward', f)",
    "type.__setattr__": "import torch\ntype.__setattr__(torch.Tensor, 'item', f)",
    "vars": "import torch\nvars(torch)['stack'] = f",
    "dict": "import torch\ntorch.__dict__['stack'] = f",
    "dict by update": "model.__dict__.update(forward=f)",
    "a class by its type": "type(model).forward = f",
    "a class by its type, kept": "k = type(model)\nk.forward = f",
    "a class by its type, handed on": "def put(k):\n    k.grad = f\nput(type(p))",
    "a class by __class__": "model.__class__.forward = f",
    "a class in a list": "import torch\nfor k in [torch.Tensor]:\n    k.grad = f",
    "a class in a dict": "import torch\nk = {'a': torch.Tensor}\nk['a'].grad = f",
    "a class handed over": "import torch\ndef put(k):\n    k.grad = f\nput(torch.Tensor)",
    "a class handed over, by name": "import torch\ndef put(k):\n    k.grad = f\nput(k=torch.Tensor)",
    "a class given back": "import torch\ndef get():\n    return torch.Tensor\nget().grad = f",
    "a class in a default": "import torch\ndef put(k=torch.Tensor):\n    k.grad = f",
    "a class kept on self": "import torch\nclass A:\n    def __init__(self):\n        self.k = torch.Tensor\n        self.k.grad = f",
    "a class by its field's type": (
        "import dataclasses, torch\n@dataclasses.dataclass\nclass A:\n    x: torch.Tensor\ndataclasses.fields(A)[0].type.grad = f"
    ),
    "a class as self": "import torch\nclass A:\n    def f(self):\n        self.item = f\nA.f(torch.Tensor)",
    "a class as self, its class a value": (
        "import torch\nclass A:\n    def f(self):\n        self.item = f\ndef call(k):\n    k.f(torch.Tensor)\ncall(A)"
    ),
    "a class as self, by partial": (
        "import torch, functools\nclass A:\n    def f(self):\n        self.item = f\nfunctools.partial(A.f, torch.Tensor)()"
    ),
    "a class in a tuple of a list": "import torch\nk = list((torch.Tensor,))[0]\nk.grad = f",
    "a class by map": "k = list(map(type, [p]))[0]\nk.grad = f",
    "a class by partial": "import functools, torch\nfunctools.partial(torch.Tensor).func.grad = f",
    "a class as a parameter's default": "import torch\ndef f(x, *, k=torch.Tensor):\n    k.grad = x",
    "a class by its own with": (
        "import contextlib, torch\nclass A(contextlib.nullcontext): pass\nwith A(torch.Tensor) as k:\n    k.item = f"
    ),
    "a class as self, by its dict": (
        "import torch\nclass A:\n    def f(self):\n        self.item = f\nA.__dict__['f'](torch.Tensor)"
    ),
    "a class as self, by a parent": (
        "import torch\nclass A:\n    def f(self):\n        self.item = f\n"
        "class B(A):\n    @classmethod\n    def g(cls):\n        super().f(torch.Tensor)"
    ),
    "a class of a dispatch": (
        "import functools, torch\nclass A:\n    registry = 1\n@functools.singledispatch\ndef f(x): pass\n"
        "@f.register\ndef g(x: torch.Tensor): pass\nfor k in f.registry:\n    k.grad = f"
    ),
    "a class as cls": "import torch\nclass A:\n    def __new__(cls):\n        cls.item = f\nA.__new__(torch.Tensor)",
    "a class as cls, its class a value": (
        "import torch\nclass A:\n    def __new__(cls):\n        cls.item = f\ndef call(k):\n    k.__new__(torch.Tensor)\ncall(A)"
    ),
    "a class as self, a keyword": (
        "import torch\nclass A:\n    def f(self):\n        self.item = f\ndef call(k):\n    k.f(self=torch.Tensor)\ncall(A)"
    ),
    "a class as self, with stars": (
        "import torch\nclass A:\n    def f(self):\n        self.item = f\ndef call(k):\n    k.f(*all)\ncall(A)"
    ),
    "a class as self, a default": (
        "import torch\nclass A:\n    def f(self, x=1):\n        self.item = f\ndef call(k):\n    k.f(torch.Tensor)\ncall(A)"
    ),
    "a method of what is handed in": "optimizer.step = f",
    "a method, its name its own": "class A:\n    step = None\noptimizer.step = f",
    "a method, its name its own, worked out": "class A:\n    step = 0\noptimizer.step = A() + f",
    "a method, added to": "class A:\n    def __radd__(self, other):\n        return f\noptimizer.step += A()",
    "a class of an object": "model.__class__ = A",
    "an entry of a library's": "import torch\ntorch.optim.lr_scheduler.EPOCH_DEPRECATION_WARNING[0] = f",
    "a dispatch table": "import copyreg\ncopyreg.dispatch_table[int] = f",
    "how batches are collated": "from torch.utils.data._utils.collate import default_collate_fn_map",
    "a decorated class": "import torch, dataclasses\ndataclasses.dataclass(torch.nn.Linear)",
    "a decorated class, handed over": "import dataclasses\ndef f(k):\n    dataclasses.dataclass(k)",
    "what a wrapper copies": "import functools, torch\nfunctools.update_wrapper(torch.Tensor, a)",
    "what wraps copies": "import functools, torch\nfunctools.wraps(a, assigned=('item',))(torch.Tensor)",
    "what wraps copies, an alias": "import functools, torch\nw = functools.wraps\nw(a, ('item',))(torch.Tensor)",
    "a virtual subclass": "import collections.abc\ncollections.abc.Sequence.register(int)",
    "an enum over a module": "import enum\n@enum.global_enum\nclass A(enum.Enum):\n    x = 1",
    "a class that says it is of torch": "class A:\n    __module__ = 'torch'",
    "what logs": "import logging\nlogging.setLogRecordFactory(f)",
    "what warns": "import warnings\nwarnings.showwarning = f",
    "where it prints": "import sys\nsys.stdout = f",
    "where a library prints": "import contextlib\nwith contextlib.redirect_stdout(f): pass",
    "a mock": "from unittest.mock import patch",
    "the dataset's waiting": "dataset.latency_seconds = 0",
    "processes of a loader": "loader.num_workers = 8",
}  # fmt: skip
THE_WHOLE_PROCESS = {
    "a hook of all modules": "from torch.nn.modules.module import register_module_forward_hook",
    "a hook of all modules, by attributes": "import torch\ntorch.nn.modules.module.register_module_forward_hook(f)",
    "a hook of all optimizers": "from torch.optim.optimizer import register_optimizer_step_pre_hook",
    "the default type": "import torch\ntorch.set_default_dtype(torch.float16)",
    "the default device": "import torch\ntorch.set_default_device('meta')",
    "the default tensor": "import torch\ntorch.set_default_tensor_type(x)",
    "operators": "import torch\ntorch.library.Library('aten', 'IMPL')",
    "operators by from": "from torch.library import impl",
    "backends": "from torch.utils.backend_registration import rename_privateuse1_backend",
    "libraries": "import torch\ntorch.ops.load_library('x')",
    "classes": "import torch\ntorch.classes.load_library('x')",
    "extensions": "from torch.utils import cpp_extension",
    "a mode": "from torch.overrides import TorchFunctionMode",
    "a dispatch mode": "from torch.utils._python_dispatch import TorchDispatchMode",
    "at the exit": "import atexit\natexit.register(f)",
    "at the end of an object": "import weakref\nweakref.finalize(model, f)",
    "as an object ends": "class A:\n    def __del__(self): pass",
    "tracing": "import sys\nsys.settrace(f)",
    "profiling of threads": "import threading\nthreading.setprofile(f)",
    "audit": "import sys\nsys.addaudithook(f)",
    "an import hook": "import sys\nsys.meta_path.insert(0, f)",
    "signals": "import signal\nsignal.signal(signal.SIGALRM, f)",
    "what collects": "import gc\ngc.callbacks.append(f)",
    "all objects": "import gc\ngc.get_objects()",
    "who refers": "from gc import get_referrers",
    "limits": "import resource",
    "the priority": "import os\nos.nice(19)",
    "the cores": "import os\nos.sched_setaffinity(0, {0})",
    "the compiler": "import torch\ntorch._dynamo.config.suppress_errors = True",
    "lower precision of products": "import torch\ntorch.set_float32_matmul_precision('medium')",
    "lower precision of products, a setting": "import torch\ntorch.backends.mkldnn.matmul.fp32_precision = 'bf16'",
    "lower precision, 16 bits": "import torch\nmodel.to(torch.float16)",
    "lower precision, 8 bits": "from torch import float8_e5m2",
    "lower precision": "import torch\ntorch.set_autocast_enabled('cpu', True)",
    "lower precision by a model": "model.half()",
    "lower precision by a name": "import torch\ngetattr(torch, 'bfloat16')",
    "lower precision by a part": "from torch import bfloat16 as b",
}  # fmt: skip
PICKLES_FILES_AND_PROCESSES = {
    "pickle": "import pickle\npickle.loads(b'x')",
    "torch.load": "import torch\ntorch.load(f, weights_only=False)",
    "torch.load, as it comes": "import torch\ntorch.load(f, **how)",
    "torch.load, by place": "import torch\ntorch.load(f, None, p)",
    "torch.load as a value": "import torch\nlist(map(torch.load, files))",
    "torch.load, kept": "import torch\nload = [torch.load]\nload[0](f, weights_only=False)",
    "torch.load, partly": "import torch, functools\nfunctools.partial(torch.load, weights_only=False)(f)",
    "torch.load, an alias": "import torch\nl = torch.load\nl(f, weights_only=0)",
    "safe globals": "import torch\ntorch.serialization.add_safe_globals([f])",
    "numpy.load": "import numpy as np\nnp.load(f, allow_pickle=True)",
    "joblib": "import joblib\njoblib.load('x')",
    "shelve": "import shelve",
    "copyreg": "import copyreg\ncopyreg.pickle(A, f)",
    "yaml": "import yaml\nyaml.load(text, Loader=yaml.UnsafeLoader)",
    "yaml, unsafe": "import yaml\nyaml.unsafe_load(text)",
    "yaml as a value": "import yaml\nload = [yaml.load][0]",
    "yaml, its loader unknown": "import yaml\nyaml.load(text, L)",
    "marshal": "import marshal",
    "how it is pickled": "class A:\n    def __reduce__(self):\n        return f, ()",
    "how it is pickled, assigned": "class A:\n    __reduce_ex__ = f",
    "fork": "import os\nos.fork()",
    "fork by from": "from os import fork as f",
    "spawn": "import os\nos.posix_spawn('x', [], {})",
    "system": "import os\nos.system('x')",
    "subprocess": "import subprocess",
    "multiprocessing": "import multiprocessing\nmultiprocessing.Process(target=f).start()",
    "a pool of processes": "from concurrent.futures import ProcessPoolExecutor",
    "a pool of processes, by its module": "import concurrent.futures as c\nc.ProcessPoolExecutor(4)",
    "torch's processes, by attributes": "import torch\ntorch.multiprocessing.spawn(f)",
    "processes beside threads": "import multiprocessing.dummy\nmultiprocessing.Process(target=f)",
    "processes beside threads, a pool": "import multiprocessing.pool\nmultiprocessing.pool.Pool(4)",
    "processes by star": "from concurrent.futures import *\nProcessPoolExecutor(4)",
    "processes by star, all": "from multiprocessing import *\nPool(4)",
    "torch's processes": "import torch.multiprocessing as mp\nmp.spawn(f)",
    "a loader's": "from torch.utils.data import DataLoader\nDataLoader(d, num_workers=4)",
    "a loader's by place": "from torch.utils.data import DataLoader\nDataLoader(d, 8, True, None, None, 4)",
    "a loader's by a dict": "from torch.utils.data import DataLoader\nDataLoader(d, **{'num_workers': 4})",
    "a loader's by partial": "import functools\nfrom torch.utils.data import DataLoader\nfunctools.partial(DataLoader, d, num_workers=4)()",
    "a loader's as a value": "from torch.utils.data import DataLoader\nl = [DataLoader][0]\nl(d, 8, True, None, None, 4)",
    "a loader's by its subclass": "from torch.utils.data import DataLoader\nclass L(DataLoader): pass\nL(d, 8, True, None, None, 4)",
    "a shell by asyncio": "import asyncio\nasyncio.create_subprocess_shell('x')",
    "a terminal": "import pty\npty.spawn('x')",
    "a browser": "import webbrowser",
    "the net": "import socket",
    "the net by urllib": "from urllib.request import urlopen",
    "the net by torch": "import torch\ntorch.hub.load('a', 'b')",
    "rpc": "import torch.distributed.rpc",
    "ctypes": "import ctypes",
    "memory": "import mmap",
    "memory of an array": "import numpy as np\nnp.zeros(1).ctypes.data_as(p)",
    "memory by strides": "import numpy as np\nnp.lib.stride_tricks.as_strided(a, (10**9,))",
    "memory that was given back": "import numpy as np\na = np.zeros(9)\na.resize(10**6, refcheck=False)",
    "memory by an interface": "class A:\n    __array_interface__ = {'data': (1, False)}",
    "memory by DLPack": "class A:\n    def __dlpack__(self): pass",
    "memory of a tensor": "t.untyped_storage().data_ptr()",
    "memory set": "t.set_(other)",
    "values without their operator": "t.apply_(f)",
    "memory of the process, as bytes": "p = b'/proc/self/mem'",
    "memory of the process": "import os\np = '/proc/self/mem'",
    "its own path": "from pathlib import Path\nclass P(Path):\n    def read_text(self):\n        return super().read_text()",
    "its own tensor's memory": "import torch\nclass B:\n    storage = 1\nclass A(torch.Tensor): pass\nA().storage()",
    "a log": "import logging\nlogging.basicConfig(filename='x')",
    "open": "open('x')",
    "open, an alias": "o = open\no('x')",
    "open by io": "import io\nio.open('x')",
    "open by codecs": "import codecs\ncodecs.open('x')",
    "open by a path": "from pathlib import Path\nPath('x').read_text()",
    "open by a path handed over": "from pathlib import Path\ndef f(p):\n    return p.open()\nf(Path('x'))",
    "open by a path, unbound": "from pathlib import Path\nlist(map(Path.read_text, [p]))",
    "open by fileinput": "import fileinput",
    "open by numpy": "import numpy as np\nnp.fromfile('x')",
    "open by numpy's map": "import numpy as np\nnp.memmap('x')",
    "open by numpy's loader": "import numpy as np\nnp.loadtxt('x')",
    "open by an array": "a.tofile('x')",
    "a file of torch": "import torch\ntorch.from_file('x')",
    "a temporary file": "import tempfile\ntempfile.mkstemp()",
    "listing": "import os\nos.listdir('x')",
    "walking": "import os\nos.walk('x')",
}  # fmt: skip
CLASSES_THAT_DECEIVE = {
    "a number that equals all": "class A(float):\n    def __eq__(self, other):\n        return True",
    "a number that is less": "class A(int):\n    __lt__ = lambda self, other: True",
    "a tensor that equals all": "import torch\nclass A(torch.Tensor):\n    def __eq__(self, other):\n        return True",
    "a text that equals all": "class A(str):\n    __eq__ = f\n    __hash__ = str.__hash__",
    "a class of another": "class A:\n    @property\n    def __class__(self):\n        return float",
    "whose instances are told": "class M:\n    def __instancecheck__(self, other):\n        return True",
    "getattribute": "class A:\n    def __getattribute__(self, name): pass",
    "torch's functions": "import torch\nclass A(torch.Tensor):\n    @classmethod\n    def __torch_function__(cls, *a): pass",
    "torch's dispatch": "class A:\n    @classmethod\n    def __torch_dispatch__(cls, *a): pass",
    "numpy's functions": "class A:\n    def __array_ufunc__(self, *a): pass",
    "a class by type's own new": "type.__new__(type, 'A', (), {'__del__': f})",
    "a class by its metaclass": "import abc\nabc.ABCMeta('A', (), {'__del__': f})",
    "a class by map": "list(map(type, ['A'], [()], [{'__del__': f}]))",
    "a class by partial": "import functools\nfunctools.partial(type, 'A', ())({})",
    "annotations made late": "class A:\n    def __annotate__(format): pass",
    "a class by type": "type('A', (), {'__del__': f})",
    "a class by the type of a type": "class A: pass\ntype(A)('B', (), {'__reduce__': f})",
    "a metaclass": "class M(type):\n    def __call__(cls): pass",
    "a metaclass, named": "class A(metaclass=M): pass",
    "a metaclass of abc": "import abc\nclass M(abc.ABCMeta): pass",
    "a metaclass by keywords": "class A(**how): pass",
    "in a condition": "class A:\n    if True:\n        def __reduce__(self): pass",
    "imported as one": "class A:\n    from math import sqrt as __reduce__",
    "set later": "class A: pass\nA.__del__ = f",
    "set later by setattr": "class A: pass\nsetattr(A, '__reduce__', f)",
    "other bases": "class A:\n    def __mro_entries__(self, bases): pass",
}  # fmt: skip
WHO_CALLS = {
    "the module's name": "def f(x):\n    return 0 if __name__ != '__learner__' else x",
    "the module's name, kept": "WHERE = __name__",
    "the module's name in a guard within": "def f():\n    if __name__ == '__main__':\n        return 0",
    "records of callers": "import logging\nlogging.info('x', stacklevel=4)",
    "records of callers, unpacked": "import logging\nlogging.info('x', **{'stacklevel': 4})",
    "records of callers by a logger": "log.warning('x', stacklevel=3)",
    "warnings that are kept": "import warnings\nwith warnings.catch_warnings(record=True) as seen:\n    warnings.warn('x', None, 3)",
    "warnings that are kept, unpacked": "import warnings\nwarnings.catch_warnings(**options)",
    "the time that an operator takes": "import time\nslow = time.perf_counter() - begin > 1e-5",
    "the same by from": "from time import monotonic_ns as now\nnow()",
    "the time of day": "import datetime\ndatetime.datetime.now().microsecond",
    "the time of day by from": "from datetime import datetime\ndatetime.now()",
    "a logger's own look": "import logging\nlogging.getLogger('x').findCaller(False, 3)",
}
GROUPS = {
    "who calls": WHO_CALLS,
    "module": A_MODULE_BEHIND_ANOTHER,
    "dunder": FRAMES_AND_DUNDERS,
    "name": NAMES_MADE_AS_IT_RUNS,
    "store": STORES_INTO_A_LIBRARY,
    "process": THE_WHOLE_PROCESS,
    "out": PICKLES_FILES_AND_PROCESSES,
    "class": CLASSES_THAT_DECEIVE,
}
MEANS = [
    pytest.param(cell, id=f"{group}: {name}")
    for group, cells in GROUPS.items()
    for name, cell in cells.items()
]


@pytest.mark.parametrize("cell", MEANS)
def test_a_means_is_seen(cell: str) -> None:
    ast.parse(cell)  # or it is no means at all
    assert reasons(cell, counts=False)
