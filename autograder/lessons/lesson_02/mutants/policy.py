"""Wrong solutions of 2.1, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_RESOLVE = """
@exercise("2.1")
def resolve_precision(requested, facts, measure_gain):
    names = ("32-true", "bf16-mixed", "16-mixed")
    if requested != "auto" and requested not in names:
        raise ValueError(f"no precision {requested!r}: take auto, {', '.join(names)}")
    name, reason = requested, f"{requested} was asked for"
    if requested == "auto" and facts["device_type"] == "cuda":
        name = "bf16-mixed" if facts["bf16_units"] else "16-mixed"
        reason = "computes in bf16" if facts["bf16_units"] else "has no bf16 units"
    elif requested == "auto" and facts["device_type"] == "cpu" and facts["bf16_units"]:
        gain = measure_gain()
        name = "bf16-mixed" if gain >= 1.15 else "32-true"
        reason = f"a layer ran {gain:.2f} times as fast in bf16"
    elif requested == "auto":
        name, reason = "32-true", "no bf16 units found"
    return {"precision": name, "needs_scaler": name == "16-mixed", "reason": f"{facts['device_name']}: {reason}"}
"""

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "2.1": wrong(
        _RESOLVE,
        {
            "no loss scaling with fp16": ("no loss scaling with fp16", 'name == "16-mixed"', "False"),
            "a scaler for bf16 too": (
                "a scaler where nothing can underflow",
                'name == "16-mixed"',
                'name != "32-true"',
            ),
            "units believed without a measurement": ("guessed from the units", "measure_gain()", "2.0"),
            "the measurement is taken and not believed": (
                "the units are believed and not the measurement",
                "if gain >= 1.15",
                "if gain > 0",
            ),
            "bf16 on a CPU without units": (
                "a CPU without bf16 units is believed to gain",
                '== "cpu" and facts["bf16_units"]',
                '== "cpu"',
            ),
            "measured where nothing hangs on it": (
                "measured where it decides nothing",
                "    name, reason = requested",
                "    measure_gain()\n    name, reason = requested",
            ),
            "an unknown name becomes fp32": (
                "falls through to a default",
                "        raise ValueError(",
                '        requested = "32-true"\n        (',
            ),
            "a reason that says nothing": (
                "does not say what decided",
                "{facts['device_name']}: {reason}",
                "the best precision for this device",
            ),
            "the same reason whatever decided": (
                "same sentence whatever decided",
                '"computes in bf16" if facts["bf16_units"] else "has no bf16 units"',
                '"a GPU"',
            ),
        },
    )
}
