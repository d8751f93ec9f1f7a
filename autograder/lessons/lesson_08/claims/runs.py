"""What exercises 8.1, 8.4, 8.5 and 8.6 say, and the wrong solutions that go against it."""

from __future__ import annotations

from autograder.lessons.checking import EXPLAINS, Claims

SEEDING: Claims = {
    "Seed a process and the loader of its training data.": EXPLAINS,
    "The samples are noisy: reading one draws from Python, NumPy, torch, and from `dataset.rng`": EXPLAINS,
    "For `worker_init_fn`: runs in each worker before it reads.": EXPLAINS,
    "return a loader that shuffles": (
        "no shuffling",
        "whole batches are shuffled",
        "an iterator",
        "arguments in another order",
    ),
    "all that is random follows from `seed`": (
        "a seed written into the code",
        "one seed for the data set",
        "one seed for Python",
        "only a part of the seed",
        "the order is seeded by the hash of a text",
        "loaders share a generator",
    ),
    "Takes: `dataset` with a length and an index; `dataset.rng`, a NumPy `Generator` seeded by the": (
        "a data set without workers is left alone",
        "another kind of generator",
        "another kind of generator in the workers",
    ),
    "system, draws the noise of its samples, beside the global generators.": EXPLAINS,
    "After the call, equal seeds give equal draws from Python, NumPy and torch.": (
        "NumPy seed forgotten",
        "Python seed forgotten",
        "torch seed forgotten",
        "no seed is a seed of 0",
        "nothing is seeded with 0",
    ),
    "batches of `micro_batch_size` samples": (
        "batches of 32 whatever is asked",
        "another default of micro_batch_size",
        "no batch is larger than by default",
    ),
    "each sample once an epoch": (
        "the last batch is dropped",
        "fewer samples than a batch are dropped",
        "an epoch goes on where one was broken off",
        "with replacement",
    ),
    "equal `num_workers`": ("no workers whatever is asked", "workers by default"),
    "order equal, whatever else draws from torch meanwhile": (
        "one generator shared by shuffling and dropout",
        "the order is seeded by the system",
    ),
    "meanwhile; new in each epoch": (
        "the same order in each epoch",
        "three orders in turn",
        "the order is moved on",
    ),
    "noise equal, from all generators in the workers": (
        "workers are seeded by the system",
        "workers ask for the seed of the last call",
        "NumPy of a worker is seeded by the system",
    ),
    "(without workers: from `dataset.rng`,": (
        "a data set without workers is left alone",
        "a data set is seeded once",
    ),
    "NumPy and Python); new in each epoch": (
        "workers get the same numbers each epoch",
        "one worker alone is not seeded",
        "torch of a worker starts anew",
    ),
    "different in each worker": (
        "worker seed forgotten",
        "every worker gets the same seed",
        "the worker's number is mixed in twice",
        "half of the worker's seed",
        "one seed for Python in all workers",
    ),
}

RUN: Claims = {
    "A run that owns all its luck: the same seed gives the same bits": (
        "NumPy seed forgotten",
        "Python seed forgotten",
        "dropout is not seeded",
    ),
    "in this process and in another": (
        "the position is kept in the process",
        "the order hangs on the hash of a text",
    ),
    "also when it is stopped in the middle of an epoch and goes on from a file.": (
        "the position is not saved",
        "the order is drawn anew",
        "the epoch is counted at the next step",
    ),
    "Between its calls nothing else draws or seeds.": EXPLAINS,
    "Reading a sample draws from NumPy's and Python's global generators": ("NumPy seed forgotten",),
    "building the model and dropout draw from torch's.": ("seeding after the model is built",),
    "A training run in `self.model`": ("another model is trained",),
    "AdamW at 1e-2": ("another rate", "SGD"),
    "all else as torch has it": (
        "Adam",
        "Adam with decay",
        "gradients are kept",
        "gradients are clipped",
        "a larger eps",
    ),
    "mean cross-entropy": ("the sum for the mean", "smoothed labels"),
    "of batches of 4.": ("batches of five",),
    "Each epoch has each of the N samples once": (
        "the short batch is dropped",
        "a single sample is dropped",
    ),
    "in a new random order": (
        "the same order each epoch",
        "seed times epoch",
        "two orders in turn",
        "every other epoch is the one before, backwards",
        "one sample keeps its place",
        "the halves are shuffled apart",
        "the samples of a batch are sorted",
        "whole batches are shuffled",
    ),
    "that follows from `seed`": (
        "one order for every seed",
        "a seed written into the code",
        "the order is not seeded",
        "nothing is seeded with 0",
    ),
    "and not from what the model draws": ("one generator shared by shuffling and dropout",),
    "the last batch may be short": ("a short batch divided by 4", "the short batch is dropped"),
    "Equal seeds give equal bits.": ("dropout is not seeded",),
    "`make_model()` draws first weights from torch": ("seeding after the model is built",),
    "`model(input_ids, attention_mask)` -> logits [B, C].": ("padding is read",),
    "Each step gives every parameter of the model a gradient.": EXPLAINS,
    "`samples[i]` is `(ids, label)`; each reading draws from `np.random` and `random`.": (
        "Python seed forgotten",
    ),
    "def train(self, num_steps: int)": ("one step too many",),
    "Go on for so many steps": ("one step too many",),
    "in training mode": ("the mode that it was left in",),
    "read the samples of a step when it is due, once each.": (
        "the next batch is read ahead",
        "the samples of a call are read at its beginning",
    ),
    "All that the next step needs": (
        "torch's generator is not saved",
        "Python's generator is not saved",
        "half of a pair of Gaussians is lost",
        "buffers are not saved",
        "saving draws",
    ),
    "`torch.load(…, weights_only=True)` must read it.": ("objects in the state",),
    "def load_state_dict(self, state: dict[str, Any])": ("the model is not restored",),
    "Go on from there, in a fresh `Run` of the same seed and samples, as if nothing had happened.": (
        "the optimizer is not saved",
        "generators are not saved",
        "a sample is read after loading",
    ),
}

