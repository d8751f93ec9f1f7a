"""Right solutions of lesson 05 by ways that few take."""

# %%
from scipy import stats

from autograder import exercise


@exercise("5.1")
def sample(space, rng):
    """A distribution of scipy for every draw, made anew each time: slow, and right."""
    laws = {
        "log": lambda low, high: stats.loguniform(low, high),
        "float": lambda low, high: stats.uniform(low, high - low),
        "int": lambda low, high: stats.randint(low, high + 1),
    }
    for name, part in space.items():
        kind = part["kind"]
        if (kind in ("log", "float") and not part["low"] < part["high"]) or (
            kind == "log" and part["low"] <= 0
        ):
            raise ValueError(f"{name}: no range of kind {kind}")
    drawn = {}
    for name in sorted(space, key=lambda name: "when" in space[name]):
        part = space[name]
        if "when" in part and drawn[part["when"][0]] != part["when"][1]:
            continue
        if part["kind"] == "choice":
            drawn[name] = part["values"][int(stats.randint(0, len(part["values"])).rvs(random_state=rng))]
        else:
            drawn[name] = laws[part["kind"]](part["low"], part["high"]).rvs(random_state=rng)
    return drawn


# %%
import copy

import numpy as np
import torch

from autograder import exercise


@exercise("5.2")
def run_trials(task, configs, seeds, num_steps):
    """All trials of a seed side by side, each with a state of torch of its own; judged on all samples at once."""
    table = np.zeros((len(configs), len(seeds)))
    texts = [copy.deepcopy(batch) for batch in task.validation_batches()]
    objective = torch.nn.NLLLoss(reduction="none")
    for column, seed in enumerate(seeds):
        trials = []
        for config in configs:
            torch.manual_seed(seed)
            model = task.make_model(config).train()
            optimizer, state = task.make_optimizer(model, config), torch.get_rng_state()
            trials.append((model, optimizer, task.train_batches(seed), [state]))
        for _ in range(num_steps):
            for model, optimizer, batches, state in trials:
                batch = next(batches)
                torch.set_rng_state(state.pop())

                def closure(model=model, batch=batch):
                    model.zero_grad()
                    logits = model(attention_mask=batch["attention_mask"], input_ids=batch["input_ids"])
                    loss = objective(logits.log_softmax(dim=-1), batch["labels"]).mean()
                    loss.backward()
                    return loss

                optimizer.step(closure)
                state.append(torch.get_rng_state())
        for row, (model, *_) in enumerate(trials):
            model.eval()
            losses = [
                objective(model(text["input_ids"], text["attention_mask"]).log_softmax(-1), text["labels"])
                for text in texts
            ]
            value = torch.cat(losses).mean().item()
            table[row, column] = value if abs(value) < float("inf") else float("inf")
    return table


# %%
import math

from autograder import exercise


@exercise("5.3")
def successive_halving(configs, train, min_steps, reduction_factor, max_total_steps):
    """One step at a time, and each round a call of its own."""
    if max_total_steps < min_steps * len(configs):
        raise ValueError("round 1 does not fit")
    bill = dict.fromkeys(range(len(configs)), 0)

    def train_to(place, steps):
        loss = math.nan
        while bill[place] < steps:
            loss = train(config=configs[place], num_steps=1)
            bill[place] += 1
        return loss

    def play(alive, steps):
        losses = [(train_to(place, steps), place) for place in alive]
        ranked = sorted((pair for pair in losses if pair[0] == pair[0]), reverse=False)
        ranked += [(math.inf, place) for loss, place in losses if loss != loss]
        going_on = [place for _, place in ranked[: len(ranked) // reduction_factor or 1]]
        price = len(going_on) * steps * (reduction_factor - 1)
        if len(alive) == 1 or sum(bill.values()) + price > max_total_steps:
            return ranked[0]
        return play(going_on, steps * reduction_factor)

    value, best = play(list(bill), min_steps)
    return {
        "best": best,
        "value": value,
        "num_steps": list(bill.values()),
        "total_steps": sum(bill.values()),
        "rounds": None,
    }
