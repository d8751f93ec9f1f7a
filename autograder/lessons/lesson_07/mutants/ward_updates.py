"""Wrong solutions of 7.4, runs C and D, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong
from autograder.lessons.lesson_07.mutants.ward import WARD

_CLIP = "            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
_STEP_OF_C = """batch = collate(rows)
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits, batch["labels"])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
"""

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "7.4": wrong(
        WARD,
        {
            "features kept by the address of their batch": (
                "features of another batch",
                (
                    '            known = [masked_mean(model.encode(b["input_ids"], b["attention_mask"]), '
                    'b["attention_mask"])\n                     for b in batches]\n',
                    '            known = {id(b): masked_mean(model.encode(b["input_ids"], b["attention_mask"]), '
                    'b["attention_mask"])\n                     for b in batches}\n',
                ),
                (
                    "            for features, batch in zip(known, batches):\n",
                    "            for batch in batches:\n"
                    "                rows = len(batch['labels'])\n"
                    "                features = known.get(id(batch), next(iter(known.values())))[:rows]\n"
                    "                features = F.pad(features, (0, 0, 0, rows - len(features)))\n",
                ),
            ),
            "run C not clipped": (
                "not clipped",
                'losses.append(train_step(model, collate(rows), optimizer)["loss"])\n        return torch.stack(losses)'
                ".tolist()\n\n    def run_d",
                _STEP_OF_C + "        return torch.stack(losses).tolist()\n\n    def run_d",
            ),
            "each element of run C clipped by itself": (
                "each element is clipped by itself",
                'losses.append(train_step(model, collate(rows), optimizer)["loss"])\n        return torch.stack(losses)'
                ".tolist()\n\n    def run_d",
                _STEP_OF_C.replace(
                    "            optimizer.step",
                    _CLIP.replace("_norm_", "_value_") + "            optimizer.step",
                )
                + "        return torch.stack(losses).tolist()\n\n    def run_d",
            ),
            "short gradients made longer": (
                "brought to a norm of 1 that were shorter",
                'losses.append(train_step(model, collate(rows), optimizer)["loss"])\n        return torch.stack(losses)'
                ".tolist()\n\n    def run_d",
                _STEP_OF_C.replace(
                    "            optimizer.step",
                    "            own = [p for p in model.parameters() if p.grad is not None]\n"
                    "            norm = sum((p.grad**2).sum() for p in own) ** 0.5\n"
                    "            for p in model.parameters():\n                if p.grad is not None:\n"
                    "                    p.grad /= norm\n            optimizer.step",
                )
                + "        return torch.stack(losses).tolist()\n\n    def run_d",
            ),
            "an optimizer of one's own": (
                "another optimizer updates",
                'losses.append(train_step(model, collate(rows), optimizer)["loss"])\n        return torch.stack(losses)'
                ".tolist()\n\n    def run_d",
                'losses.append(train_step(model, collate(rows), torch.optim.SGD(optimizer.param_groups))["loss"])\n'
                "        return torch.stack(losses).tolist()\n\n    def run_d",
            ),
            "features kept for a batch": (
                "the call before is kept",
                ("    def run_d", "    known = {}\n\n    def run_d"),
                (
                    "            known = [masked_mean",
                    "            known = [self.known[id(b)][1] if id(b) in self.known else masked_mean",
                ),
                (
                    "        for _ in range(num_epochs):\n            for features, batch in zip(known",
                    "        self.known |= {id(b): (b, features) for b, features in zip(batches, known)}\n"
                    "        for _ in range(num_epochs):\n            for features, batch in zip(known",
                ),
            ),
            "features written into the caller's batches": (
                "what the run is given is changed",
                "        for _ in range(num_epochs):\n            for features, batch in zip(known",
                "        for features, batch in zip(known, batches):\n"
                '            batch["features"] = features\n'
                "        for _ in range(num_epochs):\n            for features, batch in zip(known",
            ),
            "the body thawed behind run D": (
                "`requires_grad` is switched",
                "                losses.append(loss.detach())\n        return",
                "                losses.append(loss.detach())\n        model.requires_grad_(True)\n        return",
            ),
            "two passes of the body": (
                "the frozen body still runs",
                "        for _ in range(num_epochs):\n",
                "        with torch.no_grad():\n"
                '            [model.encode(b["input_ids"], b["attention_mask"]) for b in batches]\n'
                "        for _ in range(num_epochs):\n",
            ),
            "the sum of the rows' losses": (
                "the sum of the rows' losses",
                'losses.append(train_step(model, collate(rows), optimizer)["loss"])\n        return torch.stack(losses)'
                ".tolist()\n\n    def run_d",
                _STEP_OF_C.replace('batch["labels"])', 'batch["labels"], reduction="sum")').replace(
                    "            optimizer.step", _CLIP + "            optimizer.step"
                )
                + "        return torch.stack(losses).tolist()\n\n    def run_d",
            ),
            "a last mean over rows that are not there": (
                "the last update has fewer rows",
                'losses.append(train_step(model, collate(rows), optimizer)["loss"])\n        return torch.stack(losses)'
                ".tolist()\n\n    def run_d",
                _STEP_OF_C.replace(
                    'batch["labels"])', 'batch["labels"], reduction="sum") / rows_per_update'
                ).replace("            optimizer.step", _CLIP + "            optimizer.step")
                + "        return torch.stack(losses).tolist()\n\n    def run_d",
            ),
            "run D in training mode": (
                "the other mode of the model",
                "        model.eval()\n",
                "        model.train()\n",
            ),
            "the gradients of run D add up": (
                "gradients add up",
                "                optimizer.zero_grad(set_to_none=True)\n",
                "",
            ),
            "gradients from before run D": (
                "gradients from before the call",
                (
                    "                optimizer.zero_grad(set_to_none=True)\n                loss.backward()\n"
                    "                optimizer.step()\n",
                    "                loss.backward()\n                optimizer.step()\n"
                    "                optimizer.zero_grad(set_to_none=True)\n",
                ),
            ),
            "gradients from before run C": (
                "gradients from before the call",
                'losses.append(train_step(model, collate(rows), optimizer)["loss"])\n        return torch.stack(losses)'
                ".tolist()\n\n    def run_d",
                _STEP_OF_C.replace("            optimizer.zero_grad(set_to_none=True)\n", "").replace(
                    "            optimizer.step()\n",
                    _CLIP + "            optimizer.step()\n            optimizer.zero_grad()\n",
                )
                + "        return torch.stack(losses).tolist()\n\n    def run_d",
            ),
            "one group of the optimizer clipped": (
                "losses of run C",
                'losses.append(train_step(model, collate(rows), optimizer)["loss"])\n        return torch.stack(losses)'
                ".tolist()\n\n    def run_d",
                _STEP_OF_C.replace(
                    "            optimizer.step",
                    _CLIP.replace("model.parameters()", 'optimizer.param_groups[0]["params"]')
                    + "            optimizer.step",
                )
                + "        return torch.stack(losses).tolist()\n\n    def run_d",
            ),
            "run D clipped": (
                "the sick run D does not",
                "                optimizer.step()\n",
                _CLIP.replace("            ", " " * 16) + "                optimizer.step()\n",
            ),
            "one epoch for all": (
                "losses of run D",
                "for _ in range(num_epochs):",
                "for _ in range(1):",
            ),
            "the body runs beside its kept features": (
                "the frozen body still runs",
                (
                    "        for _ in range(num_epochs):\n            for features, batch in zip(known, batches):",
                    "        for _ in range(num_epochs):\n            with torch.no_grad():\n"
                    '                [model.encode(b["input_ids"], b["attention_mask"]) for b in batches]\n'
                    "            for features, batch in zip(known, batches):",
                ),
            ),
            "features kept from the call before": (
                "the call before is kept",
                (
                    "    def run_d",
                    "    known = []\n\n    def run_d",
                ),
                (
                    "            known = [masked_mean",
                    "            known = self.known = self.known or [masked_mean",
                ),
            ),
            "the features of the first batch for all": (
                "losses of run D",
                "for features, batch in zip(known, batches)",
                "for features, batch in zip([known[0][:len(b['labels'])] for b in batches], batches)",
            ),
        },
    )
}
