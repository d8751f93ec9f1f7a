"""The public face: every name is there, importing is light, optional packages are not asked for."""

import subprocess
import sys

import pytest

import course_lib


def test_every_public_name_is_found_documented_and_listed():
    for name in course_lib.__all__:
        assert getattr(course_lib, name).__doc__, name
        assert name in dir(course_lib)
    assert course_lib.__all__ == sorted(course_lib.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = course_lib.nonsense


def test_the_import_loads_nothing_heavy():
    """What it needs to run is tried in test_alone.py."""
    code = "import sys, course_lib; print({'torch', 'numpy'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
