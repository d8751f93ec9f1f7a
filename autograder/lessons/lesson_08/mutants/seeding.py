"""Wrong solutions of 8.1, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_SEEDING = """
import random
import numpy as np
import torch
from torch.utils.data import DataLoader, get_worker_info

def seed_worker(worker_id):
    info = get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed)

@exercise("8.1")
def seed_everything(seed, dataset, micro_batch_size=32, num_workers=0):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    dataset.rng = np.random.default_rng(seed)
    order = torch.Generator().manual_seed(seed)
    return DataLoader(
        dataset, batch_size=micro_batch_size, shuffle=True, num_workers=num_workers,
        generator=order, worker_init_fn=seed_worker,
    )
"""
_OF_WORKER = "np.random.default_rng(info.seed)"

_LOADER = "    return DataLoader("
_OWN = "    dataset.rng = np.random.default_rng(seed)\n"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "8.1": wrong(
        _SEEDING,
        {
            "NumPy seed forgotten": ("NumPy is not seeded", "    np.random.seed(seed)\n", ""),
            "Python seed forgotten": ("Python is not seeded", "    random.seed(seed)\n    np", "    np"),
            "torch seed forgotten": ("torch is not seeded", "    torch.manual_seed(seed)\n", ""),
            "worker seed forgotten": ("worker seed forgotten", "worker_init_fn=seed_worker,", ""),
            "workers get the same numbers each epoch": (
                "the same number each epoch",
                _OF_WORKER,
                "np.random.default_rng(1000 + worker_id)",
            ),
            "every worker gets the same seed": (
                "draws the same numbers",
                _OF_WORKER,
                "np.random.default_rng(info.seed - info.id)",
            ),
            "the worker's number is mixed in twice": (
                "workers share a seed",
                _OF_WORKER,
                "np.random.default_rng(info.seed ^ worker_id)",
            ),
            "half of the worker's seed": (
                "two of the workers share a seed",
                _OF_WORKER,
                "np.random.default_rng(info.seed // 2)",
            ),
            "workers are seeded by the system": (
                "the workers' seeds do not follow from yours",
                _OF_WORKER,
                "np.random.default_rng()",
            ),
            "NumPy of a worker is seeded by the system": (
                "the workers' seeds do not follow from yours",
                _OF_WORKER,
                f"{_OF_WORKER}\n    np.random.seed()",
            ),
            "torch of a worker starts anew": (
                "the same number each epoch",
                _OF_WORKER,
                f"{_OF_WORKER}\n    torch.manual_seed(1000 + worker_id)",
            ),
            "one generator shared by shuffling and dropout": (
                "one generator shared by shuffling and dropout",
                "generator=order, ",
                "",
            ),
            "the order is seeded by the system": (
                "seeded from the clock or the system",
                "torch.Generator().manual_seed(seed)",
                "torch.Generator()\n    order.seed()",
            ),
            "the order is moved on": (
                "turned round or moved on",
                (
                    _LOADER,
                    "    drawn = torch.randperm(len(dataset), generator=order).tolist()\n\n"
                    "    class Moved:\n        def __len__(self):\n            return len(drawn)\n\n"
                    "        def __iter__(self):\n            drawn.append(drawn.pop(0))\n"
                    "            return iter(drawn[:])\n\n" + _LOADER,
                ),
                ("shuffle=True", "sampler=Moved()"),
            ),
            "workers ask for the seed of the last call": (
                "two loaders share one generator, or one seed",
                (_OF_WORKER, "np.random.default_rng([LAST['seed'], info.seed])"),
                ("    random.seed(seed)\n    np", "    LAST['seed'] = seed\n    random.seed(seed)\n    np"),
                ("def seed_worker", "LAST = {}\n\ndef seed_worker"),
            ),
            "a data set is seeded once": (
                "or only the first time",
                _OWN,
                "    if not hasattr(dataset, 'seeded'):\n        dataset.seeded = True\n    " + _OWN,
            ),
            "the order is seeded by the hash of a text": (
                "the `hash()` of a text",
                "torch.Generator().manual_seed(seed)",
                'torch.Generator().manual_seed(hash(f"order {seed}") % 2**32)',
            ),
            "a data set without workers is left alone": ("nobody seeds the data set", _OWN, ""),
            "a seed written into the code": (
                "a seed is written into the code",
                "torch.Generator().manual_seed(seed)",
                "torch.Generator().manual_seed(42)",
            ),
            "one seed for the data set": (
                "a seed is written into the code",
                _OWN,
                _OWN.replace("seed)", "0)"),
            ),
            "one seed for Python": (
                "a seed is written into the code",
                "    random.seed(seed)\n    np",
                "    random.seed(0)\n    np",
            ),
            "no seed is a seed of 0": (
                "a seed of 0 is taken for none",
                "    random.seed(seed)\n    np",
                "    random.seed(seed or None)\n    np",
            ),
            "nothing is seeded with 0": (
                "a seed of 0 is taken for none",
                "    random.seed(seed)\n    np",
                "    seed = seed or torch.seed() % 2**32\n    random.seed(seed)\n    np",
            ),
            "one seed for Python in all workers": (
                "worker seed forgotten, or one for them all",
                _OF_WORKER,
                f"{_OF_WORKER}\n    random.seed(info.seed - info.id)",
            ),
            "the last batch is dropped": (
                "the last batch, which is short, is left out",
                "shuffle=True",
                "shuffle=True, drop_last=True",
            ),
            "with replacement": (
                "drawn with replacement",
                (
                    _LOADER,
                    "    sampler = torch.utils.data.RandomSampler(dataset, True, generator=order)\n"
                    + _LOADER,
                ),
                ("shuffle=True", "sampler=sampler"),
            ),
            "an iterator": (
                "is used up after the first epoch",
                (_LOADER, "    return iter(DataLoader("),
                ("worker_init_fn=seed_worker,\n    )", "worker_init_fn=seed_worker,\n    ))"),
            ),
            "another kind of generator": (
                "draws some of the same numbers and lacks the rest",
                _OWN,
                "    dataset.rng = np.random.RandomState(seed)\n",
            ),
            "another kind of generator in the workers": (
                "draws some of the same numbers and lacks the rest",
                _OF_WORKER,
                "np.random.RandomState(info.seed % 2**32)",
            ),
            "one worker alone is not seeded": (
                "the same number each epoch",
                "worker_init_fn=seed_worker",
                "worker_init_fn=seed_worker if num_workers > 1 else None",
            ),
            "fewer samples than a batch are dropped": (
                "the last batch, which is short, is left out",
                "shuffle=True",
                "shuffle=True, drop_last=len(dataset) < micro_batch_size",
            ),
            "no batch is larger than by default": (
                "`micro_batch_size` does not reach the loader",
                "batch_size=micro_batch_size",
                "batch_size=min(micro_batch_size, 32)",
            ),
            "arguments in another order": (
                "`micro_batch_size` does not reach the loader",
                "micro_batch_size=32, num_workers=0)",
                "num_workers=0, micro_batch_size=32)",
            ),
            "only a part of the seed": (
                "`seed` does not reach every generator",
                _OWN,
                _OWN.replace("seed)", "seed % 2**16)"),
            ),
            "an epoch goes on where one was broken off": (
                "samples are left out or repeated",
                (
                    _LOADER,
                    "    left = []\n\n    class Left:\n        def __len__(self):\n            return len(dataset)\n\n"
                    "        def __iter__(self):\n"
                    "            left.extend([] if left else torch.randperm(len(dataset), generator=order).tolist())\n"
                    "            while left:\n                yield left.pop()\n\n" + _LOADER,
                ),
                ("shuffle=True", "sampler=Left()"),
            ),
            "three orders in turn": (
                "the generator of the order starts anew",
                (
                    _LOADER,
                    "    orders = [torch.randperm(len(dataset), generator=order).tolist() for _ in range(3)]\n\n"
                    "    class Turns:\n        def __len__(self):\n            return len(dataset)\n\n"
                    "        def __iter__(self):\n            orders.append(orders.pop(0))\n"
                    "            return iter(orders[0])\n\n" + _LOADER,
                ),
                ("shuffle=True", "sampler=Turns()"),
            ),
            "no shuffling": ("shuffling is off", "shuffle=True, ", ""),
            "whole batches are shuffled": (
                "whole batches are shuffled",
                (
                    _LOADER,
                    "    places = list(range(len(dataset)))\n"
                    "    blocks = [places[i:][:micro_batch_size] for i in places[::micro_batch_size]]\n\n"
                    "    class Blocks:\n        def __len__(self):\n            return len(blocks)\n\n"
                    "        def __iter__(self):\n"
                    "            return (blocks[i] for i in torch.randperm(len(blocks), generator=order).tolist())\n\n"
                    + _LOADER,
                ),
                ("batch_size=micro_batch_size, shuffle=True", "batch_sampler=Blocks()"),
            ),
            "the same order in each epoch": (
                "starts anew each epoch",
                (_LOADER, "    drawn = torch.randperm(len(dataset), generator=order).tolist()\n" + _LOADER),
                ("shuffle=True", "sampler=drawn"),
            ),
            "batches of 32 whatever is asked": (
                "`micro_batch_size` does not reach the loader",
                "batch_size=micro_batch_size",
                "batch_size=32",
            ),
            "no workers whatever is asked": (
                "`num_workers` does not reach the loader",
                "num_workers=num_workers",
                "num_workers=0",
            ),
            "another default of micro_batch_size": (
                "with the defaults of the signature",
                "micro_batch_size=32",
                "micro_batch_size=16",
            ),
            "workers by default": (
                "`num_workers` does not reach the loader",
                "num_workers=0)",
                "num_workers=1)",
            ),
            "loaders share a generator": (
                "two loaders share one generator",
                (
                    "    order = torch.Generator().manual_seed(seed)\n",
                    "    order = ORDER.manual_seed(seed)\n",
                ),
                ('@exercise("8.1")', 'ORDER = torch.Generator()\n\n@exercise("8.1")'),
            ),
        },
    )
}
