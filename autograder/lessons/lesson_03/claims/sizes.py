"""What exercises 3.2, 3.4 and 3.5 say, and the wrong solutions that go against it."""

from __future__ import annotations

from autograder.lessons.checking import EXPLAINS, Claims

SCALING: Claims = {
    "`try_step(size)` runs a real training step and tells its peak of live bytes": EXPLAINS,
    "Find the largest size within the budget": (
        "doubling alone",
        "a line trusted",
        "sizes ruled out by a line",
        "twenty tries at most",
        "answers remembered",
        "no budget taken for no limit",
    ),
    "without trying every size": ("one size after the other",),
    "without ever asking for far too much": ("starts at the top",),
    "The most rows": ("doubling alone", "first size that does not fit"),
    "1 … max_size": ("max_size never tried",),
    "whose training step peaks at no more than `budget_bytes`": (
        "the budget itself refused",
        "the budget exceeded",
    ),
    "`try_step(size)` runs one whole step of `size` rows on a fresh copy of the model and returns its peak of "
    "live bytes, which grows with `size`": ("memory taken as proportional", "a line trusted"),
    "Where the device has no more memory it raises `torch.OutOfMemoryError`": (
        "out of memory not caught",
        "ends when memory runs out",
        "ends when memory runs out in the gap",
        "out of memory by its name",
    ),
    "Both numbers come as `int`": EXPLAINS,
    "the sizes tried and returned are whole numbers, of Python or of NumPy.": ("half a row tried",),
    "a step raises no StopIteration": EXPLAINS,
    "any other error, KeyboardInterrupt too, is no answer, and reaches the caller as it is": (
        "errors raised anew",
        "out of memory by its words",
        "CUDA's words alone",
        "errors with a note",
        "no answer in time taken for a full device",
        "every RuntimeError taken for a full device",
        "every error taken for a full device",
        "a missing key taken for the end",
    ),
    "Returns 0 when one row is too many": ("one row at least", "nothing where nothing fits"),
    "Every try costs a step: at most 2 · log2(max_size) + 3 of them": (
        "one size after the other",
        "every size tried twice",
        "gap cut by an eighth",
        "the last eight one by one",
        "grows by half",
    ),
    "None may have more than twice the rows that fit (one row is always allowed)": (
        "starts at the top",
        "four times as many at once",
        "begins with two rows",
    ),
    "none less than 1": ("no row tried",),
    "or more than `max_size`": ("more than max_size tried",),
}

SEARCH: Claims = {
    "A recipe, a machine, a target batch: make the plan": EXPLAINS,
    "The check does the arithmetic on secret machines": EXPLAINS,
    "Then it trains a model of its own by your rates: SGD, 8 times the batch, an eighth of the updates, and the "
    "loss of the small batch must be reached": ("decays at once", "rises too late"),
    "Plan a training with a larger effective batch than the recipe's": EXPLAINS,
    "The recipe: `base_learning_rate` at an effective batch of `base_batch_size`": (
        "learning rate unchanged",
        "rate of the accumulation",
        "growth in whole numbers",
        "growth in tenths",
    ),
    "The machine: `world_size` devices": ("devices forgotten", "devices left out of the steps"),
    "each of which holds up to `max_micro_batch_size` rows": ("a micro-batch that does not fit",),
    "The wish: an effective batch of at least `target_batch_size`": ("accumulation rounded down",),
    "in as few accumulation steps as possible": ("micro-batches of one row", "target hit exactly"),
    "for `max_steps` updates, 2 or more": ("a rate less", "warmup rounded down"),
    '`optimizer` is "sgd" (linear scaling)': ("square root for SGD too",),
    'or "adamw" (square root)': ("linear scaling for Adam too",),
    "Returns a dict": ("nothing returned", "one list for all plans"),
    "its sizes as ints": ("sizes as floats",),
    '"micro_batch_size" rows per device and forward pass': ("half a row",),
    '"grad_accum_steps" micro-batches per device and update': ("micro-batches of one row",),
    '"global_batch_size" the effective batch that comes of it': ("devices forgotten",),
    '"learning_rates" a list of `max_steps` floats, the rate of each update': (
        "no learning rates",
        "a rate less",
        "rates in an array",
        "rates per micro-batch",
    ),
    "base rate scaled to `global_batch_size`; up to it, and counting it, a": ("no warmup",),
    "The peak is the base rate scaled to `global_batch_size`": (
        "rate of the target",
        "rate of one device",
        "the peak never reached",
    ),
    "a warmup over at least 5 % of the updates": (
        "no warmup",
        "short warmup",
        "warmup rounded down",
        "a warmup of a hundred updates at most",
    ),
    "from at most half the peak": (
        "warmup from high",
        "warmup from the base rate",
        "a jump in place of a warmup",
    ),
}

MEMORY: Claims = {
    "Give a classifier activation checkpoints: by hand, or by anything that is installed": ("nothing done",),
    "Its gradients must stay as they are, with dropout on": ("dropout's random state lost",),
    "A bound on the time is a speed verdict too: plain over checkpointed must be at least 1 / 1.6 = 0.625×": (
        "computed again and again",
    ),
    "Make `model` keep less for backward": (
        "one checkpoint around everything",
        "some blocks only",
        "mode looked at once",
        "the class changed",
    ),
    "and compute the rest again": ("graph cut", "kept as arrays"),
    "returns the model": ("nothing returned",),
    "`model` is a `TextClassifier`": EXPLAINS,
    "`model.blocks` is a `ModuleList` whose modules are called as `block(hidden [B, T, D], key_mask bool "
    "[B, 1, 1, T])` and return [B, T, D]": (
        "mask ignored",
        "mask left out",
        "the last block in place of all",
    ),
    "Changed in place or wrapped, what you return is called as `model(input_ids, attention_mask)`": (
        "nothing returned",
    ),
    "and has the very parameters that `model` had": ("a copy changed",),
    "in the same order": (
        "blocks backwards",
        "blocks registered first",
        "weights made anew",
    ),
    "Logits and gradients are those of the plain model under the same seed": (
        "random numbers drawn besides",
    ),
    "in training with dropout": ("dropout switched off", "dropout's random state lost"),
    "as well as in evaluation": ("gradients lost in evaluation",),
    "The model's mode, its gradients and what is frozen stay as they are": (
        "left in training mode",
        "wrapped in training mode",
        "gradients cleared",
    ),
    "and nothing is drawn": ("a seed set",),
    "also where the embeddings are frozen": ("reentrant",),
    "or where several batches go forward before their losses go backward together": (
        "random state kept on the block",
        "masks kept by shape",
    ),
}
