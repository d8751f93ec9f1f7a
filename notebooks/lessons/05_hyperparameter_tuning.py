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
# # 05 · Hyperparameter tuning
#
# *About 100 minutes: 25 of reading and quiz, 75 for 5 exercises*
#
# A search over hyperparameters is an experiment with a budget. Done carelessly it crowns the luckiest trial and hides
# what it cost. You begin with a grid and its bill. You draw better points, end bad trials early, and say how sure you are
# of the winner.
#
# | Part | What you build there |
# |---|---|
# | [The program](#The-program) | a grid of twelve trials, and its bill |
# | [Draw](#Draw) | 5.1, points that mean something |
# | [A fair trial](#A-fair-trial) | 5.2, the same chance for every trial |
# | [Drop](#Drop) | 5.3, successive halving with an honest bill |
# | [Judge](#Judge) | 5.4, a winner that is no accident |
# | [The challenge](#The-challenge) | 5.5, the grid's quality for half its steps |
# | [Checklist](#The-search-checklist), [quiz](#Quiz) | a page to keep, the test |
# | [More](#More) | outside the 100 minutes: `course-lib tune`, Optuna, reading a search, frameworks, drills |
#
# Cells that are folded draw pictures or set things up; the three dots open them.

# %%
from autograder import check, check_quiz, compare, exercise, predict, quiz, so_far, yours

# %% jupyter={"source_hidden": true}
import contextlib
import importlib.util
import io
import math
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from scipy import stats

from autograder.plots import BLUE, GREEN, GREY, ORANGE, RED, bars, figure, show
from course_lib import data, loop
from course_lib.models import ModelConfig, TextClassifier
from course_lib.optim import make_optimizer

# One thread: timings are steadier, whatever else your machine does on its other cores.
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
HAS_OPTUNA = importlib.util.find_spec("optuna") is not None
if HAS_OPTUNA:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)  # it logs every trial to stderr
workspace = tempfile.TemporaryDirectory()  # gone with the kernel
folder = Path(workspace.name)
print(f"torch {torch.__version__} on {device}, {torch.get_num_threads()} thread")
print("Optuna is installed" if HAS_OPTUNA else
      "Optuna is not installed: its cells say so and run nothing. To have it: %pip install optuna")  # fmt: skip

# %% [markdown]
# ## The program
#
# You inherit a training script. It says `learning_rate = 1e-3`, and nobody knows why. The task is that of
# [lesson 01](../01_efficient_training_loops/01_efficient_training_loops.ipynb): which package was a docstring written
# for? To keep trials short, texts are cut at 24 tokens. They fall into three parts, and each has one job. **Train**
# teaches the model. **Validation** chooses among trials. **Test** judges the winner, once, at the very
# end ([Read a search](#Read-a-search) does it).

# %% jupyter={"source_hidden": true}
store, held_out = data.docstring_store(max_length=1024)
num_classes = len(store.label_names)
rng = np.random.default_rng(0)


def some_of(texts, indices):
    return [(ids[:24], label) for ids, label in (texts[int(i)] for i in indices)]


train_texts = some_of(store, rng.choice(len(store), size=4000, replace=False))
picked = rng.choice(len(held_out), size=1280, replace=False)
validation_texts, test_texts = some_of(held_out, picked[:256]), some_of(held_out, picked[256:])


def batches_of(texts, rows=128):
    return [data.collate(texts[i : i + rows]) for i in range(0, len(texts), rows)]


validation, test = batches_of(validation_texts), batches_of(test_texts)
print(f"{len(train_texts):,} texts to train on, {len(validation_texts)} to validate, "
      f"{len(test_texts):,} to test, {num_classes} classes")  # fmt: skip


BUDGET = 54  # steps of a whole trial
DEFAULTS = {
    "learning_rate": 1e-3,
    "weight_decay": 0.01,
    "dropout": 0.1,
    "optimizer": "adamw",
}


class Trial:
    """One training that can be continued. The same configuration and seed give the same trial."""

    steps_paid, seconds_paid = 0, 0.0  # of all trials together

    def __init__(self, config: dict, seed: int = 0, texts=train_texts) -> None:
        self.config, self.seed, self.texts, self.num_steps = DEFAULTS | config, seed, texts, 0
        torch.manual_seed(seed)  # before the model: its weights are drawn when it is built
        sizes = {
            "d_model": 32,
            "num_layers": 1,
            "max_length": 24,
            "dropout": self.config["dropout"],
        }
        self.model = TextClassifier(
            ModelConfig(vocab_size=store.vocab_size, num_classes=num_classes, **sizes)
        ).to(device)
        self.optimizer = make_optimizer(
            self.model,
            self.config["optimizer"],
            learning_rate=self.config["learning_rate"],
            weight_decay=self.config["weight_decay"],
        )
        self.order = np.random.default_rng(seed)

    def train(self, num_steps: int) -> float:
        """`num_steps` more; returns the validation loss afterwards, inf if it is no finite number."""
        start = time.perf_counter()
        self.model.train()
        for _ in range(num_steps):
            rows = self.order.integers(len(self.texts), size=16)
            batch = loop.to_device(data.collate([self.texts[i] for i in rows]), device)
            loop.train_step(self.model, batch, self.optimizer)
        self.num_steps += num_steps
        loss = self.loss(validation)
        Trial.steps_paid += num_steps
        Trial.seconds_paid += time.perf_counter() - start
        return loss

    def loss(self, batches) -> float:
        value = loop.evaluate(self.model, batches)["loss"]
        return value if math.isfinite(value) else math.inf


def trial_loss(seed: int = 0, num_steps: int = BUDGET, **config) -> float:
    return Trial(config, seed).train(num_steps)


LOW = {"learning_rate": 1e-4, "weight_decay": 1e-4}
HIGH = {"learning_rate": 1.0, "weight_decay": 1.0}


def log_draw(rng, name):
    return float(np.exp(rng.uniform(math.log(LOW[name]), math.log(HIGH[name]))))


ceiling = 1.15 * math.log(num_classes)  # of the figures
EVERY = BUDGET // 9  # steps from one look at the validation loss to the next


def mean_interval(differences, confidence=0.95):
    """Student's t: the mean of paired differences, and the interval that holds the true one."""
    differences = np.asarray(differences)
    error = differences.std(ddof=1) / math.sqrt(len(differences))
    width = stats.t.ppf(0.5 + confidence / 2, len(differences) - 1) * error
    return differences.mean(), differences.mean() - width, differences.mean() + width


# %% [markdown]
# A **trial** is one training with one configuration, here of 54 steps. `Trial.steps_paid` is the bill: every step of every
# trial. A search draws configurations, trains them, judges them on validation texts and reports the best. The first one
# that most people write is a grid: four learning rates times three weight decays, both from 0.0001 to 1, each trained in
# full by `trial_loss`.

# %%
grid = [
    {"learning_rate": float(rate), "weight_decay": float(decay)}
    for rate in np.geomspace(LOW["learning_rate"], HIGH["learning_rate"], 4)
    for decay in np.geomspace(LOW["weight_decay"], HIGH["weight_decay"], 3)
]


def all_in_full(configs):
    losses = [trial_loss(**config) for config in configs]
    return configs[int(np.argmin(losses))], losses


program = SimpleNamespace(configs=grid, search=all_in_full, full_steps=BUDGET)


def trainings_paid():
    """Runs the search of the program; what it is judged by are the steps of all its trials, in full trainings."""
    before = Trial.steps_paid
    best, losses = program.search(program.configs)
    found = ", ".join(f"{name} {value:.1e}" for name, value in best.items())
    print(
        f"{len(program.configs) or 'its own'} configurations, best loss {min(losses):.3f} with {found}"
    )
    return (Trial.steps_paid - before) / program.full_steps


grid_best, grid_losses = all_in_full(grid)
print(f"the grid: {12 * BUDGET} steps, which is 12 full trainings; best validation loss {min(grid_losses):.3f}; "
      f"guessing evenly would give {math.log(num_classes):.3f}")  # fmt: skip

# %% [markdown]
# ## Draw
#
# What does one knob do? Here is the learning rate alone, from 0.00001 to 1.

# %%
rates = np.geomspace(1e-5, 1.0, 11)
sweep = [trial_loss(learning_rate=float(rate)) for rate in rates]
best_rate = float(rates[int(np.argmin(sweep))])

# %% jupyter={"source_hidden": true}
fig, (left, right) = figure(1, 2, height=2.9, sharey=True)
shown_sweep = np.minimum(sweep, 1.6 * math.log(num_classes))
for ax, scale in ((left, "linear"), (right, "log")):
    ax.plot(rates, shown_sweep, color=BLUE, marker="o", markersize=4.5)
    ax.axhline(math.log(num_classes), color=GREY, linestyle=":")
    ax.set_xscale(scale)
    ax.set(title=f"The same {len(rates)} trials, {scale} axis", xlabel="learning rate")
