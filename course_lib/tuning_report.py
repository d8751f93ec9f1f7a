"""What came out of a search: `study.json`, `tuning.html`, `best.yaml`."""

from __future__ import annotations

import itertools
import statistics
from typing import TYPE_CHECKING, Any

from course_lib.config_io import to_yaml
from course_lib.files import atomic_write_text
from course_lib.metrics import RunFolder, to_json
from course_lib.report import COLOURS, draw, plot_lines, render
from course_lib.search_space import with_values

if TYPE_CHECKING:
    from course_lib.tuning import Search

STATES = {"COMPLETE": "complete", "PRUNED": "pruned", "RUNNING": "open"}
MIN_TRIALS_FOR_IMPORTANCE = 10
COLOUR = {"complete": COLOURS[0], "pruned": "#999999"}
DOTS = {"marker": "o", "linestyle": "none"}
Rows = list[dict[str, Any]]


def write_study(search: Search, study: Any) -> dict[str, Any]:
    """Write the three files; returns what `study.json` holds."""
    trials = [_trial(trial, search) for trial in study.get_trials(deepcopy=False)]
    complete = [trial for trial in trials if trial["state"] == "complete"]
    best = min(complete, key=lambda trial: _loss(trial, search), default=None)
    repeats = _repeats(search, best) if best else []
    values = [row["value"] for row in (best, *repeats) if row]
    counts = {
        state: sum(trial["state"] == state for trial in trials) for state in (*STATES.values(), "failed")
    }
    totals = {key: sum(row[key] for row in (*trials, *repeats)) for key in ("steps", "seconds")}
    result = {
        "monitor": search.config.monitor,
        "best": best,
        "repeats": repeats,
        "mean": statistics.mean(values) if values else None,
        "standard_deviation": statistics.stdev(values) if len(values) > 1 else None,
        "spent": {"trials": len(trials), **counts, **totals},
        "steps_per_trial": search.config.max_steps,
        "space": {key: part.text for key, part in search.space.items()},
        "sampler": search.sampler,
        "pruner": search.pruner,
        "importance": _importance(study, len(complete)),
        "trials": trials,
    }
    if best:
        config = with_values(search.config, best["params"])
        atomic_write_text(search.out / "best.yaml", to_yaml(config.to_dict()))
    page = render(
        "tuning.html",
        **result,
        name=search.out.name,
        config=search.config,
        figures=_figures(search, result),
        rows=[{**trial, **trial["params"]} for trial in trials],
        columns={key: key for key in ("number", "state", "value", *search.space, "steps", "seconds")},
    )
    atomic_write_text(search.out / "study.json", to_json(result) + "\n")
    atomic_write_text(search.out / "tuning.html", page)
    return result


def _loss(trial: dict[str, Any], search: Search) -> float:
    return -trial["value"] if search.config.higher_is_better else trial["value"]


def _trial(trial: Any, search: Search) -> dict[str, Any]:
    steps, seconds = trial.user_attrs.get("spent", (0, 0.0))
    failure = trial.user_attrs.get("failure")
    return {
        "number": trial.number,
        "state": "failed" if failure else STATES[trial.state.name],
        "value": trial.value,
        "params": trial.params,
        "steps": steps,
        "seconds": seconds,
        "failure": failure,
        "folder": str(search.out / "trials" / f"{trial.number:04d}"),
    }


def _repeats(search: Search, best: dict[str, Any]) -> Rows:
    """The best configuration's finished runs with other seeds."""
    seeds = range(search.config.seed + 1, search.config.seed + search.seeds)
    records = {seed: RunFolder(f"{best['folder']}-seed{seed}").read_record() for seed in seeds}
    return [
        {"seed": seed, "value": run["best"]["value"], "steps": run["step"], "seconds": run["process_seconds"]}
        for seed, run in records.items()
        if run.get("status") == "finished"
    ]


def _importance(study: Any, num_complete: int) -> dict[str, float]:
    """Share of each key in what separates good trials from the others, the most important first (PED-ANOVA,
    Watanabe, Bansal and Hutter, 2023). {} while it would be noise."""
    import optuna

    if num_complete < MIN_TRIALS_FOR_IMPORTANCE:
        return {}
    # "Good" must be some five trials, or it is the luck of one.
    evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=max(0.1, 5 / num_complete))
    return optuna.importance.get_param_importances(study, evaluator=evaluator)


def _figures(search: Search, result: dict[str, Any]) -> list[Any]:
    """History, importance, and the value over each key."""
    groups = {state: [t for t in result["trials"] if t["state"] == state] for state in ("complete", "pruned")}
    if not groups["complete"]:
        return []
    losses = itertools.accumulate((_loss(trial, search) for trial in groups["complete"]), min)
    columns = {
        state: ([t["number"] for t in of], [t["value"] for t in of]) for state, of in groups.items() if of
    }
    lines = [(state, *columns[state], {**DOTS, "color": COLOUR[state]}) for state in columns]
    best = [abs(loss) for loss in losses]
    lines.append(
        ("best so far", columns["complete"][0], best, {"drawstyle": "steps-post", "color": COLOURS[1]})
    )
    figures = [plot_lines("History", "trial", lines)]
    if importance := result["importance"]:
        words = ", ".join(f"{key} {share:.0%}" for key, share in importance.items())
        keys, shares = list(importance)[::-1], list(importance.values())[::-1]
        figures.append(draw("What made the difference", words, lambda axes: axes.barh(keys, shares)))
    return figures + [_slice(key, groups, search) for key in search.space]


def _slice(key: str, groups: dict[str, Rows], search: Search) -> Any:
    """Values over one key."""
    kind = search.space[key].text.partition(":")[0]

    def plot(axes: Any) -> None:
        for state, trials in groups.items():
            places = [str(t["params"][key]) if kind == "choice" else t["params"][key] for t in trials]
            axes.plot(places, [t["value"] for t in trials], color=COLOUR[state], label=state, **DOTS)
        axes.set(xlabel=key, ylabel=search.config.monitor, xscale="log" if kind == "log" else "linear")

    best = sorted(groups["complete"], key=lambda trial: _loss(trial, search))[:3]
    words = ", ".join(f"{trial['value']:.4g} at {trial['params'][key]}" for trial in best)
    return draw(key, f"the best values of {search.config.monitor}: {words}.", plot)
