"""The frozen baselines that speeds of lesson 1 are measured against. They never change with the library."""

PAD_TO_MAXIMUM = '''
import numpy as np
import torch

def collate(batch):
    """Every row as wide as the longest text of the data set."""
    input_ids = np.zeros((len(batch), 1024), dtype=np.int64)
    attention_mask = np.zeros((len(batch), 1024), dtype=bool)
    for row, (ids, _) in enumerate(batch):
        input_ids[row, : len(ids)] = ids
        attention_mask[row, : len(ids)] = True
    return {
        "input_ids": torch.from_numpy(input_ids),
        "attention_mask": torch.from_numpy(attention_mask),
        "labels": torch.tensor([label for _, label in batch]),
    }
'''

RANDOM_BATCHES = '''
import numpy as np

class BucketBatchSampler:
    """Batches of random samples, long beside short."""

    def __init__(self, lengths, micro_batch_size, seed=0):
        self.size, self.micro_batch_size, self.seed, self.epoch = len(lengths), micro_batch_size, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return -(-self.size // self.micro_batch_size)

    def __iter__(self):
        order = np.random.default_rng([self.seed, self.epoch]).permutation(self.size)
        for start in range(0, self.size, self.micro_batch_size):
            yield order[start : start + self.micro_batch_size].tolist()
'''

ONE_AFTER_THE_OTHER = '''
def make_loader(dataset, micro_batch_size, collate_fn):
    """Fetch, collate, hand out, and only then fetch again."""
    return _Loader(dataset, micro_batch_size, collate_fn)

class _Loader:
    def __init__(self, dataset, micro_batch_size, collate_fn):
        self.dataset, self.micro_batch_size, self.collate_fn = dataset, micro_batch_size, collate_fn

    def __iter__(self):
        for start in range(0, len(self.dataset), self.micro_batch_size):
            stop = min(start + self.micro_batch_size, len(self.dataset))
            yield self.collate_fn([self.dataset[index] for index in range(start, stop)])
'''

NAIVE_EPOCH = '''
from course_lib.measuring.naive import naive_epoch

def fast_epoch(model, samples, optimizer, micro_batch_size, seed):
    """The naive loop: pad to the longest text of the data set, a sync at every step."""
    return naive_epoch(
        model, samples, optimizer, pad_to=model.config.max_length, micro_batch_size=micro_batch_size, seed=seed
    )
'''

# The two twins below hold one mistake on request: a wrong result that equals a twin's names its mistake. Beside the
# right numbers they give those that come of a mistake in the report alone.

TRAIN_EPOCH = """
import torch
import torch.nn.functional as F

MISTAKE = "none"

def train_one_epoch(model, batches, optimizer, scheduler, max_norm=1.0):
    model.train()
    if MISTAKE == "max_norm ignored":
        max_norm = 1.0
    parameters = list(model.parameters())
    groups = [group["params"] for group in optimizer.param_groups]
    of_first = []
    losses, later, rows, norms, clipped, tokens, slots, fractions = [], [], [], [], [], 0, 0, []
    for batch in batches:
        if MISTAKE == "scheduler first":
            scheduler.step()
        loss = loss_of(model, batch)
        if MISTAKE not in ("gradients never cleared", "gradients cleared late"):
            for some in groups[:1] if MISTAKE == "first group cleared" else groups:
                for p in some:
                    p.grad = None
        loss.backward()
        of_first.append(norm_of(groups[0]))
        norms.append(norm_of(parameters))
        if MISTAKE == "clipped by value":
            torch.nn.utils.clip_grad_value_(parameters, max_norm)
        elif MISTAKE == "scaled up":
            for p in parameters:
                p.grad = None if p.grad is None else p.grad * (max_norm / norms[-1])
        elif MISTAKE in ("first group clipped", "last group clipped", "group by group"):
            where = {"first group clipped": groups[:1], "last group clipped": groups[-1:]}
            for some in where.get(MISTAKE, groups):
                torch.nn.utils.clip_grad_norm_(some, max_norm)
        elif MISTAKE != "unclipped":
            torch.nn.utils.clip_grad_norm_(parameters, max_norm)
        clipped.append(norm_of(parameters))
        optimizer.step()
        if MISTAKE == "gradients cleared late":
            optimizer.zero_grad()
        if MISTAKE != "scheduler first":
            scheduler.step()
        losses.append(loss.detach())
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            later.append(loss_of(model, batch))
        rows.append(len(batch["labels"]))
        real = int(batch["attention_mask"].sum())
        tokens += real
        slots += batch["input_ids"].numel()
        fractions.append(1 - real / batch["input_ids"].numel())
    weights = torch.tensor(rows, dtype=torch.float64)
    losses, later, norms, clipped = (torch.stack(some).double() for some in (losses, later, norms, clipped))
    report = {
        "loss": (losses * weights).sum() / weights.sum(),
        "loss after the step": (later * weights).sum() / weights.sum(),
        "loss of the last": losses[-1],
        "mean_of_means": losses.mean(),
        "grad_norm": norms.mean(),
        "norm after clipping": clipped.mean(),
        "norm of the last": norms[-1],
        "norm of a group": torch.stack(of_first).double().mean(),
        "norm by samples": (norms * weights).sum() / weights.sum(),
        "largest norm": norms.max(),
        "norm of sums": (norms * weights).mean(),
        "num_samples": sum(rows),
        "num_batches": len(rows),
        "num_tokens": tokens,
        "num_slots": slots,
        "pad_fraction": 1 - tokens / slots,
        "mean_of_fractions": sum(fractions) / len(fractions),
    }
    return {name: float(value) for name, value in report.items()}

def loss_of(model, batch):
    mask = batch["attention_mask"]
    if MISTAKE == "mask ignored":
        mask = torch.ones_like(mask)
    if MISTAKE == "mask from ids":
        mask = batch["input_ids"] != 0
    smoothing = 0.1 if MISTAKE == "smoothed" else 0.0
    kind = "sum" if MISTAKE == "sum" else "mean"
    logits = model(batch["input_ids"], mask)
    return F.cross_entropy(logits, batch["labels"], reduction=kind, label_smoothing=smoothing)

def norm_of(parameters):
    return torch.cat([p.grad.flatten() for p in parameters if p.grad is not None]).norm()
"""

EVALUATE = """
import torch
import torch.nn.functional as F

MISTAKE = "none"

def evaluate(model, batches):
    was_training = model.training
    model.eval()
    losses, rows, correct, shares = [], [], 0, []
    with torch.no_grad():
        for batch in batches:
            mask = batch["attention_mask"]
            if MISTAKE == "mask ignored":
                mask = torch.ones_like(mask)
            if MISTAKE == "mask from ids":
                mask = batch["input_ids"] != 0
            logits = model(batch["input_ids"], mask)
            losses.append(F.cross_entropy(logits, batch["labels"]).double())
            rows.append(len(batch["labels"]))
            right = int((logits.argmax(-1) == batch["labels"]).sum())
            correct += right
            shares.append(right / rows[-1])
    model.train(was_training)
    weights = torch.tensor(rows, dtype=torch.float64)
    losses = torch.stack(losses)
    report = {
        "loss": (losses * weights).sum() / weights.sum(),
        "summed loss": (losses * weights).sum(),
        "mean_of_means": losses.mean(),
        "loss of the last": losses[-1],
        "accuracy": correct / sum(rows),
        "percent": 100 * correct / sum(rows),
        "num_correct": correct,
        "mean_of_accuracies": sum(shares) / len(shares),
        "num_samples": sum(rows),
        "num_batches": len(rows),
    }
    return {name: float(value) for name, value in report.items()}
"""