left.set_ylabel("validation loss")
right.annotate(
    "guessing", (1e-5, math.log(num_classes)), (0, 4), textcoords="offset points", fontsize=9.5
)
show(fig, alt=f"Validation loss against the learning rate, {len(rates)} trials, on a linear and a log axis. "
     f"On the log axis a valley with its lowest loss {min(sweep):.2f} at {best_rate:.1e}; on the linear axis "
     "nearly all points stand on the left edge.")  # fmt: skip

# %% [markdown]
# (A loss above the frame is drawn at its edge, here and in every figure below.) The valley is wide on the log axis and
# invisible on the linear one. Learning rates act by *ratio*: from 0.001 to 0.002 changes as much as from 0.01 to 0.02.

# %%
predict(
    "5a",
    "Learning rates drawn uniformly from 0.00001 … 0.1: which share is above 0.01?",
    unit="%",
)

# %%
rng = np.random.default_rng(0)
uniform = rng.uniform(1e-5, 1e-1, size=10_000)
log_uniform = np.exp(rng.uniform(math.log(1e-5), math.log(1e-1), size=10_000))
for name, values in {"uniform": uniform, "log-uniform": log_uniform}.items():
    shares = [
        100 * np.mean((values >= 10.0**-k) & (values < 10.0 ** (1 - k))) for k in (5, 4, 3, 2)
    ]
    print(
        f"{name:<12} "
        + "   ".join(
            f"1e-{k}…1e-{k - 1}: {s:4.1f} %" for k, s in zip((5, 4, 3, 2), shares, strict=True)
        )
    )
compare("5a", 100 * float(np.mean(uniform > 1e-2)), unit="%")

# %% [markdown]
# **Log-uniform** means: draw the *logarithm* uniformly, then take the exponential. Each decade gets the same share. Use
# it wherever you would say "ten times as much" rather than "one more": rates, decays, batch sizes, widths. Use a plain
# uniform range for what lives between 0 and 1 and is read as a share, such as dropout.
#
# Twelve random pairs cost as much as the grid of twelve. Are they better?

# %%
predict(
    "5b", "Best loss of the grid minus best loss of 12 random points (below 0: the grid wins)?"
)

# %% jupyter={"source_hidden": true}
rng = np.random.default_rng(3)
random_points = [{name: log_draw(rng, name) for name in LOW} for _ in range(12)]


