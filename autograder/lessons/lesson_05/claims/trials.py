"""What exercises 5.2 and 5.4 say, and the wrong solutions that go against it."""

from __future__ import annotations

from autograder.lessons.checking import EXPLAINS, Claims

TRIALS: Claims = {
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
    "Train every configuration once with every seed": (
        "a seed left out",
        "reused model",
        "losses kept from the search before",
    ),
    "returns validation losses": ("the rows in another order",),
    "float64 [configs, seeds]": (
        "losses of less precision",
        "columns for rows",
        "a column found by its seed",
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
    'a batch has these two and "labels"': ("smoothed labels", "padding read from the ids"),
    "Each trial, whatever ran before it: torch seeded with its seed": (
        "a seed for the weights alone",
        "dropout of a fixed seed",
        "a seed at every step",
        "all models of a seed before the first training",
        "a seed counted from zero",
        "one seed for all weights",
        "seeded after the model is built",
    ),
    "a fresh model, a fresh optimizer": ("reused model", "reused optimizer"),
    "`num_steps` steps on the first `num_steps` batches of its seed": (
        "one step fewer",
        "a step where none is asked for",
        "one stream for all trials",
    ),
    "in training mode": (
        "no training mode",
        "training mode of the outermost module alone",
        "an evaluation on the way",
    ),
    "minimising the mean cross-entropy": (
        "gradients added up",
        "gradients of one group set to zero",
        "the sum is minimised",
        "smoothed labels",
        "clipped gradients",
        "a rate that decays",
        "a tenth of the rate from step 100 on",
        "gradients kept at every 50th step",
    ),
    "Then the mean cross-entropy over all validation *samples*": (
        "a mean of batch means",
        "a sum over validation",
        "one validation batch",
        "weighted by tokens",
        "a probability that is never 0",
    ),
    "in evaluation mode": ("judged in training mode",),
    "`math.inf` where that is no finite number": (
        "NaN kept as it is",
        "batches that are not finite left out",
        "a large number for an infinite loss",
        "a high loss taken for infinite",
    ),
    "an error on the way reaches the caller.": (
        "an error taken for a trial that diverged",
        "an error passed over in the backward pass",
        "an error passed over in a step",
        "an error passed over in the making of a model",
        "an error passed over in the verdict",
    ),
    "Every trial is trained to its end;": (
        "a trial that diverges is stopped",
        "a trial that has learnt it all is stopped",
        "different budgets",
        "gradients that are no numbers set to zero",
    ),
    "task: Any, configs: list[dict[str, float]], seeds: list[int], num_steps: int": ("one step fewer",),
}

DECISIONS: Claims = {
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
    "`losses` stays as it is.": ("infinity written into the table",),
    '"candidate" the row, other than 0, with the lowest mean loss': (
        "row 0 as a candidate",
        "counted from row 1",
        "best of noise from one seed",
    ),
    "among rows finite at every seed": (
        "NaN wins",
        "the mean of the seeds that are left",
        "minus infinity wins",
        "spread of the seeds at which no row diverged",
    ),
    '"interval" (low, high), `low` finite': ("no interval for a tie", "an interval in few digits"),
    "the candidate's improvement, (loss of row 0) - (its loss), lies in it": (
        "ends exchanged",
        "the interval of its loss",
        "an interval of the other sign",
        "another key",
    ),
    "with at least `confidence`": (
        "confidence ignored",
        "a quantile kept from before",
        "divided by the number of seeds",
        "as many degrees of freedom as seeds",
        "the whole error at each end",
        "normal quantile for four seeds",
        "normal quantile from 30 seeds on",
        "normal quantile from 100 seeds on",
        "normal quantile from 1000 seeds on",
        "a confidence of 0.999 at most",
    ),
    "confidence: float = 0.95": ("another default",),
    "although it was picked as the best of all rows": (
        "no price for many candidates",
        "no price where a row diverged",
        "a quantile kept from fewer candidates",
    ),
    '"winner" the candidate if `low` is above 0, else 0': (
        "the lowest mean wins",
        "a winner that is worse",
        "a tie counts as a win",
        "no winner is none",
        "False for row 0",
        "no winner without spread",
        "a least difference",
    ),
    "Where all configurations are equal, a winner other than 0 comes up in at most 1 - confidence of the tables.": (
        "no price for many candidates",
        "the spread of all rows, as if they were independent",
        "normal quantile for four seeds",
        *(f"better by the sign alone at {num_seeds} seeds" for num_seeds in (3, 5, 6)),
    ),
    "Noise is normal, with the same spread for every row; seeds may differ by far more.": (
        "pairs not used",
        "the spread of single values",
    ),
}
