# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 02 · Mixed precision
#
# *About 85 minutes: 25 of reading and quiz, 60 for 5 exercises*
#
# Every number of your training takes 32 bits. Most of them do well with 16: less memory, and on hardware made for it
# a multiple of the speed. A few do not, and then the loss stands still, or is NaN. You begin with a step in fp32, and
# bring it down to 16 bits without losing a gradient.
#
# | Part | What you build there |
# |---|---|
# | [The program](#The-program) | a step in fp32, and the bytes it keeps |
# | [Ask the hardware](#Ask-the-hardware) | 2.1, which precision this machine deserves |
# | [Gradients that vanish](#Gradients-that-vanish) | 2.2, a step in fp16 that loses none |
# | [What autocast casts](#What-autocast-casts) | 2.3, a step in bf16 |
# | [As good as before?](#As-good-as-before?) | 2.4, an epoch in either |
# | [The challenge](#The-challenge) | 2.5, find the operation that breaks, and repair it |
# | [Checklist](#The-five-minute-checklist), [quiz](#Quiz) | a page to keep, the test |
# | [More](#More) | outside the 85 minutes: tf32, the scaler by hand, frameworks, mistakes, drills |
#
# You need [lesson 01](../01_efficient_training_loops/01_efficient_training_loops.ipynb): its loop, clipping and paired
# speedups are used here without a word. A CPU is enough for everything that is graded, fp16 included. Cells that are
# folded draw pictures or set things up: run them too; the three dots open them.

# %%
from autograder import check, check_quiz, compare, diagnose, exercise, predict, quiz, reveal
from autograder import so_far, yours

# %% jupyter={"source_hidden": true}
import importlib.util
import math
import tempfile
import warnings
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.lesson_02.fragile import FragileClassifier
from autograder.plots import BLUE, GREEN, GREY, ORANGE, RED, bars, figure, mark, show
from course_lib import data, loop, precision
from course_lib.bench import paired_speedup
from course_lib.counters import count_events
from course_lib.models import EncoderBlock, ModelConfig, TextClassifier
from course_lib.optim import make_optimizer

torch.set_num_threads(1)  # steadier timings
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print(f"torch {torch.__version__} on {device}, {torch.get_num_threads()} thread")

# %% [markdown]
# ## The program
#
# The texts are those of lesson 01, the short ones, so that all of this stays quick. Here is the step in fp32.

# %% jupyter={"source_hidden": true}
train, validation = data.docstring_store(max_length=1024)
NUM_CLASSES, VOCAB_SIZE, MAX_LENGTH = len(train.label_names), train.vocab_size, 48


def short_texts(store, number, seed=0):
    """Samples of at most 48 tokens, at random."""
    short = np.flatnonzero(np.asarray(store.lengths) <= MAX_LENGTH)
    chosen = np.random.default_rng(seed).choice(short, size=number, replace=False)
    return [store[int(i)] for i in chosen]


pool, held_out = short_texts(train, 960), short_texts(validation, 960)


def batches_of(samples, rows=16):
    return [
        loop.to_device(data.collate(samples[i : i + rows]), device)
        for i in range(0, len(samples), rows)
    ]


def new_model(seed=0, **sizes):
    """A fresh small classifier without dropout; the same seed gives the same weights."""
    torch.manual_seed(seed)
    settings = {"d_model": 32, "num_layers": 1, "num_heads": 2, "dropout": 0.0} | sizes
    config = ModelConfig(
        vocab_size=VOCAB_SIZE, num_classes=NUM_CLASSES, max_length=MAX_LENGTH, **settings
    )
    return TextClassifier(config).to(device)


train_batches, held_out_batches = batches_of(pool), batches_of(held_out, rows=96)
wide_batch = loop.to_device(data.collate(pool[:64]), device)
print(f"{len(train_batches)} batches of 16 short texts, {NUM_CLASSES} classes")


# %%
def fp32_step(model, batch, optimizer):
    loss = F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return {"loss": loss.detach()}


program = SimpleNamespace(step=fp32_step)


def bytes_of_a_step():
    """Where the memory of the program's step goes, in megabytes."""
    model = new_model(d_model=64, num_layers=4, num_heads=4)
    optimizer = make_optimizer(model)
    with count_events(model) as counts:
        program.step(model, wide_batch, optimizer)
    state = [t for s in optimizer.state.values() for t in s.values() if t.ndim]
    sizes = {
        "weights": list(model.parameters()),
        "gradients": [p.grad for p in model.parameters()],
        "AdamW's averages": state,
    }
    found = {name: sum(t.nbytes for t in tensors) for name, tensors in sizes.items()}
    return {
        n: b / 1e6 for n, b in (found | {"kept for backward": counts.peak_saved_bytes}).items()
    }


memory = bytes_of_a_step()

# %% jupyter={"source_hidden": true}
fig, ax = figure(height=1.9)
bars(ax, list(memory), memory.values(), unit="MB", colors=[GREY, GREY, GREY, BLUE])
ax.set_title("One step in fp32, 64 texts")
show(fig, alt="Megabytes of a step in fp32: "
     + ", ".join(f"{name} {size:.1f}" for name, size in memory.items()))  # fmt: skip


def kept_megabytes():
    """The number that the program is judged by: what autograd keeps from forward for backward."""
    return bytes_of_a_step()["kept for backward"]


# %% [markdown]
# Backward needs what forward computed: the **activations**. Autograd keeps them until then. On large batches they are most
# of the memory, so *kept for backward* is the number that this program is judged by. It is counted, and needs no GPU.
#
# **Mixed precision gives forward and backward 16-bit numbers, and leaves the rest at 32.** The word to watch is *mixed*.
#
# ## Ask the hardware
#
# You rent a GPU by the hour. Its data sheet names several speeds, and they differ by a factor of 16: an NVIDIA A100 does
# 19.5 TFLOPS in fp32, 156 in tf32, and 312 in bf16 or fp16
# ([NVIDIA](https://www.nvidia.com/en-us/data-center/a100/)). A plain loop uses the first. Whether 16 bits pay depends on
# the hardware *and* on the model. So ask: time one transformer layer both ways, on this machine.

# %%
predict(
    "2d", "A layer 256 wide: how many times as fast is bf16 as fp32 on this machine?", unit="×"
)


# %% jupyter={"source_hidden": true}
def gain_of(width):
    """Time of a layer in fp32 / in bf16."""
    if device.type == "cpu":
        return precision.layer_gain(width)
    config = ModelConfig(
        vocab_size=1, num_classes=1, max_length=64, d_model=width, num_heads=width // 32
    )
    block = EncoderBlock(config).to(device)
    hidden = torch.randn(256, 64, width, device=device)
    key_mask = torch.ones(256, 1, 1, 64, dtype=torch.bool, device=device)

    def step(is_mixed):
        def run():
            with torch.autocast(device.type, torch.bfloat16, enabled=is_mixed):
                total = block(hidden, key_mask).float().square().mean()
            total.backward()

        return run

    return paired_speedup(step(False), step(True), blocks=4, min_seconds=0.05).estimate


print("gain_of is set up: it times one layer both ways")

# %%
gains = {width: gain_of(width) for width in (32, 64, 128, 256)}
compare("2d", gains[256], unit="×")

# %% jupyter={"source_hidden": true}
fig, ax = figure(height=2.2)
bars(ax, [f"{width} wide" for width in gains], gains.values(), unit="×", digits=2,
     colors=[GREEN if gain >= precision.MIN_LAYER_GAIN else RED for gain in gains.values()])  # fmt: skip
ax.set_title(
    f"One layer in bf16 over fp32 on this {device.type.upper()} (green: {precision.MIN_LAYER_GAIN}× or more)"
)
show(fig, alt="Speedup of a layer in bf16 over fp32: "
     + ", ".join(f"{width} wide {gain:.2f} times" for width, gain in gains.items()))  # fmt: skip

# %% jupyter={"source_hidden": true}
if gains[256] >= precision.MIN_LAYER_GAIN:
    print("This machine has units for bf16, and wide layers gain.")
    if gains[32] < gains[256]:
        print(
            "Narrow layers gain less: autocast converts activations, which grows with the width,"
        )
        print("and speeds up arithmetic, which grows with its square.")
else:
    print("Nothing to gain here: this machine emulates bf16, or its units are too slow.")
    print(
        "What you write in this lesson is the same line for line. Its points rest on counts."
    )

