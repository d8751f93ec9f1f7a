"""Wrong solutions of 2.5, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong
from autograder.lessons.lesson_02.baselines import FRAGILE

_STURDY = edited(
    FRAGILE,
    ("        mean_square =", "        pooled = pooled.float()\n        mean_square ="),
    ("\nSturdyClassifier = FragileClassifier\n", ""),
    ("class FragileClassifier", '@exercise("2.5")\nclass SturdyClassifier'),
)
_REPAIR = "        pooled = pooled.float()\n"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "2.5": wrong(
        _STURDY,
        {
            "not repaired": ("a square above 65,504 is infinite", _REPAIR, ""),
            "norm in fp16": (
                "a norm, or a sum of squares, is formed in fp16",
                (_REPAIR, "        norm = torch.linalg.vector_norm(pooled, dim=-1, keepdim=True).float()\n"),
                ("(pooled * pooled).mean(dim=-1, keepdim=True)", "norm**2 / pooled.shape[-1]"),
            ),
            "converted after the square": (
                "a square above 65,504 is infinite",
                (_REPAIR, ""),
                ("(pooled * pooled).mean", "(pooled * pooled).float().mean"),
            ),
            "clamped": (
                "the repair changes the mathematics",
                _REPAIR,
                "        pooled = pooled.clamp(-250, 250)\n",
            ),
            "clamped, where only the loudest texts show it": (
                "the repair changes the mathematics",
                _REPAIR,
                "        pooled = pooled.float().clamp(-65_504, 65_504)\n",
            ),
            "clamped in bf16 alone": (
                "the values are limited",
                _REPAIR,
                "        is_fp32 = pooled.dtype is torch.float32\n"
                "        pooled = pooled if is_fp32 else pooled.float().clamp(-65_504, 65_504)\n",
            ),
            "the head in fp32": (
                "such as the head's",
                "        return self.head(normal * self.gain)",
                "        with torch.autocast('cpu', enabled=False):\n"
                "            return self.head(normal * self.gain)",
            ),
            "a constant factor": (
                "underflow to zero",
                (_REPAIR, ""),
                ("(pooled * pooled).mean", "((pooled / 4096) * (pooled / 4096)).mean"),
                ("torch.sqrt(mean_square + 1e-6)", "(4096 * torch.sqrt(mean_square + 1e-6 / 4096**2))"),
            ),
            "the whole forward in fp32": (
                "the whole forward is taken out of fp16",
                "        weights = ",
                "        torch.set_autocast_enabled('cpu', False)\n        weights = ",
            ),
            "another epsilon": ("another epsilon", "1e-6", "1e3"),
            "__init__ changed": ("`__init__` was changed", "std=200.0", "std=1.0"),
            "one scale for the whole batch": (
                "one scale for the whole batch",
                (_REPAIR, "        scale = pooled.detach().abs().max()\n        pooled = pooled / scale\n"),
                ("mean_square + 1e-6", "mean_square + 1e-6 / scale**2"),
            ),
            "in fp32 in training alone": (
                "repaired in training mode alone",
                _REPAIR,
                "        pooled = pooled.float() if self.training else pooled\n",
            ),
            "made for one width": (
                "the repair changes the mathematics",
                "mean_square = (pooled * pooled).mean(dim=-1, keepdim=True)",
                "mean_square = (pooled * pooled).sum(dim=-1, keepdim=True) / 64",
            ),
            "no epsilon": ("0 is divided by 0", "mean_square + 1e-6", "mean_square"),
            "another epsilon, hardly": ("another epsilon", "1e-6", "1e-7"),
            "fp16 whatever is open": (
                "whatever autocast is open around it",
                "        weights = ",
                "        with torch.autocast('cpu', torch.float16, enabled=torch.is_autocast_enabled('cpu')):\n"
                "            return self._forward(input_ids, attention_mask)\n\n"
                "    def _forward(self, input_ids, attention_mask):\n        weights = ",
            ),
            "bf16 whatever is open": (
                "the whole forward is taken out of fp16",
                "        weights = ",
                "        with torch.autocast('cpu', torch.bfloat16, enabled=torch.is_autocast_enabled('cpu')):\n"
                "            return self._forward(input_ids, attention_mask)\n\n"
                "    def _forward(self, input_ids, attention_mask):\n        weights = ",
            ),
            "the hidden layer in fp32": (
                "the whole forward is taken out of fp16",
                ("F.gelu(self.hidden(self.words(input_ids)))", "F.gelu(hidden)"),
                (
                    "        features =",
                    "        with torch.autocast('cpu', enabled=False):\n"
                    "            hidden = self.hidden(self.words(input_ids))\n        features =",
                ),
            ),
            "gradients of fp16 where forward is repaired": (
                "backward still goes through fp16",
                _REPAIR,
                "        is_half, pooled = pooled.dtype is torch.float16, pooled.float()\n"
                "        pooled = pooled + 0.1 * is_half * (pooled - pooled.detach())\n",
            ),
            "padding read as text": (
                "the repair changes the mathematics",
                "weights = attention_mask",
                "attention_mask = torch.ones_like(attention_mask)\n        weights = attention_mask",
            ),
            "a mask made of the ids": (
                "the repair changes the mathematics",
                "weights = attention_mask",
                "attention_mask = input_ids != 0\n        weights = attention_mask",
            ),
            "added up before it is divided": (
                "fp16's sum passes 65,504",
                (
                    'torch.einsum("bth,bt->bh", features, weights)',
                    'torch.einsum("bth,bt->bh", features, attention_mask.to(features.dtype))',
                ),
                (_REPAIR, "        pooled = pooled.float() / attention_mask.sum(dim=1, keepdim=True)\n"),
            ),
            "one scale for each text, and none for zeros": (
                "0 is divided by 0",
                (
                    _REPAIR,
                    "        scale = pooled.detach().abs().amax(dim=-1, keepdim=True).float()\n"
                    "        pooled = pooled / scale\n",
                ),
                ("mean_square + 1e-6", "mean_square + 1e-6 / scale**2"),
            ),
            "a layer with another name": (
                "no checkpoint of FragileClassifier",
                "self.head",
                "self.classifier",
            ),
            "the ids changed in place": (
                "of the caller are changed",
                "        weights = ",
                "        input_ids.masked_fill_(~attention_mask, 0)\n        weights = ",
            ),
            "the divisor without its gradient": (
                "a part of the graph is cut",
                "torch.sqrt(mean_square + 1e-6)",
                "torch.sqrt(mean_square + 1e-6).detach()",
            ),
            "autocast left off": (
                "autocast is switched",
                "        return self.head(normal * self.gain)",
                "        logits = self.head(normal * self.gain)\n"
                "        torch.set_autocast_enabled('cpu', False)\n        return logits",
            ),
            "the gain without its sign": (
                "the repair changes the mathematics",
                "normal * self.gain",
                "normal * self.gain.abs()",
            ),
            "rounded to fp16 in fp32 as well": (
                "rounds to 16 bits in fp32 as well",
                "self.head(normal * self.gain)",
                "self.head((normal * self.gain).to(torch.float16).float())",
            ),
            "another GELU": (
                "changes the mathematics a little",
                "F.gelu(self.hidden(self.words(input_ids)))",
                "F.gelu(self.hidden(self.words(input_ids)), approximate='tanh')",
            ),
            "clamped in fp16 alone": (
                "the values are limited",
                _REPAIR,
                "        is_half, pooled = pooled.dtype is torch.float16, pooled.float()\n"
                "        pooled = pooled.clamp(-40_000, 40_000) if is_half else pooled\n",
            ),
            "the mean over the words in fp32": (
                "or the mean over the words",
                'pooled = torch.einsum("bth,bt->bh", features, weights)',
                "with torch.autocast('cpu', enabled=False):\n"
                '            pooled = torch.einsum("bth,bt->bh", features.float(), weights)',
            ),
            "the mask of the batch before": (
                "the repair changes the mathematics",
                "        weights = attention_mask / attention_mask.sum(dim=1, keepdim=True)",
                "        kept = getattr(self, 'kept', None)\n"
                "        if kept is None or kept.shape != attention_mask.shape:\n"
                "            self.kept = attention_mask / attention_mask.sum(dim=1, keepdim=True)\n"
                "        weights = self.kept",
            ),
            "arguments with other names": (
                "code that runs",
                ("vocab_size", "num_words"),
            ),
            "without the gain": ("the repair changes the mathematics", "normal * self.gain", "normal"),
        },
    ),
}
