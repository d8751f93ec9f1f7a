"""A config becomes a trained model: data, training, record, report; and a look at all that before."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from course_lib.base import in_kernel, on_device, require, resolve_device, say
from course_lib.data import evaluation_batches, save_tokenizer
from course_lib.distributed import ranks as distributed
from course_lib.runs.choosing.baseline import linear_baseline
from course_lib.runs.choosing.model import choose_model
from course_lib.runs.compare import check_may_go_on, differences
from course_lib.runs.components import build_components
from course_lib.runs.config import AUTO, TrainConfig
from course_lib.runs.data import given_frames
from course_lib.runs.folder import RunFolder
from course_lib.runs.record import LivePlot, ProgressBar, RecordWriter
from course_lib.runs.run import Run
from course_lib.runs.trackers import make_trackers, require_trackers
from course_lib.runs.using.predict import load_trained
from course_lib.runs.watching.cost import peak_flops, utilisation
from course_lib.runs.watching.health import health_table
from course_lib.training import (
    Callback,
    InterruptBetweenSteps,
    evaluate,
    evaluation_summary,
    fit,
    load_checkpoint,
    seed_everything,
    task_loss,
    weights_sha256,
)


def run_training(
    config: TrainConfig,
    out: str | Path,
    *,
    resume: bool = False,
    progress: bool = True,
    callbacks: Sequence[Callback] = (),
    data: Any = None,
    validation_data: Any = None,
    test_data: Any = None,
) -> dict[str, Any]:
    """Train as `config` says, into the run folder `out`; returns the record that `run.json` holds.

    With `resume=True` continue the run in `out` from its last checkpoint, or from the start when it has none
    yet: the weights at the end are those of a run that was never interrupted, on a CPU with as many threads and
    processes and the same torch bit for bit; what differs from then is said. A larger `max_epochs` or `max_steps`
    then lets the run go on, also one that is finished, if its schedule is constant or plateau; its warmup stays as it
    was. What is told goes to stderr.

    `data`, `validation_data`, `test_data`: frames of pandas or polars in place of files, where the config says `frame`:
    `run_training(TrainConfig(data="frame"), "runs/a", data=the_frame)`. The record knows such data by the fingerprint
    of their content alone, and a resumed run is given them again.

    Under torchrun every process calls this; all but the first return {}.

    Raises UserError for data, folder or checkpoint that cannot be used, NonFiniteError when the loss or a
    gradient became NaN. KeyboardInterrupt passes through after the record says so.
    """
    frames = given_frames(config, data=data, validation_data=validation_data, test_data=test_data)
    folder = RunFolder(out)
    resume = resume or (distributed.is_elastic() and folder.holds_run)  # torchrun started the job again
    if resume and config.model == AUTO:  # it was chosen when the run began
        config = dataclasses.replace(config, model=folder.read_config()["model"])
    config = _from_first(config)
    if resume:
        old, owner = TrainConfig.from_dict(folder.read_config()).to_dict(), f"the run in {folder.directory}"
        check_may_go_on(old, config.to_dict(), owner=owner, folder=folder.directory)
        is_same = not differences(old, config.to_dict())
        if is_same and folder.read_record().get("status") == "finished":
            say(f"{folder.directory} is finished already; nothing to resume", enabled=progress)
            return folder.read_record()
    elif folder.holds_run:
        folder.create()  # raises, before any time is spent on data
    require_trackers(config.trackers)
    for package in ("yaml", "matplotlib"):  # of the config and of the report, which is written last
        require(package)
    device, device_reason = resolve_device(distributed.Ranks.from_environment().device(config.device))
    ranks = distributed.setup(config.device)
    distributed.quiet_other_ranks()
    try:
        with distributed.main_process_first(ranks):
            if resume and ranks.is_main_process:
                folder.remove_leftovers()
        with on_device(device):
            choice = choose_model(config, folder, device, ranks, progress=progress, frames=frames)
            config, loaded = choice.config, choice.data
            run = Run(
                config, loaded, device, folder, ranks, progress=progress, callbacks=callbacks, resume=resume
            )
            run.parts.reasons |= {"device": f"{device} ({device_reason})", "model": choice.reason}
            run.trials = choice.trials
            if resume and (before := folder.read_record()).get("choice"):
                run.trials, run.parts.reasons["model"] = before["choice"], before["resolved"]["model"]
            for note in loaded.notes:
                say(f"data: {note}", enabled=run.progress)
            return _run_to_its_end(run)
    finally:
        distributed.cleanup()


def _from_first(config: TrainConfig) -> TrainConfig:
    """With the whole path of the run that this one starts from, and its model where none is named: the weights leave
    no choice."""
    if not config.init_from:
        return config
    first = RunFolder(Path(config.init_from).expanduser().absolute())
    model = first.read_config()["model"] if config.model == AUTO else config.model
    return dataclasses.replace(config, init_from=str(first.directory), model=model)


def plan_training(config: TrainConfig, out: str | Path) -> dict[str, str]:
    """What `run_training` would do: every `auto` resolved, with its reason. Draws the schedule into `out`."""
    from course_lib.training import plot_schedule

    folder = RunFolder(out)
    device, device_reason = resolve_device(config.device)
    config = _from_first(config)
    with on_device(device):
        choice = choose_model(config, folder, device, distributed.Ranks(), progress=False)
        config, data = choice.config, choice.data
        seed_everything(config.seed)
        parts = build_components(config, data, device, distributed.Ranks(), settled=None)
    peak = parts.optimizer.defaults["lr"]
    figure = plot_schedule(config.schedule, peak, parts.max_steps, **parts.schedule_numbers)
    folder.directory.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder.directory / "schedule.svg")
    return {
        "data": f"{len(data.train):,} samples to train on, {len(data.validation):,} to validate on"
        + (f", {len(data.test):,} to test on" if data.test else ""),
        **({"notes": "\n".join(data.notes)} if data.notes else {}),
        "device": f"{device} ({device_reason})",
        "parameters": f"{sum(p.numel() for p in parts.model.parameters()):,}",
        "steps": f"{parts.max_steps:,}",
        "model": choice.reason,
        **parts.reasons,
        "schedule": str(folder.directory / "schedule.svg"),
    }


def _run_to_its_end(run: Run) -> dict[str, Any]:
    """Train, or write down why not; then judge."""
    folder, is_main_process = run.folder, run.ranks.is_main_process
    if is_main_process:
        if not folder.tokenizer.exists():
            save_tokenizer(run.data.train.load_tokenizer(), folder.tokenizer)
        if run.config.hf_model:
            from course_lib.models import keep_hf_files

            first = RunFolder(run.config.init_from or "").hf_model  # it may have outlived the base
            is_there = run.config.init_from and first.exists()
            keep_hf_files(first if is_there else run.config.hf_model, folder.hf_model)
        folder.write_record(run.record("running"))
    try:
        _train(run)
    except KeyboardInterrupt:
        run.checkpointer.wait()
        if is_main_process:
            if folder.last.exists():  # the signal may have come between the file and our note of it
                state = load_checkpoint(folder.last)["state"]
                run.checkpointer.saved = (state["step"], state["epoch"])
            folder.write_record(run.record("interrupted"))
        raise
    except Exception as error:  # any: a full disk, too little memory
        if is_main_process:
            folder.write_record(run.record("failed", failure=str(error)))
        raise
    weights = run.stateful(is_best=True)["model"].state_dict()  # all processes put it together
    distributed.cleanup()  # the rest is the first process's alone
    return _finish(run, weights) if is_main_process else {}


def _train(run: Run) -> None:
    config, parts, state = run.config, run.parts, run.state
    trackers = []
    if run.ranks.is_main_process:
        trackers = make_trackers(config.trackers, run.folder, config.to_dict())
        purge_step = state.step + 1 if state.step else None
        run.writer = RecordWriter(
            run.folder, num_records=run.num_records, purge_step=purge_step, trackers=trackers
        )
    shown: Callback
    if in_kernel():
        shown = LivePlot(enabled=run.progress)
    else:
        shown = ProgressBar(parts.max_steps, parts.max_epochs, start=state.step, enabled=run.progress)
    status = "failed"
    try:
        with InterruptBetweenSteps() as interrupt:
            fit(
                distributed.wrap_ddp(parts.model),
                parts.batches,
                parts.optimizer,
                **parts.of_fit(config),
                # In this order: a record is priced, then written, and what is saved counts those written.
                callbacks=[
                    run.meter,
                    *([run.writer] if run.writer else []),
                    shown,
                    *run.callbacks,
                    run.checkpointer,
                    interrupt,
                ],
                state=state,
            )
            run.checkpointer.save_last(state)
            run.checkpointer.wait()
            status = "finished"
    except KeyboardInterrupt:
        status = "interrupted"
        raise
    finally:
        if run.profiler is not None:
            run.profiler.close()
        if run.writer is not None:
            run.writer.close()
        for tracker in trackers:
            tracker.close(status)


def _finish(run: Run, weights: dict[str, Any]) -> dict[str, Any]:
    """Judge the best weights (not the last), then write record and report."""
    from course_lib.runs.report import write_report

    best, parts = load_trained(run.folder.directory), run.parts
    if not parts.is_sharded:  # what FSDP2 has split may be too large for one device
        best.model.to(run.device)
    where = next(best.model.parameters()).device.type
    precision = dataclasses.replace(parts.precision, device_type=where)  # as the run was validated

    def judged(data: Any, **options: Any) -> dict[str, Any]:
        batch_size, width_multiple = 2 * int(parts.settled.micro_batch_size or 1), precision.width_multiple
        batches = evaluation_batches(data, batch_size, width_multiple=width_multiple)
        return evaluate(best.model, batches, loss=task_loss(best.model), precision=precision, **options)

    scores = judged(run.data.validation, return_predictions=True)
    labels, predictions, lengths = (scores.pop(name).numpy() for name in ("labels", "predictions", "lengths"))
    names = run.data.train.label_names
    summary = evaluation_summary(run.config.task, labels, predictions, lengths, names)
    test = None if run.data.test is None else judged(run.data.test)
    records = run.folder.read_metrics()
    with parts.precision.products():
        peak = peak_flops(run.device, parts.precision.dtype, run.ranks.world_size)
    # A run that ran out of money can go on with a larger budget; one that stopped early is done.
    status = "stopped" if run.state.stop_reason.startswith("budget") else "finished"
    record = run.record(status) | {
        "baseline": linear_baseline(run.data, run.config.task),
        "weights_sha256": weights_sha256(weights),
        "best_weights_sha256": weights_sha256(best.model),
        "best": run.checkpointer.best,
        "validation": scores,
        "test": test,
        "per_class": summary["per_class"],
        "slices": summary["slices"],
        "confusion": summary["confusion"],
        "confused": summary["confused"],
        "health": health_table(records),
        "profile": run.profiler.breakdown if run.profiler else None,
        "cost": run.meter.summary(records)
        | utilisation(records, best.model, run.data.validation.lengths, peak),
    }
    write_report(run.folder, record)
    record["artifacts"] = run.folder.artifacts()
    run.folder.write_record(record)
    return record
