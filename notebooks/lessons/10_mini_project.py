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
# # 10 · Mini project
#
# *About 105 minutes: 20 of reading, 85 for 4 exercises · your own data, if you like*
#
# You train a compact text classifier under a tight budget, from a table to a report. Each step of this notebook is one
# decision. You take it by measuring, and you write it down. At the end stands a model that you can hand on, and a page
# that says what it cost and how sure you may be of its score.
#
# | Step | Decision | Lesson |
# |---|---|---|
# | [1. Load, tokenise, split](#1.-Load,-tokenise,-split) | what counts as a usable row; what is held out | [01](../01_efficient_training_loops/01_efficient_training_loops.ipynb) |
# | [2. The efficient loop](#2.-The-efficient-loop) | which habits pay on these texts | [01](../01_efficient_training_loops/01_efficient_training_loops.ipynb) |
# | [3. The largest batch, then accumulation](#3.-The-largest-batch,-then-accumulation) | micro-batch and accumulation | [03](../03_batch_size_and_accumulation/03_batch_size_and_accumulation.ipynb) |
# | [4. Precision](#4.-Precision) | 16 bits or 32 | [02](../02_mixed_precision/02_mixed_precision.ipynb) |
# | [5. Early stopping](#5.-Early-stopping) | how long to train | [04](../04_checkpointing_and_early_stopping/04_checkpointing_and_early_stopping.ipynb) |
# | [6. Eight trials](#6.-Eight-trials) | learning rate, weight decay, length | [05](../05_hyperparameter_tuning/05_hyperparameter_tuning.ipynb) |
# | [7. Seeds and a config file](#7.-Seeds-and-a-config-file) | how sure the score is | [08](../08_reproducibility/08_reproducibility.ipynb) |
# | [8. The report](#8.-The-report) | what it cost, and what to hand on | [07](../07_gpus_and_cost/07_gpus_and_cost.ipynb) |
# | [When it goes wrong](#When-it-goes-wrong), [checklist](#The-checklist), [longer projects](#Longer-projects) | what to keep, what to do next | |
#
# The exercises are graded on a table that you have not seen: real texts in which every word and every label has another
# name.

# %%
import csv
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from autograder import check, compare, exercise, predict
from autograder.plots import BLUE, GREEN, ORANGE, bars, figure, show
from course_lib import TextClassifier, TrainConfig, load_table, run_training
from course_lib.compare import compare_runs, comparison_text
from course_lib.components import build_model
from course_lib.data import load_docstrings
from course_lib.ladder import climb
from course_lib.metrics import RunFolder
from course_lib.micro_batch import largest_micro_batch_size
from course_lib.progress import LivePlot
from course_lib.run_data import load_data

torch.set_num_threads(1)
folder = Path(tempfile.mkdtemp(prefix="mini-project-"))
print("Everything that this notebook makes goes to", folder.name, "in your temporary folder.")

# %% [markdown]
# ## Your data
#
# Set `DATA` to a CSV file of your own with the columns `text` and `label`, or leave it. Then the next cell writes a table
# of the course's docstrings: six packages, 250 texts each.

# %%
DATA = None  # or "path/to/reviews.csv"

table = Path(DATA) if DATA else folder / "docstrings.csv"
if DATA is None:
    corpus = load_docstrings()
    largest = np.argsort(-np.bincount(corpus.labels))[:6]
    rng = np.random.default_rng(0)
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for label in largest:
            for index in rng.permutation(np.flatnonzero(corpus.labels == label))[:250]:
                writer.writerow([corpus.texts[int(index)], corpus.label_names[label]])
print(f"{table.name}: {table.stat().st_size / 1e6:.1f} MB")

# %% [markdown]
# The settings below are small, so that each step takes seconds here. They are the same for all runs of this notebook;
# each step changes the one thing that it asks about.

# %%
config = TrainConfig(
    data=str(table),
    vocab_size=4096,
    max_length=128,
    d_model=32,
    num_layers=1,
    num_heads=2,
    micro_batch_size=16,
    learning_rate=3e-3,
    max_epochs=3,
    precision="32-true",
    monitor="macro_f1",
    price_per_hour=0.80,
    currency="EUR",
)


def run(name, callbacks=(), **changes):
    """Train into a folder of its own, and return what run.json holds."""
    settings = replace(config, **changes)
    return run_training(settings, folder / name, progress=False, callbacks=callbacks)


# %% [markdown]
# The price is that of a small cloud machine, as an example; put in what yours costs. A laptop of your own is not free
# either: lesson [07](../07_gpus_and_cost/07_gpus_and_cost.ipynb) says how to count it.
#
# ## 1. Load, tokenise, split

# %%
texts = load_table(table)
data = load_data(config, RunFolder(folder / "look"), progress=False)
for note in data.notes:
    print("-", note)
