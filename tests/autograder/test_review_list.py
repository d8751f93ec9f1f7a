"""The list of what a cell may reach is that of the installed libraries, and holds no module of another library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autograder.engine.review.allowed import kind_of, names_of
from tools.make_allowed import TARGET, made, made_with


@pytest.mark.further
@pytest.mark.filterwarnings("ignore")
def test_the_list_is_what_the_libraries_hold() -> None:
    kept = json.loads(Path(TARGET).read_text(encoding="utf-8"))
    if kept["made with"] != made_with():
        pytest.skip(f"the list was made with {kept['made with']}")
    assert kept == made()


@pytest.mark.parametrize(
    "path",
    [
        "builtins.exec",
        "builtins.open",
        "contextlib.os",
        "contextlib.redirect_stdout",
        "enum.global_enum",
        "functools.update_wrapper",
        "gc.get_objects",
        "inspect",
        "logging.threading",
        "numpy.ctypeslib",
        "numpy.fromfile",
        "numpy.f2py",
        "os.fork",
        "os.path.os",
        "pickle",
        "random._os",
        "string.Formatter",
        "sys._getframe",
        "sys.modules",
        "torch.builtins",
        "torch.classes",
        "torch.from_file",
        "torch.fx",
        "torch.hub",
        "torch.jit",
        "torch.library",
        "torch.nn.modules.module",
        "torch.ops",
        "torch.overrides",
        "torch.serialization",
        "torch.set_default_dtype",
        "torch.utils.backend_registration",
        "torch.utils.cpp_extension",
        "torch.utils.data._utils",
        "typing.get_type_hints",
        "types.FunctionType",
        "course_lib.measuring",
        "course_lib.cli",
        "course_lib.count_events",
    ],
)
def test_is_not_on_the_list(path: str) -> None:
    assert kind_of(path) == ""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("torch.nn", "module"),
        ("torch.nn.functional.cross_entropy", "functions"),
        ("torch.Tensor", "classes"),
        ("numpy.ndarray", "fixed"),
        ("math.pi", "values"),
        ("itertools.batched", "functions"),
        ("concurrent", "module"),
    ],
)
def test_is_on_the_list(path: str, kind: str) -> None:
    assert kind_of(path) == kind


def test_no_attribute_on_the_list_leads_behind_its_object() -> None:
    closed = (
        "gi_frame tb_frame f_back cell_contents ctypes tofile untyped_storage mro register apply_ fget func"
    )
    assert not names_of("attributes") & set(closed.split())
