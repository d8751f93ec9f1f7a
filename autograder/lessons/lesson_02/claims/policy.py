"""What exercises 2.1, 2.2 and 2.5 say, and the wrong solutions that go against it."""

from __future__ import annotations

from autograder.lessons.checking import EXPLAINS, Claims

POLICY: Claims = {
    "A config says `auto`.": EXPLAINS,
    "Your function says what that comes to on the machine at hand, and why.": (
        "a reason that says nothing",
        "the same reason whatever decided",
    ),
    "A person who names a precision gets it.": ("named, and not to be had on a CPU",),
    "The rules:": EXPLAINS,
    "| a known name | any | that name |": ("named, and not to be had on a CPU",),
    '`"auto"` | CUDA with bf16 units | `"bf16-mixed"`': ("the two kinds of GPU swapped",),
    '`"auto"` | CUDA without | `"16-mixed"`': ("the two kinds of GPU alike",),
    "where a layer gains at least 1.15 ×": (
        "the limit left out",
        "another limit",
        "the gain thrown away",
        "the gain rounded before it decides",
    ),
    "CPU with bf16 units that gain less": (
        "the measurement is taken and not believed",
        "units believed without a measurement",
    ),
    "CPU without bf16 units": ("bf16 on a CPU without units",),
    '| `"auto"` | anything else | `"32-true"`: nobody tried |': ("any device is a GPU or a CPU",),
    "What `requested` comes to on this machine.": ("one measurement for all machines",),
    'requested: "auto", "32-true", "bf16-mixed" or "16-mixed".': (
        "parts of a name are known",
        "capitals are taken for small letters",
        "another name for fp16",
    ),
    'facts: "device_type" ("cpu", "cuda", "mps", …), "device_name" (text), "bf16_units" (bool).': (
        "the type read from the name",
        "any device is a GPU or a CPU",
        "the facts emptied",
    ),
    "measure_gain: times one layer, fp32 time / bf16 time.": ("the gain upside down",),
    "Takes a second: call it only where its": ("measured where nothing hangs on it",),
    "answer decides, and then once, in each call anew.": (
        "measured a second time for the reason",
        "one measurement for all machines of a name",
    ),
    "Returns a dict:": ("no word on the scaler", "one dict for all answers"),
    '"precision"     "32-true", "bf16-mixed" or "16-mixed"': ("the two kinds of GPU swapped",),
    '"needs_scaler"  bool': (
        "no loss scaling with fp16",
        "a scaler for bf16 too",
        "a scaler as a text",
        "no word on the scaler",
    ),
    '"reason"        a sentence with the device\'s name in it': (
        "a reason that says nothing",
        "a reason in small letters",
    ),
    "where a precision was requested by name, with that name": ("a reason without what was asked for",),
    "where the gain decided, with the gain, two decimals": (
        "the gain with all its decimals",
        "the gain with one decimal",
        "the gain without its last zero",
    ),
    "Raises ValueError for an unknown request": (
        "an unknown name becomes fp32",
        "an unknown name is looked for in a dict",
    ),
    "its text names the request": ("an error without the request",),
    "and the three names.": ("an error without the names",),
}

