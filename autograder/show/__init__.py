"""How anything is said: card, page, figure, template."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.show.card import WORDS, result_text
    from autograder.show.evidence_page import page
    from autograder.show.plots import bars, figure, show
    from autograder.show.rich import (
        BLUE,
        GREEN,
        GREY,
        ORANGE,
        in_kernel,
        plain,
        render,
        rich_html,
        show_html,
        show_widget,
        spoken,
        told,
    )
    from autograder.show.score import Score
    from autograder.show.speed_words import NOT_SHOWN, RIGHT_BUT_SLOW, out_of_time, too_slow, undecided
    from autograder.show.terminal import folded, say

__getattr__, __dir__, __all__ = attach(__name__, __file__)
