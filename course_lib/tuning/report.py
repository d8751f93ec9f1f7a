"""What came out of a search: `study.json`, `tuning.html`, `best.yaml`."""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from typing import Any

from course_lib.base import atomic_write_text, render, require, to_json, to_yaml
from course_lib.tuning.search import Search

STATES = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed", "RUNNING": "open"}
MIN_TRIALS_FOR_IMPORTANCE = 10


def write_study(search: Search, study: Any) -> dict[str, Any]:
    """Write the three files and the plots; returns what `study.json` holds."""
    trials = [_row(trial) for trial in study.get_trials(deepcopy=False)]
    num = Counter(trial["state"] for trial in trials)
    best = trials[study.best_trial.number] if num["complete"] else None
    spent = {"trials": len(trials), **{state: num[state] for state in STATES.values()}}
    spent |= {key: sum(trial[key] for trial in trials) for key in ("steps", "seconds")}
    importance = _draw(search, study, num["complete"]) if best else {}
    result = {"monitor": search.config.monitor, "best": best, "spent": spent, "importance": importance}
    result["trials"] = trials
    if best:
        atomic_write_text(search.out / "best.yaml", to_yaml(search.config.to_dict() | best["params"]))
    rows = [{**trial, **trial["params"]} for trial in trials]
    columns = ("number", "state", "value", *search.space, "steps", "seconds")
    page = render("tuning.html", **result, search=search, rows=rows, columns={key: key for key in columns})
    atomic_write_text(search.out / "tuning.html", page)
    atomic_write_text(search.out / "study.json", to_json(result) + "\n")
    return result


def _row(trial: Any) -> dict[str, Any]:
    return {
        "number": trial.number,
        "state": STATES[trial.state.name],
        "value": trial.value,
        "params": trial.params,
        "steps": trial.last_step or 0,  # up to the last validation
        "seconds": trial.user_attrs.get("seconds", 0.0),
        "failure": trial.user_attrs.get("failure"),
    }


def _draw(search: Search, study: Any, num_complete: int) -> dict[str, float]:
    """Optuna's plots as SVG files: history, the value over each key, importance. Returns the share of each key in
    what separates good trials from the others (PED-ANOVA, Watanabe, Bansal and Hutter, 2023), {} while it would
    be noise."""
    matplotlib, pyplot = require("matplotlib"), require("matplotlib.pyplot")
    import optuna
    from optuna.visualization import matplotlib as plots

    importance = dict[str, float]()
    figures: dict[str, Any] = {"history": plots.plot_optimization_history, "slices": plots.plot_slice}
    with warnings.catch_warnings(), matplotlib.rc_context():  # the plots choose a style for all that follow
        warnings.simplefilter("ignore")  # that plots are experimental, that an axis has a single value
        if num_complete >= MIN_TRIALS_FOR_IMPORTANCE:
            share = max(0.1, 5 / num_complete)  # "good" must be some five trials, or it is the luck of one
            evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=share)
            importance = optuna.importance.get_param_importances(study, evaluator=evaluator)
            figures["importance"] = functools.partial(plots.plot_param_importances, evaluator=evaluator)
        for name, plot in figures.items():
            plot(study, target_name=search.config.monitor)
            pyplot.savefig(search.out / f"{name}.svg", bbox_inches="tight")
            pyplot.close()
    return importance