counts = np.bincount(texts.labels, minlength=len(texts.label_names))
print(
    f"{len(texts):,} texts, {len(texts.label_names)} labels; the largest has {counts.max()},"
)
print(
    f"the smallest {counts.min()}. Always saying the largest: {counts.max() / counts.sum():.0%}"
)
print(f"{len(data.train):,} to train on, {len(data.validation):,} to validate")

# %% jupyter={"source_hidden": true}
fig, (left, right) = figure(1, 2, height=2.6)
order = np.argsort(-counts)[:8]
bars(left, [texts.label_names[i][:14] for i in order], counts[order], unit="", digits=0)
left.set_title("Texts of each label")
right.hist(data.train.lengths, bins=30, color=BLUE)
right.set(
    title="Tokens per text", xlabel=f"tokens (cut at {config.max_length})", ylabel="texts"
)
show(
    fig,
    alt=f"Left: texts of each label, {counts.max()} at most. "
    f"Right: tokens per text, median {np.median(data.train.lengths):.0f}.",
)

# %% [markdown]
# Look at the two pictures before you train anything. A label with ten texts cannot be judged. A length that most texts
# reach means that `max_length` cuts what a person would read.
#
# ### 10.1 · From a table to two sets of samples
#
# > Difficulty ●●○○○ · Importance ●●●●● · 20 minutes · property · imports: all that is installed
#
# Real exports are sorted, have rows without a label, and hold the same text twice. Write the step that makes samples of
# them.
#
# The rules are those of the lessons: put all that your code needs into the cell, imports too. Arguments have the types
# that stand beside them; numbers among them are finite, and seeds lie between 0 and `2**32 - 1`, unless the text says
# otherwise.
#
# <details><summary>Hint: "there are texts on both sides"</summary>
#
# Decide for each *different* text where it goes. Then put every row where its text went.
#
# </details>
# <details><summary>Hint: "columns or rows are missing"</summary>
#
# A text may hold commas, quotes and line ends. The module `csv` knows how they are written; `DictReader` goes by the
# names in the first line.
#
# </details>

# %%
from pathlib import Path

from autograder import exercise


@exercise("10.1")
def prepare(path: Path, validation: float = 0.2, seed: int = 0) -> dict:
    """Read a CSV with the columns `text` and `label`, among others, and split its rows.

    Returns a dict:
        "train", "validation": lists of tuples (text, label), as they stand in the table, line
            ends inside too (spaces around them may go). Every row with a text and a label is in
            one of them; rows that repeat a text may be kept or dropped. No text is in both, and one
            of two labels is drawn for once. Each label has about a share of `validation` of its
            different texts held out.
        "left_out": number of rows in which text or label is empty or blank.

    The same seed gives the same split; another seed gives another one.
    """
    ### BEGIN SOLUTION
    import csv

    import numpy as np

    with Path(path).open(newline="", encoding="utf-8") as file:
        rows = [(row["text"].strip(), row["label"].strip()) for row in csv.DictReader(file)]
    usable = [(text, label) for text, label in rows if text and label]
    rng = np.random.default_rng(seed)
    label_of = dict(usable)  # a text is drawn for once, also if it has two labels
    held_out = set()
    for wanted in sorted(set(label_of.values())):
        different = sorted(text for text, label in label_of.items() if label == wanted)
        rng.shuffle(different)
        held_out.update(different[: round(validation * len(different))])
    return {
        "train": [sample for sample in usable if sample[0] not in held_out],
        "validation": [sample for sample in usable if sample[0] in held_out],
        "left_out": len(rows) - len(usable),
    }
    ### END SOLUTION


# %%
check("10.1")

# %% [markdown]
# `course_lib` does the same in `load_table` and `load_data`. It also joins texts that differ in case and spaces only,
# and stores the token ids once.
#
# ## 2. The efficient loop
#
# Which habits pay depends on your texts: bucketing does nothing if all have one length. So measure on yours.

# %%
predict("10a", "All habits together over the naive loop: how many times faster?", unit="×")

# %%
rows = climb(config, data.train, blocks=2, progress=False, min_seconds=0.1)
for row in rows:
    if "over_naive" not in row:
        print(f"{row['change']:<38} not measured: {row['obstacle'][:50]}")
        continue
    kept = "" if row["is_kept"] else ", left out"
    print(f"{row['change']:<38} {row['over_naive']:5.2f}× the naive loop{kept}")
compare("10a", rows[-1]["over_naive"], unit="×")

# %% jupyter={"source_hidden": true}
steps = [row for row in rows if "over_naive" in row and row["is_kept"]]
fig, ax = figure(height=2.6)
bars(ax, [row["change"][:34] for row in steps], [row["over_naive"] for row in steps], unit="×")
ax.set_title("Samples a second, against the naive loop")
show(
    fig,
    alt="Speed against the naive loop: "
    + ", ".join(f"{row['change']} {row['over_naive']:.1f}" for row in steps),
)

