"""Wrong solutions of 1.5, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong

_LOADER = """
from concurrent.futures import ThreadPoolExecutor

from torch.utils.data import DataLoader

def turned(size, rows):
    return [list(range(start, min(start + rows, size))) for start in range(0, size, rows)][::-1]

def filled(size, rows):
    return [[(start + i) % size for i in range(rows)] for start in range(0, size, rows)]

class Kept:
    def __init__(self, loader):
        self.loader, self.batches = loader, []

    def __iter__(self):
        self.batches = self.batches or list(self.loader)
        return iter(self.batches)

class Threads:
    ahead, is_kept = 3, False

    def __init__(self, dataset, rows, collate_fn):
        self.dataset, self.rows, self.collate_fn, self.pending = dataset, rows, collate_fn, []
        self.threads, self.starts = ThreadPoolExecutor(16), None

    def fetch(self, index):
        return self.dataset[index]

    def ask(self, start):
        stop = min(start + self.rows, len(self.dataset))
        return [self.threads.submit(self.fetch, index) for index in range(start, stop)]

    def __iter__(self):
        if not (self.is_kept and self.pending):
            self.starts, self.pending = iter(range(0, len(self.dataset), self.rows)), []
        while True:
            while len(self.pending) < self.ahead and (start := next(self.starts, None)) is not None:
                self.pending.append(self.ask(start))
            if not self.pending:
                return
            samples = [future.result() for future in self.pending.pop(0)]
            if self.ahead > 1 and (start := next(self.starts, None)) is not None:
                self.pending.append(self.ask(start))
            if samples := [sample for sample in samples if sample is not None]:
                yield self.collate_fn(samples)

@exercise("1.5")
def make_loader(dataset, micro_batch_size, collate_fn):
    return DataLoader(
        dataset, batch_size=micro_batch_size, collate_fn=collate_fn, num_workers=4, persistent_workers=True
    )
