"""Searching for what serves best: values of a config, and changes of a training loop."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from course_lib.tuning.ladder import climb
    from course_lib.tuning.search import Search
    from course_lib.tuning.search_space import default_space, parse_searches
    from course_lib.tuning.study import make_sampler, open_study, tune

__getattr__, __dir__, __all__ = attach(__name__, __file__)