# %% [markdown]
# Two blocks for each change are a look, not a verdict: `course-lib bench --data your.csv` takes five and writes a page.
#
# ### 10.2 · The training, whole
#
# > Difficulty ●●●●○ · Importance ●●●●● · 35 minutes · property, speed (at least 1.5× the naive training, tokenising and predicting included, at an accuracy on secret texts within 2 points of its own) · imports: all that is installed
#
# Now write the whole training as one function: from texts to a function that predicts. The model is your choice, and so
# is everything else. The naive training that you are measured against tokenises in every epoch and pads to 384 tokens;
# its model has `d_model=32`, one layer, batches of 16 and AdamW at 5e-3.
#
# <details><summary>Hint: "where do I begin?"</summary>
#
# `train_tokenizer`, `BucketBatchSampler`, `collate`, `make_optimizer` and `train_step` of `course_lib` are the stations.
# `TextClassifier(ModelConfig(…))` is the model. `help(…)` on each tells what goes in.
#
# </details>
# <details><summary>Hint: "fast, but the accuracy is lower"</summary>
#
# Count your updates: the naive training makes `num_epochs` × texts / 16 of them. Fewer, larger batches are faster and
# learn less in the same epochs, unless the learning rate grows too.
#
# </details>
# <details><summary>Hint: "the predictions are no better than chance"</summary>
#
# Did you sort the texts to predict them in batches of like length? Then put the answers back into the order of the
# question.
#
# </details>

# %%
from collections.abc import Callable

import numpy as np
import torch

from autograder import exercise
from course_lib import BucketBatchSampler, ModelConfig, TextClassifier, collate
from course_lib import make_optimizer, train_step, train_tokenizer


@exercise("10.2")
def train_classifier(
    texts: list[str], labels: list[str], *, num_epochs: int, seed: int
) -> Callable[[list[str]], list[str]]:
    """Train a classifier on these texts: equal seeds give equal predictions, also when Python is
    started again. What learns by torch's gradients makes `num_epochs` passes over all of them,
    starting from `seed`: with another seed some predictions are others. What learns without, such
    as counts of words, may make fewer passes and draw nothing. Both lists stay as they are.

    Returns a function: a list of texts, some of which may be empty or longer than any in `texts`,
    to a list of as many labels, named as in `labels`; no texts, no labels. A text's label is its
    own, whichever are asked with it, and another training leaves it as it is.
    """
    ### BEGIN SOLUTION
    torch.manual_seed(seed)
    names = sorted(set(labels))
    targets = [names.index(label) for label in labels]
    tokenizer = train_tokenizer(texts, vocab_size=2048)
    sizes = ModelConfig(
        vocab_size=tokenizer.get_vocab_size(), num_classes=len(names), max_length=384,
        d_model=32, num_layers=1, num_heads=2, dropout=0.0,
    )  # fmt: skip
    model = TextClassifier(sizes)
    optimizer = make_optimizer(model, learning_rate=5e-3)

    def token_ids(some_texts):
        # An empty text has no tokens, and a model needs one: id 1 stands for it.
        return [np.array(e.ids[:384] or [1]) for e in tokenizer.encode_batch(list(some_texts))]

    samples = list(zip(token_ids(texts), targets, strict=True))  # tokenised once
    sampler = BucketBatchSampler([len(ids) for ids, _ in samples], 16, seed=seed)
    for epoch in range(num_epochs):
        sampler.set_epoch(epoch)
        for indices in sampler:
            train_step(model, collate([samples[i] for i in indices]), optimizer)

    def predict_labels(new_texts):
        rows = token_ids(new_texts)
        by_length = np.argsort([len(ids) for ids in rows], kind="stable")
        found = np.zeros(len(rows), dtype=np.int64)
        model.eval()
        with torch.inference_mode():
            for start in range(0, len(rows), 64):
                chosen = by_length[start : start + 64]
                batch = collate([(rows[i], 0) for i in chosen])
                logits = model(batch["input_ids"], batch["attention_mask"])
                found[chosen] = logits.argmax(1).numpy()
        return [names[i] for i in found]

    return predict_labels
    ### END SOLUTION


# %%
check("10.2")

# %% [markdown]
# ## 3. The largest batch, then accumulation
#
# How many samples fit? The search below runs real steps of the longest texts under a limit of 64 MB, and counts the bytes
# that live at once. Put in the memory of your GPU instead, or leave the limit out: then it takes what is free.

# %%
model: TextClassifier = build_model(
    config, vocab_size=data.train.vocab_size, num_classes=len(data.train.label_names)
)
longest = np.argsort(-data.train.lengths)
size, reason = largest_micro_batch_size(
    model,
    lambda size: data.train.batch(np.resize(longest, size), pad_to=config.max_length),
    memory_limit_bytes=64_000_000,
    max_size=256,
)
print(reason)

# %% [markdown]
# Fits is not the same as pays. Two runs see the same number of samples: one makes an update every 16, the other
# accumulates 4 micro-batches to 64, with the learning rate scaled by the square root of 4.

