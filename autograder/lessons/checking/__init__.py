"""The words in which a lesson's author says right and wrong."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base import attach

if TYPE_CHECKING:
    from autograder.lessons.checking.hashes import may_hash_texts
    from autograder.lessons.checking.mistakes import name_the_mistake, twin_of
    from autograder.lessons.checking.mutants import EXPLAINS, Claims, Mutant, edited, wrong
    from autograder.lessons.checking.quality import (
        HEAD_START,
        TOLERANCES,
        are_equal,
        compare_paired,
        relative_difference,
        require_equal,
        require_no_worse,
    )
    from autograder.lessons.checking.requirements import (
        put_told,
        require_close,
        require_each_once,
        require_keys,
        require_left_alone,
        require_repeatable,
        require_report,
        require_same_parts,
        watched,
    )
    from autograder.lessons.checking.work import require_no_more_work, require_products, require_used

__getattr__, __dir__, __all__ = attach(__name__, __file__)
