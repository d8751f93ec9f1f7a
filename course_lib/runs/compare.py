"""What differs between runs, what came of it, and whether the comparison is a fair one.

And whether one of them may go on as the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from course_lib.base import UserError, cell
from course_lib.runs.config import WITHOUT_EFFECT
from course_lib.runs.folder import RunFolder

SECTIONS = ("config", "data", "resolved", "environment", "hardware")
WIDTH = 26
ENDS = {"max_epochs", "max_steps"}
"""Keys that say when a run is over."""
ENDLESS_SCHEDULES = ("constant", "plateau")
"""What follows their warmup does not hang on the number of steps; the warmup stays that of the run's beginning."""


def compare_runs(paths: Sequence[str | Path]) -> dict[str, Any]:
    """`runs`; `differences`: section → key → one value per run; `metrics`: name →
    values; `are_weights_equal`, bit for bit; `warnings`: what makes the comparison less than fair.

    Raises UserError for fewer than two runs and for a folder without a run record.
    """
    if len(paths) < 2:
        raise UserError("a comparison needs two runs or more: course-lib compare RUN RUN")
    records = [_read(path) for path in paths]
    flat = {section: [_flat(record.get(section)) for record in records] for section in SECTIONS}
    rows = [_metrics(record) for record in records]
    hashes = {record.get("weights_sha256") for record in records}
    return {
        "runs": [str(path) for path in paths],
        "differences": {section: found for section in SECTIONS if (found := _different(flat[section]))},
        "metrics": {name: [row.get(name) for row in rows] for row in rows for name in row},
        "are_weights_equal": None if None in hashes else len(hashes) == 1,
        "warnings": _warnings(records),
    }


def _read(path: str | Path) -> dict[str, Any]:
    record = RunFolder(path).read_record()
    if not isinstance(record.get("config"), dict):
        raise UserError(f"{path} holds no run that can be read: give the folder of a run (it has a run.json)")
    return record


def _warnings(records: Sequence[dict[str, Any]]) -> list[str]:
    differs = _different([_flat(record) for record in records]).keys()
    configs = [{k: v for k, v in r["config"].items() if k not in WITHOUT_EFFECT | {"seed"}} for r in records]
    statuses = enumerate((record.get("status") for record in records), 1)
    found = [f"run {i} is {status}" for i, status in statuses if status != "finished"]
    if {"data.fingerprint", "config.task", "config.validation"} & differs:
        found.append("the data differ, or what is validated on: metrics say nothing about the configs")
    if all(configs.count(config) == 1 for config in configs):
        found.append("one seed per config: run each with 3 or more before believing a small difference")
    if {"hardware.processor", "hardware.accelerators", "hardware.num_threads"} & differs:
        found.append("the machines differ: times and costs do not compare")
    return found


def _metrics(record: dict[str, Any]) -> dict[str, Any]:
    speed = ("step", "train_seconds", "samples_per_sec", "tokens_per_sec")
    size = ("num_parameters", "num_trainable", "peak_memory_bytes")
    values = {**(record.get("validation") or {}), **{name: record.get(name) for name in (*speed, *size)}}
    values |= {"best step": (record.get("best") or {}).get("step")} | (record.get("cost") or {})
    return {name: value for name, value in values.items() if not isinstance(value, str)}


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """`{"a": {"b": 1}}` → `{"a.b": 1}`; lists as one value."""
    if not isinstance(value, Mapping):
        return {prefix.rstrip("."): value}
    return {key: item for name in value for key, item in _flat(value[name], f"{prefix}{name}.").items()}


def _different(flat: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    keys = {key: [values.get(key) for values in flat] for values in flat for key in values}
    return {key: values for key, values in keys.items() if any(value != values[0] for value in values)}


def comparison_text(comparison: dict[str, Any]) -> str:
    """The same for a terminal: a block of aligned lines per section; long values are cut."""
    lines = [f"run {i}: {run}" for i, run in enumerate(comparison["runs"], 1)]
    for title, table in {"metrics": comparison["metrics"], **comparison["differences"]}.items():
        lines += ["", title]
        for key, values in table.items():
            texts = "".join(f"{cell(value)[: WIDTH - 2]:<{WIDTH}}" for value in values)
            lines.append(f"  {key:<24} {texts}".rstrip())
    answer = {True: "yes, bit for bit", False: "no", None: "not recorded"}[comparison["are_weights_equal"]]
    return "\n".join(
        [*lines, "", f"equal weights: {answer}", *map("warning: {}".format, comparison["warnings"])]
    )


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """`"learning_rate: 0.001 → 0.002"` for each key that differs and shapes the weights."""
    keys = [key for key in {**old, **new} if key not in WITHOUT_EFFECT]
    return [f"{key}: {old.get(key)} → {new.get(key)}" for key in keys if old.get(key) != new.get(key)]


def check_same_config(old: Mapping[str, Any], new: Mapping[str, Any], *, owner: object) -> None:
    """Raise UserError, naming what differs, unless a run of config `old` can go on with `new`."""
    changed = differences(old, new)
    if changed:
        raise UserError(
            f"{owner} was made with another config ({'; '.join(changed)}): "
            f"resume with the old values, or start a new run with another --out"
        )


def check_may_go_on(old: Mapping[str, Any], new: Mapping[str, Any], *, owner: object, folder: Path) -> None:
    """Raise UserError unless the run of config `old` in `folder` can go on with `new`: with the same, or to another
    end, where the learning rate of a step does not hang on how many steps there are."""
    changed = {key for key in {**old, **new} if old.get(key) != new.get(key)} - WITHOUT_EFFECT
    if not changed or not changed <= ENDS:
        check_same_config(old, new, owner=owner)
    elif old["schedule"] not in ENDLESS_SCHEDULES:
        raise UserError(
            f"{owner} cannot go on to another end ({'; '.join(differences(old, new))}): schedule={old['schedule']} "
            f"shapes the learning rate of all steps by their number. Start a new run from its weights: course-lib "
            f"train --init-from {folder} --out DIR --set max_epochs=N (with schedule=constant a run can go on)"
        )


def check_same_run(
    checkpoint: Mapping[str, Any], *, config: Mapping[str, Any], data_fingerprint: str, path: str | Path
) -> None:
    """Raise UserError, naming what differs, unless the checkpoint is of these data, and of this config or one that
    can go on as this."""
    check_may_go_on(checkpoint["config"], config, owner=path, folder=Path(path).parents[1])
    if checkpoint["data_fingerprint"] != data_fingerprint:
        raise UserError(
            f"{path} was made with other data (fingerprint {checkpoint['data_fingerprint'][:12]}, "
            f"now {data_fingerprint[:12]}): put the old data back, or start a new run with another --out"
        )
