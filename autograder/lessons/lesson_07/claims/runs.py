"""What exercises 7.4 to 7.6 say, and the wrong solutions that go against it."""

from __future__ import annotations

from autograder.lessons.checking import EXPLAINS, Claims

WARD: Claims = {
    "Four runs are right and slow.": EXPLAINS,
    "Each has one illness.": EXPLAINS,
    "The next cell prints their source, `SickRuns`.": EXPLAINS,
    "Read it:": EXPLAINS,
    "The four runs, cured.": (
        "histograms still read at every step",
        "the frozen body runs in every epoch",
        "the body runs beside its kept features",
        "fetched ahead by one thread",
    ),
    "Arguments, results and errors are those of `SickRuns`.": (
        "an optimizer of one's own",
        "features written into the caller's batches",
        "the error of a fetch swallowed",
        "gradients from before run C",
        "gradients from before run D",
        "a list of nothing",
        "run A in evaluation mode",
        "the mode of run B as it was",
        "the mode of run C as it was",
    ),
    'The illness of run "A", "B", "C" or "D".': ("utilisation taken for efficiency",),
    "def diagnose(self, run: str) -> str:": ("utilisation taken for efficiency",),
    'One of "input-bound" (waits for samples), "sync-bound" (reads values all the time), "tiny batch"': (
        "an illness misspelt",
    ),
    '"recomputing" (the same numbers again).': ("utilisation taken for efficiency",),
    "self, model: Any, samples: Any, optimizer: Any, micro_batch_size: int": (
        "batches of eight, whatever is asked for",
    ),
    "One pass over `samples` in their order.": ("samples in order of length", "the last samples left out"),
    "Returns the loss of each step.": ("a list of nothing",),
    "self, model: Any, batches: Sequence[Batch], optimizer: Any, log_every_steps: int": (
        "an entry for the last step too",
    ),
    "One pass.": EXPLAINS,
    'An entry for every step whose number `log_every_steps` divides: "step" (from 1), "loss"': (
        "steps counted from 0",
        "an entry for the last step too",
        "losses without their step",
        "the loss of the first step in every entry",
    ),
    '"histograms" {parameter\'s name: 32 counts of its absolute values in [0, 1]}.': (
        "histograms of signed values",
        "histograms from 0 to the largest",
        "histograms read before the update",
        "histograms read after the epoch",
        "histograms of what learns alone",
    ),
    "One pass in order, an update for every `rows_per_update` samples, clipped at 1.0, from the mean": (
        "a bigger batch in place of a fuller forward pass",
        "run C not clipped",
        "short gradients made longer",
        "one group of the optimizer clipped",
        "the sum of the rows' losses",
        "a last mean over rows that are not there",
    ),
    "Returns that mean for each update.": ("the sum of the rows' losses",),
    "`num_epochs` passes over `batches`; only `model.head` learns, in evaluation mode.": (
        "one epoch for all",
        "run D in training mode",
        "the features of the first batch for all",
        "features kept from the call before",
        "features kept for a batch",
        "run D clipped",
        "the gradients of run D add up",
    ),
}

LORA: Claims = {
    "The model is a `TextClassifier`: linear layers in its blocks, and a `head` that is new for the task.": (
        "head frozen",
    ),
    "The check trains through your adapters on another task than the model was pretrained for": EXPLAINS,
    "A frozen linear layer and the adapter beside it.": ("LoRA base not frozen",),
    "Arrange it otherwise if you like.": EXPLAINS,
    "Freeze `model` and put adapters of `rank` beside its linear layers": (
        "LoRA base not frozen",
        "embeddings and norms not frozen",
        "a rank of its own",
        "the base written while it learns",
    ),
    "returns the model.": ("nothing returned", "a copy adapted"),
    "Every `nn.Linear` of the model but `model.head` is replaced": (
        "the layers on the way out left alone",
        "every layer with head in its name left out",
        "every layer whose own name is head left out",
        "every name that begins like the head left out",
        "the head adapted too",
    ),
    "`base(x) + alpha / rank * B A x`": (
        "not divided by the rank",
        "alpha left out",
        "a whole number for the scale",
        "one scale for all models",
        "dropout before the adapter",
    ),
    "of the base's dtype and on its device": (
        "adapters in float32 whatever the base is",
        "adapters in float32, their product cast back",
        "computed in float32, whatever the base is",
        "adapters on the CPU, wherever the base is",
    ),
    "the module itself is of no use any more.": EXPLAINS,
    "with A and B trainable, [rank, in] and [out, rank] (or transposed)": (
        "a rank of its own",
        "both matrices zero",
        "an adapter with a bias",
        "one A for layers of one size",
        "one row of A for all",
        "the path of the adapter cut",
    ),
    "and starts as the base: the logits are what they were.": ("adapters not zero-initialised",),
    "That module has a method `merged()`": ("merged under another name",),
    "which returns a plain `nn.Linear` with the adapter added into its weight": (
        "merged without the scale",
        "merged is another kind of layer",
    ),
    "What asks for a gradient afterwards: the adapters and `model.head`, nothing else.": (
        "biases left to learn",
        "norms left to learn",
        "half of the head",
        "the head as it was",
    ),
    "The model's mode, and that of all its own layers, stays as it is": ("left in evaluation mode",),
    "the adapters' does not matter.": EXPLAINS,
    "[..., in] -> [..., out].": ("batches of texts alone",),
    "One plain layer that computes the same.": (
        "merged without the bias",
        "merged with a bias that the base does not have",
        "merged in the default dtype",
        "merged without the scale",
    ),
}

TARGET: Claims = {
    "A real training on the docstrings of this machine ends at 65 % accuracy.": (
        "a learning rate that diverges",
        "a learning rate that crawls",
    ),
    "The weights, the steps and the accuracies are real.": EXPLAINS,
    "The seconds are worked out from what was computed, by the tariff of a made-up machine": EXPLAINS,
    "`run_to_target` in `autograder/lessons/lesson_07/harness/target.py`.": EXPLAINS,
    "These are its settings:": ("a setting that there is not",),
    '| `machine` | `"small"`, `"large"` |': ("a machine that there is not",),
    "the large one computes 2.5 times as fast and costs 4 times as much": ("time taken for cost",),
    '| `padding` | `"maximum"`, `"longest"`, `"buckets"` |': ("a padding that there is not",),
    "| `learning_rate` | above 0 |": ("a learning rate of 0",),
    "| `micro_batch_size` | 1 to 256 | rows of a step |": ("more rows than a step may have", "half a row"),
    "| `evaluate_every_steps`, `save_every_steps` | 1 and more |": ("an evaluation at no step",),
    "The target counts when an evaluation sees it |": ("no evaluation",),
    "Two settings may differ from the baseline, no more.": ("everything changed at once",),
    "Experiment here:": EXPLAINS,
    "The settings of a run that reaches the same target at least 1.5 times as cheaply.": (
        "nothing changed",
        "a small part of the bill",
        "optimising epoch time",
        "time taken for cost",
    ),
    "settings: those of the baseline.": ("the changes alone",),
    "Returns settings with the same keys, of which at most two have another value.": (
        "the changes alone",
        "a setting that there is not",
        "everything changed at once",
        "settings changed in place, and none returned",
    ),
    "It trains nothing: experiments belong into the cells above.": EXPLAINS,
}