# %% [markdown]
# The rules are those of [lesson 01](../01_efficient_training_loops/01_efficient_training_loops.ipynb#How-exercises-work): write
# where the cell raises `NotImplementedError`, and put all that your code needs into that cell. All checks run on the
# CPU, fp16 too. Take the device from the model all the same (`next(model.parameters()).device.type`), then your code
# runs on a GPU. Arguments have the types that stand beside them; numbers among them are finite, and seeds lie between 0
# and `2**32 - 1`, unless the text says otherwise.
#
# A *batch* is what `collate` of 1.1 returns, and `model(input_ids, attention_mask)` gives logits [B, C]. `max_norm` is
# above 0, the optimizer holds all of the model's parameters, and an epoch has at least one batch. In 2.2 and 2.3 the
# whole model is in training mode before each step.
#
# ### 2.1 · Resolve a precision, with the reason
#
# > Difficulty ●●○○○ · Importance ●●●●○ · 10 minutes · property · imports: all that is installed, except `course_lib`
#
# A config says `auto`. Your function says what that comes to on the machine at hand, and why. A person who names a
# precision gets it.
#
# `"32-true"` is fp32 throughout. `"bf16-mixed"` and `"16-mixed"` compute products in one of two 16-bit formats. Only the
# second, fp16, needs a *scaler*; the next section shows why. The rules:
#
# | Request | Device | Precision |
# |---|---|---|
# | a known name | any | that name |
# | `"auto"` | CUDA with bf16 units | `"bf16-mixed"` |
# | `"auto"` | CUDA without | `"16-mixed"` |
# | `"auto"` | CPU with bf16 units, where a layer gains at least 1.15 × | `"bf16-mixed"` |
# | `"auto"` | CPU with bf16 units that gain less | `"32-true"` |
# | `"auto"` | CPU without bf16 units | `"32-true"`: it would emulate bf16, and be slower |
# | `"auto"` | anything else | `"32-true"`: nobody tried |
#
# <details><summary>Hint: "measured where it decides nothing"</summary>
#
# `measure_gain()` takes a second. In how many rows of the table does its answer matter?
#
# </details>
# <details><summary>Hint: "the reason does not say what decided"</summary>
#
# Choose the sentence in the branch that chooses the precision. There you know what decided: the request, the units, or
# the gain (`f"{gain:.2f}"`).
#
# </details>
# <details><summary>Hint: "a scaler where nothing can underflow"</summary>
#
# Which of the three formats has less range than fp32?
#
# </details>

# %%
from collections.abc import Callable
from typing import Any

from autograder import exercise


@exercise("2.1")
def resolve_precision(
    requested: str, facts: dict[str, Any], measure_gain: Callable[[], float]
) -> dict[str, Any]:
    """What `requested` comes to on this machine.

    requested: "auto", "32-true", "bf16-mixed" or "16-mixed".
    facts: "device_type" ("cpu", "cuda", "mps", …), "device_name" (text), "bf16_units" (bool).
    measure_gain: times one layer, fp32 time / bf16 time. Takes a second: call it only where its
        answer decides, and then once, in each call anew.

    Returns a dict:
        "precision"     "32-true", "bf16-mixed" or "16-mixed"
        "needs_scaler"  bool
        "reason"        a sentence with the device's name in it; where a precision was requested by
                        name, with that name; where the gain decided, with the gain, two decimals.
    Raises ValueError for an unknown request; its text names the request and the three names.
    """
    ### BEGIN SOLUTION
    names = ("32-true", "bf16-mixed", "16-mixed")
    device, has_units = facts["device_name"], facts["bf16_units"]
    if requested != "auto" and requested not in names:
        raise ValueError(f"there is no precision {requested!r}: take auto, {', '.join(names)}")
    if requested != "auto":
        precision, reason = requested, f"{requested} was asked for, on {device}"
    elif facts["device_type"] == "cuda" and has_units:
        precision, reason = "bf16-mixed", f"{device} computes in bf16"
    elif facts["device_type"] == "cuda":
        precision, reason = "16-mixed", f"{device} has no bf16 units: fp16 with loss scaling"
    elif facts["device_type"] == "cpu" and has_units:
        gain = measure_gain()  # units alone prove nothing: small layers lose to conversions
        precision = "bf16-mixed" if gain >= 1.15 else "32-true"
        reason = f"on {device} a layer ran {gain:.2f} times as fast in bf16; it takes 1.15"
    elif facts["device_type"] == "cpu":
        precision, reason = "32-true", f"{device} has no bf16 units and would emulate them"
    else:
        precision, reason = "32-true", f"16 bits are not tried on devices like {device}"
    return {"precision": precision, "needs_scaler": precision == "16-mixed", "reason": reason}
    ### END SOLUTION


# %%
check("2.1")

# %%
machine = {
    "device_type": device.type,
    "device_name": torch.cuda.get_device_name() if device.type == "cuda" else "this CPU",
    "bf16_units": torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "cuda"
    else bool(precision.bf16_units()),
}
resolve = yours("2.1", None)
if resolve:
    print("for layers 32 wide:", resolve("auto", machine, lambda: gains[32])["reason"])
    print("for layers 256 wide:", resolve("auto", machine, lambda: gains[256])["reason"])

# %% [markdown]
# ## Gradients that vanish
#
# A floating-point number is a sign, an *exponent* and a *fraction*. The exponent says how large the number is, the
# fraction says where it stands between two powers of two. With 16 bits you must choose: many exponent bits give
# **range**, many fraction bits give **precision**. bf16 has 8 bits for the exponent and 7 for the fraction, fp16 5 and 10.

# %%
predict("2a", "How many different numbers has bf16 from 1 up to, not including, 2?")

# %% jupyter={"source_hidden": true}
FORMATS = {  # exponent bits, fraction bits
    "fp32": (8, 23),
    "tf32": (8, 10),  # https://blogs.nvidia.com/blog/tensorfloat-32-precision-format/
    "bf16": (8, 7),
    "fp16": (5, 10),
}


