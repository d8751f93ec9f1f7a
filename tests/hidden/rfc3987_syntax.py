"""In the way of the package of this name: `tests/conftest.py` says why."""

raise ImportError("hidden from tests")
