"""What exercises 6.2, 6.4 and 6.6 say, and the wrong solutions that go against it."""

from __future__ import annotations

from autograder.lessons.checking import EXPLAINS, Claims

REPLICA: Claims = {
    "The three things that DDP does, without buckets and without overlap.": EXPLAINS,
    "Each rank calls your class with a model whose weights differ from the other ranks'": (
        "no broadcast at the start",
    ),
    "and then with batches of its own, of other sizes than theirs.": ("mean of rank means",),
    "A model whose replicas on all ranks stay equal.": ("gradients stay on their rank",),
    "All of them are contiguous.": EXPLAINS,
    "Afterwards every rank's `model` has rank 0's `state_dict`": (
        "the other ranks' numbers times 0",
        "from another rank",
        "a copy is wrapped",
    ),
    "weights": ("no broadcast at the start", "no broadcast of what is frozen"),
    "and buffers": ("buffers not broadcast", "buffers at the top alone", "integers broadcast as floats"),
    "to the last bit": ("broadcast in half precision", "a sum with zeros"),
    "in place": ("parameters replaced", "buffers replaced"),
    "Forward, backward and exchange.": (
        "gradients stay on their rank",
        "a step as well",
        "gradients left switched off",
    ),
    "in whose loss each trained parameter has a part": EXPLAINS,
    "only its own rows go through a rank's model.": ("every rank computes the samples of all",),
    "All ranks call it, each with a batch of its own size": (
        "an all-reduce on rank 0 alone",
        "sum of rank means",
        "samples counted in the first call alone",
    ),
    "The mode of each part": (
        "evaluation mode",
        "one mode for all parts",
        "dropout switched on",
        "training mode taken for granted",
    ),
    "weights and batch are left as they are.": (
        "a step as well",
        "a little decay",
        "labels popped out of the batch",
    ),
    "Afterwards `.grad` of every parameter that is trained is": (
        "one parameter left out",
        "tied weights exchanged twice",
    ),
    "on all ranks": ("gradients on rank 0 alone",),
    "the gradient of the mean cross-entropy over the samples of *all* ranks": (
        "mean of rank means",
        "summed, not averaged",
        "divided twice",
        "a sum over all samples",
        "the sums divided by ranks",
        "two ranks taken for granted",
        "another loss",
        "the logarithm of a softmax",
        "NaN made a number",
        "the mask made of the ids",
    ),
    "It is None before the call": EXPLAINS,
    "and stays None for those that are frozen, from `__init__` on.": ("zeros for what is frozen",),
    "of the forward whose gradients these are.": (
        "the loss of another forward",
        "forward anew with other dropout",
    ),
    "Returns that mean": ("returns its own mean", "returns the mean of rank means", "returns nothing"),
    "batch: dict[str, torch.Tensor]) -> float": ("returns a tensor",),
}

