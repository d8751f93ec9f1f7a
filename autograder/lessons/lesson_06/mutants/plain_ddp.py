"""Wrong solutions of 6.2, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_PLAIN = """
import torch
import torch.utils.checkpoint
import torch.distributed as dist
import torch.nn.functional as F

@exercise("6.2")
class PlainDDP:
    def __init__(self, model):
        self.model = model
        for tensor in model.state_dict().values():
            dist.broadcast(tensor, src=0)

    def loss_and_gradients(self, batch):
        logits = self.model(batch["input_ids"], batch["attention_mask"])
        loss = F.cross_entropy(logits, batch["labels"], reduction="sum")
        totals = torch.tensor([loss.item(), len(batch["labels"])], dtype=torch.float64)
        dist.all_reduce(totals)
        (loss / totals[1]).backward()
        for parameter in self.model.parameters():
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
        return float(totals[0] / totals[1])
"""
_BROADCAST = "        for tensor in model.state_dict().values():\n            dist.broadcast(tensor, src=0)\n"
_REDUCE = "                dist.all_reduce(parameter.grad)\n"
_RETURN = "        return float(totals[0] / totals[1])\n"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "6.2": wrong(
        _PLAIN,
        {
            "every rank computes the samples of all": (
                "each rank computes all of them",
                (
                    '        logits = self.model(batch["input_ids"], batch["attention_mask"])\n',
                    "        found = [None] * dist.get_world_size()\n"
                    "        dist.all_gather_object(found, batch)\n"
                    "        losses = [\n"
                    '            F.cross_entropy(self.model(b["input_ids"], b["attention_mask"]), b["labels"], '
                    'reduction="sum")\n'
                    "            for b in found\n"
                    "        ]\n"
                    '        loss = sum(losses) / sum(len(b["labels"]) for b in found)\n'
                    "        loss.backward()\n"
                    "        return loss.item()\n"
                    '        logits = self.model(batch["input_ids"], batch["attention_mask"])\n',
                ),
            ),
            "no broadcast at the start": ("nothing is broadcast", _BROADCAST, ""),
            "no broadcast of what is frozen": (
                "or not every weight",
                _BROADCAST,
                "        for tensor in [p for p in model.parameters() if p.requires_grad] + list(model.buffers()):\n"
                "            dist.broadcast(tensor.data, src=0)\n",
            ),
            "what two modules share is sent twice": (
                "one that two modules share",
                "        for parameter in self.model.parameters():\n",
                "        for parameter in (p for m in self.model.modules() for p in m.parameters(recurse=False)):\n",
            ),
            "from another rank": ("nothing is broadcast", "src=0", "src=dist.get_world_size() - 1"),
            "a copy is wrapped": (
                "nothing is broadcast",
                "        self.model = model\n",
                "        import copy\n        self.model = model = copy.deepcopy(model)\n",
            ),
            "buffers not broadcast": (
                "the buffers are not broadcast",
                _BROADCAST,
                "        for parameter in model.parameters():\n            dist.broadcast(parameter.data, src=0)\n",
            ),
            "the other ranks' numbers times 0": (
                "are summed with zeros",
                _BROADCAST,
                "        for tensor in model.state_dict().values():\n"
                "            value = tensor * int(dist.get_rank() == 0)\n"
                "            dist.all_reduce(value)\n            tensor.copy_(value)\n",
            ),
            "a sum with zeros": (
                "of which -0.0 comes out as 0.0",
                _BROADCAST,
                "        for tensor in model.state_dict().values():\n"
                "            if dist.get_rank():\n                tensor.zero_()\n"
                "            dist.all_reduce(tensor)\n",
            ),
            "parameters replaced": (
                "are replaced instead of written into",
                _BROADCAST,
                "        box = [model.state_dict()]\n        dist.broadcast_object_list(box, src=0)\n"
                "        model.load_state_dict(box[0], assign=True)\n",
            ),
            "buffers replaced": (
                "are replaced instead of written into",
                _BROADCAST,
                _BROADCAST + "        for module in model.modules():\n"
                "            for name, buffer in module._buffers.items():\n"
                "                module._buffers[name] = buffer.clone()\n",
            ),
            "summed, not averaged": (
                "summed, not averaged",
                "(loss / totals[1])",
                "(loss / totals[1] * dist.get_world_size())",
            ),
            "divided twice": (
                "once too often",
                _REDUCE,
                _REDUCE + "                parameter.grad /= dist.get_world_size()\n",
            ),
            "a sum over all samples": ("never divided by their number", "(loss / totals[1])", "loss"),
            "two ranks taken for granted": (
                "another loss than the mean",
                _REDUCE,
                _REDUCE + "                parameter.grad *= 2 / dist.get_world_size()\n",
            ),
            "the sums divided by ranks": (
                "only by the number of ranks",
                "(loss / totals[1])",
                "(loss / dist.get_world_size())",
            ),
            "sum of rank means": (
                "gradients of the ranks' means are summed",
                "(loss / totals[1])",
                '(loss / len(batch["labels"]))',
            ),
            "mean of rank means": (
                "mean of rank means",
                "(loss / totals[1])",
                '(loss / len(batch["labels"]) / dist.get_world_size())',
            ),
            "gradients stay on their rank": (
                "nothing is exchanged",
                (_REDUCE, "                pass\n"),
                ("(loss / totals[1])", '(loss / len(batch["labels"]))'),
            ),
            "one parameter left out": (
                "a parameter that is left out",
                "in self.model.parameters()",
                "in list(self.model.parameters())[1:]",
            ),
            "gradients on rank 0 alone": (
                "only rank 0 has the result",
                _REDUCE,
                "                dist.reduce(parameter.grad, dst=0)\n",
            ),
            "another loss": (
                "another loss than the mean",
                'reduction="sum")',
                'reduction="sum", label_smoothing=0.1)',
            ),
            "the logarithm of a softmax": (
                "the logarithm of a probability",
                'F.cross_entropy(logits, batch["labels"], reduction="sum")',
                'F.nll_loss((logits.softmax(-1) + 1e-8).log(), batch["labels"], reduction="sum")',
            ),
            "NaN made a number": (
                "a loss that is NaN is hidden",
                _REDUCE,
                _REDUCE + "                parameter.grad.nan_to_num_()\n",
            ),
            "a step as well": (
                "the weights are changed as well",
                _RETURN,
                "        with torch.no_grad():\n            for parameter in self.model.parameters():\n"
                "                if parameter.grad is not None:\n"
                "                    parameter -= 0.1 * parameter.grad\n" + _RETURN,
            ),
            "an all-reduce on rank 0 alone": (
                "in one branch only",
                "        return",
                "        if dist.get_rank() == 0:\n            dist.all_reduce(torch.zeros(1))\n        return",
            ),
            "returns its own mean": (
                "this rank's own",
                _RETURN,
                '        return loss.item() / len(batch["labels"])\n',
            ),
            "returns the mean of rank means": (
                "or a mean of the ranks' means",
                _RETURN,
                '        mean = loss.detach() / len(batch["labels"])\n        dist.all_reduce(mean)\n'
                "        return mean.item() / dist.get_world_size()\n",
            ),
            "gradients left switched off": (
                "switched for the whole process",
                _REDUCE,
                _REDUCE + "        torch.set_grad_enabled(False)\n",
            ),
            "buffers at the top alone": (
                "the buffers are not broadcast",
                _BROADCAST,
                "        for tensor in [*model.parameters(), *model.buffers(recurse=False)]:\n"
                "            dist.broadcast(tensor.data, src=0)\n",
            ),
            "evaluation mode": (
                "switched to evaluation mode",
                "self.model = model\n",
                "self.model = model.eval()\n",
            ),
            "one mode for all parts": (
                "parts of the model are switched to another mode",
                "        logits = self.model(",
                "        self.model.train()\n        logits = self.model(",
            ),
            "dropout switched on": (
                "parts of the model are switched to another mode",
                "        logits = self.model(",
                "        for module in self.model.modules():\n"
                "            if 'Dropout' in type(module).__name__:\n"
                "                module.train()\n        logits = self.model(",
            ),
            "training mode taken for granted": (
                "AssertionError",
                "        logits = self.model(",
                "        assert self.model.training\n        logits = self.model(",
            ),
            "broadcast in half precision": (
                "crosses in another dtype than its own",
                _BROADCAST,
                "        for tensor in model.state_dict().values():\n"
                "            message = tensor.to(torch.float16) if tensor.dtype == torch.float32 else tensor.clone()\n"
                "            dist.broadcast(message, src=0)\n            tensor.copy_(message)\n",
            ),
            "integers broadcast as floats": (
                "crosses in another dtype than its own",
                _BROADCAST,
                "        for tensor in model.state_dict().values():\n            message = tensor.double()\n"
                "            dist.broadcast(message, src=0)\n            tensor.copy_(message)\n",
            ),
            "a little decay": (
                "the weights are changed as well",
                _RETURN,
                "        with torch.no_grad():\n            for parameter in self.model.parameters():\n"
                "                parameter *= 1 - 1e-6\n" + _RETURN,
            ),
            "samples counted in the first call alone": (
                "another loss than the mean",
                "        dist.all_reduce(totals)\n",
                "        dist.all_reduce(totals)\n"
                "        self.count = totals[1] = getattr(self, 'count', totals[1].clone())\n",
            ),
            "the loss of another forward": (
                "that of another forward",
                "totals = torch.tensor([loss.item(), ",
                "with torch.no_grad():\n"
                '            other = self.model(batch["input_ids"], batch["attention_mask"])\n'
                '        other = F.cross_entropy(other, batch["labels"], reduction="sum")\n'
                "        totals = torch.tensor([other.item(), ",
            ),
            "forward anew with other dropout": (
                "backward computes it anew and draws other numbers",
                'self.model(batch["input_ids"], batch["attention_mask"])\n',
                "torch.utils.checkpoint.checkpoint(\n"
                '            self.model, batch["input_ids"], batch["attention_mask"],\n'
                "            use_reentrant=False, preserve_rng_state=False)\n",
            ),
            "the mask made of the ids": (
                "the mask is made of the ids",
                'batch["attention_mask"])',
                'batch["input_ids"] != 0)',
            ),
            "zeros for what is frozen": (
                "frozen parameters get a gradient",
                "            if parameter.grad is not None:\n",
                "            if parameter.grad is None:\n"
                "                parameter.grad = torch.zeros_like(parameter)\n"
                "            else:\n",
            ),
            "tied weights exchanged twice": (
                "or a parameter that is left out",
                "for parameter in self.model.parameters()",
                "for _, parameter in self.model.named_parameters(remove_duplicate=False)",
            ),
            "labels popped out of the batch": (
                "the caller's own batch",
                _RETURN,
                '        batch.pop("labels")\n' + _RETURN,
            ),
            "returns nothing": ("nothing is returned", _RETURN, ""),
            "returns a tensor": ("a tensor is returned", _RETURN, "        return totals[0] / totals[1]\n"),
        },
    ),
}