def curve_of(config, seed=0):
    trial = Trial(config, seed)
    return [trial.train(EVERY) for _ in range(BUDGET // EVERY)]


print(f"{len(random_points)} random points drawn")

# %%
curves = [curve_of(point) for point in random_points]  # kept: pruning looks at them again
random_losses = [curve[-1] for curve in curves]
compare("5b", min(grid_losses) - min(random_losses), digits=3)

# %% jupyter={"source_hidden": true}
fig, axes = figure(2, 2, height=5.2, sharex=True, height_ratios=[1, 1.1])
for column, (name, points, losses) in enumerate(
    [("Grid: 4 × 3", grid, grid_losses), ("Random: 12", random_points, random_losses)]
):
    upper, lower = axes[:, column]
    x, y = ([point[key] for point in points] for key in ("learning_rate", "weight_decay"))
    upper.scatter(
        x,
        y,
        c=np.minimum(losses, ceiling),
        cmap="viridis_r",
        vmin=min(grid_losses + random_losses),  # one scale of colours for both
        vmax=ceiling,
        s=70,
        edgecolors="white",
        zorder=3,
    )
    upper.set(xscale="log", yscale="log", title=name, ylim=(3e-5, 3.0))
    for value in x:
        upper.axvline(value, color=GREY, linewidth=0.7, alpha=0.5)
    best = int(np.argmin(losses))
    lower.scatter(x, np.minimum(losses, ceiling), color=BLUE, s=28, zorder=3)
    lower.scatter(
        x[best],
        losses[best],
        facecolors="none",
        edgecolors=RED,
        s=130,
        linewidths=1.8,
        zorder=4,
    )
    for value in x:
        lower.axvline(value, color=GREY, linewidth=0.7, alpha=0.5)
    lower.set(
        xlabel="learning rate", ylim=(0.9 * min(grid_losses + random_losses), 1.05 * ceiling)
    )
    lower.set_title(f"{len(set(x))} learning rates tried; best {losses[best]:.2f}")
axes[0, 0].set_ylabel("weight decay")
axes[1, 0].set_ylabel("validation loss")
show(fig, alt="Above, twelve points in the plane of learning rate and weight decay: on the left a grid, whose points "
     "share 4 learning rates, on the right random ones with 12 different ones. Below, their losses against the "
     f"learning rate. Best of the grid {min(grid_losses):.2f}, best of the random points {min(random_losses):.2f}.")  # fmt: skip

# %% [markdown]
# In the upper row, yellow is a low loss and dark a high one. Look at the lower row. In the grid three points stand
# above each learning rate. Where they coincide below the frame's edge, weight decay changes nothing, and two of the three trials repeat what
# the third has said. Random search has tried twelve learning rates for the same money ([Bergstra and Bengio, 2012](https://www.jmlr.org/papers/v13/bergstra12a.html)). When
# only some knobs matter, and you do not know which, a grid wastes trials by its shape.
#
# <details><summary>Why can the grid still win a round?</summary>
#
# With twelve points luck has a large part. A grid that happens to hold a point in the valley does well, and twelve
# random points may leave a gap there. Over many problems random is the safer bet, not in every single search. Low-discrepancy
# points (Sobol, Halton) fill the gaps and keep the projections distinct: `optuna.samplers.QMCSampler`.
#
# </details>
#
# ### The rules of this lesson
#
# The rules are those of [lesson 01](../01_efficient_training_loops/01_efficient_training_loops.ipynb#How-exercises-work): write
# where the cell raises `NotImplementedError`, and put all that your code needs into that cell, imports too. No clock
# runs in this lesson: points rest on **properties** and on **counts** of training steps. Arguments have the types that
# stand beside them; numbers among them are finite, and seeds lie between 0 and `2**32 - 1`, unless the text says
# otherwise.
#
# Some properties are about chance: is this draw uniform, is that interval wide enough? Such a check takes thousands of
# draws, and refuses a right solution in fewer than one check of ten thousand.
#
# ### 5.1 · Draw from a search space
#
# > Difficulty ●●○○○ · Importance ●●●●● · 10 minutes · property · imports: all that is installed
#
# Every search begins here. A space is a dict of parts; a sample is a dict of values. Some keys only make sense under a
# condition: momentum belongs to SGD, and a sample with AdamW must not have it.
#
# <details><summary>Hint: "the learning rate is uniform"</summary>
#
# Draw between the *logarithms* of the ends, and take the exponential of what comes.
#
# </details>
# <details><summary>Hint: "an end is never drawn"</summary>
#
# `rng.integers(low, high)` leaves `high` out. It has an argument for that.
#
# </details>
# <details><summary>Hint: "the key that the condition names is not there yet"</summary>
#
# Keys come in any order. Draw the keys without a condition first, or all of them, and take out afterwards what does not
# apply.
#
# </details>
# <details><summary>Hint: "the same generator state gives other samples"</summary>
#
# Every number must come from `rng`. `np.random.uniform` and `random.choice` have states of their own.
#
# </details>

# %%
import math
from typing import Any

import numpy as np

from autograder import exercise


@exercise("5.1")
def sample(space: dict[str, dict[str, Any]], rng: np.random.Generator) -> dict[str, Any]:
    """Draw one configuration from `space`. All randomness comes from `rng`.

    `space` maps a name to a part, in any order:
        {"kind": "log", "low": 1e-4, "high": 1e-1}    a float; its logarithm is uniform
        {"kind": "float", "low": 0.0, "high": 0.5}    a float, uniform
        {"kind": "int", "low": 1, "high": 4}          a whole number, both ends among them, equally likely
        {"kind": "choice", "values": ["adamw", "sgd"]}   one of these, equally likely
    Any of them may have "when": (other_name, value). Then the name is in the sample exactly if the
    sample has `value` under `other_name`, which itself has no condition.

    Returns {name: value}. Draws are independent of each other, and `space` stays as it is.
    Raises ValueError for a range of kind "log" or "float" that cannot be: `low` not below `high`,
    NaN too, or a log range that does not begin above 0. It is never repaired in silence, and is
    found at every call, whether or not the key is drawn. A range of kind "int" always holds a number,
    and fewer than 2**53.
    """
    ### BEGIN SOLUTION
    for name, part in space.items():
        if part["kind"] in ("log", "float") and not part["low"] < part["high"]:
            raise ValueError(
                f"{name}: low must be below high, got {part['low']} … {part['high']}"
            )
        if part["kind"] == "log" and part["low"] <= 0:
            raise ValueError(f"{name}: a log range must begin above 0, got {part['low']}")
    drawn: dict[str, Any] = {}
    for name, part in space.items():
        if part["kind"] == "log":
            drawn[name] = math.exp(rng.uniform(math.log(part["low"]), math.log(part["high"])))
        elif part["kind"] == "float":
            drawn[name] = rng.uniform(part["low"], part["high"])
        elif part["kind"] == "int":
            drawn[name] = int(rng.integers(part["low"], part["high"], endpoint=True))
        else:
            drawn[name] = part["values"][rng.integers(len(part["values"]))]

    def applies(part: dict[str, Any]) -> bool:
        if "when" not in part:
            return True
        other, value = part["when"]
        return drawn[other] == value

    # Drawn first, taken out after: the order of the keys then plays no part.
    return {name: drawn[name] for name, part in space.items() if applies(part)}
    ### END SOLUTION


# %%
check("5.1")

# %%
draw = yours("5.1", None)
if draw:
    space = {name: {"kind": "log", "low": LOW[name], "high": HIGH[name]} for name in LOW}
    rng = np.random.default_rng(5)
    program.configs = [draw(space, rng) for _ in range(12)]
    program.search, program.full_steps = all_in_full, BUDGET
so_far("5.1", "your draws", trainings_paid, unit="full trainings", start=12)

# %% [markdown]
# As many steps, but twelve different values of each knob.
#
# ## A fair trial
#
# Before the first trial, write down what stays equal in all of them. Afterwards every one of these is tempting to bend.
#
# | Clause | Here | Why before |
# |---|---|---|
# | task and data | docstrings, 24 tokens, one fixed split | another split is another exam |
# | metric and direction | mean validation loss, lower is better | a metric chosen afterwards is the one that looks best |
# | slices | loss on the five smallest classes too | a mean can hide a class that got worse |
# | budget | 54 steps a trial, 24 trials | else the largest budget wins |
# | target | what improvement would change your mind | else every difference counts |
# | seeds | search at one, decide on five others | else luck decides |
# | resume rule | a killed trial goes on from its checkpoint and counts once | else failures are free, or count twice |
# | test | once, for the winner | each look at it costs some of its honesty |
#
# How much is luck? Train one configuration with eight seeds. Nothing differs but the first weights, dropout and the
# order of the texts.

# %%
predict("5c", "One configuration, 8 seeds: highest minus lowest validation loss?")

# %%
NEAR = 0.7 * best_rate
seeds = range(1, 9)  # fresh ones: seed 0 has chosen the rate
at_best = np.array([trial_loss(seed, learning_rate=best_rate) for seed in seeds])
at_near = np.array([trial_loss(seed, learning_rate=NEAR) for seed in seeds])
spread = float(np.ptp(at_best))
compare("5c", spread, digits=3)


# %% [markdown]
# One trial against one trial says nothing about a difference smaller than this. Pairs of trials, at equal seeds, will do
# better: see [Judge](#Judge). But only if nothing else differs: no weights kept from the trial before, no step more.
#
# ### 5.2 · The same chance for every trial
#
# > Difficulty ●●●○○ · Importance ●●●●● · 15 minutes · property · imports: all that is installed
#
# Two loops and a training: nothing easier, and nothing in a search is wrong more often. Each trial gets fresh weights,
# a fresh optimizer, the same number of steps, and a seed that means the same for every configuration. It is judged on
# the validation texts, after its last step.
#
# <details><summary>Hint: "a reused model", or "a reused optimizer"</summary>
#
# Count how often the lines that make them run. It must be once for each trial: configurations times seeds.
#
# </details>
# <details><summary>Hint: "seeded after the model is built"</summary>
#
# `make_model` draws its weights from torch's global generator. Seed it directly before.
#
# </details>
# <details><summary>Hint: "different budgets"</summary>
#
# Is there any way out of your loop before `num_steps`? A diverging trial is trained to its end too, and billed. And is
# the stream of batches a new one for each trial?
#
# </details>
# <details><summary>Hint: "NaN is neither smaller nor larger"</summary>
#
# `min` and `sorted` put NaN anywhere. Write `math.inf` in its place: it loses against everything.
#
# </details>

# %%
import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("5.2")
def run_trials(
    task: Any, configs: list[dict[str, float]], seeds: list[int], num_steps: int
) -> np.ndarray:
    """Train every configuration once with every seed; returns validation losses, float64 [configs, seeds].

    task.make_model(config)              a classifier whose weights come from torch's global generator
    task.make_optimizer(model, config)   its optimizer
    task.train_batches(seed)             an endless generator of batches, in an order of that seed
    task.validation_batches()            a list of batches to judge a trial on
    task.test_batches()                  a list of batches that no search may look at
    `model(input_ids, attention_mask)` returns logits [B, C]; a batch has these two and "labels".

    Each trial, whatever ran before it: torch seeded with its seed, a fresh model, a fresh optimizer,
    `num_steps` steps on the first `num_steps` batches of its seed, in training mode, minimising the
    mean cross-entropy. Then the mean cross-entropy over all validation *samples*, in evaluation mode;
    `math.inf` where that is no finite number. Every trial is trained to its end; an error on the way
    reaches the caller.
    """
    ### BEGIN SOLUTION
    losses = np.full((len(configs), len(seeds)), math.inf)
    for row, config in enumerate(configs):
        for column, seed in enumerate(seeds):
            torch.manual_seed(seed)  # before the weights are drawn
            model = task.make_model(config)
            optimizer = task.make_optimizer(model, config)
            batches = task.train_batches(seed)
            model.train()
            for _ in range(num_steps):
                batch = next(batches)
                logits = model(batch["input_ids"], batch["attention_mask"])
                loss = F.cross_entropy(logits, batch["labels"])
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
            model.eval()
            total, num_samples = 0.0, 0
            with torch.inference_mode():
                for batch in task.validation_batches():
                    logits = model(batch["input_ids"], batch["attention_mask"])
                    total += F.cross_entropy(logits, batch["labels"], reduction="sum").item()
                    num_samples += len(batch["labels"])
            if math.isfinite(total):
                losses[row, column] = total / num_samples
    return losses
    ### END SOLUTION


# %%
check("5.2")

# %% [markdown]
# ## Drop
#
# These are the twelve random trials from above, with a look at each ninth of their way.

# %% jupyter={"source_hidden": true}
looks = np.arange(1, BUDGET // EVERY + 1) * EVERY
fig, ax = figure(height=3.0)
final_best = int(np.argmin(random_losses))
for number, curve in enumerate(curves):
    ax.plot(looks, np.minimum(curve, ceiling), color=GREEN if number == final_best else BLUE,
            linewidth=2.6 if number == final_best else 1.1, alpha=1.0 if number == final_best else 0.7)  # fmt: skip
ax.axhline(math.log(num_classes), color=GREY, linestyle=":")
ax.annotate(
    "guessing", (0, math.log(num_classes)), (4, 4), textcoords="offset points", fontsize=9.5
)
ax.set(title="Twelve random trials; the best at the end is green", xlabel="step", ylabel="validation loss",
       xlim=(0, BUDGET))  # fmt: skip
show(fig, alt=f"Twelve curves of the validation loss over {BUDGET} steps. The best ends at {min(random_losses):.2f}, the worst "
     f"at {max(random_losses):.2f}; guessing is {math.log(num_classes):.2f}.")  # fmt: skip

# %% [markdown]
# Some fall behind in their first steps and never catch up. Two ways to use this:
#
# - **Median pruner.** End a trial whose lowest loss so far is above the median of what earlier trials had at the same
#   step. It needs a few whole trials first, to have a median, and a warmup in which nobody is judged.
# - **Successive halving.** All trials train a little. The best third goes on until it has had three times as many
#   steps. The best third of those goes on again. **ASHA** does the same without waiting for a round to be complete, so
#   that many workers stay busy ([Jamieson and Talwalkar, 2016](https://proceedings.mlr.press/v51/jamieson16.html);
#   [Li and others, 2020](https://arxiv.org/abs/1810.05934)).

# %%
predict(
    "5d",
    "Halving over these 12 trials, first look after 6 steps, a third goes on: share of the steps of all 12 in full?",
    unit="%",
)


# %% jupyter={"source_hidden": true}
def median_pruned(curves, num_startup=4, warmup_looks=2):
    """Looks that each trial gets, in the order in which the trials come."""
    kept = []
    for curve in curves:
        last = len(curve)
        if len(kept) >= num_startup:
            for look in range(warmup_looks, len(curve)):
                others = [curves[i][look] for i, length in enumerate(kept) if length > look]
                if min(curve[: look + 1]) > np.median(others):
                    last = look + 1
                    break
        kept.append(last)
    return kept


def halved(curves, first_looks, factor=3):
    """The same for successive halving."""
    alive, looks = list(range(len(curves))), first_looks
    kept = [0] * len(curves)
    while True:
        for i in alive:
            kept[i] = looks
        if len(alive) == 1 or looks == len(curves[0]):
            return kept
        alive = sorted(alive, key=lambda i: curves[i][looks - 1])[
            : max(1, len(alive) // factor)
        ]
        looks = min(looks * factor, len(curves[0]))


print("median pruner and halving are set up")

# %%
plans = {
    "all in full": [len(curve) for curve in curves],
    "median pruner": median_pruned(curves),
    "halving": halved(curves, first_looks=1),
}
full = sum(plans["all in full"])
for name, kept in plans.items():
    ended = [curve[length - 1] for curve, length in zip(curves, kept, strict=True)]
    whole = [loss for loss, length in zip(ended, kept, strict=True) if length == max(kept)]
    print(
        f"{name:<19} {EVERY * sum(kept):4d} steps ({100 * sum(kept) / full:3.0f} %)   its best {min(whole):.3f}"
    )
compare("5d", 100 * sum(plans["halving"]) / full, unit="%")

# %% jupyter={"source_hidden": true}
fig, axes = figure(1, 3, height=2.7, sharey=True)
for ax, (name, kept) in zip(axes, plans.items(), strict=True):
    for curve, length in zip(curves, kept, strict=True):
        is_whole = length == len(curve)
        ax.plot(looks[:length], np.minimum(curve[:length], ceiling), color=GREEN if is_whole else RED,
                marker="" if is_whole else "x", markevery=[-1], linewidth=1.2)  # fmt: skip
    ax.set(title=f"{name}: {EVERY * sum(kept)} steps", xlabel="step", xlim=(0, BUDGET))
axes[0].set_ylabel("validation loss")
show(fig, alt="The twelve curves, three times; ended trials are red with a cross. "
     + "; ".join(f"{name}: {EVERY * sum(kept)} steps, {sum(k == len(curves[0]) for k in kept)} trials in full"
                 for name, kept in plans.items()))  # fmt: skip

# %% [markdown]
# The steps of the red trials are spent. A report that counts only the trials that were finished is wrong, and the next
# budget planned with it is too small. And early looks favour whatever is fast at first: a high rate without decay, little
# regularisation, no warmup. So let the first look come late enough that the order has settled.
#
# ### 5.3 · Successive halving with an honest bill
#
# > Difficulty ●●●○○ · Importance ●●●●○ · 15 minutes · property, count (every step, and no step twice) · imports: all that is installed
#
# You are given a function that trains. It runs in the grader's process, on learning curves that you cannot see: they
# cross, one looks best early and then rises, one is NaN. And every step that you ask for is billed there.
#
# <details><summary>Hint: "each round pays for its whole length again"</summary>
#
# `train` goes on where the trial stopped. A trial that has had 4 steps and should have 12 needs 8 more.
#
# </details>
# <details><summary>Hint: "pruned trials are counted as free"</summary>
#
# Keep one list of steps, a place for each configuration, written at the one line that calls `train`. Nothing is ever
# taken out of it.
#
# </details>
# <details><summary>Hint: "others go on than should"</summary>
#
# Lower is better, NaN is worst, and of n trials n // reduction_factor go on, but always at least one.
#
# </details>
# <details><summary>Hint: "losses after different budgets are compared"</summary>
#
# The winner comes from the last round alone. A lower loss from an earlier round was another model, with less training.
#
# </details>

# %%
import math
from collections.abc import Callable
from typing import Any

from autograder import exercise


@exercise("5.3")
def successive_halving(
    configs: list[dict[str, float]],
    train: Callable[[dict[str, float], int], float],
    min_steps: int,
    reduction_factor: int,
    max_total_steps: int,
) -> dict[str, Any]:
    """Successive halving over `configs`, no two of them equal, within a budget. The same values under
    other names are another configuration.

    `train(config, num_steps)` trains this configuration's trial for `num_steps` *more* and returns
    its validation loss afterwards; lower is better, NaN means that it diverged, and is no better than
    inf. Among equals any may go on. The first call for a configuration starts its trial.

    Round 1: every trial gets `min_steps`. Then, of the n trials of a round, the best
    n // reduction_factor (at least 1) go on until each has had `reduction_factor` times as many steps
    in all. The last round is the one in which a single trial trains alone, or the last one that fits
    as a whole: the steps of *all* trials, pruned ones too, never exceed `max_total_steps`.

    Returns, of the trial with the lowest loss in the last round:
        "best"         its place in `configs`
        "value"        its loss after its last step; NaN or inf where the whole round diverged
    and the bill:
        "num_steps"    list of ints: steps of each trial, in the order of `configs`
        "total_steps"  their sum
    Raises ValueError, before any training, when round 1 does not fit.
    """
    ### BEGIN SOLUTION
    if len(configs) * min_steps > max_total_steps:
        raise ValueError(
            f"{len(configs)} trials of {min_steps} steps exceed {max_total_steps}"
        )
    spent = [0] * len(configs)  # the bill: nothing is ever taken out of it
    alive, steps = list(range(len(configs))), min_steps
    while True:
        losses = {}
        for place in alive:
            loss = train(configs[place], steps - spent[place])  # the difference: trials go on
            losses[place] = loss if math.isfinite(loss) else math.inf
            spent[place] = steps
        ranked = sorted(alive, key=lambda place: losses[place])
        kept = ranked[: max(1, len(ranked) // reduction_factor)]
        next_steps = steps * reduction_factor
        cost = sum(next_steps - spent[place] for place in kept)
        if len(alive) == 1 or sum(spent) + cost > max_total_steps:
            best = ranked[0]
            return {
                "best": best,
                "value": losses[best],
                "num_steps": spent,
                "total_steps": sum(spent),
            }
        alive, steps = kept, next_steps
    ### END SOLUTION


# %%
check("5.3")


# %% jupyter={"source_hidden": true}
def going_on():
    """A `train(config, num_steps)` that goes on with the trial of a configuration."""
    trials = {}

    def train(config, num_steps):
        key = tuple(sorted(config.items()))
        if key not in trials:
            trials[key] = Trial(config)
        return trials[key].train(num_steps)

    return train


print("set up: a trial that goes on")

# %%
halve = yours("5.3", None)
if halve and draw:
    program.configs = [draw(space, rng) for _ in range(24)]

    def search_by_halving(configs):
        result = halve(configs, going_on(), EVERY, 3, 6 * BUDGET)
        return configs[result["best"]], [result["value"]]

    program.search, program.full_steps = search_by_halving, BUDGET
so_far("5.3", "your halving, of 24", trainings_paid, unit="full trainings", start=12)

# %% [markdown]
# Twice as many configurations, for half of the steps. Best losses that lie this near to each other are a tie; what you have
# saved are steps.
#
# ## Judge
#
# The best learning rate of the sweep, and 0.7 times it, at the same eight seeds. Which one is better?


# %% jupyter={"source_hidden": true}
gains = at_near - at_best
mean_gain, low, high = mean_interval(gains)
swapped = int((gains < 0).sum())
print(
    f"{best_rate:.1e} over {NEAR:.1e}: better by {mean_gain:.3f}, 95 % interval {low:.3f} to {high:.3f}"
)
print(f"at {swapped} of {len(gains)} seeds a pair of trials says the opposite")

# %% jupyter={"source_hidden": true}
fig, (left, right) = figure(1, 2, height=2.9, width_ratios=[1.0, 1.1])
for one, other in zip(at_near, at_best, strict=True):
    left.plot(
        [0, 1],
        [one, other],
        color=RED if one < other else GREY,
        marker="o",
        markersize=4,
        linewidth=1.2,
    )
left.set_xticks([0, 1], labels=[f"rate {NEAR:.1e}", f"rate {best_rate:.1e}"])
left.set(title="Eight seeds, a line each", ylabel="validation loss", xlim=(-0.25, 1.25))
numbers = np.arange(2, 17)
widths = [stats.t.ppf(0.975, n - 1) * gains.std(ddof=1) / math.sqrt(n) for n in numbers]
right.plot(numbers, np.minimum(widths, 3 * widths[2]), color=BLUE, marker="o", markersize=4)
right.axhline(abs(mean_gain), color=ORANGE, linestyle="--")
right.annotate(
    "the difference found",
    (16, abs(mean_gain)),
    (0, 4),
    textcoords="offset points",
    ha="right",
    fontsize=9.5,
)
right.set(title="Half width of the interval", xlabel="seeds", ylim=(0, None))
show(fig, alt=f"Left: eight pairs of losses, one line a seed; {swapped} lines go the other way. Right: the half width of the "
     f"95 % interval falls from {widths[1]:.2f} with 3 seeds to {widths[6]:.2f} with 8; the difference found is "
     f"{abs(mean_gain):.2f}.")  # fmt: skip

# %% [markdown]
# **How many seeds decide?** Fix their number before you look: enough for a half width of half the difference that you care
# about.
# Two or three seeds say little, because the spread itself is a guess from so few values; Student's t knows
# that and makes the interval wide. Four times the seeds halve the width, and more than halve it where they were few.
#
# Compare in **pairs**: both configurations at the same seeds. A seed with hard first weights or an unlucky order is
# hard for both, and cancels in the difference.
#
# And who looks at many candidates and takes the best must share the error among them: eleven candidates have eleven
# chances to be lucky. With *k* candidates each interval may miss with a *k*-th of the 5 %. This is the Bonferroni correction.
#
# ### 5.4 · A winner that is no accident
#
# > Difficulty ●●●●○ · Importance ●●●●● · 20 minutes · property (at most 5 false winners in 100 tables of equals; a true lead of 4 times the noise found with 8 seeds in at least 80) · imports: all that is installed
#
# A table of losses: a row for each configuration, a column for each seed. Row 0 is what you use today. Is any other row
# truly better? The check draws thousands of tables of which it knows the truth, and counts your errors.
#
# <details><summary>Hint: "the pairs are not used"</summary>
#
# Subtract row by row *before* you compute any spread: a hard seed is hard for all configurations, and the subtraction
# takes it out.
#
# </details>
# <details><summary>Hint: "too narrow for so few seeds"</summary>
#
# With four seeds the standard deviation is a guess from four values. Student's t has a quantile for that:
# `scipy.stats.t.ppf(probability, degrees_of_freedom)`, one degree fewer than there are seeds.
#
# </details>
# <details><summary>Hint: "the best of many is picked first"</summary>
#
# Eleven candidates have eleven chances to be lucky. Share the error among them: with k candidates each interval may
# miss with a k-th of 1 - confidence.
#
# </details>
# <details><summary>Hint: "NaN wins"</summary>
#
# `np.argmax` returns the place of the first NaN. Give rows that are not finite at every seed the worst possible mean.
#
# </details>

# %%
import math
from typing import Any

import numpy as np
from scipy import stats

from autograder import exercise


@exercise("5.4")
def choose_winner(losses: np.ndarray, confidence: float = 0.95) -> dict[str, Any]:
    """Is a configuration better than today's, beyond the noise of the seeds?

    losses: float64 [configurations, seeds], lower is better. A column is one seed for all rows; there
        are at least two. Row 0 is today's configuration, finite at every seed; so is at least one other row.
        `losses` stays as it is.
    Returns
        "candidate"  the row, other than 0, with the lowest mean loss among rows finite at every seed
        "interval"   (low, high), `low` finite: the candidate's improvement, (loss of row 0) - (its
                     loss), lies in it with at least `confidence`, although it was picked as the best
                     of all rows
        "winner"     the candidate if `low` is above 0, else 0
    Where all configurations are equal, a winner other than 0 comes up in at most 1 - confidence of the
    tables. Noise is normal, with the same spread for every row; seeds may differ by far more.
    """
    ### BEGIN SOLUTION
    improvements = losses[0] - losses[1:]  # in pairs: what a seed does to all rows cancels
    is_finite = np.isfinite(improvements).all(axis=1)
    means = np.where(is_finite, improvements.mean(axis=1), -np.inf)
    best = int(np.argmax(means))
    num_candidates, num_seeds = improvements.shape
    error = improvements[best].std(ddof=1) / math.sqrt(num_seeds)
    # Bonferroni: the best of k was picked, so each of the k intervals may miss k times more seldom.
    share = (1 - confidence) / num_candidates
    width = float(stats.t.ppf(1 - share / 2, num_seeds - 1) * error)
    low, high = float(means[best]) - width, float(means[best]) + width
    return {
        "candidate": best + 1,
        "interval": (low, high),
        "winner": best + 1 if low > 0 else 0,
    }
    ### END SOLUTION


# %%
check("5.4")

# %%
choose = yours("5.4", None)
if choose and halve and draw:
    best, _ = program.search(program.configs)
    candidates = [DEFAULTS, best, grid_best]
    losses = np.array(
        [[trial_loss(100 + seed, **config) for seed in range(5)] for config in candidates]
    )
    found = choose(losses)
    names = ["today's configuration", "your search's", "the grid's"]
    print(
        f"winner: {names[found['winner']]}; improvement {found['interval'][0]:.3f} to {found['interval'][1]:.3f}"
    )

# %% [markdown]
# ## The challenge
#
# ### 5.5 · Challenge: the grid's quality for half its steps
#
# > Difficulty ●●●●○ · Importance ●●●●○ · 15 minutes · count (at most half the training steps of a 12-point grid, over 16 secret problems) · imports: all that is installed
#
# Put the parts together. The problems are small real trainings, each with a secret data set, unit of its loss and seed,
# so the best learning rate moves by decades. `train` runs in the grader's process, and bills every step. The grid
# trains 4 learning rates × 3 weight decays in full. You have half of its steps. The grader then trains the
# configuration that you return, and the grid's winner, afresh and in full. On average over the problems yours must be as
# good: its loss on unseen samples at most 1.05 times the other's.
#
# <details><summary>Hint: "where do I start?"</summary>
#
# Half the steps pay for six full trials, or for twenty short ones and the best of them in full.
#
# </details>
# <details><summary>Hint: "all my trials diverge"</summary>
#
# Look at the ranges: five decades of learning rates. On which scale do you draw?
#
# </details>
# <details><summary>Hint: "within the budget, but not as good"</summary>
#
# What decides in the last round? If the rounds are too short, what is fast at first wins. If they are too long, too few
# configurations are tried. Is the winner one that has had `full_steps`?
#
# </details>

# %%
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder import exercise


@exercise("5.5")
def search(
    train: Callable[[dict[str, float], int], float],
    space: dict[str, dict[str, Any]],
    full_steps: int,
    max_total_steps: int,
    seed: int,
) -> dict[str, float]:
    """Find a good configuration for trainings of `full_steps`, 81 or more.

    The steps of all trials stay within `max_total_steps`, which is 6 × `full_steps`.
    `train(config, num_steps)` as in 5.3, for configurations inside `space`: goes on with the trial of
        this configuration for `num_steps` more, starts it at the first call, returns its validation
        loss; NaN where it diverged. All trials share one seed. One step beyond `max_total_steps`, and
        the search has failed.
    `space` as in 5.1: two names, "learning_rate" and "weight_decay", both of kind "log", in any order.
        It stays as it is.
    `seed`: the same one gives the same search.
    Returns a configuration, even where every trial diverged:
        {"learning_rate": float, "weight_decay": float}, each within its range, but for rounding.
    """
    ### BEGIN SOLUTION
    rng = np.random.default_rng(seed)
    alive = [
        {
            name: math.exp(rng.uniform(math.log(part["low"]), math.log(part["high"])))
            for name, part in space.items()
        }
        for _ in range(24)
    ]
    # 24 trials for a ninth of their length, 8 for a third, 2 in full: under half of 12 in full.
    spent = 0
    for before, steps in (
        (0, full_steps // 9),
        (full_steps // 9, full_steps // 3),
        (full_steps // 3, full_steps),
    ):
        cost = len(alive) * (steps - before)
        if spent + cost > max_total_steps:
            break
        spent += cost
        losses = [train(config, steps - before) for config in alive]
        losses = [loss if math.isfinite(loss) else math.inf for loss in losses]
        order = np.argsort(losses)
        alive = [alive[place] for place in order[: max(1, len(alive) // 3)]]
    return alive[0]
    ### END SOLUTION


# %%
check("5.5")

# %%
search = yours("5.5", None)
if search and draw:

    def challenge(configs):
        best = search(going_on(), space, program.full_steps, 6 * program.full_steps, 0)
        before = Trial.steps_paid
        losses = [trial_loss(num_steps=program.full_steps, **best)]  # a look of ours
        Trial.steps_paid = before
        return best, losses

    program.search, program.configs, program.full_steps = challenge, [], 81
so_far("5.5", "your search", trainings_paid, unit="full trainings", start=12)

# %% [markdown]
# ## The search checklist
#
# | # | Before | After |
# |---|---|---|
# | 1 | Task, split, metric, direction, slices written down? | Best value at an end of its range? Then move the range. |
# | 2 | Budget of a trial, of the search, and who stops it? | Steps and hours of *all* trials in the report? |
# | 3 | Each range: log or plain? Is today's value inside? | Does the slice of each knob show a valley? |
# | 4 | Which knob is the question (scientific), which must be tuned again for each value of it (nuisance), which stays fixed? | Was each nuisance tuned for each value? |
# | 5 | Fresh model, fresh optimizer, equal steps, equal seeds? | Same winner when the trials run in another order? |
# | 6 | A storage that survives the night? | Killed trials counted once? |
# | 7 | How many seeds decide, and at which difference? | Winner at *fresh* seeds, with an interval that knows the number of candidates? |
# | 8 | Test texts locked away? | Looked at once? |

# %%
print(
    f"this notebook's own bill: {Trial.steps_paid:,} steps in {Trial.seconds_paid:.0f} s of training and validation"
)

# %% [markdown]
# ## Quiz
#
# You pass with 70 %. One of the questions is measured on this machine when you answer. Without a mouse:
# `from autograder import answer`, then `answer("05.3", "b")`.

# %%
quiz("05")

# %%
check_quiz("05")

# %% [markdown]
# ## What next
#
# You can now draw from a space that means something, give every trial the same chance, end bad ones early and still pay
# for them, and say when a winner is one.
#
# - Run `course-lib tune --data your.csv --trials 20` on a CSV of your own. Open `runs/tuning/tuning.html`: slices,
#   importance, and what was spent.
# - Take a hyperparameter of a script that you use, and ask where its value comes from. Six log-spaced trials give a first answer; seeds decide.
# - [Lesson 06](../06_distributed_training/06_distributed_training.ipynb) spreads one training over several processes. A
#   search spreads without that: its trials need not talk to each other.
# - [Lesson 08](../08_reproducibility/08_reproducibility.ipynb) goes on with seeds, configs and honest comparisons.
# - The [start page](../00_start_here/00_start_here.ipynb) shows your progress and the map.

# %% [markdown]
# ## More
#
# From here on all is outside the 100 minutes. Take what you need. A piece needs the folded cells of
# [the program](#The-program), or says what else.
#
# ### A search, in plain torch
#
# Everything so far in thirty lines: draw by log scale, a fresh trial each, equal rounds, one bill. Read the comments.


# %%
def plain_search(num_trials, first_steps, factor, seed):
    rng = np.random.default_rng(seed)  # its own generator: the search can be repeated
    configs = [{name: log_draw(rng, name) for name in LOW} for _ in range(num_trials)]
    trials = [Trial(config, seed=0) for config in configs]  # one seed for all: a fair start
    paid, steps = 0, first_steps
    while True:
        losses = []
        for trial in trials:  # all to the same number of steps, then compare
            due = steps - trial.num_steps
            losses.append(trial.train(due))
            paid += due  # here, and nowhere else
        order = np.argsort(losses)
        if len(trials) == 1 or steps >= BUDGET:
            return trials[order[0]], losses[order[0]], paid
        trials = [trials[i] for i in order[: max(1, len(trials) // factor)]]
        steps = min(steps * factor, BUDGET)


winner, winner_loss, paid = plain_search(num_trials=18, first_steps=EVERY, factor=3, seed=1)
print(f"best validation loss {winner_loss:.3f} with "
      + ", ".join(f"{name} {winner.config[name]:.2e}" for name in LOW))  # fmt: skip
print(
    f"18 configurations for {paid} steps; the 12-point grid took {12 * BUDGET} and found {min(grid_losses):.3f}"
)

# %% [markdown]
# ### The same with `course_lib`
#
# `course-lib tune` is this loop with the parts that a real search needs: a study on disk that survives `kill -9`,
# several processes that share it, Optuna's samplers and pruners, a report. It works on your own CSV. Here a small one
# is made of docstrings.

# %%
import csv

texts = data.load_docstrings()
chosen = np.random.default_rng(0).choice(len(texts.texts), size=900, replace=False)
with (folder / "texts.csv").open("w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file)
    writer.writerow(["text", "label"])
    writer.writerows([texts.texts[i], texts.label_names[texts.labels[i]]] for i in chosen)

if HAS_OPTUNA:
    from course_lib.config import TrainConfig
    from course_lib.tuning import Search, tune

    shared = TrainConfig(
        data=str(folder / "texts.csv"),
        max_length=24,
        d_model=32,
        num_layers=1,
        num_heads=2,
        vocab_size=2000,
        max_steps=20,
        validate_every_steps=5,
        device="cpu",
    )
    space = {"learning_rate": "log:1e-4..1e-1", "weight_decay": "log:1e-3..1.0"}
    start = time.perf_counter()
    study = tune(
        Search(config=shared, out=folder / "study", texts=space, trials=4, sampler="random"),
        progress=False,
    )
    spent = study["spent"]
    print(f"{spent['trials']} trials, {spent['pruned']} of them pruned: {spent['steps']} steps, {spent['seconds']:.1f} s of "
          f"training, {time.perf_counter() - start:.1f} s in all")  # fmt: skip
    # The same search again, with room for two more: it goes on, nothing is repeated.
    study = tune(
        Search(config=shared, out=folder / "study", texts=space, trials=6, sampler="random"),
        progress=False,
    )
    for trial in study["trials"]:
        value = "-" if trial["value"] is None else f"{trial['value']:.3f}"
        shown = ", ".join(f"{key} {value:.1e}" for key, value in trial["params"].items())
        print(
            f"trial {trial['number']}  {trial['state']:<9} {value:>6} after {trial['steps']} steps   {shown}"
        )
    print(
        "files:",
        ", ".join(
            sorted(path.name for path in (folder / "study").iterdir() if path.is_file())
        ),
    )
else:
    print("Optuna is not installed, so this cell runs nothing. Nothing later needs it.")

# %% [markdown]
# | Plain torch | `course_lib` | What changed in meaning |
# |---|---|---|
# | a fresh `Trial` for each configuration | a `run_training` in a folder of its own, the same seed | nothing; each has a config, a record and metrics on disk |
# | `paid += due` | `spent` in `study.json` | pruned and failed trials are in it |
# | rounds of halving | `pruner="median"`, `"halving"` or `"none"` | asynchronous: each trial is judged at its own looks |
# | `log_draw` | `"log:1e-4..1e-1"` | checked against `TrainConfig` before any trial; a range that cannot be is refused |
# | – | `COMPARED` keys refused in a space | budget, metric, seed and data must be equal in all trials |
# | the last line | `best.yaml`, `tuning.html` | the winner as a config, and a report with the cost |
#
# In a shell it is one line: `course-lib tune --data reviews.csv --trials 40 --search learning_rate=log:1e-4..1e-2`. The
# same line in a second shell joins in.
#
# ### Optuna: a study that survives, and one that is shared
#
# Optuna keeps a **study** in a storage. In SQLite it outlives the process: the second half of this cell opens the file
# and goes on. `ask` and `tell` are the two calls under all its conveniences.

# %%
if HAS_OPTUNA:
    database = f"sqlite:///{folder / 'study.db'}"

    def objective(trial):
        config = {
            "learning_rate": trial.suggest_float("learning_rate", 1e-4, 1.0, log=True),
            "weight_decay": trial.suggest_float("weight_decay", 1e-4, 1.0, log=True),
        }
        run = Trial(config)
        for step in range(EVERY, BUDGET + 1, EVERY):
            loss = run.train(EVERY)
            trial.report(loss, step)  # the pruner sees this, and so does the report
            if step < BUDGET and trial.should_prune():
                raise optuna.TrialPruned
        return loss

    def open_study():
        return optuna.create_study(
            study_name="docstrings",
            storage=database,
            load_if_exists=True,  # the default raises an error on the second run
            sampler=optuna.samplers.TPESampler(seed=0, n_startup_trials=4),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=2 * EVERY),
        )

    open_study().optimize(objective, n_trials=4)
    study = open_study()  # as a new process would: only the file is left
    print(
        f"found {len(study.trials)} trials in {Path(database).name}, best {study.best_value:.3f}"
    )
    study.optimize(objective, n_trials=4)
    for trial in study.trials:
        last = max(trial.intermediate_values)
        print(f"trial {trial.number}  {trial.state.name:<8} {last:2d} steps   rate {trial.params['learning_rate']:.1e}   "
              f"loss {trial.intermediate_values[last]:.3f}")  # fmt: skip
    spent = sum(max(trial.intermediate_values) for trial in study.trials)
    print(f"steps paid: {spent} of {len(study.trials) * BUDGET} without pruning")
else:
    print("Optuna is not installed, so this cell runs nothing. Nothing later needs it.")

# %% [markdown]
# A study may have many workers. They share the storage and nothing else: start the same script in two shells, on two
# machines. SQLite serves one machine with few workers; a journal file serves many processes; PostgreSQL serves nodes.
# The next cell starts two processes on one journal.

# %%
WORKER = """
import sys
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.create_study(
    study_name="shared", storage=JournalStorage(JournalFileBackend(sys.argv[1])), load_if_exists=True,
    sampler=optuna.samplers.RandomSampler(seed=int(sys.argv[2])),  # equal seeds would draw equal trials
)

def objective(trial):
    trial.set_user_attr("worker", sys.argv[2])
    return (trial.suggest_float("x", 1e-4, 1.0, log=True) - 0.01) ** 2

enough = optuna.study.MaxTrialsCallback(8, states=None)  # over all workers, not for each
study.optimize(objective, callbacks=[enough])
"""
if HAS_OPTUNA:
    journal = folder / "shared.journal"
    command = [sys.executable, "-W", "ignore", "-c", WORKER, str(journal)]
    workers = [
        subprocess.Popen([*command, str(seed)], stderr=subprocess.DEVNULL) for seed in (1, 2)
    ]
    print("exit codes:", [worker.wait() for worker in workers])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        storage = optuna.storages.JournalStorage(
            optuna.storages.journal.JournalFileBackend(str(journal))
        )
        shared_study = optuna.load_study(study_name="shared", storage=storage)
    made_by = [trial.user_attrs.get("worker") for trial in shared_study.trials]
    print(
        f"{len(made_by)} trials: {made_by.count('1')} by the first process, {made_by.count('2')} by the second"
    )
else:
    print("Optuna is not installed, so this cell runs nothing. Nothing later needs it.")

# %% [markdown]
# The split differs from run to run: whoever is free takes the next trial. With two workers there may be a ninth: both
# had begun a trial when the eighth was finished. Give each worker its own sampler seed, or both draw the same points.

# %% [markdown]
# ### Scientific, nuisance, fixed
#
# Then give every hyperparameter its part. The names are those of Google's
# [tuning playbook](https://github.com/google-research/tuning_playbook):
#
# - **scientific**: what the question is about. "Does weight decay help?"
# - **nuisance**: what must be tuned again for each value of it, to be fair. Nearly always the learning rate.
# - **fixed**: what stays, and limits the answer to itself.
#
# Watch what a forgotten nuisance does. The question: is AdamW better than SGD with momentum? The optimizer is
# scientific, the learning rate is nuisance. Each column gives both the same rate; the last gives each its own.

# %%
three_rates = (1e-3, 1e-2, 1e-1)
table = {
    name: [trial_loss(learning_rate=rate, optimizer=name) for rate in three_rates]
    for name in ("adamw", "sgd")
}
print(
    "         "
    + "   ".join(f"rate {rate:g}".rjust(10) for rate in three_rates)
    + "   best of three"
)
for name, row in table.items():
    print(f"{name:<9}" + "   ".join(f"{loss:10.3f}" for loss in row) + f"   {min(row):13.3f}")
for number, rate in enumerate(three_rates):
    print(
        f"at rate {rate:g} the better one is {min(table, key=lambda name: table[name][number])}"
    )
print(f"each at its own rate: {min(table, key=lambda name: min(table[name]))}")

# %% [markdown]
# Where the lines disagree, the answer at a single rate was an answer about that rate. Where they agree, you know it now
# instead of hoping for it. The budget of the nuisance belongs to the contract too: three rates for one optimizer and
# thirty for its rival is how new methods win.
#
# #### What to search first
#
# | Knob | Scale | Typical part |
# |---|---|---|
# | learning rate | log, 2 to 4 decades | nuisance in every question; the first to tune |
# | weight decay | log | nuisance; matters in long runs, little in short ones |
# | warmup share, schedule | plain, choice | fixed at first; tune when the rate sits at an end |
# | dropout, label smoothing | plain | scientific, once the model overfits |
# | micro-batch size | – | **not tuned for quality**: take the largest that fits ([lesson 03](../03_batch_size_and_accumulation/03_batch_size_and_accumulation.ipynb)), then tune the rate |
# | seed | – | never. A seed that is tuned is noise that was kept |
#
# ### Read a search
#
# (The first twelve trials are those of [Draw](#Draw).) Twelve more random trials, with dropout as a third knob, make 24. Two pictures tell what a search has learnt.
#
# - A **slice** plot shows every trial against one knob. A valley says: tuned. A slope that ends at the border says: the
#   range is too small. A flat cloud says: it does not matter *here*.
# - **Importance** says which share of the differences between trials one knob explains. With few trials it is noisy, so
#   it comes here with the value that mere chance would give.

# %%
rng = np.random.default_rng(7)
third = [float(value) for value in rng.uniform(0.0, 0.5, size=12)]
more = [{name: log_draw(rng, name) for name in LOW} | {"dropout": d} for d in third]
searched = [point | {"dropout": DEFAULTS["dropout"]} for point in random_points] + more
losses = np.array(random_losses + [trial_loss(**point) for point in more])
ranks = stats.rankdata(
    np.where(np.isfinite(losses), losses, 1e9)
)  # ranks: a diverged trial is last, not infinite


def explained(values, ranks, num_bins=4):
    """Share of the variance of `ranks` that lies between bins of like values. 0 … 1."""
    bins = np.array_split(np.argsort(values, kind="stable"), num_bins)
    between = sum(len(b) * (ranks[b].mean() - ranks.mean()) ** 2 for b in bins)
    return float(between / ((ranks - ranks.mean()) ** 2).sum())


KNOBS = ("learning_rate", "weight_decay", "dropout")
importance = {knob: explained([p[knob] for p in searched], ranks) for knob in KNOBS}
shuffled = [explained(rng.random(len(ranks)), ranks) for _ in range(500)]
chance = float(np.percentile(shuffled, 95))
for knob, share in importance.items():
    print(f"{knob:<14} explains {100 * share:3.0f} %")
print(
    f"a knob without any effect explains up to {100 * chance:.0f} % by chance (95th percentile)"
)

if HAS_OPTUNA:
    space = {
        knob: optuna.distributions.FloatDistribution(LOW[knob], HIGH[knob], log=True)
        for knob in LOW
    }
    space["dropout"] = optuna.distributions.FloatDistribution(0.0, 0.5)
    in_memory = optuna.create_study()
    for point, rank in zip(searched, ranks, strict=True):
        in_memory.add_trial(
            optuna.trial.create_trial(params=point, distributions=space, value=float(rank))
        )
    evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=0.25)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is experimental
        shares = optuna.importance.get_param_importances(in_memory, evaluator=evaluator)
    print("Optuna (PED-ANOVA):", {knob: round(share, 2) for knob, share in shares.items()})

# %% jupyter={"source_hidden": true}
fig, axes = figure(1, 4, height=2.7, width_ratios=[1, 1, 1, 1.15])
for ax, knob in zip(axes, KNOBS, strict=False):
    ax.scatter([p[knob] for p in searched], np.minimum(losses, ceiling), color=BLUE, s=22)
    ax.set(xscale="linear" if knob == "dropout" else "log", xlabel=knob.replace("_", " "))
    if ax is not axes[0]:
        ax.set_yticklabels([])
axes[0].set_ylabel("validation loss")
axes[1].set_title("Slices")
bars(
    axes[3],
    [knob.replace("_", "\n") for knob in KNOBS],
    [100 * importance[k] for k in KNOBS],
    unit="%",
    digits=0,
)
axes[3].axvline(100 * chance, color=RED, linestyle=":", zorder=0.5)
for text in axes[3].texts:  # not struck through by the line
    text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
axes[3].set_title("Importance")
show(fig, alt="Slices of 24 trials: the loss against learning rate, weight decay and dropout; and importance, "
     + ", ".join(f"{k.replace('_', ' ')} {100 * v:.0f} %" for k, v in importance.items())
     + f"; the dotted line marks {100 * chance:.0f} %, which chance reaches.")  # fmt: skip

# %% [markdown]
# Bars left of the dotted line are not told from chance. "Not important" always means: in this range, for this budget.
# Weight decay needs long runs to show.
#
# #### The report that you owe
#
# The best configuration is half a result. The other half is what it cost, how sure you are, and what an unseen text
# says. Here is the whole of it, for the search at the top of this section: three finalists, five seeds, then one look
# at the test texts.

# %%
finalists = [searched[i] for i in np.argsort(losses)[:3]]
candidates = [DEFAULTS, *finalists]  # row 0: what you use today
names = ["today", "first", "second", "third"]
before = Trial.steps_paid
table = np.array(
    [[trial_loss(100 + seed, **config) for seed in range(5)] for config in candidates]
)
num_candidates = len(finalists)
for name, row in zip(names[1:], table[1:], strict=True):
    mean, low, high = mean_interval(table[0] - row, confidence=1 - 0.05 / num_candidates)
    print(
        f"{name:<7} better than today by {mean:.3f}, interval {low:.3f} to {high:.3f} (shared 95 %)"
    )
chosen = 1 + int(np.argmin(table[1:].mean(axis=1)))
final = Trial(candidates[chosen], seed=200)
final_loss = final.train(BUDGET)
print(
    f"\nbest configuration: {', '.join(f'{k} {v:.2e}' for k, v in candidates[chosen].items())}"
)
print(
    f"its validation loss in the search {np.sort(losses)[chosen - 1]:.3f}; at fresh seeds "
    f"{table[chosen].mean():.3f}"
)
print(f"test, looked at once: loss {final.loss(test):.3f}")
sizes = np.bincount([label for _, label in train_texts], minlength=num_classes)
smallest = set(np.argsort(sizes)[:5].tolist())
if rare := [text for text in test_texts if text[1] in smallest]:
    print(
        f"slice of the five smallest classes, {len(rare)} texts: loss {final.loss(batches_of(rare)):.3f}"
    )
print(f"this search: {Trial.steps_paid - before + len(searched) * BUDGET} steps; the whole lesson so far: "
      f"{Trial.steps_paid:,} steps, {Trial.seconds_paid:.0f} s")  # fmt: skip

# %% [markdown]
# Look at the two validation losses. The value *in the search* is the lowest of 24, so it is part skill and part luck;
# and all 24 ran at one seed, which may be a hard one or an easy one for everybody. So it can be lower or higher than
# what fresh seeds give. Report the value at fresh seeds: it is free of the seed's luck, and of nearly all luck of the pick. The texts are still those
# that chose it; this is what the test texts are for.
#
# And look at the slice. The mean is a mean over texts, and most texts are of the large classes. A search that compares
# means alone would not notice if the small ones got worse.
#
# The level of each interval is shared: with three candidates each gets a third of the 5 % that all together may err.
# This is the Bonferroni correction, and exercise 5.4 asks for it, or for something at least as careful.

# %% [markdown]
# ### In the wild
#
# The defaults below are those of Optuna 5.0, Transformers 5.23 and Lightning 2.6. The cells run the real thing where it
# is installed.
#
# #### Optuna
#
# Its default sampler, TPE, is no longer blind: after some random trials it draws near the values that good trials had
# and bad ones had not ([Bergstra and others, 2011](https://papers.nips.cc/paper_files/paper/2011/hash/86e8f7ab32cfd12577bc2619bc635690-Abstract.html)).
# It pays from some dozens of trials on, and less when many workers draw at once.
#
# | This lesson | Optuna | Default | What surprises |
# |---|---|---|---|
# | log scale | `suggest_float(..., log=True)` | `log=False` | **a learning rate is drawn uniformly until you ask** |
# | sampler | `TPESampler` | `n_startup_trials=10` | the first ten are random; a search of ten never gets further |
# | repeatable | `seed=` of the sampler | `None` | two runs of the same study differ |
# | median pruner | `MedianPruner` | `n_startup_trials=5`, `n_warmup_steps=0` | prunes from the first report on, while the rate still warms up |
# | halving | `SuccessiveHalvingPruner` | `reduction_factor=4`, `min_resource="auto"` | asynchronous: the first trials are judged by few |
# | pruning at all | `trial.report` and `should_prune` | – | **without both nothing is pruned**, whatever pruner you set |
# | direction | `create_study(direction=)` | `"minimize"` | an accuracy is minimised |
# | resume | `load_if_exists=` | `False` | the second run stops with an error |
# | best value | `study.best_value` | – | the best *completed* trial, of one seed; pruned steps are in `study.trials` alone |
#
# #### Hugging Face Trainer
#
# | This lesson | `Trainer.hyperparameter_search` | Default | What surprises |
# |---|---|---|---|
# | fresh model | `model_init=` of the `Trainer` | required | an error without it: the right thing |
# | space | `hp_space` | rate 1e-6 … 1e-4, epochs 1 … 5, **seed 1 … 40**, batch 4 … 64 | budgets differ between trials, and the seed is tuned |
# | what is compared | `compute_objective` | the eval loss, or **the sum of all metrics** if there are any | adding a metric changes the objective |
# | direction | `direction` | `"minimize"` | so with metrics it minimises their sum |
# | number of trials | `n_trials` | 20 | – |
# | best model | the return value | values alone | train it again; nothing is loaded |


# %%
def is_installed(*packages: str) -> bool:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        print(
            f"{', '.join(missing)}: not installed, so this cell runs nothing. Nothing later needs it."
        )
    return not missing


class WithLoss(torch.nn.Module):
    """The form that the Trainer expects: the model computes its own loss."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, labels):
        logits = self.model(input_ids, attention_mask)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


if is_installed("transformers", "accelerate", "optuna"):
    import logging

    logging.disable(logging.WARNING)  # importing it reports each optional part that is missing
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        output_dir=str(folder / "trainer"),
        max_steps=6,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=128,
        eval_strategy="steps",
        eval_steps=6,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=device.type == "cpu",
        dataloader_pin_memory=device.type == "cuda",
    )
    trainer = Trainer(
        model_init=lambda: WithLoss(Trial({}).model),  # called anew for each trial
        args=arguments,
        data_collator=data.collate,
        train_dataset=train_texts[:256],
        eval_dataset=validation_texts[:128],
    )
    with contextlib.redirect_stdout(io.StringIO()):  # it prints every record
        best = trainer.hyperparameter_search(
            hp_space=lambda trial: {
                "learning_rate": trial.suggest_float("learning_rate", 1e-4, 1e-1, log=True)
            },
            compute_objective=lambda metrics: metrics[
                "eval_loss"
            ],  # said, not left to the default
            direction="minimize",
            n_trials=3,
            sampler=optuna.samplers.RandomSampler(seed=0),
        )
    logging.disable(logging.NOTSET)
    print(
        f"Trainer: 3 trials of 6 steps, best eval loss {best.objective:.3f} with {best.hyperparameters}"
    )

# %% [markdown]
# #### Lightning
#
# Lightning has no search; it has a *range test*. `Tuner.lr_find` raises the rate at every step of one short run, and
# suggests the rate at which the loss fell fastest. It takes one run instead of many, and gives a start for a range, not
# a result: it knows nothing of the end of a long training.
#
# | Argument of `lr_find` | Default | What surprises |
# |---|---|---|
# | `min_lr`, `max_lr` | 1e-8, 1 | most of its steps are far below any useful rate |
# | `num_training` | 100 | one batch for each rate: noisy on small batches |
# | `early_stop_threshold` | 4.0 | stops at 4 times the best loss |
# | `update_attr` | `True` | **writes the suggestion into your model** |

# %%
if is_installed("lightning"):
    import logging

    from IPython.utils.capture import capture_output
    from lightning.pytorch import LightningModule
    from lightning.pytorch import Trainer as LightningTrainer
    from lightning.pytorch.tuner import Tuner

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Lit(LightningModule):
        def __init__(self):
            super().__init__()
            self.model, self.learning_rate = Trial({}).model, 1e-3

        def training_step(self, batch, batch_idx):
            logits = self.model(batch["input_ids"], batch["attention_mask"])
            return torch.nn.functional.cross_entropy(logits, batch["labels"])

        def configure_optimizers(self):
            return make_optimizer(self.model, learning_rate=self.learning_rate)

    loader = torch.utils.data.DataLoader(
        train_texts[:640], batch_size=16, collate_fn=data.collate
    )
    with warnings.catch_warnings(), capture_output():  # it draws a progress bar
        warnings.simplefilter("ignore")
        lightning_trainer = LightningTrainer(
            logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
            accelerator="auto", devices=1, default_root_dir=str(folder),
        )  # fmt: skip
        module = Lit()
        finder = Tuner(lightning_trainer).lr_find(
            module,
            train_dataloaders=loader,
            min_lr=1e-5,
            max_lr=1.0,
            num_training=40,
            update_attr=False,
        )
    suggestion = finder.suggestion() if finder is not None else None
    print(
        f"Lightning suggests {suggestion:.1e}"
        if suggestion
        else "Lightning has no suggestion for this run"
    )
    print(
        f"the sweep at the top of this lesson, {len(rates)} trials of {BUDGET} steps: {best_rate:.1e}"
    )

# %% [markdown]
# ### Drills
#
# Not graded. Each takes a few minutes: predict, run, then change the value that says `try` and run again.
#
# **Drill 1 · The price of halving.** 27 trials, a third goes on, four rounds. Which share of "all in full" does it
# cost?

# %%
predict(
    "5e", "27 trials, factor 3, four rounds: share of the steps of 27 full trials?", unit="%"
)

# %%
drill_factor = 3  # try 2 and 4
alive, steps, paid, before = 27, 1, 0, 0
while True:
    paid += alive * (steps - before)
    if alive == 1:
        break
    alive, steps, before = max(1, alive // drill_factor), steps * drill_factor, steps
print(f"{paid} of {27 * steps} steps; a finished trial has {steps}")
compare("5e", 100 * paid / (27 * steps), unit="%")

# %% [markdown]
# **Drill 2 · How many points hit the valley?** Good values fill 5 % of a space. How many random points until one of
# them is good with 95 % probability? The number of knobs plays no part.

# %%
predict("5f", "Good values fill 5 % of the space: random trials for a 95 % chance of one?")

# %%
good_share = 0.05  # try 0.02 and 0.1
needed = math.ceil(math.log(0.05) / math.log(1 - good_share))
print(
    f"{needed} trials: 1 - (1 - {good_share})^{needed} = {1 - (1 - good_share) ** needed:.3f}"
)
compare("5f", needed)

# %% [markdown]
# **Drill 3 · Luck among equals.** By how many standard deviations does the best of n equal trials beat their mean?

# %%
predict("5g", "Best of 100 equal trials: standard deviations above their mean?")

# %%
drill_trials = 100  # try 5, 24, 1000
lead = float(np.random.default_rng(0).normal(size=(4000, drill_trials)).max(axis=1).mean())
print(f"best of {drill_trials}: {lead:.2f} standard deviations of luck")
compare("5g", lead)

# %% [markdown]
# **Drill 4 · Pairs against no pairs.** The eight seeds of [Judge](#Judge), once as pairs and once as two separate groups. How
# many times larger is the standard error without the pairs?

# %%
predict("5h", "Standard error without pairs over the one with pairs?", unit="×")

# %%
paired_error = gains.std(ddof=1) / math.sqrt(len(gains))
separate_error = math.sqrt((at_best.var(ddof=1) + at_near.var(ddof=1)) / len(gains))
print(f"standard error: {paired_error:.4f} with pairs, {separate_error:.4f} without")
compare("5h", separate_error / paired_error, unit="×")

# %% [markdown]
# A number near 1 would say that seeds are not hard or easy in themselves. Then pairs gain nothing, and cost half of the
# degrees of freedom.
# Where data order and first weights matter much, as in short fine-tuning, they gain a lot.
