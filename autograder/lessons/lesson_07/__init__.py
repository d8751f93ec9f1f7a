"""Lesson 07: managing GPUs and cost."""

from pathlib import Path

from autograder.course.lessons import Exercise, Lesson, harness_source
from autograder.lessons.lesson_07 import references
from autograder.lessons.lesson_07.checks import adapters, budget, money, target, trace, ward

LESSON = Lesson(
    id="07",
    slug="07_gpus_and_cost",
    title="Managing GPUs and cost",
    harness=harness_source(Path(__file__).with_name("harness")),
    exercises=(
        Exercise(
            id="7.1",
            title="Where a step's time goes",
            entry="step_breakdown",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=trace.check_step_breakdown,
        ),
        Exercise(
            id="7.2",
            title="What the target costs",
            entry="cost_to_target",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=money.check_cost_to_target,
        ),
        Exercise(
            id="7.3",
            title="A guard of the budget",
            entry="BudgetGuard",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=budget.check_budget_guard,
        ),
        Exercise(
            id="7.4",
            title="Four sick runs",
            entry="Ward",
            max_score=10,
            clock_free_score=6,
            kinds=("property", "count", "speed"),
            allows=("concurrent.futures", "concurrent.futures.ThreadPoolExecutor"),
            check=ward.check_ward,
            reference=references.WARD,
        ),
        Exercise(
            id="7.5",
            title="Adapters by hand",
            entry="add_lora",
            max_score=10,
            clock_free_score=10,
            kinds=("property", "count"),
            allows=("setattr",),  # how a layer takes another's place
            check=adapters.check_add_lora,
        ),
        Exercise(
            id="7.6",
            title="Challenge: the target for less",
            entry="two_changes",
            max_score=10,
            clock_free_score=10,
            kinds=("property", "count"),
            check=target.check_two_changes,
        ),
    ),
)
