"""Wrong solutions of 1.1, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong

_COLLATE = """
import torch

@exercise("1.1")
def collate(batch):
    width = max(len(ids) for ids, _ in batch)
    input_ids = torch.zeros(len(batch), width, dtype=torch.int64)
    mask = torch.zeros(len(batch), width, dtype=torch.bool)
    for row, (ids, _) in enumerate(batch):
        input_ids[row, : len(ids)] = torch.as_tensor(ids)[:width]
        mask[row, : len(ids)] = True
    labels = torch.tensor([label for _, label in batch])
    return {"input_ids": input_ids, "attention_mask": mask, "labels": labels}
"""

# Right and too slow: this must never pass.
SLOW_COLLATE = edited(
    _COLLATE,
    ("torch.zeros(len(batch), width, ", "torch.zeros(len(batch), 1024, "),
    (
        "        input_ids[row, : len(ids)] = torch.as_tensor(ids)[:width]\n        mask[row, : len(ids)] = True\n",
        "        for column in range(1024):\n"
        "            mask[row, column] = column < len(ids)\n"
        "            if mask[row, column]:\n"
        "                input_ids[row, column] = int(ids[column])\n",
    ),
    (
        '"input_ids": input_ids, "attention_mask": mask',
        '"input_ids": input_ids[:, :width], "attention_mask": mask[:, :width]',
    ),
)
MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "1.1": wrong(
        _COLLATE,
        {
            "padding to a global maximum": ("global maximum", "max(len(ids) for ids, _ in batch)", "1024"),
            "the next multiple of 8 above an exact one": (
                "rounded up too far",
                "max(len(ids) for ids, _ in batch)",
                "(max(len(ids) for ids, _ in batch) // 8 + 1) * 8",
            ),
            "a multiple of 64": (
                "rounded up too far",
                "max(len(ids) for ids, _ in batch)",
                "-(-max(len(ids) for ids, _ in batch) // 64) * 64",
            ),
            "attention mask ignores padding": (
                "marks padding as real",
                "mask[row, : len(ids)] = True",
                "mask[row] = True",
            ),
            "mask made from the ids": (
                "made from the ids",
                '"attention_mask": mask',
                '"attention_mask": input_ids != 0',
            ),
            "mask upside down": ("upside down", '"attention_mask": mask', '"attention_mask": ~mask'),
            "mask one token short": (
                "leaves out real tokens",
                "mask[row, : len(ids)]",
                "mask[row, : len(ids) - 1]",
            ),
            "long samples are cut": (
                "long samples are cut",
                ("max(len(ids) for ids, _ in batch)", "min(len(ids) for ids, _ in batch)"),
                ("input_ids[row, : len(ids)]", "input_ids[row, : min(len(ids), width)]"),
            ),
            "mask of the wrong type": ("another dtype", "dtype=torch.bool", "dtype=torch.int64"),
            "ids of the wrong type": (
                "another dtype",
                "width, dtype=torch.int64",
                "width, dtype=torch.int32",
            ),
            "labels of the wrong type": (
                "another dtype",
                "for _, label in batch])",
                "for _, label in batch]).float()",
            ),
            "labels as a column": (
                "another shape",
                "for _, label in batch])",
                "for _, label in batch])[:, None]",
            ),
            "a list of labels": (
                "its value is a list",
                "torch.tensor([label for _, label in batch])",
                "[label for _, label in batch]",
            ),
            "a tuple of tensors": (
                "a key is missing",
                '{"input_ids": input_ids, "attention_mask": mask, "labels": labels}',
                "(input_ids, mask, labels)",
            ),
            "padding on the left": (
                "padding on the left",
                ("input_ids[row, : len(ids)]", "input_ids[row, width - len(ids) :]"),
                ("mask[row, : len(ids)]", "mask[row, width - len(ids) :]"),
            ),
            "another padding id": (
                "another id than PAD_ID",
                "torch.zeros(len(batch), width, dtype=torch.int64)",
                "torch.ones(len(batch), width, dtype=torch.int64)",
            ),
            "rows sorted by length": (
                "rows out of order",
                "    width =",
                "    batch = sorted(batch, key=lambda sample: -len(sample[0]))\n    width =",
            ),
            "the batch sorted in place": (
                "`batch` itself was sorted",
                "    labels = torch.tensor([label for _, label in batch])",
                "    labels = torch.tensor([label for _, label in batch])\n    batch.sort(key=lambda s: len(s[0]))",
            ),
            "labels sorted": (
                "labels out of order",
                "[label for _, label in batch]",
                "sorted(y for _, y in batch)",
            ),
            "labels of the first class": (
                "second half of each sample",
                "[label for _, label in batch]",
                "[0 for _ in batch]",
            ),
            "the last sample is dropped": (
                "sample was dropped",
                "    width =",
                "    batch = batch[:-1] or batch\n    width =",
            ),
            "ids by way of float32": ("went through float32", "torch.as_tensor(ids)", "torch.Tensor(ids)"),
            "written into the samples": (
                "written into the samples",
                "        mask[row,",
                "        ids[-1:] = 0\n        mask[row,",
            ),
            "mask up to the last id": (
                "made from the ids",
                '"attention_mask": mask',
                '"attention_mask": (input_ids != 0).flip(1).cumsum(1).flip(1) > 0',
            ),
            "ids by way of uint16": (
                "a narrower type than int64",
                "torch.as_tensor(ids)",
                "torch.as_tensor(ids & 0xFFFF)",
            ),
            "ids by way of int32": (
                "a narrower type than int64",
                "torch.as_tensor(ids)",
                "torch.as_tensor(ids).int()",
            ),
            "one buffer for all batches": (
                "one buffer serves every call",
                ("@exercise", "BUFFER = torch.zeros(10**6, dtype=torch.int64)\n\n@exercise"),
                (
                    "torch.zeros(len(batch), width, dtype=torch.int64)",
                    "BUFFER[: len(batch) * width].view(len(batch), width).zero_()",
                ),
            ),
            "one buffer for all masks": (
                "one buffer serves every call",
                ("@exercise", "BUFFER = torch.zeros(10**6, dtype=torch.bool)\n\n@exercise"),
                (
                    "torch.zeros(len(batch), width, dtype=torch.bool)",
                    "BUFFER[: len(batch) * width].view(len(batch), width).zero_()",
                ),
            ),
            "one buffer for each shape": (
                "one buffer serves every call",
                ("@exercise", "BUFFERS = {}\n\n@exercise"),
                (
                    "torch.zeros(len(batch), width, dtype=torch.int64)",
                    "BUFFERS.setdefault((len(batch), width), "
                    "torch.zeros(len(batch), width, dtype=torch.int64)).zero_()",
                ),
            ),
            "a list beside the tensors": (
                "its value is a list",
                '"labels": labels}',
                '"labels": labels, "lengths": [len(ids) for ids, _ in batch]}',
            ),
            "labels by way of float64": (
                "labels that went through a narrower type",
                "for _, label in batch])",
                "for _, label in batch], dtype=torch.float64).long()",
            ),
            "labels below zero lost": (
                "labels below 0",
                "for _, label in batch])",
                "for _, label in batch]).clamp(min=0)",
            ),
            "ids by way of float64": (
                "went through float64",
                "torch.as_tensor(ids)",
                "torch.as_tensor(ids).double()",
            ),
            "lengths by way of uint16": (
                "long samples are cut",
                "    width = max(len(ids) for ids, _ in batch)",
                "    width = max(len(ids) % 2**16 for ids, _ in batch)\n"
                "    batch = [(ids[:width], y) for ids, y in batch]",
            ),
            "the first 64 samples": (
                "sample was dropped",
                "    width =",
                "    batch = batch[:64]\n    width =",
            ),
            "equal samples taken for one": (
                "equal ones are taken for one",
                "    width =",
                "    batch = list({(ids.tobytes(), y): (ids, y) for ids, y in batch}.values())\n    width =",
            ),
            "one batch for equal samples": (
                "one buffer serves every call",
                ("@exercise", "KEPT = {}\n\n@exercise"),
                (
                    "torch.zeros(len(batch), width, dtype=torch.int64)",
                    "KEPT.setdefault(tuple(ids.tobytes() for ids, _ in batch), "
                    "torch.zeros(len(batch), width, dtype=torch.int64))",
                ),
            ),
            "rows kept by their samples": (
                "what was made of a sample is kept",
                ("@exercise", "KEPT = {}\n\n@exercise"),
                ("torch.as_tensor(ids)", "KEPT.setdefault(id(ids), (torch.tensor(ids), ids))[0]"),
            ),
            "a multiple of 64 where it is long": (
                "rounded up too far",
                (
                    "    input_ids = torch.zeros",
                    "    width = width if width < 256 else -(-width // 64) * 64\n    input_ids = torch.zeros",
                ),
            ),
            "eight more of one sample alone": (
                "rounded up too far",
                (
                    "    input_ids = torch.zeros",
                    "    width = width if len(batch) > 1 else (width // 8 + 1) * 8\n    input_ids = torch.zeros",
                ),
            ),
            "labels by way of uint8": (
                "labels that went through a narrower type",
                "for _, label in batch])",
                "for _, label in batch]).to(torch.uint8).long()",
            ),
            "texts without tokens left out": (
                "a sample was dropped",
                "    width =",
                "    batch = [sample for sample in batch if len(sample[0])]\n    width =",
            ),
            "a view of a lone sample": (
                "a view of its sample",
                "    labels =",
                "    if len(batch) == 1:\n        input_ids = torch.from_numpy(batch[0][0])[None]\n    labels =",
            ),
        },
    ),
}