def facts(exponent_bits, fraction_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    return {
        "largest": (2 - 2.0**-fraction_bits) * 2.0**bias,
        "smallest normal": 2.0 ** (1 - bias),
        "smallest": 2.0 ** (1 - bias - fraction_bits),
        "step at 1": 2.0**-fraction_bits,
    }


table = {name: facts(*bits) for name, bits in FORMATS.items()}
print(f"{'':6}" + "".join(f"{column:>17}" for column in table["fp32"]))
for name, row in table.items():
    print(f"{name:6}" + "".join(f"{value:17.3g}" for value in row.values()))

for name, dtype in {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}.items():
    info = torch.finfo(dtype)  # torch agrees
    assert (info.max, info.tiny, info.eps) == (
        table[name]["largest"], table[name]["smallest normal"], table[name]["step at 1"]
    )  # fmt: skip

# %%
compare("2a", 1 / table["bf16"]["step at 1"])

# %% jupyter={"source_hidden": true}
fig, ax = figure(height=2.3)
PALE = "#DCE6EE"
for row, (exponent, fraction) in enumerate(FORMATS.values()):
    for bit in range(1 + exponent + fraction):
        color = GREY if bit == 0 else ORANGE if bit <= exponent else BLUE
        ax.barh(row, 0.86, left=bit, color=color, height=0.62)
    ax.annotate(f"1 + {exponent} + {fraction} bits", (1 + exponent + fraction, row), (6, 0),
                textcoords="offset points", va="center")  # fmt: skip
ax.set_yticks(range(len(FORMATS)), labels=list(FORMATS))
ax.invert_yaxis()
ax.set_xlim(-0.3, 39)
ax.set_xticks([])
ax.spines["bottom"].set_visible(False)
ax.spines["left"].set_visible(False)
ax.tick_params(axis="y", length=0)
ax.set_title("Sign, exponent (orange: range), fraction (blue: precision)")
show(fig, alt="Four rows of bits, sign + exponent + fraction: "
     + ", ".join(f"{name} 1 + {e} + {f}" for name, (e, f) in FORMATS.items()) + ".")  # fmt: skip

# %% jupyter={"source_hidden": true}
fig, (left, right) = figure(1, 2, height=2.7, width_ratios=[1.25, 1.0])
for row, (_name, found) in enumerate(table.items()):
    low, normal, high = (
        math.log10(found[key]) for key in ("smallest", "smallest normal", "largest")
    )
    left.barh(row, high - normal, left=normal, color=ORANGE, height=0.5)
    left.barh(row, normal - low, left=low, color="#F6DFB0", height=0.5)
    step = found["step at 1"]
    points = np.arange(0, 1 / 32 + 1e-9, max(step, 1 / 8192))
    if step < 1 / 8192:  # too many to draw one by one
        right.barh(row, 1 / 32, left=1, color=BLUE, height=0.5)
    else:
        right.vlines(1 + points, row - 0.25, row + 0.25, color=BLUE, linewidth=1.3)
for ax in (left, right):
    ax.set_yticks(range(len(table)), labels=list(table))
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
left.set_xticks([-40, -20, 0, 20, 40], labels=["1e-40", "1e-20", "1", "1e20", "1e40"])
left.set(title="Range: positive numbers", xlim=(-46, 40))
right.set(title="Precision: from 1 to 1.031", xlim=(0.9985, 1.0325))
right.set_xticks([1, 1 + 1 / 64, 1 + 1 / 32], labels=["1", "1.016", "1.031"])
show(fig, alt="Left: fp32, tf32 and bf16 reach from about 1e-38 to 3e38, fp16 from 6e-5 to 65,504, "
     "and with fewer digits (pale) down to 6e-8. Right: between 1 and 1.031 fp32 has "
     f"{2**18:,} numbers, tf32 and fp16 32, bf16 4.")  # fmt: skip

# %% [markdown]
# - **fp32** has plenty of both.
# - **tf32** exists inside NVIDIA's units only: a tensor stays fp32 in memory, and its product reads 19 of the bits.
# - **bf16** is fp32 with the last 16 bits cut off: the same range, two to three decimal digits.
# - **fp16** has more digits and little range: above 65,504 is infinity, and less than half its smallest number, 6e-8, is
#   zero. In the pale part, below 6e-5, its digits run out one by one.
#
# An optimizer adds a small number to a large one, many times. Here the large one is 1, the small one 0.001, and it is
# added 1,000 times.

# %%
predict("2b", "1 + 1,000 times 0.001, with the sum kept in bf16: what comes out?")

# %%
for name, dtype in {
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
}.items():
    weight = torch.ones((), dtype=dtype)
    for _ in range(1000):
        weight += 0.001
    print(
        f"{name}: {weight.item():.4f}   (numbers near 1 are {table[name]['step at 1']:.1g} apart)"
    )
compare("2b", weight.item())

# %% [markdown]
# In bf16 nothing happens at all: 1.001 lies nearer to 1 than to the next number, each time. No error is raised. So mixed
# precision keeps the weights, and the optimizer's averages, in fp32. What is 16 bits wide is a *copy* for the product,
# made anew in each forward pass.
#
# The other trouble is range. Backward hands gradients from layer to layer, in the type of the forward pass. The loss is a
# mean over the samples, and this model takes a mean over the tokens, so each gradient is divided by both. They are small.

# %%
predict(
    "2c",
    "Gradients between the layers, one batch of 64 texts: how many become 0 in fp16?",
    unit="%",
)


# %% jupyter={"source_hidden": true}
def gradients_between_layers(model, batch):
    """What backward hands to each linear layer's output, all in one row, in fp32."""
    found = []

    def watch(_module, _inputs, output):
        output.register_hook(lambda gradient: found.append(gradient.detach().flatten()))

    hooks = [
        m.register_forward_hook(watch)
        for m in model.modules()
        if isinstance(m, torch.nn.Linear)
    ]
    loss = F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
    loss.backward()
    for hook in hooks:
        hook.remove()
    return torch.cat(found).cpu()


watched = new_model(num_layers=2)
optimizer = make_optimizer(watched, learning_rate=3e-3)
for batch in train_batches:  # a model that has learned something
    loop.train_step(watched, batch, optimizer)
gradients = gradients_between_layers(watched, wide_batch).abs()
gradients = gradients[gradients > 0]


def lost(scale):
    """Shares that in fp16, after a multiplication by `scale`, are zero, have fewer digits, are infinite."""
    scaled = gradients * scale
    in_fp16 = scaled.half()
    shares = (in_fp16 == 0, scaled < 2.0**-14, in_fp16.isinf())
    return [share.float().mean().item() for share in shares]


print(f"{len(gradients):,} gradients of one batch")

# %%
for name, scale in {"as they are": 1.0, "times 65,536": 2.0**16}.items():
    zero, faint, infinite = (100 * share for share in lost(scale))
    print(f"{name:13} in fp16: {zero:5.2f} % are zero, {faint:5.2f} % have fewer digits or are zero, "
          f"{infinite:.2f} % are infinite")  # fmt: skip
print(
    f"as they are   in bf16: {100 * (gradients.bfloat16() == 0).float().mean():5.2f} % are zero"
)
compare("2c", 100 * lost(1.0)[0], unit="%")

# %% jupyter={"source_hidden": true}
fig, axes = figure(2, 1, height=3.7, sharex=True)
exponents = torch.log2(gradients).numpy()
edges = np.arange(-46, 21)
for ax, (title, shift) in zip(
    axes, {"As they are": 0, "Times 65,536": 16}.items(), strict=True
):
    ax.axvspan(-14, 16, color="#E3F1E8")
    ax.axvspan(-25, -14, color="#FBF0D9")
    ax.hist(exponents + shift, bins=edges, color=BLUE)
    ax.set_ylim(0, 1.3 * ax.get_ylim()[1])  # room for the words
    ax.set(title=title, yticks=[], xlim=(-46, 20))
    ax.spines["left"].set_visible(False)
axes[0].annotate(
    "zero in fp16", (-26, 0.9), xycoords=("data", "axes fraction"), ha="right", va="top"
)
axes[0].annotate(
    "fewer digits", (-19.5, 0.9), xycoords=("data", "axes fraction"), ha="center", va="top"
)
axes[0].annotate(
    "all digits", (1, 0.9), xycoords=("data", "axes fraction"), ha="center", va="top"
)
axes[1].set_xticks([-40, -25, -14, 0, 16], labels=["2⁻⁴⁰", "2⁻²⁵", "2⁻¹⁴", "1", "2¹⁶"])
axes[1].set_xlabel("size of a gradient between two layers")
show(fig, alt=f"Two histograms of gradient sizes. As they are, half lie below {2**float(np.median(exponents)):.1e} "
     f"and {100 * lost(1.0)[0]:.1f} % become zero in fp16. Times 65,536 they lie in fp16's range.")  # fmt: skip

# %% [markdown]
# Few are zero, but nearly all have lost digits, and a fainter loss sinks them all. Times 65,536 they are whole. That is
# the idea of **loss scaling**: multiply the loss by a large number, and by the chain rule every gradient of backward is
# multiplied too. Divide the *weights'* gradients by the same number before the step: they are fp32, so nothing is lost
# ([Micikevicius et al., 2018](https://arxiv.org/abs/1710.03740)). bf16 has the range of fp32 and needs none of it.
#
# torch's `GradScaler` looks for the right scale all the time. **An infinity anywhere in the gradients halves the scale and
# skips the step; `growth_interval` good steps in a row double it.** Its state is the scale *and* the count of good steps.
# What computes in fp16 stands under `torch.autocast`: forward and loss, nothing else.
#
# ```python
# with torch.autocast(device_type, torch.float16):
#     loss = ...
# ```
#
# The order of the rest is worth learning by heart:
#
# > `scaler.scale(loss)` → `backward()` → `scaler.unscale_(optimizer)` → clip → `scaler.step(optimizer)` → `scaler.update()`
#
# Unscale comes before clip, because only then are the gradients the true ones.
#
# ### 2.2 · An fp16 step in the right order
#
# > Difficulty ●●●○○ · Importance ●●●●● · 15 minutes · property · imports: all that is installed
#
# Write the trainer that survives an overflow and a restart. The check looks at the gradients that each step *uses*. It
# sends an infinite gradient now and then: such a step must leave the weights alone and halve the scale. And it
# saves your trainer in the middle, makes a new one, loads the state and goes on.
#
# <details><summary>Hint: "clipping without unscale"</summary>
#
# After backward the gradients are the scale times too long. The norm that you clip must be the true one.
#
# </details>
# <details><summary>Hint: "the scaler says: unscale_() is being called after step()"</summary>
#
# Each step of the scaler ends with `update()`. Without it, the scaler still waits for the end of the step before.
#
# </details>
# <details><summary>Hint: "the scale is wrong after a resume"</summary>
#
# The scale is not the only thing that the scaler knows. Print `scaler.state_dict()`, and let it do the saving and loading.
#
# </details>
# <details><summary>Hint: "the loss is 65,536 times too large"</summary>
#
# `scaler.scale(loss)` returns a new tensor. Report the old one.
#
# </details>

# %%
from typing import Any

import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("2.2")
class Fp16Trainer:
    """Trains `model`, each part of it, in fp16 with loss scaling.

    max_norm: the true gradient norm is clipped to it.
    init_scale: the first scale. growth_interval: good steps in a row after which it doubles.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        max_norm: float = 1.0,
        init_scale: float = 2.0**16,
        growth_interval: int = 2000,
    ) -> None:
        self.model, self.optimizer, self.max_norm = model, optimizer, max_norm
        self.device_type = next(model.parameters()).device.type
        self.scaler = torch.amp.GradScaler(
            self.device_type, init_scale=init_scale, growth_interval=growth_interval
        )

    def train_step(self, batch: dict[str, torch.Tensor]) -> dict[str, Any]:
        """One update on the batch mean of the cross-entropy: forward in fp16 autocast, the loss in fp32.

        A gradient with an infinity or NaN changes no weight and halves the scale.
        Returns numbers or 0-d tensors: "loss" (unscaled), "grad_norm" (of the true gradients,
        before clipping), "scale" (after this step).
        """
        ### BEGIN SOLUTION
        with torch.autocast(self.device_type, torch.float16):
            logits = self.model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits, batch["labels"])
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        grad_norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return {
            "loss": loss.detach(),
            "grad_norm": grad_norm,
            "scale": self.scaler.get_scale(),
        }
        ### END SOLUTION

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold of this object, in types that `torch.load(…, weights_only=True)` takes.

        Model and optimizer are saved elsewhere. A state that was handed out or loaded stays as
        it is.
        """
        ### BEGIN SOLUTION
        return self.scaler.state_dict()
        ### END SOLUTION

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the trainer that made `state` was."""
        ### BEGIN SOLUTION
        self.scaler.load_state_dict(state)
        ### END SOLUTION


# %%
check("2.2")

# %%
predict("2e", "Bytes that autograd keeps under bf16 autocast, as a share of fp32's?", unit="%")

# %%
MyTrainer = yours("2.2", None)
if MyTrainer:
    program.step = lambda model, batch, optimizer: MyTrainer(model, optimizer).train_step(
        batch
    )
so_far("2.2", "your fp16 step", kept_megabytes, unit="MB", start=memory["kept for backward"])

# %% [markdown]
# ## What autocast casts
#
# `torch.autocast` decides at each operation. Watch it: the inputs are fp32 or 16-bit tensors, and the type that comes out
# tells what it did.

# %%
full = torch.randn(4, 8, 16, device=device)
half = full.to(torch.bfloat16)
weight = torch.randn(16, 16, device=device)
labels = torch.zeros(4, dtype=torch.long, device=device)
operations = {
    "F.linear(fp32, fp32)": lambda: F.linear(full, weight),
    "fp32 @ fp32": lambda: full @ weight,
    "scaled_dot_product_attention(fp32, …)": lambda: F.scaled_dot_product_attention(full, full, full),
    "F.cross_entropy(16-bit, labels)": lambda: F.cross_entropy(half[:, 0], labels),
    "F.mse_loss(16-bit, 16-bit)": lambda: F.mse_loss(half, half),
    "16-bit + fp32": lambda: half + full,
    "16-bit + 16-bit": lambda: half + half,
    "F.gelu(16-bit)": lambda: F.gelu(half),
    "16-bit * 16-bit": lambda: half * half,
    "softmax(16-bit)": lambda: half.softmax(dim=-1),
    "F.layer_norm(16-bit)": lambda: F.layer_norm(half, (16,)),
    "exp(16-bit)": lambda: half.exp(),
    "sum(16-bit)": lambda: half.sum(),
}  # fmt: skip
with torch.autocast(device.type, torch.bfloat16):
    for name, run in operations.items():
        print(f"{name:40} -> {str(run().dtype).removeprefix('torch.')}")

# %% [markdown]
# Three rules cover what you saw ([the full lists](https://docs.pytorch.org/docs/stable/amp.html#autocast-op-reference)):
#
# | Rule | Which operations | Why |
# |---|---|---|
# | **cast to 16 bits** | matrix products, convolutions, attention | nearly all FLOPs, and the units add up in fp32 |
# | **cast to fp32** | losses; on CUDA also softmax, layer norm, exp, log, pow, sum, norms | large sums and steep functions need range and digits |
# | **leave as it comes** | everything else: `+`, `*`, GELU, ReLU, dropout; the wider type wins | cheap, and mostly harmless |
#
# The last four lines of the list depend on the device: CUDA computes them in fp32, a CPU as they come.
#
# One more consequence. The embedding is fp32, and fp32 + 16 bits is fp32. So the sum that runs through the blocks, the
# *residual stream*, stays fp32, and with it what the norms keep.

# %%
model = new_model(d_model=64, num_layers=4, num_heads=4)
with count_events(model) as counts, torch.autocast(device.type, torch.bfloat16):
    logits = model(wide_batch["input_ids"], wide_batch["attention_mask"])
    loss = F.cross_entropy(logits, wide_batch["labels"])
compare("2e", 100 * counts.peak_saved_bytes / 1e6 / memory["kept for backward"], unit="%")

# %% [markdown]
# Not one half: autocast's 16-bit copies of the weights are among what is kept, and what the layer norms and the residual
# stream keep is fp32. On a CPU `course_lib` also computes attention in fp32, because torch's kernel is slow in bf16 there.
#
# ### 2.3 · Autocast around forward and loss, and nothing else
#
# > Difficulty ●●○○○ · Importance ●●●●● · 10 minutes · property, count (at least 90 % of the products' FLOPs in bf16, at most 0.65 of the bytes kept for backward) · imports: all that is installed
#
# One step in bf16. The check counts the FLOPs of all matrix products by their type, and the bytes that autograd keeps. It
# uses a model of feed-forward layers, without attention, so that the counts are the same on all machines.
#
# <details><summary>Hint: "the FLOPs are in fp32"</summary>
#
# Is the call of the model inside the `with`? And which device type did you give? `torch.autocast("cuda")` does nothing for
# tensors on a CPU.
#
# </details>
# <details><summary>Hint: "a loss of bfloat16"</summary>
#
# The logits come out in bf16. Inside autocast the cross-entropy takes them in fp32; outside, it takes them as they are.
#
# </details>
# <details><summary>Hint: "autocast open while gradients were computed"</summary>
#
# Where does your `with` end? Backward knows the types from forward and needs no autocast.
#
# </details>

# %%
from typing import Any

import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("2.3")
def mixed_step(
    model: torch.nn.Module,
    batch: dict[str, torch.Tensor],
    optimizer: torch.optim.Optimizer,
    max_norm: float,
) -> dict[str, Any]:
    """One update of each part of `model`, with its matrix products in bf16.

    The loss is the batch mean of the cross-entropy, in fp32; the gradient is clipped to
    `max_norm`. Weights and gradients stay fp32. Autocast is open for forward and loss only,
    and closed, as it was before, after an error too.
    Returns 0-d tensors: "loss", and "grad_norm" from before clipping.
    """
    ### BEGIN SOLUTION
    device_type = next(model.parameters()).device.type
    with torch.autocast(device_type, torch.bfloat16):
        logits = model(batch["input_ids"], batch["attention_mask"])
        loss = F.cross_entropy(logits, batch["labels"])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return {"loss": loss.detach(), "grad_norm": grad_norm}
    ### END SOLUTION


# %%
check("2.3")

# %%
my_step = yours("2.3", None)
if my_step:
    program.step = lambda model, batch, optimizer: my_step(model, batch, optimizer, 1.0)
so_far("2.3", "your bf16 step", kept_megabytes, unit="MB", start=memory["kept for backward"])

# %% [markdown]
# ## As good as before?
#
# Is a model trained in 16 bits as good? Train the same model on the same batches from the same weights in each precision,
# and compare at *each* seed: a **paired** comparison, as with time.

# %%
predict(
    "2f", "Accuracy of bf16 minus fp32, mean of three seeds, in points of 100?", unit="points"
)


# %%
def accuracy_after_training(name, seed):
    """Accuracy in points of 100 after one epoch over the pool."""
    model = new_model(seed=seed)
    optimizer = make_optimizer(model, learning_rate=3e-3)
    resolved = precision.resolve_precision(name, device)
    order = np.random.default_rng(seed).permutation(len(train_batches))
    for i in order:
        loop.train_step(model, train_batches[i], optimizer, precision=resolved)
    return 100 * loop.evaluate(model, held_out_batches, precision=resolved)["accuracy"]


SEEDS = (0, 1, 2)
accuracies = {
    name: [accuracy_after_training(name, seed) for seed in SEEDS]
    for name in ("32-true", "bf16-mixed", "16-mixed")
}
for name, scores in accuracies.items():
    differences = [
        score - fp32 for score, fp32 in zip(scores, accuracies["32-true"], strict=True)
    ]
    print(f"{name:11} accuracy " + "  ".join(f"{score:5.1f}" for score in scores)
          + "   minus fp32: " + "  ".join(f"{d:+.1f}" for d in differences))  # fmt: skip
spread_of_seeds = np.ptp(accuracies["32-true"])
print(f"fp32 alone differs by up to {spread_of_seeds:.1f} points from seed to seed")
compare(
    "2f",
    float(np.mean(np.subtract(accuracies["bf16-mixed"], accuracies["32-true"]))),
    unit="points",
)

# %% jupyter={"source_hidden": true}
fig, ax = figure(height=2.6)
for seed, color in zip(SEEDS, (BLUE, ORANGE, GREEN), strict=True):
    points = [scores[seed] for scores in accuracies.values()]
    ax.plot(range(3), points, marker="o", color=color, label=f"seed {seed}")
ax.set_xticks(range(3), labels=["fp32", "bf16", "fp16"])
ax.set(
    title="Accuracy after one epoch: a line for each seed", ylabel="points", xlim=(-0.3, 2.9)
)
ax.legend(loc="center right")
show(fig, alt="Accuracy by precision, a line for each of three seeds. " + "; ".join(
    f"{name} " + ", ".join(f"{s:.1f}" for s in scores) for name, scores in accuracies.items()))  # fmt: skip

# %% [markdown]
# Look along the lines, not at the height of the points. From seed to seed fp32 differs from *itself*. Only a difference
# that all lines share, and that is more than a few texts (one of 960 is 0.1 points), says anything about precision.
# With three seeds that is a first look, and no verdict;
# [lesson 08](../08_reproducibility/08_reproducibility.ipynb#Compare-runs-honestly) decides such questions properly.
#
# ### 2.4 · An epoch in bf16, faster where the hardware has it
#
# > Difficulty ●●●○○ · Importance ●●●●○ · 10 minutes · property, count, speed (at least 1.3× over fp32, where the probe finds bf16 hardware) · imports: all that is installed
#
# The same loop for both precisions, chosen by a name. `"32-true"` must be *exactly* the plain loop: it is what you compare
# with. `"bf16-mixed"` is timed on layers 256 wide. First the check asks the probe. Where a layer does not gain enough
# here, the clock is not asked, and the card says so: then all points rest on the counts. They are the same FLOPs that
# would be fast elsewhere.
#
# <details><summary>Hint: "in 32-true some FLOPs are in 16 bits"</summary>
#
# `torch.autocast` takes `enabled=`, a bool.
#
# </details>
# <details><summary>Hint: "too many syncs"</summary>
#
# As in 1.3: sums stay tensors. And bf16 needs no look for infinities: that is fp16's trouble.
#
# </details>
# <details><summary>Hint: "right, but not fast enough"</summary>
#
# Count what a step does. One forward, one backward, one step; no conversion by hand. Autocast keeps its 16-bit copies of
# the weights until the `with` ends, so one `with` around the whole forward converts each weight once.
#
# </details>

# %%
from collections.abc import Iterable

import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("2.4")
def train_epoch(
    model: torch.nn.Module,
    batches: Iterable[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
    precision: str,
    max_norm: float = 1.0,
) -> dict[str, float]:
    """Train each part of `model` in place on every batch once, all of it in training mode.

    precision: "32-true" (no operation in 16 bits) or "bf16-mixed" (matrix products in bf16; weights,
        gradients and loss in fp32).
    Each step minimises the mean cross-entropy of its batch, with the gradient clipped to
    `max_norm`. `batches` can be iterated once; the last one may be short.
    Returns {"loss": mean over *samples* while training, NaN if one of them is, "num_samples": N},
    as Python numbers, with at most 8 syncs an epoch, however long it is. Autocast is
    closed before and after, after an error too.
    """
    ### BEGIN SOLUTION
    device = next(model.parameters()).device
    is_mixed = precision == "bf16-mixed"
    model.train()
    loss_sum, num_samples = torch.zeros((), device=device), 0
    for batch in batches:
        batch = {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}
        with torch.autocast(device.type, torch.bfloat16, enabled=is_mixed):
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits, batch["labels"])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        loss_sum += loss.detach() * len(batch["labels"])
        num_samples += len(batch["labels"])
    return {"loss": loss_sum.item() / num_samples, "num_samples": num_samples}
    ### END SOLUTION


# %%
check("2.4")

# %%
epoch = yours("2.4", None)
if epoch:
    program.step = lambda model, batch, optimizer: epoch(
        model, [batch], optimizer, "bf16-mixed"
    )
so_far("2.4", "your epoch", kept_megabytes, unit="MB", start=memory["kept for backward"])

# %% [markdown]
# The three bars are equal: which 16-bit format it is, and who wrote the loop, changes nothing that forward keeps.

# %% [markdown]
# ## The challenge
#
# Sometimes an operation breaks in 16 bits, and you have to find it. torch shows you each one on its way, after autocast has
# chosen the types. An infinity, for instance, names itself:

# %%
from torch.utils._python_dispatch import TorchDispatchMode


class FirstInfinity(TorchDispatchMode):
    """Notes the first operation that makes an infinity out of finite numbers. A sync at each: to look, not to train."""

    def __init__(self):
        super().__init__()
        self.found = None

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        inputs = [a for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()]
        if self.found is None and inputs and isinstance(result, torch.Tensor):
            sizes = [a.abs().max().item() for a in inputs if a.numel()]
            if result.isinf().any() and all(map(math.isfinite, sizes)):
                largest = max(sizes, default=0)
                self.found = f"{func} in {result.dtype}, from values up to {largest:,.0f}"
        return result


def softmax_by_hand(scores):
    return torch.exp(scores) / torch.exp(scores).sum(dim=-1, keepdim=True)


scores = torch.tensor([[3.0, 12.0, 9.0]])
for dtype in (torch.float32, torch.float16):
    with FirstInfinity() as watch:
        probabilities = softmax_by_hand(scores.to(dtype))
    print(
        f"{dtype}: {[round(p, 3) for p in probabilities[0].tolist()]}   first infinity: {watch.found}"
    )

# %% [markdown]
# `exp(12)` is 162,755: fine in fp32, infinite in fp16, and infinity over infinity is NaN. The cure is nearly always one of
# two: work in fp32 in that one place, or use the operation that torch has for it (`torch.softmax` subtracts the maximum
# first).
#
# ### 2.5 · Find and repair the operation that breaks
#
# > Difficulty ●●●●○ · Importance ●●●●○ · 15 minutes · property, count (at least 90 % of the products' FLOPs in fp16), validation accuracy within 0.5 points of fp32 · imports: all that is installed
#
# A colleague hands you a classifier. Its `__init__` stands in the exercise's cell; this is its `forward`:
#
# ```python
# weights = attention_mask / attention_mask.sum(dim=1, keepdim=True)
# features = F.gelu(self.hidden(self.words(input_ids)))
# pooled = torch.einsum("bth,bt->bh", features, weights)
# mean_square = (pooled * pooled).mean(dim=-1, keepdim=True)
# normal = pooled / torch.sqrt(mean_square + 1e-6)
# return self.head(normal * self.gain)
# ```
#
# It trains in fp32 and in bf16. In fp16 it does this:

# %%
for name in ("32-true", "bf16-mixed", "16-mixed"):
    torch.manual_seed(0)
    model = FragileClassifier(VOCAB_SIZE, NUM_CLASSES).to(device)
    optimizer = make_optimizer(model, learning_rate=2e-2)
    resolved = precision.resolve_precision(name, device)
    losses = [
        loop.train_step(model, batch, optimizer, precision=resolved)["loss"]
        for batch in train_batches * 2
    ]
    with torch.no_grad(), resolved.autocast():
        logits = model(wide_batch["input_ids"], wide_batch["attention_mask"])
    first, last = (torch.stack(part).mean().item() for part in (losses[:5], losses[-10:]))
    apart = logits.float().std(dim=0).mean().item()
    scale = f", scale {resolved.scaler.get_scale():,.0f}" if resolved.scaler else ""
    print(
        f"{name:11} loss {first:.2f}, then {last:.2f}; logits of two texts differ by {apart:.2f}{scale}"
    )

# %%
diagnose(
    "2j",
    "What goes wrong in **16-mixed**?",
    [
        "gradients underflow: the scale is too small",
        "an operation of forward overflows, and what is divided by it is zero",
        "the gradients overflow, so that each step is skipped",
        "the learning rate is too high for fp16",
    ],
)

# %% jupyter={"source_hidden": true}
reveal({
    "2j": ("16-mixed", "b", "A scale that stands still says that gradients are neither lost nor infinite. "
           "Logits that do not depend on the text say that forward lost it."),
})  # fmt: skip

# %% [markdown]
# No NaN, no error, the scaler is content, and every text gets the same logits: the model learns how frequent the classes
# are, and nothing of the text. Find the operation, and repair `forward`. In fp32 your class must give the same numbers as
# before, to five digits. The check tries loud texts and quiet ones, then trains both classes on three seeds or more.
#
# <details><summary>Hint: "where do I look?"</summary>
#
# [`FirstInfinity`](#The-challenge) names the operation: run the model under it, inside autocast.
#
# </details>
# <details><summary>Hint: "the whole forward is taken out of fp16"</summary>
#
# Convert one tensor, where it is needed, with `.float()`. What follows is then fp32 until the next matrix product, which
# autocast takes back to fp16.
#
# </details>
# <details><summary>Hint: "a constant factor moves the break"</summary>
#
# Dividing by 1,000 before the square makes room above and takes it away below. fp32 has room on both sides.
#
# </details>
# <details><summary>Hint: "the repair changes the mathematics"</summary>
#
# Clamping changes values. Compare the logits of both classes in fp32: five digits must be equal.
#
# </details>

# %%
import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("2.5")
class SturdyClassifier(torch.nn.Module):
    """`FragileClassifier`, repaired: right in fp32, bf16 and fp16. The fault is in `forward`."""

    def __init__(self, vocab_size: int, num_classes: int, d_model: int = 32) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(vocab_size, d_model)
        self.hidden = torch.nn.Linear(d_model, 2 * d_model)
        self.gain = torch.nn.Parameter(torch.ones(2 * d_model))
        self.head = torch.nn.Linear(2 * d_model, num_classes)
        torch.nn.init.normal_(self.hidden.weight, std=200.0)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """`input_ids` int64 [B, T], `attention_mask` bool [B, T] -> logits [B, C].

        In fp32 the numbers of FragileClassifier, to five digits. Under fp16 autocast the same
        but for rounding, with the matrix products in fp16.
        """
        ### BEGIN SOLUTION
        weights = attention_mask / attention_mask.sum(dim=1, keepdim=True)
        features = F.gelu(self.hidden(self.words(input_ids)))
        # In fp32 from here on: a square has twice the exponent of its number.
        pooled = torch.einsum("bth,bt->bh", features, weights).float()
        mean_square = (pooled * pooled).mean(dim=-1, keepdim=True)
        normal = pooled / torch.sqrt(mean_square + 1e-6)
        return self.head(normal * self.gain)
        ### END SOLUTION


# %%
check("2.5")

# %% [markdown]
# ## The five-minute checklist
#
# Run this before a long run in 16 bits: five questions, one function, for your own model too. It trains nothing.


# %% jupyter={"source_hidden": true}
def mixed_precision_check(model, batch, name, width):
    """Ask the hardware (for layers `width` wide), the types, the FLOPs, the range and the loss, on one batch."""
    resolved = precision.resolve_precision(name, device)
    best = precision.resolve_precision("auto", device, width=width)
    print(f"1. {name} asked for; the hardware says {best.name}, because: {best.reason}")
    types = sorted({str(p.dtype).removeprefix("torch.") for p in model.parameters()})
    print(
        f"2. weights: {', '.join(types)}   {'good' if types == ['float32'] else 'LOOK HERE'}"
    )

    full = F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
    with count_events(model) as counts, FirstInfinity() as watch, resolved.autocast():
        mixed = F.cross_entropy(
            model(batch["input_ids"], batch["attention_mask"]), batch["labels"]
        )
    share = 100 * counts.share_of_flops("bfloat16", "float16")
    print(f"3. {share:.0f} % of the FLOPs in 16 bits")
    print(f"4. infinities in forward: {watch.found or 'none'}")
    print(f"5. loss {mixed.item():.4f}, in fp32 {full.item():.4f}")


print("mixed_precision_check is set up")

# %%
for name in ("bf16-mixed", "16-mixed"):
    mixed_precision_check(watched, wide_batch, name, width=32)
print("\nThe fragile model of 2.5:")
torch.manual_seed(0)
mixed_precision_check(
    FragileClassifier(VOCAB_SIZE, NUM_CLASSES).to(device), wide_batch, "16-mixed", width=32
)

# %% [markdown]
# | # | Question | If the answer is no |
# |---|---|---|
# | 1 | Does the hardware gain from it? | stay in fp32, or tf32; on GPUs without bf16 take fp16 with a scaler |
# | 2 | Are the weights fp32? | somebody called `.half()`, or loaded a 16-bit checkpoint |
# | 3 | Are most FLOPs in 16 bits? | autocast is not around the model, or has another device type |
# | 4 | Is forward free of infinities? | repair that one operation; in bf16 it may be fine as it is |
# | 5 | Is the loss that of fp32, to two or three digits? | look at 4; then at sums and running totals of your own |
#
# ## Quiz
#
# You pass with 70 %. Two of the questions are measured on this machine when you answer. Without a mouse:
# `from autograder import answer`, then `answer("02.3", "b")`.

# %%
quiz("02")

# %%
check_quiz("02")

# %% [markdown]
# ## What next
#
# You can now say which precision a machine deserves and why, train in 16 bits without losing gradients or updates, and find
# the operation that breaks.
#
# - Run `course-lib train --data your.csv --set precision=auto --out runs/mixed` and read in `run.json` what it came
#   to.
# - Take a training script that you use, and run the checklist on it. Count the FLOPs by type before you believe its config.
# - [Lesson 03](../03_batch_size_and_accumulation/03_batch_size_and_accumulation.ipynb) spends the memory that you saved:
#   larger batches, and accumulation, with the scaler in the right place.
# - The [start page](../00_start_here/00_start_here.ipynb) shows your progress and the map.

# %% [markdown]
# ## More
#
# From here on all is outside the 85 minutes. Take what you need. A piece needs the folded cells of
# [the program](#The-program) alone, or says what else.
#
# ### What a format does to a number
#
# (It needs `FORMATS` of [Gradients that vanish](#Gradients-that-vanish).)
# And to a matrix product with fp32 sums, as the units form them:


# %%
def rounded(values, name):
    """`values` as they come back from a format; tf32 by rounding bits away, as no tensor is stored in it."""
    if name == "tf32":
        bits = values.view(torch.int32)
        return ((bits + 0x0FFF + ((bits >> 13) & 1)) & ~0x1FFF).view(torch.float32)
    types = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    return values.to(types[name]).float()


values = torch.tensor([1.001, 3.14159265, 70_000.0, 1e-8])
torch.manual_seed(0)
a, b = torch.randn(256, 256), torch.randn(256, 256)
exact = a.double() @ b.double()
print(f"{'':6}{'1.001':>10}{'pi':>10}{'70,000':>10}{'1e-8':>10}{'error of a product':>22}")
for name in FORMATS:
    product = rounded(a, name) @ rounded(b, name)
    error = ((product - exact).norm() / exact.norm()).item()
    numbers = "".join(f"{value:>10.6g}" for value in rounded(values, name).tolist()[:3])
    print(f"{name:6}{numbers}{rounded(values, name)[3].item():>10.2g}{error:>22.1e}")

# %% [markdown]
# A product in tf32 is one switch, and no tensor changes its type: `torch.set_float32_matmul_precision("high")`. It is made
# for NVIDIA GPUs from Ampere on, and there it is the cheapest change of this lesson.

# %%
if device.type == "cuda" and torch.cuda.get_device_capability() >= (8, 0):
    big = torch.randn(4096, 4096, device=device)

    def product_in(setting):
        def run():
            torch.set_float32_matmul_precision(setting)
            return big @ big

        return run

    print(
        "tf32 over fp32:", paired_speedup(product_in("highest"), product_in("high"), blocks=4)
    )
    torch.set_float32_matmul_precision("highest")
else:
    print("No NVIDIA GPU from Ampere on: nothing to switch. Nothing later needs it.")

# %% [markdown]
# ### Three steps, in plain torch
#
# The fp32 step of lesson 01, and what changes.


# %%
def fp32_step(model, batch, optimizer, max_norm=1.0):
    loss = F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.detach()


def bf16_step(model, batch, optimizer, max_norm=1.0):
    with torch.autocast(device.type, torch.bfloat16):  # forward and loss, nothing else
        loss = F.cross_entropy(
            model(batch["input_ids"], batch["attention_mask"]), batch["labels"]
        )
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # outside: each operation goes back in the type that it came in
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()  # fp32 weights, fp32 gradients
    return loss.detach()


def fp16_step(model, batch, optimizer, scaler, max_norm=1.0):
    with torch.autocast(device.type, torch.float16):
        loss = F.cross_entropy(
            model(batch["input_ids"], batch["attention_mask"]), batch["labels"]
        )
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()  # 1. scale  2. backward
    scaler.unscale_(optimizer)  # 3. unscale: the true gradients, and a look for infinities
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)  # 4. clip what is true
    scaler.step(optimizer)  # 5. step, or skip it when there was an infinity
    scaler.update()  # 6. update: halve the scale after a skip, double it after 2,000 good steps
    return loss.detach()


scaler = torch.amp.GradScaler(device.type)
steps = {
    "fp32": fp32_step,
    "bf16": bf16_step,
    "fp16": lambda *arguments: fp16_step(*arguments, scaler),
}
for name, step in steps.items():
    model = new_model(seed=1)
    optimizer = make_optimizer(model, learning_rate=3e-3)
    losses = [step(model, batch, optimizer) for batch in train_batches[:30]]
    weights = {str(p.dtype).removeprefix("torch.") for p in model.parameters()}
    last = torch.stack(losses[-5:]).mean()
    print(
        f"{name}: loss {losses[0]:.4f} at first, {last:.4f} over the last five; weights {weights}"
    )

# %% [markdown]
# The order of the fp16 step is worth learning by heart:
#
# > **scale → backward → unscale → clip → step → update**
#
# Two costs to know. `scaler.step` must know whether there was an infinity, which is a sync in each step with most
# optimizers. And a skipped step is a batch that taught nothing.
#
# ### The same with `course_lib`

# %%
plain_model, library_model = new_model(seed=1), new_model(seed=1)
plain_optimizer, library_optimizer = (
    make_optimizer(model, learning_rate=3e-3) for model in (plain_model, library_model)
)
plain_scaler = torch.amp.GradScaler(device.type)
resolved = precision.resolve_precision("16-mixed", device)
for batch in train_batches[:10]:
    fp16_step(plain_model, batch, plain_optimizer, plain_scaler)
    loop.train_step(library_model, batch, library_optimizer, precision=resolved)

pairs = zip(plain_model.parameters(), library_model.parameters(), strict=True)
largest = max((a - b).abs().max().item() for a, b in pairs)
size = max(p.abs().max().item() for p in plain_model.parameters())
print(
    f"largest difference between the two models' weights: {largest:.1e}, of up to {size:.1f}"
)
print(f"scales: {plain_scaler.get_scale():,.0f} and {resolved.scaler.get_scale():,.0f}")

# %% [markdown]
# | Plain torch | `course_lib` | What changed in meaning |
# |---|---|---|
# | you choose the type | `resolve_precision("auto", device, width=…)` | it asks the hardware, and keeps the reason |
# | `with torch.autocast(…)` | `train_step(…, precision=resolved)` | nothing; the loss is summed over items in fp32 |
# | `GradScaler`, five calls | the same, inside | nothing; the scaler is there only for `"16-mixed"` |
# | – | checkpoints of `fit` | the scaler's state is saved and loaded with the rest |
#
# The names are Lightning's: `"32-true"`, `"bf16-mixed"`, `"16-mixed"`. *Mixed* says that the weights stay fp32.

# %% [markdown]
# ### GradScaler, step by step
#
# The right scale changes during training, so GradScaler searches for it all the time. The rule is short: **an infinity
# anywhere in the gradients halves the scale and skips the step; `growth_interval` good steps in a row double it.** Here it
# is in plain Python, beside torch's.


# %%
class HandScaler:
    """What torch's GradScaler does, with a sync for each gradient."""

    def __init__(self, scale, growth_interval):
        self.scale, self.growth_interval, self.num_good = scale, growth_interval, 0

    def backward_and_step(self, loss, model, optimizer, max_norm):
        (loss * self.scale).backward()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        is_finite = all(g.isfinite().all() for g in gradients)
        for g in gradients:
            g.div_(self.scale)
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if is_finite:
            optimizer.step()
            self.num_good += 1
            if self.num_good == self.growth_interval:
                self.scale, self.num_good = 2 * self.scale, 0
        else:  # the weights stay as they are
            self.scale, self.num_good = self.scale / 2, 0
        return is_finite


hand_model, torch_model = new_model(seed=2), new_model(seed=2)
hand_optimizer, torch_optimizer = (
    torch.optim.SGD(model.parameters(), lr=0.1) for model in (hand_model, torch_model)
)
hand = HandScaler(
    scale=2.0**11, growth_interval=4
)  # 2,000 is usual: here you want to see it move
torch_scaler = torch.amp.GradScaler(device.type, init_scale=2.0**11, growth_interval=4)
trace = {"hand": [], "torch": [], "skipped": []}
for step, batch in enumerate(train_batches):
    with torch.autocast(device.type, torch.float16):
        logits = hand_model(batch["input_ids"], batch["attention_mask"])
        loss = F.cross_entropy(logits, batch["labels"])
    hand_optimizer.zero_grad(set_to_none=True)
    if not hand.backward_and_step(loss, hand_model, hand_optimizer, max_norm=1.0):
        trace["skipped"].append(step)
    fp16_step(torch_model, batch, torch_optimizer, torch_scaler)
    trace["hand"].append(hand.scale)
    trace["torch"].append(torch_scaler.get_scale())

print(f"traces equal: {trace['hand'] == trace['torch']}; skipped steps: {trace['skipped']}")

# %% jupyter={"source_hidden": true}
fig, ax = figure(height=2.6)
ax.step(
    range(len(trace["torch"])),
    np.log2(trace["torch"]),
    where="post",
    color=BLUE,
    label="scale after the step",
)
for number, step in enumerate(trace["skipped"]):
    ax.plot(step, np.log2(trace["torch"][step]), "v", color=RED, markersize=8,
            label=None if number else "step skipped: an infinity")  # fmt: skip
ax.set(
    title="GradScaler looks for the largest scale that does not overflow",
    xlabel="step",
    ylabel="scale, 2 to the …",
)
ax.legend(loc="lower right")
ax.yaxis.get_major_locator().set_params(integer=True)
show(fig, alt=f"Scale over {len(trace['torch'])} steps, from 2^11 to 2^{math.log2(trace['torch'][-1]):.0f}: it doubles "
     f"every 4 good steps and halves at {len(trace['skipped'])} skipped ones.")  # fmt: skip

# %% [markdown]
# Skipped steps at the start, and one now and then, are health: the scaler has found the ceiling. A scale that *falls and
# falls* is illness: the loss or the forward pass itself is infinite, and no scale can help. Log the scale, like the
# learning rate.
#
# The state of the scaler is its scale **and** its count of good steps. Both belong in a checkpoint.

# %% [markdown]
# ### In the wild
#
# The defaults below are those of Transformers 5.23, Accelerate 1.15 and Lightning 2.6. The cells run the real thing where
# it is installed, and count the FLOPs by type: a setting says what was asked for, a count says what was done.
#
# #### Hugging Face Trainer
#
# | This lesson | Argument | Default | What surprises |
# |---|---|---|---|
# | bf16 under autocast | `TrainingArguments(bf16=…)` | `False` | fp32 until you ask, on every GPU |
# | fp16 with a scaler | `TrainingArguments(fp16=…)` | `False` | **on a CPU it is taken, and nothing is done** |
# | tf32 | `TrainingArguments(tf32=…)` | `None`: as torch is set | with `torch_compile` it may be switched on for you |
# | evaluation | `bf16_full_eval`, `fp16_full_eval` | `False` | `True` turns the *weights* to 16 bits for it |
# | weights | `from_pretrained(dtype=…)` | the type they were saved in | **a bf16 checkpoint is trained with bf16 weights**, unless you say `torch.float32` |


# %%
def is_installed(package: str) -> bool:
    found = importlib.util.find_spec(package) is not None
    if not found:
        print(
            f"{package} is not installed, so this cell runs nothing. Nothing later needs it."
        )
    return found


def say_flops(title, counts):
    shares = {name: 100 * flops / counts.total_flops for name, flops in counts.flops.items()}
    print(
        f"{title:22} FLOPs: "
        + ", ".join(f"{share:.0f} % {name}" for name, share in shares.items())
    )


class WithLoss(torch.nn.Module):
    """The form that the Trainer expects: the model computes its own loss."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, labels):
        logits = self.model(input_ids, attention_mask)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


def forget_precision():
    """One process has one Accelerator state: without this the first precision stays for good."""
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)


if is_installed("transformers") and is_installed("accelerate"):
    import logging

    logging.disable(logging.WARNING)  # importing it reports each optional part that is missing
    from transformers import PrinterCallback, Trainer, TrainingArguments

    logging.disable(logging.NOTSET)
    for setting in ({}, {"bf16": True}, {"fp16": True}):
        forget_precision()
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                output_dir=folder,
                max_steps=2,
                per_device_train_batch_size=16,
                save_strategy="no",
                report_to=[],
                disable_tqdm=True,
                use_cpu=device.type == "cpu",
                dataloader_pin_memory=device.type == "cuda",
                **setting,
            )
            trainer = Trainer(
                WithLoss(new_model(d_model=64)),
                arguments,
                data_collator=data.collate,
                train_dataset=pool[:32],
            )
            trainer.remove_callback(PrinterCallback)
            with count_events() as counts:
                trainer.train()
        say_flops(f"Trainer({', '.join(f'{k}={v}' for k, v in setting.items())})", counts)

# %% [markdown]
# On a CPU, attention stays fp32 here by `course_lib`'s own choice; look at the rest. Now the last row of the table: a
# checkpoint that was saved in bf16.

# %%
if is_installed("transformers"):
    import transformers

    transformers.utils.logging.disable_progress_bar()
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    small = transformers.BertConfig(vocab_size=60, **sizes)
    with tempfile.TemporaryDirectory() as folder:
        transformers.BertModel(small).to(torch.bfloat16).save_pretrained(folder)
        as_saved = transformers.BertModel.from_pretrained(folder)
        as_fp32 = transformers.BertModel.from_pretrained(folder, dtype=torch.float32)
    print(f"from_pretrained(folder):                       weights in {as_saved.dtype}")
    print(f"from_pretrained(folder, dtype=torch.float32):  weights in {as_fp32.dtype}")

# %% [markdown]
# #### Accelerate
#
# | Argument | Default | What surprises |
# |---|---|---|
# | `mixed_precision="bf16"` of `Accelerator(…)` | `"no"` | under `accelerate launch`, a file that `accelerate config` wrote can set it |
# | `mixed_precision="fp16"` | | the same as the Trainer's on a CPU: taken, and fp32 is computed |
# | `accelerator.backward(loss)` | | scales the loss; a plain `loss.backward()` does not |
# | `accelerator.clip_grad_norm_` | | unscales first; torch's own clips the scaled gradients |
# | `accelerator.optimizer_step_was_skipped` | | where the loop learns of an overflow; the prepared scheduler waits in such a step |

# %%
if is_installed("accelerate"):
    from accelerate import Accelerator

    for mixed_precision in ("bf16", "fp16"):
        forget_precision()
        accelerator = Accelerator(mixed_precision=mixed_precision, cpu=device.type == "cpu")
        model = new_model(d_model=64)
        model, optimizer = accelerator.prepare(model, make_optimizer(model))
        batch = train_batches[0]
        with count_events() as counts:
            loss = F.cross_entropy(
                model(batch["input_ids"], batch["attention_mask"]), batch["labels"]
            )
            accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scaler = "with" if accelerator.scaler else "without"
        say_flops(f"Accelerate, {mixed_precision}", counts)
        print(
            f"{'':22} {scaler} a scaler, step skipped: {accelerator.optimizer_step_was_skipped}"
        )
    forget_precision()

# %% [markdown]
# #### Lightning
#
# | Argument | Default | What surprises |
# |---|---|---|
# | `Trainer(precision="bf16-mixed")` | `"32-true"` | nothing: forward and loss run under autocast |
# | `precision="16-mixed"` | | with a scaler, and in the right order; **on a CPU it becomes bf16**, with a warning |
# | `precision="bf16-true"`, `"16-true"` | | the *weights* are 16 bits: the mistake below, by its right name |
# | `gradient_clip_val` with a fused optimizer | | refused in `"16-mixed"`: it would clip scaled gradients |

# %%
if is_installed("lightning"):
    import logging

    from lightning.pytorch import LightningModule, Trainer

    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)

    class Lit(LightningModule):
        def __init__(self):
            super().__init__()
            self.model = new_model(d_model=64)

        def training_step(self, batch, batch_idx):
            return F.cross_entropy(
                self.model(batch["input_ids"], batch["attention_mask"]), batch["labels"]
            )

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    loader = torch.utils.data.DataLoader(pool[:32], batch_size=16, collate_fn=data.collate)
    for asked in ("bf16-mixed", "16-mixed"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one of them says that fp16 becomes bf16 on a CPU
            trainer = Trainer(
                max_steps=2, precision=asked, gradient_clip_val=1.0, logger=False, enable_checkpointing=False,
                enable_progress_bar=False, enable_model_summary=False, accelerator="auto", devices=1,
            )  # fmt: skip
            with count_events() as counts:
                trainer.fit(Lit(), loader)
        say_flops(f"{asked} -> {trainer.precision}", counts)

# %% [markdown]
# ### When it goes wrong
#
# Two mistakes that the checks of this lesson do not look for. Learn the *symptom*: it is what you will see.
#
# #### A second loss that is faint
# *Symptom:* the loss falls more slowly than in fp32, or not at all. No NaN.
#
# A second loss often enters with a small weight. Here the only loss has the weight 0.0001. AdamW does not mind: it divides
# each gradient by its own average size. fp16 does.


# %%
def losses_with_a_small_weight(dtype, use_scaler):
    model = new_model(seed=3)
    optimizer = make_optimizer(model, learning_rate=3e-3)
    scaler = torch.amp.GradScaler(device.type, enabled=use_scaler)
    losses = []
    for batch in train_batches:
        with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits, batch["labels"])
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(1e-4 * loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
    zero = model.blocks[0].feed_forward_in.weight.grad == 0
    return torch.stack(losses).tolist(), 100 * zero.float().mean().item()


curves = {
    "fp32": losses_with_a_small_weight(torch.float32, False),
    "bf16": losses_with_a_small_weight(torch.bfloat16, False),
    "fp16 with a scaler": losses_with_a_small_weight(torch.float16, True),
    "fp16 without": losses_with_a_small_weight(torch.float16, False),
}
for name, (losses, zero) in curves.items():
    print(
        f"{name:20} loss at last {np.mean(losses[-10:]):.3f}   zeros in a layer's gradient {zero:5.1f} %"
    )

# %% [markdown]
# *Cure:* GradScaler, always, with fp16, and one scale for the sum of all losses.
#
# #### Comparing precisions at different seeds
# *Symptom:* bf16 is "better" or "worse" by a point, and next week it is the other way round. (The accuracies are those of
# [As good as before?](#As-good-as-before?).)

# %%
fp32, bf16 = accuracies["32-true"], accuracies["bf16-mixed"]
for a in SEEDS:
    row = [f"{bf16[b] - fp32[a]:+5.1f}" + ("*" if a == b else " ") for b in SEEDS]
    print(
        f"fp32 at seed {a}:   bf16 minus fp32 with bf16 at seeds {SEEDS}:  " + "  ".join(row)
    )
print("* equal seeds: the only differences that say something about bf16")

# %% [markdown]
# *Cure:* equal seeds, equal batches, equal order, and several seeds. No exercise of this lesson asks *you* to compare
# runs. Later ones do, and there it is caught: by
# [5.2](../05_hyperparameter_tuning/05_hyperparameter_tuning.ipynb#5.2-·-The-same-chance-for-every-trial) and
# [8.5](../08_reproducibility/08_reproducibility.ipynb#8.5-·-Did-the-change-help?).
#
#
# ### Drills
#
# Not graded. Each takes a few minutes: predict, run, then change the value that says `try` and run again. Drill 1 needs
# the [three steps](#Three-steps,-in-plain-torch), drill 3 the [gradients](#Gradients-that-vanish).
#
# **Drill 1 · A first scale that is too large.** The scaler halves it at each skipped step. How many steps are lost when
# it starts at 2 to the 40th?

# %%
predict("2g", "Steps skipped before the first good one, from a scale of 2 to the 40th?")

# %%
drill_scale = 2.0**40  # try 2.0**20 and 2.0**30
model = new_model(seed=3)
optimizer = make_optimizer(model)
scaler, skipped = torch.amp.GradScaler(device.type, init_scale=drill_scale), 0
for batch in train_batches:
    before = scaler.get_scale()
    fp16_step(model, batch, optimizer, scaler)
    if scaler.get_scale() >= before:
        break
    skipped += 1
print(
    f"{skipped} steps skipped; the first good scale is 2 to the {math.log2(scaler.get_scale()):.0f}"
)
compare("2g", skipped)

# %% [markdown]
# **Drill 2 · A sum that stops.** You count tokens in bf16, one after the other. How far do you get?

# %%
predict("2h", "10,000 ones, added one after the other in bf16: what is the sum?")

# %%
drill_dtype = torch.bfloat16  # try torch.float16
total = torch.zeros((), dtype=drill_dtype)
for _ in range(10_000):
    total += 1
print(
    f"one after the other: {total.item():,.0f}   torch.sum: {torch.ones(10_000, dtype=drill_dtype).sum().item():,.0f}"
)
compare("2h", total.item())

# %% [markdown]
# `torch.sum` adds in fp32 inside and rounds once at the end. A running total in your own loop has no such help: keep it in
# fp32.
#
# **Drill 3 · The right scale.** Of the gradients in the histogram above, some have fewer digits or none when the scale is
# too small, and some are infinite when it is too large. From which power of two on are nearly all of them whole?

# %%
predict("2i", "The smallest scale at which fewer than 1 % have lost digits: 2 to the …?")

# %%
drill_limit = 0.01  # try 0.0001
powers = range(0, 33)
shares = [lost(2.0**power) for power in powers]
smallest = next(power for power in powers if shares[power][1] < drill_limit)
largest = max(power for power in powers if shares[power][2] == 0)
print(f"fewer than {100 * drill_limit:g} % have lost digits from 2 to the {smallest} on")
print(f"none is infinite up to 2 to the {largest}; GradScaler starts at 2 to the 16")
compare("2i", smallest)

# %% jupyter={"source_hidden": true}
fig, ax = figure(height=2.4)
for column, (label, color) in enumerate(
    {"zero": ORANGE, "fewer digits or zero": BLUE, "infinite": RED}.items()
):
    ax.plot(powers, [100 * share[column] for share in shares], color=color, label=label)
mark(ax, 16, "GradScaler's start", y=0.96)
ax.set(title="Gradients that fp16 loses", xlabel="scale, 2 to the …", ylabel="%")
ax.legend(loc="center right")
show(fig, alt=f"Share of gradients that fp16 loses, by scale. Without a scale {100 * shares[0][1]:.0f} % have fewer digits; "
     f"from 2^{smallest} on nearly none. Infinities begin beyond 2^{largest}.")  # fmt: skip
