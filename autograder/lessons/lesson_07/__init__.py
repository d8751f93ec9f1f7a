"""Lesson 07: managing GPUs and cost."""

from autograder.course import Clock, Exercise, Lesson

LESSON = Lesson(
    id="07",
    slug="07_gpus_and_cost",
    title="Managing GPUs and cost",
    exercises=(
        Exercise(
            id="7.1",
            title="Where a step's time goes",
            entry="step_breakdown",
            check="checks.trace.check_step_breakdown",
        ),
        Exercise(
            id="7.2",
            title="What the target costs",
            entry="cost_to_target",
            check="checks.money.check_cost_to_target",
        ),
        Exercise(
            id="7.3",
            title="A guard of the budget",
            entry="BudgetGuard",
            check="checks.budget.check_budget_guard",
        ),
        Exercise(
            id="7.4",
            title="Four sick runs",
            entry="Ward",
            kinds=("property", "count"),
            allows=("concurrent.futures", "concurrent.futures.ThreadPoolExecutor"),
            check="checks.ward.check_ward",
            clock=Clock(
                bar=1.5,
                baseline="baselines.SICK_RUNS",
                reference="references.WARD",
                slow="mutants.ward.SLOW_WARD",
                points=4,
            ),
        ),
        Exercise(
            id="7.5",
            title="Adapters by hand",
            entry="add_lora",
            kinds=("property", "count"),
            allows=("setattr",),  # how a layer takes another's place
            check="checks.adapters.check_add_lora",
        ),
        Exercise(
            id="7.6",
            title="Challenge: the target for less",
            entry="two_changes",
            kinds=("property", "count"),
            check="checks.target.check_two_changes",
        ),
    ),
)
