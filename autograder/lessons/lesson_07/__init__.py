"""Lesson 07: managing GPUs and cost."""

from autograder.course import Clock, Exercise, Lesson

LESSON = Lesson(
    id="07",
    slug="07_gpus_and_cost",
    exercises=(
        Exercise(
            id="7.1",
            entry="step_breakdown",
            check="checks.trace.check_step_breakdown",
            without_library=True,
        ),
        Exercise(
            id="7.2",
            entry="cost_to_target",
            check="checks.money.check_cost_to_target",
        ),
        Exercise(
            id="7.3",
            entry="BudgetGuard",
            check="checks.budget.check_budget_guard",
        ),
        Exercise(
            id="7.4",
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
            entry="add_lora",
            kinds=("property", "count"),
            allows=("getattr", "setattr"),  # how a layer takes another's place
            check="checks.adapters.check_add_lora",
            without_library=True,
        ),
        Exercise(
            id="7.6",
            entry="two_changes",
            kinds=("property", "count"),
            check="checks.target.check_two_changes",
        ),
    ),
)