# %%
batches = {
    "16": run("batch-16"),
    "4 × 16": run("batch-64", global_batch_size=64, base_batch_size=16, lr_scaling="sqrt"),
}
for name, record in batches.items():
    print(f"{name:>7} samples an update: macro F1 {record['validation']['macro_f1']:.3f}")

# %% [markdown]
# Here the number of updates decides: with few epochs, a large batch leaves few of them. Accumulation saves memory. It
# saves no time, and on a small data set it may cost quality. Which of the two do *you* keep, and why? Write it down:
#
# > *Batch: …, because …*
#
# ## 4. Precision
#
# The same run in fp32 and in bf16 under autocast, from the same seed.

# %%
runs = [folder / "batch-16", folder / "bf16"]
run("bf16", precision="bf16-mixed")
comparison = compare_runs(runs)
print(comparison_text(comparison))

# %% [markdown]
# Read two lines: the score, and the time. On a CPU without bf16 units, or with a model as small as this one, 16 bits are
# slower: then the answer is 32. `precision="auto"` asks the hardware, and says why.
#
# > *Precision: …, because …*
#
# ## 5. Early stopping
#
# `LivePlot` draws the curves while a run goes on, in one place, about once a second. It is a callback: give it to your own
# `fit`, too.

# %%
predict("10b", "Ten epochs allowed, patience 2: after how many does the run end?")

# %%
long_run = run("early", [LivePlot()], max_epochs=10, early_stopping_patience=2)
evaluations = [
    r for r in RunFolder(folder / "early").read_metrics() if r["kind"] == "validation"
]
scores = [record["macro_f1"] for record in evaluations]
compare("10b", len(scores), digits=0)
print(f"best macro F1 {max(scores):.3f} after epoch {int(np.argmax(scores)) + 1}")

# %% jupyter={"source_hidden": true}
fig, ax = figure(height=2.4)
epochs = np.arange(1, len(scores) + 1)
ax.plot(epochs, scores, color=BLUE, marker="o")
ax.plot(epochs[np.argmax(scores)], max(scores), "o", color=GREEN, markersize=10)
ax.axvspan(epochs[np.argmax(scores)], epochs[-1], color=ORANGE, alpha=0.15)
ax.set(title="Validation after each epoch", xlabel="epoch", ylabel="macro F1")
ax.set_xticks(epochs)
show(
    fig,
    alt=f"Validation macro F1 over epochs: best {max(scores):.3f} at epoch "
    f"{int(np.argmax(scores)) + 1}, the run ends at {len(scores)}.",
)

# %% [markdown]
# The shaded part was paid for and brought nothing; patience is the price for being sure. A run that goes on to its last
# epoch has not stopped early: it may want more.
#
# ## 6. Eight trials
#
# Three settings, eight trials, the same number of steps for each. What is searched and what is fixed is decided *before*
# the first trial. With Optuna (`pip install 'training-workbook[tune]'`) a study keeps the trials, ends those that fall
# behind and can be resumed; without it the same draws are made here.

# %%
NUM_TRIALS, TRIAL_STEPS = 8, 120
draw = np.random.default_rng(0)
trials = []
for number in range(NUM_TRIALS):
    settings = {
        "learning_rate": float(np.exp(draw.uniform(np.log(1e-4), np.log(1e-2)))),
        "weight_decay": float(draw.choice([0.0, 0.01, 0.1])),
        "max_length": int(draw.choice([64, 128])),
    }
    record = run(f"trial-{number}", max_epochs=None, max_steps=TRIAL_STEPS, **settings)
    trials.append(settings | {"macro_f1": record["validation"]["macro_f1"]})
for trial in sorted(trials, key=lambda trial: -trial["macro_f1"]):
    print("  ".join(f"{name} {value:<8.3g}" for name, value in trial.items()))

# %% jupyter={"source_hidden": true}
fig, ax = figure(height=2.6)
for length, color in ((64, ORANGE), (128, BLUE)):
    chosen = [trial for trial in trials if trial["max_length"] == length]
    ax.plot([t["learning_rate"] for t in chosen], [t["macro_f1"] for t in chosen], "o", color=color,
            label=f"max_length {length}")  # fmt: skip
ax.set_xscale("log")
ax.set(
    title=f"{NUM_TRIALS} trials of {TRIAL_STEPS} steps",
    xlabel="learning rate (log scale)",
    ylabel="macro F1",
)
ax.legend(loc="lower right")
best_trial = max(trials, key=lambda trial: trial["macro_f1"])
show(
    fig,
    alt=f"Macro F1 of {NUM_TRIALS} trials over the learning rate; the best is "
    f"{best_trial['macro_f1']:.3f} at {best_trial['learning_rate']:.1e}.",
)

