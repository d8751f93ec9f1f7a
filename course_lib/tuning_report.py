"""What came out of a search: `study.json`, `tuning.html`, `best.yaml`."""

from __future__ import annotations

import itertools
import statistics
from typing import TYPE_CHECKING, Any

from course_lib.config import TrainConfig
from course_lib.config_io import to_yaml
from course_lib.files import atomic_write_text
from course_lib.metrics import RunFolder, to_json
from course_lib.report import COLOURS, draw, duration, render

if TYPE_CHECKING:
    from course_lib.tuning import Search

STATES = ("complete", "pruned", "failed", "open")
GREY = "#999999"
Rows = list[dict[str, Any]]


def write_study(search: Search, study: Any) -> dict[str, Any]:
    """Write the three files; returns what `study.json` holds."""
    trials = [_trial(trial, search) for trial in study.get_trials(deepcopy=False)]
    complete = [trial for trial in trials if trial["state"] == "complete"]
    sign = -1 if search.config.higher_is_better else 1
    best = min(complete, key=lambda trial: sign * trial["value"], default=None)
    repeats = _repeats(search, best) if best else []
    spent = [*trials, *repeats]
    result = {
        "monitor": search.config.monitor,
        "best": best,
        "repeats": repeats,
        "spent": {
            "trials": len(trials),
            **{state: sum(trial["state"] == state for trial in trials) for state in STATES},
            "steps": sum(row["steps"] for row in spent),
            "seconds": sum(row["seconds"] for row in spent),
        },
        "steps_per_trial": search.steps_per_trial,
        "space": {key: dimension.text for key, dimension in search.space.items()},
        "sampler": search.sampler,
        "pruner": search.pruner,
        "importance": _importance(study, len(complete)),
        "trials": trials,
    }
    if best:
        config = TrainConfig(**{**search.config.to_dict(), **best["params"]})
        atomic_write_text(search.out / "best.yaml", to_yaml(config.to_dict()))
    atomic_write_text(search.out / "study.json", to_json(result) + "\n")
    atomic_write_text(search.out / "tuning.html", _page(search, result))
    return result


def _trial(trial: Any, search: Search) -> dict[str, Any]:
    attributes = trial.user_attrs
    state = {"COMPLETE": "complete", "PRUNED": "pruned"}.get(trial.state.name, "open")
    steps, seconds = attributes.get("spent", (0, 0.0))
    return {
        "number": trial.number,
        "state": "failed" if attributes.get("failure") else state,
        "value": trial.value,
        "params": trial.params,
        "steps": steps,
        "seconds": seconds,
        "failure": attributes.get("failure"),
        "folder": str(search.out / "trials" / f"{trial.number:04d}"),
    }


def _repeats(search: Search, best: dict[str, Any]) -> Rows:
    """The best configuration's finished runs with other seeds."""
    rows = []
    for seed in range(search.config.seed + 1, search.config.seed + search.seeds):
        record = RunFolder(f"{best['folder']}-seed{seed}").read_record()
        if record.get("status") == "finished":
            used = {"steps": record["step"], "seconds": record["process_seconds"]}
            rows.append({"seed": seed, "value": record["best"]["value"], **used})
    return rows


def _importance(study: Any, num_complete: int) -> dict[str, float]:
    """Share of each key in what separates good trials from the others (PED-ANOVA, Watanabe, Bansal and Hutter,
    2023), the most important first. {} below 5 complete trials: it would be noise."""
    import optuna

    if num_complete < 5:
        return {}
    # "Good" must be a few trials, or it is the luck of one.
    evaluator = optuna.importance.PedAnovaImportanceEvaluator(
        target_quantile=max(0.1, min(0.5, 5 / num_complete))
    )
    return optuna.importance.get_param_importances(study, evaluator=evaluator)


def _page(search: Search, result: dict[str, Any]) -> str:
    scored = [trial for trial in result["trials"] if trial["value"] is not None]
    figures = [_history(scored, search)] if scored else []
    if result["importance"]:
        figures.append(_importance_figure(result["importance"]))
    figures += [_slice(key, scored, search) for key in search.space if scored]
    values = [row["value"] for row in (result["best"], *result["repeats"]) if row]
    return render(
        "tuning.html",
        **result,
        name=search.out.name,
        config=search.config,
        figures=figures,
        rows=[{**trial, **trial["params"]} for trial in result["trials"]],
        columns={key: key for key in ("number", "state", "value", *search.space, "steps", "seconds")},
        time=duration(result["spent"]["seconds"]),
        spread=statistics.stdev(values) if len(values) > 1 else None,
        mean=statistics.mean(values) if values else None,
        unequal=[
            key
            for key in ("micro_batch_size", "grad_accum_steps", "global_batch_size")
            if key in search.space
        ],
    )


def _history(scored: Rows, search: Search) -> Any:
    """Values in the order of the trials, and the best so far."""
    better = max if search.config.higher_is_better else min
    complete = [trial for trial in scored if trial["state"] == "complete"]
    numbers = [trial["number"] for trial in complete]
    best = list(itertools.accumulate((trial["value"] for trial in complete), better))

    def plot(axes: Any) -> None:
        _points(axes, [(trial["number"], trial) for trial in scored])
        axes.step(numbers, best, where="post", color=COLOURS[1], label="best so far")
        axes.set(xlabel="trial", ylabel=search.config.monitor)
        axes.legend(frameon=False)

    ends = f"best so far from {best[0]:.4g} to {best[-1]:.4g}" if best else "no trial came to its end"
    return draw("History", f"{len(scored)} trials, {ends}.", plot)


def _importance_figure(importance: dict[str, float]) -> Any:
    def plot(axes: Any) -> None:
        axes.barh(list(importance)[::-1], list(importance.values())[::-1], color=COLOURS[0])
        axes.set_xlabel("share")

    words = ", ".join(f"{key} {share:.0%}" for key, share in importance.items())
    return draw("What made the difference", f"{words}.", plot)


def _slice(key: str, scored: Rows, search: Search) -> Any:
    """Values over one key."""
    is_choice = search.space[key].text.startswith("choice:")
    pairs = [(str(trial["params"][key]) if is_choice else trial["params"][key], trial) for trial in scored]

    def plot(axes: Any) -> None:
        _points(axes, pairs)
        axes.set(xlabel=key, ylabel=search.config.monitor)
        if search.space[key].text.startswith("log:"):
            axes.set_xscale("log")

    sign = -1 if search.config.higher_is_better else 1
    best = sorted(pairs, key=lambda pair: sign * pair[1]["value"])[:3]
    words = ", ".join(
        f"{trial['value']:.4g} at {value if is_choice else f'{value:.3g}'}" for value, trial in best
    )
    return draw(key, f"the best values of {search.config.monitor}: {words}.", plot)


def _points(axes: Any, pairs: list[tuple[Any, dict[str, Any]]]) -> None:
    for is_complete, colour, label in ((True, COLOURS[0], "complete"), (False, GREY, "pruned")):
        chosen = [(x, trial["value"]) for x, trial in pairs if (trial["state"] == "complete") == is_complete]
        if chosen:
            axes.scatter(*zip(*chosen, strict=True), s=22, color=colour, label=label)
