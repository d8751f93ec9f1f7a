"""What exercises 5.1, 5.3 and 5.5 say, and the wrong solutions that go against it."""

from __future__ import annotations

from autograder.lessons.checking import EXPLAINS, Claims

SAMPLES: Claims = {
    "Every search begins here. A space is a dict of parts; a sample is a dict of values.": EXPLAINS,
    "Some keys only make sense under a": EXPLAINS,
    "momentum belongs to SGD, and a sample with AdamW must not have it": ("condition ignored",),
    "Draw one configuration from `space`.": ("one dict for all samples",),
    "All randomness comes from `rng`.": (
        "a generator of its own",
        "a seed of its own",
        "a child generator",
        "drawn in the order of a set",
    ),
    "`space` maps a name to a part, in any order:": ("a condition read too early",),
    "a float; its logarithm is uniform": ("uniform learning rate", "powers of ten of natural logarithms"),
    '{"kind": "log", "low": 1e-4, "high": 1e-1}': ("silently clipped", "rounded values"),
    "a float, uniform": (
        "values near the ends left out",
        "a float that grows",
        "whole numbers between whole ends",
        "an array for a number",
        "a float below 0 is refused",
    ),
    '{"kind": "int", "low": 1, "high": 4} a whole number, both ends among them, equally likely': (
        "upper end never drawn",
        "a float for a whole number",
        "rounded to a whole number",
        "cut to a whole number",
        "whole numbers of 16 bits",
        "whole numbers of 32 bits",
        "an int of one value is refused",
    ),
    '{"kind": "choice", "values": ["adamw", "sgd"]} one of these, equally likely': (
        "a choice as text",
        "a choice by way of an array",
        "a choice by way of a dict",
        "never more than eight choices",
        "the first choice twice as often",
    ),
    "Then the name is in the sample exactly if the sample has `value` under `other_name`": (
        "condition ignored",
        "a condition that is there",
        "a condition by identity",
        "a condition by its beginning",
        "a pair for either of two",
        "one key for each that others hang on",
        "a value that is never drawn",
        "None for what does not apply",
    ),
    'Any of them may have "when": (other_name, value).': ("condition ignored",),
    "which itself has no condition": EXPLAINS,
    "Returns {name: value}.": ("a help variable", "a space without a key"),
    "Draws are independent of each other": (
        "one number for all keys",
        "one number for two keys, from both ends",
        "one draw for each part",
        "one number for what hangs on one key",
        "one seed for all that has a condition",
        "samples that follow each other",
    ),
    "`space` stays as it is": ("conditions taken out of the space",),
    'Raises ValueError for a range of kind "log" or "float" that cannot be': (
        "another error",
        "ends exchanged",
        "an int of one value is refused",
    ),
    "`low` not below `high`, NaN too": (
        "equal ends",
        "ends that are nearly equal",
        "ends exchanged",
        "ends compared the other way",
    ),
    'A range of kind "int" always holds a number': EXPLAINS,
    "and fewer than 2**53": EXPLAINS,
    "or a log range that does not begin above 0": ("a log range from 0 is repaired",),
    "It is never repaired in silence": ("a log range from 0 is repaired", "ends exchanged"),
    "and is found at every call, whether or not the key is drawn": (
        "refuses only what it draws",
        "a space looked at once",
    ),
}