# %% [markdown]
# In a terminal the whole step is one command:
#
# ```
# course-lib tune --data your.csv --out runs/tuning --trials 8 \
#     --search learning_rate=log:1e-4..1e-2 --search weight_decay=choice:0,0.01,0.1 --search max_length=choice:64,128
# ```
#
# ### 10.3 · The winner of the trials
#
# > Difficulty ●●●○○ · Importance ●●●●● · 15 minutes · property · imports: all that is installed
#
# A list of trials, several seeds for each config. Some were pruned, some failed. Which config wins, and what was spent?
#
# <details><summary>Hint: "another config won"</summary>
#
# Three rules: by validation and not by test; by the mean and not by the best seed; only configs whose seeds were all
# completed.
#
# </details>

# %%
from autograder import exercise


@exercise("10.3")
def choose(trials: list[dict]) -> dict:
    """The winner of a search.

    Each trial is a dict: "config" (a dict of numbers, of which 1 and 1.0 are one; not all have
    the same names, one may have none), "seed", "status" ("completed", "pruned" or "failed"),
    "validation" and "test" (scores, higher is better), "steps" (used until it ended). Every
    config was started with the same seeds.

    Returns a dict: "config" with the best mean validation score among those that completed all
    seeds, that "mean", its "num_seeds", and "num_steps", which all trials together have used.
    The trials stay as they are.
    """
    ### BEGIN SOLUTION
    groups: dict = {}
    for trial in trials:
        groups.setdefault(tuple(sorted(trial["config"].items())), []).append(trial)
    complete = [g for g in groups.values() if all(t["status"] == "completed" for t in g)]
    means = [sum(t["validation"] for t in group) / len(group) for group in complete]
    best = max(range(len(complete)), key=means.__getitem__)
    return {
        "config": complete[best][0]["config"],
        "mean": means[best],
        "num_seeds": len(complete[best]),
        "num_steps": sum(trial["steps"] for trial in trials),
    }
    ### END SOLUTION


# %%
check("10.3")

# %% [markdown]
# ## 7. Seeds and a config file
#
# Eight trials on one seed have one winner, and luck has a part in it. Train the winner on three seeds, to the end.

# %%
winner = {name: best_trial[name] for name in ("learning_rate", "weight_decay", "max_length")}
final = [run(f"final-{seed}", seed=seed, max_epochs=5, **winner) for seed in (1, 2, 3)]
f1 = np.array([record["validation"]["macro_f1"] for record in final])
print(f"macro F1 of three seeds: {', '.join(f'{value:.3f}' for value in f1)}")
print(f"mean {f1.mean():.3f}, from the lowest to the highest {np.ptp(f1):.3f}")
print(f"the trial had said {best_trial['macro_f1']:.3f} after {TRIAL_STEPS} steps")
print()
print((folder / "final-1" / "config.yaml").read_text()[:420], "…")

# %% [markdown]
# The config file beside each run is all that somebody needs to train it again:
# `course-lib train --config final-1/config.yaml --out again`.
#
# A score without its spread is half a score. Report the mean and the range, and the validation texts it was measured on.
# They chose the winner, so they flatter it: the last word has a test set that no decision has seen.
#
# ## 8. The report
#
# `report.html` in each run's folder has the curves, the scores per label and per length, the health table, the cost and
# the environment. This is its core.

# %%
record = final[0]
seconds = [json_record["train_seconds"] for json_record in final]
print(
    f"accuracy {record['validation']['accuracy']:.3f}, macro F1 {record['validation']['macro_f1']:.3f}"
)
for name in ("elapsed_hours", "cost", "energy_watt_hours", "matmul_peak_share"):
    print(f"{name:>20}  {record['cost'][name]:.3g}")
spent = sum(
    RunFolder(path.parent).read_record()["cost"]["cost"] for path in folder.glob("*/run.json")
)
print(
    f"all runs of this notebook: {spent:.4f} {config.currency} at {config.price_per_hour} an hour"
)

# %% [markdown]
# ### 10.4 · The report
#
# > Difficulty ●●○○○ · Importance ●●●●○ · 15 minutes · property · imports: all that is installed
#
# The numbers that a report lives by, from what a run leaves behind.
#
# <details><summary>Hint: "macro F1 equals the accuracy"</summary>
#
# Then it is micro F1. Macro F1 is the mean of one F1 for each label, whatever its size. A label's F1 is 2 · hits /
# (times it was right + times it was said), and 0 if it was never hit.
#
# </details>
# <details><summary>Hint: "the cost is thousands of times too high"</summary>
#
# Write the units beside the numbers: seconds, and money an hour.
#
# </details>

# %%
from autograder import exercise