HELPED: Claims = {
    "Decide, and be seldom wrong.": ("comparing single seeds",),
    "The check gives you more than a thousand comparisons, made up and real, whose truth it knows.": EXPLAINS,
    "It counts how often you claim what is not so": (
        "means without an interval",
        "what is not better is worse",
    ),
    "and how often you miss what is.": ("twelve pairs are too few", "the spread of single pairs"),
    "At the end it asks for the exact verdict": ("a deviation over n", "normal quantiles", "another method"),
    "where an interval ends close to 0 or to the margin.": (
        "an interval that touches 0",
        "an interval that touches the margin",
    ),
    "at 95 % confidence": ("one standard error", "a 90 % interval", "a 99 % interval"),
    "Higher scores are better.": ("lower scores taken for better ones",),
    "seed i made `baseline[i]` and `candidate[i]`": ("the pairs are not used",),
    "in points, which stay as they are": ("the arrays are changed",),
    "`margin` > 0, in points.": ("a margin of its own", "the margin is not used"),
    "by Student's 95 % interval": (
        "normal quantiles",
        "normal quantiles from 31 pairs on",
        "normal quantiles from 101 pairs on",
        "two standard errors",
        "another method",
    ),
    "of the mean difference candidate - baseline": (
        "the spread of single pairs",
        "a deviation over n",
        "ties are left out",
    ),
    "t with n - 1 degrees of freedom": ("n degrees of freedom", "degrees of two samples"),
    "differences that are all equal make an interval of no width": (
        "no spread says nothing",
        "what is nearly equal taken for equal",
        "the sign of equal differences",
    ),
    "the first that holds:": ("worse is asked before no worse",),
    '"better" it lies above 0': (
        "means without an interval",
        "comparing single seeds",
        "an interval that touches 0",
        "better by more than the margin",
    ),
    '"no worse" it lies above -margin': (
        "only the mean is held against the margin",
        "an interval that touches the margin",
        "a one-sided bound",
        "no proof of harm taken for proof of none",
        "other words",
    ),
    '"worse" it lies below 0': ("what is not better is worse", "worse by more than the margin"),
    '"undecided" none of them': ("what is not better is worse",),
    "and always with fewer than 5 pairs": (
        "one seed is enough",
        "four pairs are enough",
        "few differences that are all equal",
        "five pairs are too few",
    ),
}

COST: Claims = {
    "Measure it as the course does: warmed up": ("no warm-up", "too short a warm-up"),
    "in pairs, in both orders": ("first one setting, then the other", "the order never alternates"),
    "with an interval.": ("no interval",),
    "The check gives you thirty made-up machines, each with a clock whose truth it knows": EXPLAINS,
    "It grades the method": EXPLAINS,
    "Afterwards you run it on your own machine.": EXPLAINS,
    "How many times as long `step()` takes": ("upside down",),
    "with `torch.use_deterministic_algorithms(True)` as without.": (
        "the setting is never switched",
        "warnings alone while it is deterministic",
    ),
    "Takes: `clock()` gives seconds; measure with it alone.": ("another clock",),
    "The first 5 steps with each setting may be far slower": (
        "too short a warm-up",
        "no warm-up",
        "one setting alone is warmed up",
    ),
    "the machine may get slower or faster": ("first one setting, then the other",),
    "At most 2,000 steps.": ("more steps than allowed", "more steps than allowed where they are short"),
    "While it is deterministic, `torch.backends.cudnn.benchmark` is off.": (
        "benchmark=True with determinism",
    ),
    "Afterwards both settings are as before,": ("settings not put back", "benchmark not put back"),
    "`warn_only` too,": ("warn_only not put back", "warn_only of a process that is not deterministic"),
    "also when `step` raises": ("settings not put back after an error",),
    "its error reaches the caller.": (
        "the error is swallowed",
        "no number where torch has no such version",
        "another error in its place",
    ),
    'Returns "ratio" (time with / time without)': ("upside down",),
    'Returns "ratio" (time with / time without), and "low" and "high", its 95 % interval': (
        "an arithmetic mean of ratios",
    ),
    'and "low" and "high"': ("low and high are confused", "the interval of the logs"),
    "its 95 % interval": (
        "no interval",
        "one standard error",
        "quantiles of 90 %",
        "twice as many pairs counted as there are",
        "an interval ten times too wide",
        "the spread of single pairs",
        "too few pairs",
        "pairs until the interval leaves out 1",
        "two looks at whether the interval leaves out 1",
    ),
    "from pairs of which each setting comes first in about half.": (
        "the order never alternates",
        "one setting first in four of five pairs",
        "the spread of each side",
    ),
}
