"""What exercises 1.3 and 1.4 say, and the wrong solutions that go against it."""

from __future__ import annotations

from autograder.lessons.checking import EXPLAINS, Claims

TRAINING: Claims = {
    "This loop is the heart of every training script.": EXPLAINS,
    "Its order stands in the worked example.": EXPLAINS,
    "exact, and with a handful of syncs for the whole epoch": (
        "averaged batch means",
        "a sync every step",
    ),
    "model: torch.nn.Module, batches: Iterable": ("a copy is trained", "the first batch is skipped"),
    "optimizer: torch.optim.Optimizer, scheduler: Any": ("scheduler stepped before the optimizer",),
    "max_norm: float = 1.0": ("another max_norm by default",),
    "Train `model` in place": ("a copy is trained",),
    "on every batch once": (
        "the first batch is skipped",
        "each batch twice",
        "ends where a batch cannot be read",
    ),
    "Each step minimises the mean cross-entropy": ("the sum goes backward", "label smoothing"),
    "of its batch alone": (
        "gradients never cleared",
        "gradients cleared after the step",
        "one group cleared",
    ),
    "with the gradient clipped to `max_norm`": (
        "clipping before backward",
        "clipping after the step",
        "max_norm ignored",
        "clipped by value",
        "one group clipped",
        "group by group",
        "small gradients scaled up",
    ),
    "The scheduler is stepped once for each batch": (
        "scheduler stepped once",
        "scheduler never stepped",
        "scheduler stepped before the optimizer",
    ),
    "`batches` can be iterated once": ("batches gone through twice",),
    "and each batch stays as it is": ("labels taken out of the batch",),
    "`model(input_ids, attention_mask)` returns logits [B, C]": (
        "mask ignored",
        "mask made from the ids",
    ),
    "All of it trains in training mode, also when it comes in evaluation mode": (
        "forgot train()",
        "mode looked at in the model alone",
        "no training mode late in the epoch",
    ),
    "Returns a dict of Python numbers, no tensors": (
        "no report",
        "a key is missing",
        "tensors in the report",
    ),
    '"loss" mean over *samples* of the cross-entropy': (
        "averaged batch means",
        "loss of the last batch",
        "infinite losses left out",
    ),
    "seen while training": ("loss after the step",),
    '"grad_norm" mean over steps of the gradient norm': (
        "the largest norm",
        "norm of the last step",
        "norm of one group",
        "norm summed",
    ),
    "*before* clipping": ("norm after clipping",),
    '"num_samples" samples seen': ("batches counted",),
    '"num_tokens" real tokens seen (padding does not count)': (
        "padding counted",
        "tokens counted by their ids",
        "tokens counted in float32",
    ),
    '"pad_fraction" 1 - real tokens / (rows x width)': ("share of real tokens",),
    "over the whole epoch": ("mean of the batches' fractions",),
    "Bring numbers to Python (`.item()`, `float(...)`, `print`) at most 8 times per *epoch*": (
        "a sync every step",
        "a number every second step",
        "a number every 40 steps",
        "counted by an index of booleans",
    ),
}

EVALUATION: Claims = {
    "Evaluation decides which model you ship.": EXPLAINS,
    "It must be repeatable": ("forgot eval()", "a seed is set"),
    "count every sample once": ("averaged batch means", "the first batch is skipped"),
    "leave the model as it found it": ("a weight changed", "a hook is left"),
    "model: torch.nn.Module, batches: Iterable": ("the first batch is skipped", "a weight changed"),
    "Measure `model` on every batch": (
        "the first batch is skipped",
        "ends where a batch cannot be read",
    ),
    "and leave no trace": (
        "a seed is set",
        "gradients cleared",
        "gradients left off",
        "gradients left on",
        "weights left frozen",
        "frozen weights thawed",
        "a hook is left",
        "an attribute is left",
        "another matmul precision",
    ),
    "in it or in the batches": ("labels taken out of the batch",),
    "`model(input_ids, attention_mask)` returns logits [B, C]": (
        "mask ignored",
        "mask made from the ids",
    ),
    "The last batch may be short": ("averaged batch means", "the last, short batch is skipped"),
    "`batches` can be iterated only once": ("the first batch is skipped",),
    "No dropout": ("forgot eval()", "only the outermost module", "only its dropout layers"),
    "no gradients recorded": ("gradients still on",),
    "no weight changed": ("a weight changed",),
    "Returns a dict of Python numbers, no tensors": (
        "no report",
        "a key is missing",
        "tensors in the report",
    ),
    '"loss" mean over *samples* of the cross-entropy': (
        "averaged batch means",
        "the sum of the losses",
        "loss of the last batch",
        "infinite losses left out",
        "log of a softmax",
    ),
    '"accuracy" share of samples whose largest logit is the label': (
        "mean of the batches' accuracies",
        "the smallest logit",
        "a count",
    ),
    "0 … 1": ("a percentage",),
    '"num_samples" samples seen': ("batches counted",),
    "The model comes in one mode (train or eval), all of it, and is in it again afterwards": (
        "left in evaluation mode",
        "always back to training",
    ),
    "after an error too": (
        "not put back after an error",
        "a precision not put back after an error",
        "not put back after an error of the model",
    ),
}