@exercise("10.4")
def summarise(
    labels: list[str],
    predictions: list[str],
    seconds: dict[str, float],
    price_per_hour: float,
    currency: str,
) -> dict:
    """What a report says of a project.

    `seconds` names what the rented time went into; "waiting", where it is there, is the time in
    which nothing was trained. All of it is paid for. What is handed in stays as it is.

    Returns a dict: "accuracy" and "macro_f1" (0 to 1, the latter over the labels in `labels`),
    "total_seconds", "cost" (money), "cost_unit" (the currency), and "utilisation" (the share of
    the time that was not "waiting", 0 to 1).
    """
    ### BEGIN SOLUTION
    f1 = []
    for name in sorted(set(labels)):
        hits = sum(a == b == name for a, b in zip(labels, predictions, strict=True))
        f1.append(2 * hits / (labels.count(name) + predictions.count(name)))
    right = sum(a == b for a, b in zip(labels, predictions, strict=True))
    total = sum(seconds.values())
    return {
        "accuracy": right / len(labels),
        "macro_f1": sum(f1) / len(f1),
        "total_seconds": total,
        "cost": total / 3600 * price_per_hour,
        "cost_unit": currency,
        "utilisation": 1 - seconds.get("waiting", 0.0) / total,
    }
    ### END SOLUTION


# %%
check("10.4")

