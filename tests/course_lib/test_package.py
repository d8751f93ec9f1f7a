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


def test_import_needs_torch_and_numpy_alone():
    """All other dependencies are made impossible to import; the core names must still load and train."""
    code = """
import sys
from importlib.machinery import PathFinder
banned = {"scipy", "yaml", "tqdm", "matplotlib", "tokenizers", "tensorboard", "psutil", "platformdirs", "jinja2",
          "pandas", "IPython", "nbgrader", "autograder", "optuna", "filelock", "sklearn", "transformers"}
class Wall:
    find_spec = staticmethod(
        lambda name, path=None, target=None: None if name.partition(".")[0] in banned
        else PathFinder.find_spec(name, path, target)
    )
sys.meta_path[sys.meta_path.index(PathFinder)] = Wall
import course_lib
assert "torch" not in sys.modules and "numpy" not in sys.modules
for name in course_lib.__all__:
    getattr(course_lib, name)
config = course_lib.ModelConfig(vocab_size=9, num_classes=2, max_length=4)
model = course_lib.TextClassifier(config)
import numpy as np
batches = [course_lib.collate([(np.array([3, 4]), 1), (np.array([5]), 0)])]
print(course_lib.fit(model, batches, course_lib.make_optimizer(model))[0]["num_samples"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "2"
