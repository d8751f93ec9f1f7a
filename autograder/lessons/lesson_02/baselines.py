"""The frozen baselines of lesson 2, and its twins: a wrong result that equals a twin's names its mistake."""

from pathlib import Path

FP16_TRAINER = """
import torch
import torch.nn.functional as F

MISTAKE = "none"

class Fp16Trainer:
    def __init__(self, model, optimizer, *, max_norm=1.0, init_scale=2.0**16, growth_interval=2000):
        self.model, self.optimizer, self.max_norm = model, optimizer, max_norm
        self.scale, self.growth_interval, self.num_good = init_scale, growth_interval, 0

    def train_step(self, batch):
        parameters = list(self.model.parameters())
        scale = 1.0 if MISTAKE == "no scaling" else self.scale
        factor = 1.0 if MISTAKE == "divided alone" else scale
        mask = batch["attention_mask"]
        if MISTAKE == "mask ignored":
            mask = torch.ones_like(mask)
        if MISTAKE == "mask of ids":
            mask = batch["input_ids"] != 0
        with torch.autocast("cpu", torch.float16):
            logits = self.model(batch["input_ids"], mask)
            smoothing = 0.1 if MISTAKE == "smoothed" else 0.0
            loss = F.cross_entropy(logits, batch["labels"], label_smoothing=smoothing)
        if MISTAKE != "not cleared":
            self.optimizer.zero_grad()
        (loss * factor).backward()
        gradients = [p.grad for p in parameters]
        is_finite = all(torch.isfinite(g).all() for g in gradients)
        if MISTAKE == "clipped while scaled":
            torch.nn.utils.clip_grad_norm_(parameters, self.max_norm)
        for _ in range(2 if MISTAKE == "unscaled twice" else 1):
            for g in gradients:
                g /= scale
        if MISTAKE == "never unscaled":
            for g in gradients:
                g *= scale
        if MISTAKE == "clipped by value":
            torch.nn.utils.clip_grad_value_(parameters, self.max_norm)
        if MISTAKE in ("clipped while scaled", "never clipped", "clipped by value"):
            norm = torch.zeros(())
        elif MISTAKE == "each group":
            for group in self.optimizer.param_groups:
                norm = torch.nn.utils.clip_grad_norm_(group["params"], self.max_norm)
        else:
            norm = torch.nn.utils.clip_grad_norm_(parameters, self.max_norm)
        if MISTAKE == "always clipped":
            for g in gradients:
                g *= self.max_norm / min(norm, self.max_norm)
        if is_finite:
            self.optimizer.step()
            self.num_good += 1
            if self.num_good == self.growth_interval:
                self.scale, self.num_good = 2 * self.scale, 0
        else:
            self.scale, self.num_good = self.scale / 2, 0
        return {"loss": loss.detach(), "grad_norm": norm, "scale": self.scale}

    def state_dict(self):
        return {"scale": self.scale, "num_good": self.num_good}

    def load_state_dict(self, state):
        self.scale, self.num_good = state["scale"], state["num_good"]
"""

STEP = """
import torch
import torch.nn.functional as F

MISTAKE = "none"
DTYPE = torch.bfloat16

def mixed_step(model, batch, optimizer, max_norm):
    mask = batch["attention_mask"]
    if MISTAKE == "mask ignored":
        mask = torch.ones_like(mask)
    if MISTAKE == "mask of ids":
        mask = batch["input_ids"] != 0
    if MISTAKE == "old copies":
        torch.autocast_increment_nesting()  # those of the weights go with the outermost autocast
    with torch.autocast("cpu", DTYPE, enabled=DTYPE is not torch.float32):
        loss = F.cross_entropy(model(batch["input_ids"], mask), batch["labels"])
    if MISTAKE != "not cleared":
        optimizer.zero_grad()
    loss.backward()
    if MISTAKE == "each group":
        for group in optimizer.param_groups:
            torch.nn.utils.clip_grad_norm_(group["params"], max_norm)
    limit = float("inf") if MISTAKE in ("never clipped", "clipped by value", "each group") else max_norm
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
    if MISTAKE == "clipped by value":
        torch.nn.utils.clip_grad_value_(model.parameters(), max_norm)
    if MISTAKE == "always clipped":
        for parameter in model.parameters():
            parameter.grad *= max_norm / min(norm, max_norm)
    optimizer.step()
    return {"loss": loss.detach(), "grad_norm": norm}
"""

FP32_EPOCH = """
import torch
import torch.nn.functional as F

def train_epoch(model, batches, optimizer, precision, max_norm=1.0):
    model.train()
    total, num_samples = torch.zeros(()), 0
    for batch in batches:
        loss = F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        total += loss.detach() * len(batch["labels"])
        num_samples += len(batch["labels"])
    return {"loss": total.item() / num_samples, "num_samples": num_samples}
"""

EPOCH = """
import torch
import torch.nn.functional as F

MISTAKE = "none"

def train_epoch(model, batches, optimizer, precision, max_norm=1.0):
    if MISTAKE == "one autocast" and precision == "bf16-mixed":  # a closed one would keep copies as well
        with torch.autocast("cpu", torch.bfloat16):
            return train(model, batches, optimizer, precision, max_norm)
    return train(model, batches, optimizer, precision, max_norm)

def train(model, batches, optimizer, precision, max_norm):
    model.train()
    total, num_samples, num_batches = torch.zeros(()), 0, 0
    for batch in batches:
        mask = batch["attention_mask"]
        if MISTAKE == "mask ignored":
            mask = torch.ones_like(mask)
        if MISTAKE == "mask of ids":
            mask = batch["input_ids"] != 0
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16-mixed"):
            loss = F.cross_entropy(model(batch["input_ids"], mask), batch["labels"])
        if MISTAKE not in ("not cleared", "cleared late"):
            optimizer.zero_grad()
        (loss * len(mask) if MISTAKE == "sum" else loss).backward()
        if "group" in MISTAKE:
            for group in optimizer.param_groups[: 1 if MISTAKE == "one group" else None]:
                torch.nn.utils.clip_grad_norm_(group["params"], max_norm)
        none = float("inf")
        limits = {"never clipped": none, "each group": none, "one group": none, "max_norm ignored": 1.0}
        limit = limits.get(MISTAKE, max_norm)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
        if MISTAKE == "always clipped":
            for parameter in model.parameters():
                parameter.grad *= max_norm / min(norm, max_norm)
        optimizer.step()
        if MISTAKE == "cleared late":
            optimizer.zero_grad()
        weight = 1 if MISTAKE == "mean of means" else len(mask)
        total = loss.detach() if MISTAKE == "last batch" else total + loss.detach() * weight
        num_samples += len(mask)
        num_batches += 1
    divisor = {"mean of means": num_batches, "last batch": 1, "not divided": 1}.get(MISTAKE, num_samples)
    return {"loss": total.item() / divisor, "num_samples": num_samples}
"""

FRAGILE = (Path(__file__).parent / "harness" / "fragile.py").read_text(
    encoding="utf-8"
) + "\nSturdyClassifier = FragileClassifier\n"