# %% [markdown]
# ## When it goes wrong
#
# | What you see | Likely mistake | Caught by |
# |---|---|---|
# | Validation is far better than the first week of use | the same text on both sides of the split | [10.1](#10.1-·-From-a-table-to-two-sets-of-samples) |
# | A label is never predicted, and never missed in validation | a sorted table, split at one end | [10.1](#10.1-·-From-a-table-to-two-sets-of-samples) |
# | The loop is fast, the score is lower | fewer updates, or texts cut short | [10.2](#10.2-·-The-training,-whole) |
# | Good in training, chance when you predict | answers left in the order of their lengths | [10.2](#10.2-·-The-training,-whole) |
# | The winner does not win again | the best seed taken for the best config, or chosen by test | [10.3](#10.3-·-The-winner-of-the-trials) |
# | The search looks cheap | steps of pruned and failed trials not counted | [10.3](#10.3-·-The-winner-of-the-trials) |
# | Macro F1 equals the accuracy | that is micro F1 | [10.4](#10.4-·-The-report) |
# | The cost is 3,600 times too high | seconds times a price per hour | [10.4](#10.4-·-The-report) |
#
# ## The checklist
#
# | # | Before you hand a model on | If the answer is no |
# |---|---|---|
# | 1 | Did you look at label counts and lengths before training? | a label with ten texts is judged by luck |
# | 2 | Is no text on both sides of the split? | the score is memory |
# | 3 | Was each habit timed on your own texts? | you keep what does not pay |
# | 4 | Do batch and precision have a reason that you wrote down? | nobody knows what to change next |
# | 5 | Had every trial the same budget, and are all of them in the bill? | the comparison is unfair, the cost too low |
# | 6 | Does the score come from three seeds or more, with its range? | half a score |
# | 7 | Has a test set that no decision has seen the last word? | the score flatters |
# | 8 | Do config, seed, time and cost stand beside the model? | nobody can train it again |
#
# ## Longer projects
#
# Six projects of a day or two. Each has data, a target and a rubric of 100 points; you judge your own work. A missed
# target with an honest measurement and a reason keeps half of the target's points. The commands take your own
# `your.csv`, with columns `text` and `label`; `docstrings` is the built-in data.
#
# Type the commands in a terminal (in JupyterLab: File, New, Terminal), in the folder of your table. Each run prints its
# scores and leaves `report.html` in its folder, with scores per label and per length. `--set seed=1` and another `--out`
# give the next seed; `course-lib compare` puts runs side by side, with trained parameters, peak memory, time and cost.
# `--set max_steps=20` tries a command out before you wait for it.
#
# <details><summary><b>A. Intent classifier</b> · 20 to 40 % less training time than the naive loop</summary>
#
# *Data:* short requests and their intents, 1,000 or more. *Target:* training time at least 20 to 40 % below the naive
# loop's, which is 1.25× to 1.67× in the last row of `bench`, at a macro F1 within 0.5 points. Short texts leave little
# padding to save: find out what is left. The [cell below](#What-the-commands-do-not-tell) scores the naive loop and lists
# errors.
#
# ```
# course-lib bench --data your.csv --out runs/bench --set max_length=32
# course-lib train --data your.csv --out runs/intent --set max_length=32 --set monitor=macro_f1
# ```
#
# | Criterion | Points |
# |---|---|
# | Target reached, with the interval of the speedup | 40 |
# | Macro F1 of both sides on five equal seeds | 25 |
# | Each change timed on its own; one that did not pay is named | 20 |
# | The ten worst errors, read and sorted | 15 |
#
# </details>
# <details><summary><b>B. Long documents by bucketing</b> · half of the padding at least</summary>
#
# *Data:* texts whose lengths differ by ten times or more; `docstrings` will do. *Target:* half the pad fraction of
# random batches, 1.3× the samples a second (the row "length buckets" of `bench`), macro F1 within 0.5 points of the naive
# loop's. Pad fractions and that score come from the [cell below](#What-the-commands-do-not-tell); scores by length are in
# `report.html`.
#
# ```
# course-lib bench --data docstrings --out runs/long --set max_length=512 --blocks 3
# course-lib train --data docstrings --out runs/long-512 --set max_length=512 --set monitor=macro_f1
# ```
#
# | Criterion | Points |
# |---|---|
# | Pad fraction and speedup reach the target | 40 |
# | Scores by length: the long texts did not pay for it | 25 |
# | Another order in each epoch, shown | 15 |
# | `max_length` of 128, 256, 512: score against time, drawn | 20 |
#
# </details>
# <details><summary><b>C. Token tagger with accumulation</b> · F1 before and after</summary>
#
# *Data:* built in: Python source, a kind for each token. *Target:* an update of 64 texts from micro-batches of 8, with a
# macro F1 within 0.5 points of the best of updates of 8. Report F1 before and after.
#
# ```
# course-lib train --data docstrings --out runs/tag-8 --set task=token-classification --set micro_batch_size=8
# course-lib train --config runs/tag-8/config.yaml --out runs/tag-64 --set global_batch_size=64 --set base_batch_size=8 --set lr_scaling=sqrt
# course-lib compare runs/tag-8 runs/tag-64
# ```
#
# | Criterion | Points |
# |---|---|
# | F1 before and after, three seeds each | 35 |
# | The loss is weighted by tokens; a test shows it equal to the large batch | 30 |
# | Peak memory of both | 15 |
# | F1 of each kind of token; the rarest two explained | 20 |
#
# </details>
# <details><summary><b>D. Adapters</b> · 5 to 10 times fewer trainable parameters</summary>
#
# *Data:* `your.csv`, and a pretrained Hugging Face model in a FOLDER on your disk, as `save_pretrained` of model and
# tokenizer writes it. The commands need `pip install 'training-workbook[hf]'`. *Target:* at least 5 to 10 times fewer
# trainable parameters, macro F1 within 1 point of training all weights. `compare` counts them: `num_trainable`.
#
# ```
# course-lib train --data your.csv --out runs/all --set hf_model=FOLDER
# course-lib train --data your.csv --out runs/adapters --set hf_model=FOLDER --set lora_rank=8 --set learning_rate=3e-3
# course-lib compare runs/all runs/adapters
# ```
#
# | Criterion | Points |
# |---|---|
# | Parameters with `requires_grad`, counted, in the target | 30 |
# | Macro F1 within 1 point on three seeds | 30 |
# | Three ranks: score, time, memory | 25 |
# | When would you train all weights? Two sentences with numbers | 15 |
#
# </details>
# <details><summary><b>E. Cost-to-target dashboard</b> · one page that a manager can read</summary>
#
# *Data:* any. *Target:* three configs or more that reach the same score, ordered by what the way there cost; the best
# costs at most two thirds of the first.
#
# ```
# course-lib train --data your.csv --out runs/a --set price_per_hour=0.80 --set monitor=accuracy --set target=0.6
# course-lib train --config runs/a/config.yaml --out runs/b --set learning_rate=3e-3
# course-lib train --config runs/a/config.yaml --out runs/c --set max_length=64
# course-lib dashboard runs
# ```
#
# | Criterion | Points |
# |---|---|
# | Cost to target with units, three seeds for each config | 35 |
# | The best at two thirds of the first's cost or less | 25 |
# | Runs that never reach the target are shown, and paid for | 20 |
# | Assumptions: price, idle time, energy labelled as an estimate | 20 |
#
# </details>
# <details><summary><b>F. Vision sprint</b> · 1.7× at equal accuracy</summary>
#
# *Data:* images that you draw yourself; the cell below makes shapes on noise. *Target:* 1.7× over the naive loop, the
# accuracy within 0.5 points. The cell is a start: make the images larger, then add augmentation and a deeper model.
#
# | Criterion | Points |
# |---|---|
# | 1.7× or more, with its interval | 40 |
# | Equal accuracy on unseen images, five seeds | 25 |
# | Step time by station, before and after | 20 |
# | Augmentation on whole batches, not image by image | 15 |
#
# </details>
#
# ### What the commands do not tell
#
# The naive loop's score, the padding of random batches, and the texts behind the errors. The cell takes this notebook's
# `config`, so that it is quick; give it yours with `replace(config, data="your.csv", max_length=32, seed=1)`. Model,
# optimizer, schedule and validation texts are those of `course-lib train`: what is left differs in speed alone, but for
# the order of the texts.

# %%
import numpy as np
import torch

from course_lib import BucketBatchSampler, evaluate, naive_epoch, pad_fraction, seed_everything
from course_lib.components import build_components
from course_lib.distributed import Ranks
from course_lib.predict import Predictor


