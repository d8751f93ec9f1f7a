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
            "the gain of a function kept": (
                "kept from another machine or call",
                (
                    '@exercise("2.1")',
                    "import functools\n\n@functools.cache\n"
                    'def kept(measure):\n    return measure()\n\n@exercise("2.1")',
                ),
                ("= measure_gain()", "= kept(measure_gain)"),
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
            "the gain rounded before it decides": (
                "rounded before it is compared",
                "if gain >= 1.15",
                "if round(gain, 2) >= 1.15",
            ),
            "the limit left out": ("a gain of exactly 1.15 is enough", "gain >= 1.15", "gain > 1.15"),
            "another limit": ("another limit than 1.15", "gain >= 1.15", "gain >= 1.1"),
            "the gain upside down": ("the wrong way round", "gain >= 1.15", "gain < 1.15"),
            "the gain thrown away": (
                "a gain that was measured is thrown away",
                '"bf16-mixed" if gain >= 1.15 else',
                '"32-true" if gain >= 1.15 else',
            ),
            "measured a second time for the reason": ("measured again", "{gain:.2f}", "{measure_gain():.2f}"),
            "one measurement for all machines": (
                "kept from another machine",
                ("@exercise", "GAINS = []\n\n@exercise"),
                ("gain = measure_gain()", "GAINS[:] = GAINS or [measure_gain()]\n        gain = GAINS[0]"),
            ),
            "one measurement for all machines of a name": (
                "kept from another machine or call",
                ("@exercise", "GAINS = {}\n\n@exercise"),
                (
                    "gain = measure_gain()",
                    "of_this = facts['device_name']\n        if of_this not in GAINS:\n"
                    "            GAINS[of_this] = measure_gain()\n        gain = GAINS[of_this]",
                ),
            ),
            "the gain with all its decimals": ("more or fewer decimals", "{gain:.2f}", "{gain}"),
            "the gain with one decimal": ("more or fewer decimals", "{gain:.2f}", "{gain:.1f}"),
            "the gain without its last zero": ("more or fewer decimals", "{gain:.2f}", "{round(gain, 2)}"),
            "parts of a name are known": (
                "or what is like a name is taken for it",
                "requested not in names",
                'requested not in "32-true bf16-mixed 16-mixed"',
            ),
            "capitals are taken for small letters": (
                "or what is like a name is taken for it",
                "    names =",
                "    requested = requested.lower()\n    names =",
            ),
            "an unknown name is looked for in a dict": (
                "looked up before it is checked",
                "        raise ValueError(",
                "        raise KeyError(",
            ),
            "an error without the request": (
                "does not say what was wrong",
                "no precision {requested!r}",
                "no such",
            ),
            "an error without the names": (
                "does not say what was wrong",
                "{', '.join(names)}",
                "bf16-mixed, 32-true",
            ),
            "named, and not to be had on a CPU": (
                "what was asked for by name is replaced",
                "    if requested ==",
                '    if requested == "bf16-mixed" and not facts["bf16_units"]:\n        name = "32-true"\n'
                "    if requested ==",
            ),
            "the two kinds of GPU alike": (
                "bf16 is taken on a GPU that has no units",
                'name = "bf16-mixed" if facts["bf16_units"] else "16-mixed"',
                'name = "bf16-mixed"',
            ),
            "the two kinds of GPU swapped": (
                "swapped, or GPUs are not asked",
                'name = "bf16-mixed" if facts["bf16_units"]',
                'name = "bf16-mixed" if not facts["bf16_units"]',
            ),
            "any device is a GPU or a CPU": (
                "a device type that nobody has tried",
                'facts["device_type"] == "cpu" and facts',
                "facts",
            ),
            "the type read from the name": (
                "not asked for their units",
                'facts["device_type"] == "cuda"',
                '"cuda" in facts["device_name"].lower()',
            ),
            "a reason in small letters": (
                "does not say what decided",
                "{facts['device_name']}: {reason}\"",
                "{facts['device_name']}: {reason}\".lower()",
            ),
            "a reason without what was asked for": (
                "does not say what decided",
                "{requested} was asked for",
                "as you like",
            ),
            "a scaler as a text": (
                "or a tensor or None stands where",
                '"needs_scaler": name == "16-mixed"',
                '"needs_scaler": str(name == "16-mixed")',
            ),
            "another name for fp16": (
                "or what is like a name is taken for it",
                "    names =",
                '    requested = {"fp16": "16-mixed"}.get(requested, requested)\n    names =',
            ),
            "the facts emptied": (
                "the caller's `facts` are changed",
                "{facts['device_name']}: {reason}",
                "{facts.pop('device_name')}: {reason}",
            ),
            "one dict for all answers": (
                "all calls return the same dict",
                ("@exercise", "ANSWER = {}\n\n@exercise"),
                ("    return {", "    ANSWER.update({"),
                (': {reason}"}', ': {reason}"})\n    return ANSWER'),
            ),
            "the name taken by its place": (
                "does not say what decided",
                "{facts['device_name']}: {reason}",
                "{list(facts.values())[1]}: {reason}",
            ),
            "another type is a GPU as well": (
                "a device type that nobody has tried",
                'facts["device_type"] == "cuda"',
                'facts["device_type"] in ("cuda", "hip", "rocm")',
            ),
            "other names from elsewhere": (
                "or what is like a name is taken for it",
                "    names =",
                '    requested = {"float16": "16-mixed", "half": "16-mixed"}.get(requested, requested)\n    names =',
            ),
            "a reason in ASCII": (
                "does not say what decided",
                "{facts['device_name']}: {reason}\"",
                "{facts['device_name']}: {reason}\".encode('ascii', 'ignore').decode()",
            ),
            "the name alone, without a sentence": (
                "is the name of the device, and says nothing",
                ('"no bf16 units found"', '""'),
                ("{facts['device_name']}: {reason}", "{facts['device_name']}{reason and ': '}{reason}"),
            ),
            "an unknown name taken on an XPU": (
                "falls through to a default",
                "requested not in names:",
                'requested not in names and facts["device_type"] != "xpu":',
            ),
            "no word on the scaler": ("a key is missing", '"needs_scaler": name == "16-mixed", ', ""),
        },
    )
}