SCALER: Claims = {
    "Write the trainer that survives an overflow and a restart.": (
        "the optimizer steps by itself",
        "no state",
    ),
    "The check looks at the gradients that each step *uses*.": ("unscale twice, the second time by hand",),
    "It sends an infinite gradient now and then: such a step must leave the weights alone": (
        "NaN only",
        "the last gradient only",
        "the first gradient only",
        "the loss instead of its gradient",
    ),
    "and halve the scale.": ("a bad step does not halve the scale",),
    "And it saves your trainer in the middle, makes a new one": ("one scale for all trainers",),
    "loads the state and goes on": ("no state", "the count outside the state, in a global"),
    "Trains `model` in fp16": ("half on the model", "bf16, the default on CPUs"),
    "with loss scaling.": ("no loss scaling with fp16", "the loss is not scaled"),
    "model: torch.nn.Module": ("half on the model",),
    "optimizer: torch.optim.Optimizer": ("the optimizer steps by itself",),
    "max_norm: the true gradient norm is clipped to it.": (
        "clip without unscale",
        "never clipped",
        "max_norm ignored",
        "clipped by value",
        "short gradients made longer",
        "each group of the optimizer clipped by itself",
        "one group of the optimizer clipped",
    ),
    "init_scale: the first scale.": ("init_scale ignored", "another scale by default"),
    "growth_interval: good steps in a row after which it doubles.": (
        "growth_interval ignored",
        "the count goes on after a bad step",
        "doubled one step late",
        "doubled one step early",
        "the count is never set back",
        "a scale of 2 to the 24 at most",
        "update forgotten",
    ),
    "batch: dict[str, torch.Tensor]": ("the mask ignored", "a mask made of the ids"),
    "One update": (
        "gradients never cleared",
        "gradients cleared after the step",
        "unscale twice",
    ),
    "on the batch mean of the cross-entropy": (
        "the sum for the mean",
        "labels smoothed",
        "the logarithm of a probability",
    ),
    "forward in fp16 autocast": (
        "the device that the machine has",
        "bf16, the default on CPUs",
        "autocast switched by hand",
    ),
    "the loss in fp32": ("loss outside autocast, in fp16", "log_softmax in fp16"),
    "A gradient with an infinity or NaN changes no weight": (
        "infinities only",
        "NaN only",
        "the last gradient only",
        "a lower learning rate after a bad step",
    ),
    "and halves the scale.": (
        "a scale of 1 at least",
        "a bad step does not halve the scale",
        "a step whose loss is NaN left out",
    ),
    'Returns numbers or 0-d tensors: "loss" (unscaled)': (
        "the scaled loss in the report",
        "a loss that is NaN replaced in the report",
    ),
    '"grad_norm" (of the true gradients, before clipping)': (
        "the norm after clipping",
        "the norm of scaled gradients",
        "no key for the norm",
        "no norm of a bad step",
    ),
    '"scale" (after this step).': ("the scale from before", "the scaler's own tensor in the report"),
    "What a checkpoint must hold of this object": (
        "scaler state not saved",
        "only the scale is saved",
        "the count outside the state",
    ),
    "in types that `torch.load(…, weights_only=True)` takes.": ("the scaler itself is saved",),
    "Model and optimizer are saved elsewhere; training on changes": ("its own state handed out",),
    "no state that was handed out\n        or loaded.": ("the state that was loaded is trained on",),
    "state: dict[str, Any]": ("the scale outside the state",),
    "Go on where the trainer that made `state` was.": (
        "no state",
        "the scale outside the state",
        "one count for all trainers",
    ),
}

ROUNDING: Claims = {
    "A colleague hands you a classifier.": EXPLAINS,
    "Its `__init__` stands in the cell below; this is its `forward`:": EXPLAINS,
    "mean_square = (pooled * pooled).mean(dim=-1, keepdim=True)": ("not repaired",),
    "It trains in fp32 and in bf16.": EXPLAINS,
    "In fp16 it does this:": EXPLAINS,
    "`FragileClassifier`, repaired: right in fp32, bf16 and fp16.": (
        "not repaired",
        "fp16 whatever is open",
        "clamped in bf16 alone",
        "in fp32 in training alone",
        "autocast left off",
        "the divisor without its gradient",
    ),
    "The fault is in `forward`.": ("__init__ changed", "a layer with another name"),
    "vocab_size: int, num_classes: int, d_model: int = 32": ("made for one width",),
    "`input_ids` int64 [B, T]": ("a mask made of the ids",),
    "`attention_mask` bool [B, T] -> logits [B, C].": (
        "padding read as text",
        "the ids changed in place",
    ),
    "In fp32 the numbers of FragileClassifier.": (
        "clamped",
        "clamped, where only the loudest texts show it",
        "another epsilon",
        "another epsilon, hardly",
        "no epsilon",
        "without the gain",
    ),
    "Under fp16 autocast the same but for rounding": (
        "converted after the square",
        "norm in fp16",
        "a constant factor",
        "one scale for the whole batch",
        "gradients of fp16 where forward is repaired",
        "added up before it is divided",
        "one scale for each text, and none for zeros",
    ),
    "with the matrix products in fp16.": (
        "the whole forward in fp32",
        "the hidden layer in fp32",
        "the head in fp32",
        "bf16 whatever is open",
    ),
}
