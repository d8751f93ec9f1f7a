"""What exercises 2.3 and 2.4 say, and the wrong solutions that go against it."""

from __future__ import annotations

from autograder.lessons.checking import EXPLAINS, Claims

STEP: Claims = {
    "One step in bf16.": ("autocast with fp16",),
    "The check counts the FLOPs of all matrix products by their type": ("autocast around the loss alone",),
    "and the bytes that autograd keeps.": ("activations kept in fp32",),
    "It uses a model of feed-forward layers, without attention": EXPLAINS,
    "model: torch.nn.Module": ("bfloat16 on the model",),
    "batch: dict[str, torch.Tensor]": ("the mask ignored", "a mask made of the ids"),
    "optimizer: torch.optim.Optimizer": ("no step", "two steps"),
    "max_norm: float": ("max_norm ignored",),
    "One update of each part of `model`": (
        "no step",
        "two steps",
        "gradients never cleared",
        "gradients cleared after the step",
        "an error swallowed",
        "a second forward for the report",
    ),
    "with its matrix products in bf16.": (
        "autocast of another device",
        "the device that the machine has",
        "autocast with fp16",
    ),
    "The loss is the batch mean of the cross-entropy": (
        "the sum for the mean",
        "labels smoothed",
        "the logarithm of a probability",
    ),
    ", in fp32;": (
        "loss outside autocast",
        "the loss rounded, then fp32",
        "a NaN replaced in the report",
    ),
    "the gradient is clipped to `max_norm`.": (
        "never clipped",
        "clipped a second time",
        "clipped after the step",
        "clipped by value",
        "short gradients made longer",
        "one group of the optimizer clipped",
        "each group of the optimizer clipped by itself",
    ),
    "Weights and gradients stay fp32.": (
        "bfloat16 on the model, and back after the step",
        "gradients rounded",
        "gradients rounded to fp16",
        "weights rounded",
        "weights of matrices rounded",
    ),
    "Autocast is open for forward and loss only": (
        "autocast around backward",
        "autocast around the step",
    ),
    "and closed, as it was before, after an error too.": (
        "autocast left open by an error of the loss",
        "autocast switched by hand, without an end to its copies",
        "autocast left around the model's forward",
        "autocast switched by hand",
        "autocast entered by hand, and left but for an error",
    ),
    'Returns 0-d tensors: "loss"': ("the loss as a number",),
    'and "grad_norm" from before clipping.': (
        "the norm after clipping",
        "the norm as a number",
        "no key for the norm",
    ),
}

EPOCH: Claims = {
    "The same loop for both precisions, chosen by a name.": (
        "fp32 whatever is asked for",
        "autocast in 32-true as well",
    ),
    '`"32-true"` must be *exactly* the plain loop': (
        "autocast left open for what comes later",
        "autocast switched by hand",
        "products in fp32 less precise from then on",
        "forward left in autocast",
        "labels smoothed",
    ),
    '`"bf16-mixed"` is timed on layers 256 wide.': EXPLAINS,
    "First the check asks the probe.": EXPLAINS,
    "Where a layer does not gain enough here, the clock is not asked, and the card says so": EXPLAINS,
    "They are the same FLOPs that would be fast elsewhere.": EXPLAINS,
    "Train each part of `model` in place": ("a copy is trained",),
    "optimizer: torch.optim.Optimizer": (
        "gradients never cleared",
        "gradients cleared after the step",
    ),
    "on every batch once": (
        "a second forward for the log",
        "the short batch left out",
        "an error swallowed",
        "an error of the batches swallowed",
    ),
    "all of it in training mode.": (
        "mode not switched",
        "mode of the model alone",
        "the first batch alone in training mode",
        "no training mode late in the epoch",
    ),
    'precision: "32-true" (no operation in 16 bits)': ("autocast in 32-true as well",),
    'or "bf16-mixed" (matrix products in bf16; weights,': (
        "fp32 whatever is asked for",
        "autocast with fp16",
        "the model itself in bf16",
        "the model in bf16 for the step alone",
        "the device that the machine has",
        "weights rounded",
    ),
    "gradients and loss in fp32).": (
        "gradients rounded",
        "gradients rounded to fp16",
        "log_softmax in bf16",
        "loss outside autocast",
        "the sum of losses in bf16",
    ),
    "Each step minimises the mean cross-entropy of its batch": (
        "one autocast for all steps",
        "one autocast for all steps, closed for the rest of each",
        "the sum minimised",
        "labels smoothed",
        "the logarithm of a probability",
        "the mask ignored",
        "a mask made of the ids",
    ),
    "with the gradient clipped to `max_norm`.": (
        "never clipped",
        "max_norm ignored",
        "another max_norm by default",
        "each group of the optimizer clipped by itself",
        "one group of the optimizer clipped",
        "short gradients made longer",
    ),
    "`batches` can be iterated once": ("batches iterated twice",),
    "the last one may be short.": ("the short batch left out", "mean of batch means"),
    'Returns {"loss": mean over *samples* while training': (
        "mean of batch means",
        "the loss of the last batch",
    ),
    "NaN if one of them is": ("a NaN replaced in the report", "a NaN left out of the mean"),
    '"num_samples": N}': ("batches counted as samples", "no number of samples"),
    "as Python numbers,": ("the loss as a tensor", "the loss as NumPy's number"),
    "Autocast is\n    closed before and after, after an error too.": (
        "autocast switched by hand",
        "autocast left open by an error of the loss",
    ),
    "with at most 8 syncs an epoch, however long it is.": (
        "a sync every 100 batches",
        "each loss brought to the CPU",
        "a sync every 64 batches",
        "a look for infinities at every step",
    ),
}