"""

_THREADS = edited(
    _LOADER,
    (
        "DataLoader(\n        dataset, batch_size=micro_batch_size, collate_fn=collate_fn, num_workers=4, "
        "persistent_workers=True\n    )",
        "Threads(dataset, micro_batch_size, collate_fn)",
    ),
)


# Right and too slow: this must never pass.
SLOW_LOADER = edited(_LOADER, (", num_workers=4, persistent_workers=True", ""))

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "1.5": wrong(SLOW_LOADER, {"one after the other": ("one after the other",)}, is_timed=True)
    + wrong(
        _LOADER,
        {
            "drops the tail": ("tail is dropped", "num_workers=4", "num_workers=4, drop_last=True"),
            "shuffles": ("the loader shuffles", "num_workers=4", "num_workers=4, shuffle=True"),
            "used up after one pass": (
                "used up after one pass",
                ("return DataLoader(", "return iter(DataLoader("),
                ("=True\n    )", "=True\n    ))"),
            ),
            "always 8 to a batch": (
                "micro_batch_size is not used",
                "batch_size=micro_batch_size",
                "batch_size=8",
            ),
            "one sample to a batch": (
                "micro_batch_size is not used",
                "batch_size=micro_batch_size",
                "batch_size=1",
            ),
            "samples as they are": (
                "handed out as they are",
                "batch_size=micro_batch_size, collate_fn=collate_fn",
                "batch_size=micro_batch_size, collate_fn=list",
            ),
            "nothing is returned": ("nothing is returned", "return DataLoader(", "DataLoader("),
            "another collate function": (
                "collate_fn is not used",
                ("@exercise", "from course_lib.data import collate\n\n@exercise"),
                ("collate_fn=collate_fn", "collate_fn=collate"),
            ),
            "the rest filled up": (
                "come twice",
                "batch_size=micro_batch_size, collate_fn=collate_fn",
                "batch_sampler=filled(len(dataset), micro_batch_size), collate_fn=collate_fn",
            ),
            "whole batches as they are ready": (
                "whole batches come in another order",
                "batch_size=micro_batch_size, collate_fn=collate_fn",
                "batch_sampler=turned(len(dataset), micro_batch_size), collate_fn=collate_fn",
            ),
            "a batch turned around": (
                "in which they arrived",
                "collate_fn=collate_fn",
                "collate_fn=lambda samples: collate_fn(samples[::-1])",
            ),
            "the first batch is left out": (
                "not the last ones",
                "batch_size=micro_batch_size, collate_fn=collate_fn",
                "batch_sampler=list(turned(len(dataset), micro_batch_size))[-2::-1], collate_fn=collate_fn",
            ),
            "an end of its own": (
                "the pass ends too early",
                "batch_size=micro_batch_size, collate_fn=collate_fn",
                "sampler=range(len(dataset) - 1), batch_size=micro_batch_size, collate_fn=collate_fn",
            ),
            "batches kept from the first pass": (
                "kept from the pass before",
                ("    return DataLoader(", "    loader = DataLoader("),
                ("=True\n    )", "=True\n    )\n    return Kept(loader)"),
            ),
        },
    )
    + wrong(
        _THREADS,
        {
            "read again where it failed": (
                "left out or read again",
                "        return self.dataset[index]\n",
                "        try:\n            return self.dataset[index]\n"
                "        except Exception:\n            return self.dataset[index]\n",
            ),
            "everything before the first batch": (
                "fetched before its first batch",
                "        while True:\n",
                "        every = [self.threads.submit(self.fetch, index) for index in range(len(self.dataset))]\n"
                "        every = [future.result() for future in every]\n"
                "        for start in self.starts:\n"
                "            yield self.collate_fn(every[start : start + self.rows])\n"
                "        while False:\n",
            ),
            "each sample twice": (
                "more often than they are handed out",
                "        return self.dataset[index]\n",
                "        self.dataset[index]\n        return self.dataset[index]\n",
            ),
            "under way in the class": (
                "the two disturb each other",
                ("ahead, is_kept = 3, False", "ahead, is_kept, pending = 3, False, []"),
                (", self.pending = dataset, rows, collate_fn, []", " = dataset, rows, collate_fn"),
                (
                    "iter(range(0, len(self.dataset), self.rows)), []",
                    "iter(range(0, len(self.dataset), self.rows)), Threads.pending\n            self.pending.clear()",
                ),
            ),
            "one batch at a time": (
                "only when it is asked for",
                "ahead, is_kept = 3,",
                "ahead, is_kept = 1,",
            ),
            "three batches at a time": (
                "only when it is asked for",
                ("if self.ahead > 1 and", "if False and"),
                (
                    "            if samples := ",
                    "            some = [samples] + [[future.result() for future in batch] for batch in self.pending]\n"
                    "            self.pending = []\n            for samples in some:\n"
                    "                yield self.collate_fn(samples)\n            continue\n            if samples := ",
                ),
            ),
            "a pass that is kept": (
                "the one before it was broken off",
                "is_kept = 3, False",
                "is_kept = 3, True",
            ),
            "lost samples left out": (
                "its sample left out",
                "        return self.dataset[index]\n",
                "        try:\n            return self.dataset[index]\n"
                "        except OSError:\n            return None\n",
            ),
            "an error at the end is none": (
                "its sample left out",
                "        return self.dataset[index]\n",
                "        try:\n            return self.dataset[index]\n        except OSError:\n"
                "            if index + 1 < len(self.dataset):\n                raise\n            return None\n",
            ),
            "an error of the first batch is none": (
                "its sample left out",
                "        return self.dataset[index]\n",
                "        try:\n            return self.dataset[index]\n        except OSError:\n"
                "            if index >= self.rows:\n                raise\n            return None\n",
            ),
            "never more than 8 to a batch": (
                "micro_batch_size is not used",
                "self.collate_fn, self.pending = dataset, rows,",
                "self.collate_fn, self.pending = dataset, min(8, rows),",
            ),
            "an IndexError is no error": (
                "its sample left out",
                "        return self.dataset[index]\n",
                "        try:\n            return self.dataset[index]\n"
                "        except IndexError:\n            return None\n",
            ),
            "a pool that an error ends": (
                "unfit for the next pass",
                "            samples = [future.result() for future in self.pending.pop(0)]\n",
                "            try:\n                samples = [future.result() for future in self.pending.pop(0)]\n"
                "            except OSError:\n                self.threads.shutdown(wait=False, cancel_futures=True)\n"
                "                raise\n",
            ),
            "what was under way is kept": (
                "before this pass began",
                (
                    "self.starts = ThreadPoolExecutor(16), None",
                    "self.starts, self.kept = ThreadPoolExecutor(16), None, {}",
                ),
                (
                    "        return [self.threads.submit(self.fetch, index) for index in range(start, stop)]\n",
                    "        if start not in self.kept:\n"
                    "            self.kept[start] = [self.threads.submit(self.fetch, i) for i in range(start, stop)]\n"
                    "        return self.kept[start]\n",
                ),
                (
                    "            samples = [future.result() for future in self.pending.pop(0)]\n",
                    "            samples = [future.result() for future in self.pending.pop(0)]\n"
                    "            del self.kept[min(self.kept)]\n",
                ),
            ),
            "fetched before the pass": (
                "before this pass began",
                ("is_kept = 3, False", "is_kept = 3, True"),
                (
                    "            if not self.pending:\n",
                    "            if not self.pending:\n"
                    "                self.starts = iter(range(0, len(self.dataset), self.rows))\n"
                    "                self.pending = [self.ask(next(self.starts))]\n",
                ),
            ),
        },
    ),
}