HALVING: Claims = {
    "You are given a function that trains.": EXPLAINS,
    "It runs in the grader's process, on learning curves that you cannot see: they cross, one looks best early and "
    "then rises, one is NaN.": ("different budgets compared", "NaN left in the sort"),
    "And every step that you ask for is billed there.": ("pruned trials left out of the bill",),
    "Successive halving over `configs`, no two of them equal, within a budget.": (
        "trials known by their learning rate",
        "trials known by a few digits",
        "trials known by twelve digits",
    ),
    "The same values under other names are another configuration.": ("trials known by their values",),
    "`train(config, num_steps)` trains this configuration's trial for `num_steps` *more*": (
        "every round from the beginning",
    ),
    "lower is better": ("the worst go on", "a loss of zero is none"),
    "NaN means that it diverged, and is no better than inf": (
        "NaN goes on",
        "a million for NaN",
        "NaN left in the last minimum",
    ),
    "Among equals any may go on.": ("ties broken by the configuration", "all that are equal go on"),
    "The first call for a configuration starts its trial.": ("losses kept from the search before",),
    "Round 1: every trial gets `min_steps`.": (
        "a first round for half of them",
        "a first round of half the steps",
    ),
    "of the n trials of a round, the best n // reduction_factor (at least 1) go on": (
        "rounded up",
        "rounded to the nearest",
        "diverged trials left out of n",
        "a diverged trial never goes on",
        "none goes on",
        "the first go on",
        "what was low once goes on",
        "the worst go on",
    ),
    "until each has had `reduction_factor` times as many steps in all": (
        "rounds of equal length",
        "every round from the beginning",
    ),
    "The last round is the one in which a single trial trains alone": (
        "never alone",
        "an end where all have diverged",
        "fewer than the factor are left",
        "alone for ever",
    ),
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
    '"value" its loss after its last step': (
        "its lowest loss",
        "the loss of its first round",
        "the lowest loss of one that is lost alone",
        "a value in few digits",
    ),
    "NaN or inf where the whole round diverged": (
        "nothing to choose from",
        "the first of all where all diverged",
        "no trial where all diverged",
    ),
    "and the bill:": EXPLAINS,
    '"num_steps" list of ints: steps of each trial, in the order of `configs`': (
        "steps in the order of the ranking",
        "steps by place",
        "steps that are no ints",
    ),
    '"total_steps" their sum': ("pruned trials left out of the bill", "the budget for the bill"),
    "Raises ValueError, before any training, when round 1 does not fit.": (
        "refuses nothing",
        "a budget of 0 for none",
        "refuses after a trial",
        "refuses an exact fit",
        "refuses by another error",
    ),
}

BUDGET: Claims = {
    "Put the parts together.": EXPLAINS,
    "The problems are small real trainings, each with a secret data set, unit of its loss and seed, so the best "
    "learning rate moves by decades.": ("uniform learning rate",),
    "`train` runs in the grader's process, and bills every step.": ("each round from the beginning",),
    "The grid trains 4 learning rates × 3 weight decays in full.": EXPLAINS,
    "You have half of its steps.": ("the whole grid",),
    "The grader then trains the configuration that you return, and the grid's winner": EXPLAINS,
    "On average over the problems yours must be as": EXPLAINS,
    "good: its loss on unseen samples at most 1.05 times the other's.": ("the first that comes",),
    "Find a good configuration for trainings": ("picked after a few steps",),
    "of `full_steps`, 81 or more": ("lengths known by heart",),
    "The steps of all trials stay within `max_total_steps`, which is 6 × `full_steps`.": (
        "pruned trials counted as free",
        "lengths rounded up",
        "lengths rounded to the nearest",
    ),
    "goes on with the trial of this configuration for `num_steps` more, starts it at the first call, returns its "
    "validation loss": ("each round from the beginning",),
    "NaN where it diverged": (
        "NaN wins",
        "NaN left in the sort",
        "NaN left in the last sort",
        "a thousand for NaN",
        "its lowest loss in any round",
    ),
    "All trials share one seed.": EXPLAINS,
    "One step beyond `max_total_steps`, and the search has failed.": ("a step too many",),
    '`space` as in 5.1: two names, "learning_rate" and "weight_decay", both of kind "log", in any order.': (
        "uniform learning rate",
        "out of its range",
        "a space by places",
        "ranges known by heart",
    ),
    "It stays as it is.": ("logarithms in the caller's space",),
    "for configurations inside `space`": ("values beside the best outside its range",),
    "`seed`: the same one gives the same search.": (
        "no seed",
        "seed 0 taken for none",
        "names in the order of a set",
    ),
    "Returns a configuration, even where every trial diverged:": (
        "nothing to choose from",
        "none where all end in NaN",
    ),
    '{"learning_rate": float, "weight_decay": float}, each within its range, but for rounding.': (
        "a loss for a configuration",
        "out of its range",
        "a key left out",
    ),
}
