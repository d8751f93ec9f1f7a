"""The machines and requests that 2.1 is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

NAMES = ("32-true", "bf16-mixed", "16-mixed")
MIN_GAIN = 1.15
# Parts of the names, other spellings of them, and names with something around them.
UNKNOWN = (
    "mixed",
    "16",
    "bf16",
    "32",
    "true",
    "AUTO",
    "BF16-mixed",
    "16-Mixed",
    "f16-mixed",
    "32-true-mixed",
    "",
    # What others call them, and what a config file does to a name.
    "fp16",
    "fp32",
    "fp16-mixed",
    "float16",
    "float32",
    "bfloat16",
    "half",
    "bf16-true",
    "16-true",
    "bf16_mixed",
    " auto",
    "16-mixed ",
    "32-true\n",
    "automatic",
    "none",
)
OTHERS = ("mps", "xpu", "xla", "npu", "tpu", "hpu", "hip", "rocm", "meta")
GAINS = ("bf16 units that gain", "bf16 units that lose or hardly gain", "bf16 units at the limit")


class _Machines:
    """Machines whose names say nothing of their types, and come again with others: a type is a fact of its own."""

    # As makers write them: with braces, a percent sign, two spaces, a number that is no gain.
    _ENDS = ("", "  @ 2.20GHz", " {rev} 100 % (Engineering Sample)", "® 64-Core Processor, 512 GB")

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.num_made = rng, 0
        self.names = [
            f"{rng.choice(['Graphite', 'McKinley', 'Tensor', 'ARMada'])} "
            f"{rng.choice(['X', 'Pro', 'mini'])}-{rng.integers(1000, 9999)}{end}"
            for end in self._ENDS
        ]

    def __call__(self, device_type: str, has_units: bool) -> dict[str, Any]:
        """The next name in turn, and the facts in any order."""
        facts = {
            "device_type": device_type,
            "device_name": self.names[self.num_made % len(self.names)],
            "bf16_units": has_units,
        }
        self.num_made += 1
        return {name: facts[name] for name in map(str, self.rng.permutation(list(facts)))}


def drawn_cases(rng: np.random.Generator) -> list[tuple[str, str, dict[str, Any], float, str]]:
    """What it is, requested, facts, what a measurement gives, the precision that is right."""

    machine = _Machines(rng)

    def gain(low: float, high: float) -> float:
        value = round(float(rng.uniform(low, high)), 4)
        return value + 0.0001 * (round(value * 1e4) % 100 == 50)  # halves are rounded in two ways, both right

    tenths = int(rng.integers(13, 40)) / 10  # two decimals, the last of which is a zero
    measured = [
        ("bf16 units that gain", tenths, "bf16-mixed"),
        ("bf16 units that gain", gain(1.16, 1.19), "bf16-mixed"),
        ("bf16 units that gain", gain(1.3, 4.0), "bf16-mixed"),
        ("bf16 units that gain", gain(10.0, 40.0), "bf16-mixed"),
        ("bf16 units that gain", tenths + 0.0052, "bf16-mixed"),  # just above a half, and just below
        ("bf16 units that gain", tenths + 0.0146, "bf16-mixed"),
        ("bf16 units at the limit", MIN_GAIN, "bf16-mixed"),
        ("bf16 units at the limit", gain(1.1503, 1.1549), "bf16-mixed"),
        ("bf16 units that lose or hardly gain", gain(1.1453, 1.1497), "32-true"),  # 1.15 if it is rounded
        ("bf16 units that lose or hardly gain", 1.15 - 1e-9, "32-true"),
        ("bf16 units that lose or hardly gain", gain(1.11, 1.14), "32-true"),
        ("bf16 units that lose or hardly gain", gain(1.01, 1.09), "32-true"),
        ("bf16 units that lose or hardly gain", gain(0.3, 0.99), "32-true"),
    ]
    cases = []
    for value in (gain(1.3, 4.0), gain(0.3, 1.1)):  # what it would measure is a lure
        for _ in _Machines._ENDS:
            cases += [
                ("a GPU with bf16 units", "auto", machine("cuda", True), value, "bf16-mixed"),
                ("a GPU without bf16 units", "auto", machine("cuda", False), value, "16-mixed"),
                ("a CPU without bf16 units", "auto", machine("cpu", False), value, "32-true"),
            ]
        cases += [
            ("another kind of device", "auto", machine(kind, has_units), value, "32-true")
            for kind in OTHERS
            for has_units in (True, False)
        ]
    cases += [
        ("a request by name", name, machine(kind, has_units), value, name)
        for name in NAMES
        for kind, value in (("cpu", gain(0.3, 1.1)), ("cuda", 2.0), ("mps", 2.0), ("xpu", 2.0))
        for has_units in (True, False)
    ]
    # Of each name several: what is kept from another call, for this machine or for all, shows.
    return cases + [(what, "auto", machine("cpu", True), value, right) for what, value, right in measured]


def unknown_requests(rng: np.random.Generator) -> list[dict[str, Any]]:
    names, machine = [*UNKNOWN, f"fp{rng.integers(17, 31)}"], _Machines(rng)
    machines = [machine(kind, has) for kind in ("cpu", "cuda", *OTHERS) for has in (True, False)]
    return [
        {"requested": str(name), "facts": machines[number % len(machines)], "gain": 2.0}
        for number, name in enumerate(np.concatenate([rng.permutation(names), names]))
    ]
