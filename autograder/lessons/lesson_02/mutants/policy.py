"""Wrong solutions of 2.1, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

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
    "2.1": (
        Mutant(
            name="no loss scaling with fp16",
            source=edited(_RESOLVE, ('name == "16-mixed"', "False")),
            says="no loss scaling with fp16",
        ),
        Mutant(
            name="a scaler for bf16 too",
            source=edited(_RESOLVE, ('name == "16-mixed"', 'name != "32-true"')),
            says="a scaler where nothing can underflow",
        ),
        Mutant(
            name="units believed without a measurement",
            source=edited(_RESOLVE, ("measure_gain()", "2.0")),
            says="guessed from the units",
        ),
        Mutant(
            name="the measurement is taken and not believed",
            source=edited(_RESOLVE, ("if gain >= 1.15", "if gain > 0")),
            says="the units are believed and not the measurement",
        ),
        Mutant(
            name="bf16 on a CPU without units",
            source=edited(_RESOLVE, ('== "cpu" and facts["bf16_units"]', '== "cpu"')),
            says="a CPU without bf16 units is believed to gain",
        ),
        Mutant(
            name="measured where nothing hangs on it",
            source=edited(
                _RESOLVE, ("    name, reason = requested", "    measure_gain()\n    name, reason = requested")
            ),
            says="measured where it decides nothing",
        ),
        Mutant(
            name="an unknown name becomes fp32",
            source=edited(
                _RESOLVE, ("        raise ValueError(", '        requested = "32-true"\n        (')
            ),
            says="falls through to a default",
        ),
        Mutant(
            name="a reason that says nothing",
            source=edited(
                _RESOLVE, ("{facts['device_name']}: {reason}", "the best precision for this device")
            ),
            says="does not say what decided",
        ),
        Mutant(
            name="the same reason whatever decided",
            source=edited(
                _RESOLVE, ('"computes in bf16" if facts["bf16_units"] else "has no bf16 units"', '"a GPU"')
            ),
            says="same sentence whatever decided",
        ),
    )
}