ACCUMULATION: Claims = {
    "One update from several micro-batches, on a model that is wrapped in DDP.": (
        "a step after every micro-batch",
    ),
    "The check counts the all-reduces with a communication hook.": EXPLAINS,
    "It also hands in a micro-batch that cannot be computed, and looks at the step after it.": (
        "no_sync left open when an exception is raised",
    ),
    "One update of `model`": ("a step after every micro-batch", "no step"),
    "from all micro-batches of all ranks.": (
        "a micro-batch left out",
        "a micro-batch without a loss left out",
        "gradients dropped between micro-batches",
    ),
    "Each rank calls it with equally many micro-batches (at least 2)": (
        "two micro-batches taken for granted",
    ),
    "whose numbers of rows differ": ("mean of micro-batch means", "sum of micro-batch means"),
    "they are left as they are": (
        "micro-batches popped off the list",
        "labels popped out of the batches",
        "rows sorted in place",
    ),
    "and so is the mode of each part of the model.": (
        "evaluation mode",
        "one mode for all parts",
        "dropout switched on",
        "a mode put back where nothing goes wrong",
    ),
    "micro_batches: Sequence": ("a micro-batch left out", "micro-batches popped off the list"),
    "optimizer: torch.optim.Optimizer": ("an optimizer of its own",),
    "what is frozen stays as it is.": ("zeros for what is frozen",),
    "The optimizer's old gradients are dropped first": (
        "old gradients left in",
        "gradients dropped afterwards",
        "one group of old gradients dropped",
        "the model's gradients dropped alone",
    ),
    "The step is that of one process on all the samples as one batch": (
        "no_sync around the last one too",
        "an optimizer of its own",
        "gradients rounded",
    ),
    "the gradient of their mean cross-entropy": (
        "the learning rate scaled instead",
        "the mask made of the ids",
        "the logarithm of a softmax",
        "loss not rescaled for DDP's average",
        "mean of rank means",
        "its own samples",
        "two ranks taken for granted",
        "a sum over all samples",
        "a sum that DDP divides",
    ),
    "Gradients cross ranks once: in the last backward.": (
        "no no_sync at all",
        "no_sync around backward alone",
        "two micro-batches synchronised",
        "the last one known by its dict",
        "gradients by hand as well",
        "exchanged by hand after the last backward",
    ),
    "At most two further messages carry other numbers.": (
        "three further all-reduces",
        "gathered for each micro-batch",
        "samples counted for each micro-batch",
    ),
    "When a micro-batch raises, on all ranks alike, that error passes on": (
        "the same kind of error with other words",
        "swallows the error",
        "swallows an error of the loss",
        "swallows an error of the last micro-batch",
        "swallows a missing key",
        "another error in its place",
    ),
    "the weights stay": ("steps all the same", "the optimizer's state lost after an error"),
    "and the next step, which drops old gradients first": EXPLAINS,
    "ends with the right weights, whether by this function or not.": (
        "gradients left switched off",
        "no_sync left open when an exception is raised",
        "no_sync left open when it is interrupted",
        "no_sync left open when backward raises",
        "synchronised for ever after an error",
    ),
}

SCALING: Claims = {
    "The baseline is the plain loop in one process with one thread.": EXPLAINS,
    "Your function runs in two processes with one thread each, and must end with the weights of the baseline.": (
        "gradients stay on their rank",
    ),
    "The check counts the rows that each rank computes": ("no sampler: every rank computes everything",),
    "on a machine with one core all points rest on that count, and the check says so.": EXPLAINS,
    "Train `model`": ("evaluation mode",),
    "in place": ("a copy is trained", "hooks left on the parameters"),
    "on both ranks at once.": ("one rank after the other", "a barrier on rank 0 alone"),
    "`dist` is set up; weights are equal at the start, none is frozen, and each has a part in every loss.": EXPLAINS,
    "batches: the *whole* batch of each step": ("the last batch left out",),
    "the same list on both ranks": ("no sampler: every rank computes everything",),
    "and left as it is.": ("cuts the caller's own batches", "the list emptied on the way"),
    "The last one may be odd": ("drops what does not divide evenly", "repeats a row to divide evenly"),
    "each has at least one row a rank.": EXPLAINS,
    "A step is that of one process on the whole batch": (
        "old gradients left in",
        "cut to the most words",
        "another loss",
        "NaN made a number",
        "weights averaged in place of gradients",
    ),
    "gradient of the mean cross-entropy over its rows": (
        "loss not rescaled",
        "the logarithm of a softmax",
        "divided by the ranks twice",
        "multiplied by the ranks twice",
        "a sum over the rows",
        "a sum that DDP divides",
        "gradients rounded to half precision",
        "the mask made of the ids",
    ),
    "and of nothing older": (
        "old gradients left in",
        "gradients from before left in",
        "one group of parameters set to zero",
    ),
    "then `optimizer.step()`": (
        "an optimizer of its own",
        "weights averaged in place of gradients",
        "one step on rank 0 alone",
        "gradients left switched off",
    ),
    "Each row is computed on one rank": ("no sampler: every rank computes everything",),
    "about half of every batch on each.": (
        "most of the work on one rank",
        "a good half on one rank",
        "every batch cut at half of the first",
        "half of the words on each rank",
    ),
    "Afterwards both ranks have the weights that one process would have.": ("gradients stay on their rank",),
}
