"""What exercises 1.1, 1.2, 1.5 and 1.6 say, and the wrong solutions that go against it."""

from __future__ import annotations

from autograder.lessons.checking import EXPLAINS, Claims

COLLATED: Claims = {
    "A `DataLoader` hands a list of samples to `collate_fn` and takes back one batch.": EXPLAINS,
    "Write that function.": EXPLAINS,
    "Turn B samples into one batch, padded to the longest sample *of this batch*": (
        "padding to a global maximum",
        "long samples are cut",
        "lengths by way of uint16",
    ),
    "batch: list[tuple[np.ndarray, int]]": (
        "the last sample is dropped",
        "texts without tokens left out",
        "the first 64 samples",
        "equal samples taken for one",
        "rows kept by their samples",
    ),
    "a list of B samples `(ids, label)`, B at least 1": ("a view of a lone sample",),
    "of one token or more": EXPLAINS,
    "`ids` is a 1-D int64 NumPy array": (
        "ids by way of float32",
        "ids by way of float64",
        "ids by way of uint16",
        "ids by way of int32",
    ),
    "read-only, so copy from it": ("a view of a lone sample", "written into the samples"),
    "Returns a dict of tensors": (
        "a tuple of tensors",
        "a list of labels",
        "one buffer for all batches",
        "one buffer for all masks",
        "one buffer for each shape",
        "one batch for equal samples",
        "a list beside the tensors",
    ),
    "T is the length of the longest sample in `batch`": (
        "padding to a global maximum",
        "a multiple of 64",
    ),
    "or that length rounded up to a multiple of 8": (
        "the next multiple of 8 above an exact one",
        "eight more of one sample alone",
        "a multiple of 64 where it is long",
    ),
    '"input_ids" int64 [B, T]': ("ids of the wrong type",),
    "the ids from the left": ("padding on the left",),
    "then PAD_ID up to the width T": ("another padding id",),
    '"attention_mask" bool [B, T]': ("mask of the wrong type",),
    "True where a real token stands": (
        "attention mask ignores padding",
        "mask made from the ids",
        "mask up to the last id",
        "mask upside down",
        "mask one token short",
    ),
    '"labels" int64 [B]': (
        "labels of the wrong type",
        "labels as a column",
        "labels of the first class",
        "labels by way of uint8",
        "labels by way of float64",
        "labels below zero lost",
    ),
    "The samples themselves stay as they are": ("written into the samples", "the batch sorted in place"),
    "and rows keep the order of `batch`": ("rows sorted by length", "labels sorted"),
}

EPOCHS: Claims = {
    "A batch sampler says which samples form a batch.": EXPLAINS,
    "every index exactly once an epoch": (
        "drops the tail",
        "repeats the tail",
        "texts without tokens left out",
    ),
    "other batches, in another random order, every epoch": (
        "the same batches in another order",
        "other batches at the same places",
        "other batches in turned order",
        "one noise for each length",
        "the longest are not drawn",
    ),
    "at most 15 % padding over a few epochs (on 2,003 secret lengths, 16 to a batch)": (
        "random batches",
        "every fourth epoch at random",
    ),
    "Each is easy alone.": EXPLAINS,
    "Batches of indices whose samples have about the same length": ("random batches",),
    "lengths: number of tokens of each sample, shape [N]": (
        "random batches",
        "lengths in two bytes",
        "batches kept by seed and epoch alone",
    ),
    "micro_batch_size: indices per batch": (
        "always 16 to a batch",
        "at most 32 to a batch",
        "the rest put to the last batch",
    ),
    "only one batch of an epoch may be shorter": (
        "a short batch for each bucket",
        "pools of a round number",
        "pools of at most 1,024",
        "an empty batch where batches fit exactly",
    ),
    "the same seed and the same epoch give the same batches": (
        "an unseeded generator",
        "the global generator",
        "a generator that is kept",
        "an order that goes on from the epoch before",
        "going through it moves the epoch on",
        "the hash of a text",
    ),
    "With another seed at the same epoch": (
        "the seed is ignored",
        "the seed for the order alone",
        "seeds cut to 256",
        "seeds cut to 97",
    ),
    "or another epoch of the same seed, their order is another one": (
        "bucketing that never reshuffles",
        "the seed times the epoch",
        "epochs cut to 256",
    ),
    "with about 2,000 samples the batches are others too": (
        "the same batches in another order",
        "one noise for each length",
    ),
    "seed: int = 0": ("another seed by default",),
    "def set_epoch(self, epoch: int)": ("set_epoch does nothing",),
    "Choose the order: another epoch, another order": (
        "bucketing that never reshuffles",
        "the seed times the epoch",
    ),
    "Called before each pass": EXPLAINS,
    "Number of batches in one epoch": ("counts samples", "rounds down", "one batch more at an exact fit"),
    "Yield each batch as a list of Python's ints": (
        "texts instead of indices",
        "arrays of indices",
        "lists that are kept",
    ),
    "each index 0 … N-1 exactly once per epoch": (
        "drops the tail",
        "repeats the tail",
        "a place that is kept",
    ),
    "Batches come in random order, not from short to long": (
        "batches from short to long",
        "long and short by turns",
        "one order begun elsewhere",
        "the longest batch first",
    ),
    "At most 15 % of the positions are padding, when there are about 2,000 samples and 16 make a batch": (
        "random batches",
    ),
}

