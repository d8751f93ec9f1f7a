"""What the exercises of lesson 05 say, by the wrong solutions that go against it."""

from __future__ import annotations

from autograder.lessons.checking import EXPLAINS, Claims

CLAIMS: dict[str, Claims] = {
    "5.1": {
        "Every search begins here. A space is a dict of parts; a sample is a dict of values.": EXPLAINS,
        "Some keys only make sense under a": EXPLAINS,
        "momentum belongs to SGD, and a sample with AdamW must not have it": ("condition ignored",),
        "Draw one configuration from `space`.": ("one dict for all samples",),
        "All randomness comes from `rng`.": (
            "a generator of its own",
            "a seed of its own",
            "drawn in the order of a set",
        ),
        "`space` maps a name to a part, in any order:": ("a condition read too early",),
        "a float; its logarithm is uniform": ("uniform learning rate", "powers of ten of natural logarithms"),
        '{"kind": "log", "low": 1e-4, "high": 1e-1}': ("silently clipped", "rounded values"),
        "a float, uniform": ("a float that grows", "an array for a number", "a float below 0 is refused"),
        '{"kind": "int", "low": 1, "high": 4} a whole number, both ends among them, equally likely': (
            "upper end never drawn",
            "a float for a whole number",
            "rounded to a whole number",
            "an int of one value is refused",
        ),
        '{"kind": "choice", "values": ["adamw", "sgd"]} one of these, equally likely': (
            "a choice as text",
            "the first choice twice as often",
        ),
        "Then the name is in the sample exactly if the sample has `value` under `other_name`": (
            "condition ignored",
            "a condition that is there",
            "a condition by identity",
            "None for what does not apply",
        ),
        'Any of them may have "when": (other_name, value).': ("condition ignored",),
        "which itself has no condition": EXPLAINS,
        "Returns {name: value}.": ("a help variable",),
        "Draws are independent of each other": ("one number for all keys", "samples that follow each other"),
        "`space` stays as it is": ("conditions taken out of the space",),
        'Raises ValueError for a range of kind "log" or "float" that cannot be': (
            "another error",
            "ends exchanged",
            "an int of one value is refused",
        ),
        "`low` not below `high`": ("equal ends", "ends exchanged"),
        "or a log range that does not begin above 0": ("a log range from 0 is repaired",),
        "It is never repaired in silence": ("a log range from 0 is repaired", "ends exchanged"),
        "and is found at every call, whether or not the key is drawn": ("refuses only what it draws",),
    },
    "5.2": {
        "Two loops and a training: nothing easier, and nothing in a search is wrong more often.": EXPLAINS,
        "Each trial gets fresh weights, a fresh optimizer, the same number of steps, and a seed that means the same "
        "for every configuration.": (
            "reused model",
            "reused optimizer",
            "different budgets",
            "another seed for each configuration",
        ),
        "It is judged on the validation texts, after its last step.": (
            "picked on train",
            "judged before the last step",
        ),
        "Train every configuration once with every seed": ("a seed left out", "reused model"),
        "returns validation losses": ("the rows in another order",),
        "float64 [configs, seeds]": (
            "losses of less precision",
            "columns for rows",
            "one number for each configuration",
        ),
        "task.make_model(config)": ("reused model",),
        "a classifier whose weights come from torch's global generator": ("seeded after the model is built",),
        "task.make_optimizer(model, config)": ("an optimizer of another configuration",),
        "its optimizer": ("reused optimizer",),
        "an endless generator of batches, in an order of that seed": ("one stream for all trials",),
        "a list of batches to judge a trial on": ("one validation batch",),
        "a list of batches that no search may look at": ("picked on test",),
        "`model(input_ids, attention_mask)` returns logits [B, C]": EXPLAINS,
        'a batch has these two and "labels"': ("smoothed labels",),
        "Each trial: torch seeded with its seed": (
            "a seed counted from zero",
            "one seed for all weights",
            "seeded after the model is built",
        ),
        "a fresh model, a fresh optimizer": ("reused model", "reused optimizer"),
        "`num_steps` steps on the first `num_steps` batches of its seed": (
            "one step fewer",
            "one stream for all trials",
        ),
        "in training mode": ("no training mode",),
        "minimising the mean cross-entropy": (
            "gradients added up",
            "the sum is minimised",
            "smoothed labels",
            "clipped gradients",
            "a rate that decays",
        ),
        "Then the mean cross-entropy over all validation *samples*": (
            "a mean of batch means",
            "a sum over validation",
            "one validation batch",
        ),
        "in evaluation mode": ("judged in training mode",),
        "`math.inf` where that is no finite number": (
            "NaN kept as it is",
            "a large number for an infinite loss",
        ),
        "Every trial is trained to its end.": ("a trial that diverges is stopped", "different budgets"),
        "task: Any, configs: list[dict[str, float]], seeds: list[int], num_steps: int": ("one step fewer",),
    },
    "5.3": {
        "You are given a function that trains.": EXPLAINS,
        "It runs in the grader's process, on learning curves that you cannot see: they cross, one looks best early and "
        "then rises, one is NaN.": ("different budgets compared", "NaN left in the sort"),
        "And every step that you ask for is billed there.": ("pruned trials left out of the bill",),
        "Successive halving over `configs`, all different, within a budget.": (
            "trials known by their learning rate",
        ),
        "`train(config, num_steps)` trains this configuration's trial for `num_steps` *more*": (
            "every round from the beginning",
        ),
        "lower is better": ("the worst go on", "a loss of zero is none"),
        "NaN means that it diverged": ("NaN goes on", "a million for NaN", "NaN left in the last minimum"),
        "The first call for a configuration starts its trial.": EXPLAINS,
        "Round 1: every trial gets `min_steps`.": (
            "a first round for half of them",
            "a first round of half the steps",
        ),
        "of the n trials of a round, the best n // reduction_factor (at least 1) go on": (
            "rounded up",
            "rounded to the nearest",
            "none goes on",
            "the first go on",
            "the worst go on",
        ),
        "until each has had `reduction_factor` times as many steps in all": (
            "rounds of equal length",
            "every round from the beginning",
        ),
        "The last round is the one in which a single trial trains alone": ("never alone", "alone for ever"),
        "or the last one that fits as a whole": ("an exact fit left out", "part of a round"),
        "the steps of *all* trials, pruned ones too, never exceed `max_total_steps`": (
            "pruned trials free for the budget",
            "no look at the budget",
            "one step over",
        ),
        "Returns, of the trial with the lowest loss in the last round:": (
            "different budgets compared",
            "the finalist that was lowest in any round",
            "best of the round before",
        ),
        '"best" its place in `configs`': ("place among the last",),
        '"value" its loss after its last step': ("its lowest loss", "the loss of its first round"),
        "and the bill:": EXPLAINS,
        '"num_steps" list of ints: steps of each trial, in the order of `configs`': (
            "steps in the order of the ranking",
            "steps by place",
            "steps that are no ints",
        ),
        '"total_steps" their sum': ("pruned trials left out of the bill", "the budget for the bill"),
        "Raises ValueError, before any training, when round 1 does not fit.": (
            "refuses nothing",
            "refuses after a trial",
            "refuses an exact fit",
            "refuses by another error",
        ),
    },
    "5.4": {
        "A table of losses: a row for each configuration, a column for each seed.": EXPLAINS,
        "Row 0 is what you use today.": ("row 0 as a candidate",),
        "Is any other row truly better?": ("the lowest mean wins",),
        "The check draws thousands of tables of which it knows the truth, and counts your errors.": EXPLAINS,
        "Returns": EXPLAINS,
        "Is a configuration better than today's, beyond the noise of the seeds?": (
            "best of noise from one seed",
        ),
        "losses: float64 [configurations, seeds], lower is better.": ("the highest loss",),
        "A column is one seed for all rows; there are at least two.": ("pairs not used",),
        "Row 0 is today's configuration, finite at every seed; so is at least one other row.": EXPLAINS,
        '"candidate" the row, other than 0, with the lowest mean loss': (
            "row 0 as a candidate",
            "counted from row 1",
            "best of noise from one seed",
        ),
        "among rows finite at every seed": (
            "NaN wins",
            "the mean of the seeds that are left",
            "minus infinity wins",
        ),
        '"interval" (low, high): the candidate\'s improvement, (loss of row 0) - (its loss), lies in it': (
            "ends exchanged",
            "the interval of its loss",
            "an interval of the other sign",
            "another key",
        ),
        "with at least `confidence`": (
            "confidence ignored",
            "divided by the number of seeds",
            "as many degrees of freedom as seeds",
            "the whole error at each end",
            "normal quantile for four seeds",
        ),
        "confidence: float = 0.95": ("another default",),
        "although it was picked as the best of all rows": ("no price for many candidates",),
        '"winner" the candidate if `low` is above 0, else 0': (
            "the lowest mean wins",
            "a winner that is worse",
            "no winner is none",
        ),
        "Where all configurations are equal, a winner other than 0 comes up in at most 1 - confidence of the tables.": (
            "no price for many candidates",
            "normal quantile for four seeds",
        ),
        "Noise is normal, with the same spread for every row; seeds may differ by far more.": (
            "pairs not used",
            "the spread of single values",
        ),
    },
    "5.5": {
        "Put the parts together.": EXPLAINS,
        "The problems are small real trainings, each with a secret data set, unit of its loss and seed, so the best "
        "learning rate moves by decades.": ("uniform learning rate",),
        "`train` runs in the grader's process, and bills every step.": ("each round from the beginning",),
        "The grid trains 4 learning rates × 3 weight decays in full.": EXPLAINS,
        "You have half of its steps.": ("the whole grid",),
        "The grader then trains the configuration that you return, and the grid's winner": EXPLAINS,
        "On average over the problems yours must be as": EXPLAINS,
        "good: its loss on unseen samples at most 1.05 times the other's.": ("the first that comes",),
        "Find a good configuration for trainings of `full_steps`": ("picked after a few steps",),
        "within `max_total_steps` steps of all trials": ("pruned trials counted as free",),
        "`train(config, num_steps)` as in 5.3: goes on with the trial of this configuration for `num_steps` more, "
        "starts it at the first call, returns its validation loss": ("each round from the beginning",),
        "NaN where it diverged": ("NaN wins",),
        "All trials share one seed.": EXPLAINS,
        "One step beyond `max_total_steps`, and the search has failed.": ("a step too many",),
        '`space` as in 5.1: two names, "learning_rate" and "weight_decay", both of kind "log".': (
            "uniform learning rate",
            "out of its range",
        ),
        "`seed`: whatever is random follows from it.": ("no seed",),
        'Returns a configuration: {"learning_rate": float, "weight_decay": float}, each within its range.': (
            "a loss for a configuration",
            "out of its range",
            "a key left out",
        ),
    },
}