def naive_macro_f1(config, data):
    """Train with the naive loop; the best macro F1 of its epochs."""
    seed_everything(config.seed)
    parts = build_components(config, data, torch.device("cpu"), Ranks(), settled=None)
    widest, scores = int(data.train.lengths.max()), []
    for epoch in range(parts.max_epochs):
        naive_epoch(
            parts.model, data.train, parts.optimizer, scheduler=parts.scheduler, pad_to=widest,
            micro_batch_size=config.micro_batch_size, seed=100 * config.seed + epoch,
        )  # fmt: skip
        scores.append(evaluate(parts.model, parts.validation_batches)["macro_f1"])
    return max(scores)


data = load_data(config, RunFolder(folder / "naive"), progress=False)
efficient = batches["16"]["validation"]["macro_f1"]
print(f"macro F1: naive {naive_macro_f1(config, data):.3f}, efficient {efficient:.3f}")

lengths, size = data.train.lengths, config.micro_batch_size
order = np.random.default_rng(0).permutation(len(lengths))
at_random = pad_fraction(lengths, np.split(order, range(size, len(order), size)))
in_buckets = pad_fraction(lengths, BucketBatchSampler(lengths, size))
print(f"padding: {at_random:.1%} of random batches, {in_buckets:.1%} with buckets")

tokenizer, names = data.validation.load_tokenizer(), data.validation.label_names
held_out = [tokenizer.decode(ids.tolist()) for ids, _ in data.validation]
answers = Predictor.load(folder / "batch-16").predict(held_out)
errors = [
    (sure, said, names[label], " ".join(text.split()))
    for (said, sure), (_, label), text in zip(answers, data.validation, held_out, strict=True)
    if said != names[label]
]
for sure, said, right, text in sorted(errors, reverse=True)[:3]:  # A asks for ten
    print(f"said {said} ({sure:.0%}), is {right}: {text[:60]}")

# %% [markdown]
# ### The vision sprint's start
#
# Both sides of the vision sprint do the same updates. The naive one makes each batch image by image in Python, and asks
# for the loss at every step. The lean one keeps bytes, and scales a whole batch at once.

# %%
import numpy as np
import torch
from torch import nn

from course_lib.bench import paired_speedup


def draw_shapes(num_images, seed, side=32):
    """Images (N, side, side), bytes: a square, a disc or a cross on noise; and their labels (N,)."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=num_images)
    y, x = np.mgrid[:side, :side]
    centre = rng.uniform(9, side - 9, (2, num_images, 1, 1))
    dy, dx = np.abs(y - centre[0]), np.abs(x - centre[1])
    cross = (np.minimum(dy, dx) < 2) & (np.maximum(dy, dx) < 8)
    shapes = np.stack([np.maximum(dy, dx) < 5, dy**2 + dx**2 < 36, cross])
    noise = rng.integers(0, 100, (num_images, side, side))
    return (noise + 120 * shapes[labels, np.arange(num_images)]).astype(np.uint8), labels


class Sprint:
    def __init__(self, is_lean):
        torch.manual_seed(0)
        layers = [
            nn.Conv2d(1, 8, 3, stride=2),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2),
            nn.ReLU(),
        ]
        head = [nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(16, 3)]
        self.model = nn.Sequential(*layers, *head)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.images, self.labels = draw_shapes(1024, seed=1)
        self.rng, self.is_lean = np.random.default_rng(0), is_lean

    def batch(self, rows):
        labels = torch.from_numpy(self.labels[rows])
        if self.is_lean:
            return torch.from_numpy(self.images[rows])[:, None].float() / 255, labels
        images = [[[p / 255 for p in line] for line in self.images[i].tolist()] for i in rows]
        return torch.stack([torch.tensor(image)[None] for image in images]), labels

    def step(self):
        pixels, labels = self.batch(self.rng.integers(1024, size=32))
        loss = nn.functional.cross_entropy(self.model(pixels), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach() if self.is_lean else loss.item()

    @torch.inference_mode()
    def accuracy(self):
        images, labels = draw_shapes(500, seed=2)
        logits = self.model(torch.from_numpy(images)[:, None].float() / 255)
        return float((logits.argmax(1).numpy() == labels).mean())


for is_lean in (False, True):
    sprint = Sprint(is_lean)
    for _ in range(200):
        sprint.step()
    print(
        f"{'lean' if is_lean else 'naive'}: accuracy {sprint.accuracy():.1%} after 200 steps"
    )
print(paired_speedup(Sprint(False).step, Sprint(True).step, blocks=3, min_seconds=0.1))

# %% [markdown]
# The pixels are the same numbers up to rounding, made in another way; so the two accuracies should be nearly equal.
#
# ## What next
#
# You have taken a table to a model with a price and an error bar.
#
# - Do it again on a table from your own work, and keep the config file beside the model.
# - Take one of the longer projects.
# - The [skill exam](../09_skill_exam/09_skill_exam.ipynb) asks about all eight lessons.
# - The [start page](../00_start_here/00_start_here.ipynb) shows your progress and the map.