LOADING: Claims = {
    "Each sample takes a while to arrive, as from storage.": EXPLAINS,
    "The sum of the waits is fixed; you choose how many happen at the same time": ("one after the other",),
    "The check makes your loader once and times passes over it, as in a training of several epochs": (
        "used up after one pass",
    ),
    "The stored samples change between the passes, so each pass must fetch them anew": (
        "batches kept from the first pass",
        "fetched before the pass",
    ),
    "An iterable of collated batches": ("nothing is returned", "samples as they are"),
    "collate_fn: Callable": ("another collate function",),
    "in the order of the dataset": (
        "shuffles",
        "whole batches as they are ready",
        "a batch turned around",
    ),
    "each sample exactly once": (
        "each sample twice",
        "drops the tail",
        "the rest filled up",
        "the first batch is left out",
        "an end of its own",
        "lost samples left out",
    ),
    "`dataset[i]` asks storage for its sample and waits some milliseconds for it": EXPLAINS,
    "dataset: Dataset": ("the first batch is left out",),
    "Overlap those waits with each other and with the training step": (
        "one after the other",
        "one batch at a time",
        "three batches at a time",
        "everything before the first batch",
    ),
    "The result is iterated more than once": ("used up after one pass",),
    "one pass is one epoch, and each pass fetches every sample again": ("batches kept from the first pass",),
    "also after a pass that was broken off": (
        "a pass that is kept",
        "what was under way is kept",
        "a pool that an error ends",
        "under way in the class",
    ),
    "An error of `dataset[i]` reaches whoever iterates": (
        "lost samples left out",
        "an IndexError is no error",
        "an error at the end is none",
        "an error of the first batch is none",
    ),
    "A batch has `micro_batch_size` samples": (
        "always 8 to a batch",
        "never more than 8 to a batch",
        "one sample to a batch",
    ),
    "the last one may have fewer": ("drops the tail", "the rest filled up"),
}

ORDER: Claims = {
    "Put the parts together.": EXPLAINS,
    "The naive loop is `naive_epoch` from `course_lib/naive.py`; read it": EXPLAINS,
    "its comments name its costs": EXPLAINS,
    "You may copy from your own exercises, but everything must stand in this cell": EXPLAINS,
    "The number of updates stays what it is": (
        "bigger batches, fewer steps",
        "smaller batches, more steps",
    ),
    "fewer, larger steps would be another training": ("bigger batches, fewer steps",),
    "One pass over `samples`": ("fills up the tail", "every second batch"),
    "training `model` in place": ("no backward", "forgot train()"),
    "3 times as fast as the naive loop": ("padding to a global maximum",),
    "samples: `len(samples)`, `samples[i] -> (ids, label)`": (
        "labels of the neighbours",
        "texts kept by their place",
    ),
    "and `samples.lengths`, int64 [N]": EXPLAINS,
    "optimizer: torch.optim.Optimizer": ("an optimizer of its own",),
    "Each sample is used exactly once": (
        "drops the tail",
        "drawn with replacement",
        "every second batch",
        "lost samples left out",
    ),
    "and uncut": (
        "texts cut short",
        "widths rounded down",
        "mask made from the ids",
        "padding marked as real",
    ),
    "at most `micro_batch_size` samples to a step": ("bigger batches, fewer steps",),
    "in as many steps as the naive loop takes: ceil(N / micro_batch_size)": (
        "smaller batches, more steps",
        "a short batch at the end of each pool",
    ),
    "Batches come in a random order": (
        "from short to long",
        "from long to short",
        "the longest batch first",
        "short batches first",
    ),
    "that `seed` decides": (
        "seeds cut to 256",
        "the seed is ignored",
        "seeds cut to 60",
        "the global generator besides",
        "an unseeded generator",
        "a seed of 0 is none",
        "the hash of a text",
    ),
    "A step is that of the naive loop": (
        "forgot train()",
        "gradients never cleared",
        "gradients cleared after the step",
        "an optimizer of its own",
        "its state dropped at the start",
    ),
    "mean cross-entropy": ("the sum goes backward", "label smoothing"),
    "gradient clipped at 1.0": (
        "not clipped",
        "clipped at another norm",
        "clipped by value",
        "one group clipped",
        "small gradients scaled up",
    ),
    "The epoch saves nothing to disk": ("saves a checkpoint at every step", "saves once at the end"),
    "and leaves `samples` and the optimizer's settings as they are": (
        "the lengths are sorted",
        "the order kept in the samples",
        "the rate is halved at the end",
    ),
    'Returns {"loss": mean over samples while training': (
        "averaged batch means",
        "the summed loss",
        "the loss is rounded",
        "infinite losses left out",
        "no report",
    ),
    '"num_samples": N}, Python numbers, no tensors': ("batches counted", "a key is missing"),
    "The validation accuracy afterwards is within 0.5 points of the naive loop's": (
        "labels of the neighbours",
        "no backward",
    ),
}
