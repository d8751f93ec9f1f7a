"""Is this run in good health? Each signal of its records is judged, with the reason and where to look next."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

# A smaller relative fall of the training loss is what windows differ by without any learning.
MIN_LOSS_FALL = 0.02
# Validation loss varies by a few per cent between checks; more than this above its minimum is a trend.
MAX_RISE_FROM_BEST = 0.05
# Norms of a sound run differ by a factor of two between windows; five times the median of the windows just
# before is a bad batch, or a learning rate at the edge.
SPIKE_FACTOR, SPIKE_HISTORY, SPIKE_MIN_HISTORY = 5.0, 10, 3
# Time waited is not computed in: from a tenth on, the loader is the cheapest thing to improve.
MAX_DATA_WAIT = 0.10
# Grouping texts by length leaves a few per cent of padding; at a fifth it is off, or cannot work.
MAX_PAD = 0.20
# Clocks of shared machines vary by a tenth; a fifth less at the end is a leak, heat, or a neighbour.
MIN_SPEED_RATIO = 0.8
MIN_WINDOWS = 8  # fewer logs do not show a trend

LOOK_AT = {
    "numbers": "learning_rate (lower), warmup_fraction (longer), precision (bf16-mixed or 32-true)",
    "training loss": "learning_rate (three times as much, a third as much), labels (are they right?)",
    "validation loss": "max_epochs (fewer), early_stopping_patience, more data, dropout, weight_decay",
    "gradient norm": "max_norm (lower), warmup_fraction (longer), the texts of those steps",
    "data wait": "the disk of the data and of the cache; other programs on this machine",
    "padding": "max_length (shorter), micro_batch_size (smaller): texts in a batch differ much in length",
    "throughput": "memory that grows, heat, other programs on this machine",
}


def health_table(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per signal that `records` (the lines of `metrics.jsonl`, where NaN is None) show:
    `{"signal", "status": "healthy" or "warning", "value", "why", "look_at"}`."""
    rows: list[dict[str, Any]] = []

    def judge(signal: str, value: float, is_bad: bool, why: str) -> None:
        row = {"signal": signal, "status": "warning" if is_bad else "healthy", "value": value, "why": why}
        rows.append({**row, "look_at": LOOK_AT[signal] if is_bad else ""})

    train, checks = ([row for row in records if row["kind"] == kind] for kind in ("train", "validation"))
    losses = [row["loss"] for row in train if row["loss"] is not None]
    num_bad = len(train) - len(losses) + sum(row.get("num_nonfinite") or 0 for row in records)
    judge("numbers", num_bad, num_bad > 0, f"{num_bad} losses or gradients were NaN or infinite")
    checks = [row for row in checks if row["loss"] is not None]
    if len(losses) > 1:
        final = fmean(losses[-max(1, len(losses) // 4) :])
        fall = 1 - final / max(losses[0], 1e-12)
        judge("training loss", fall, fall < MIN_LOSS_FALL, f"from {losses[0]:.4g} to {final:.4g}")
    if checks:
        best = min(checks, key=lambda row: row["loss"])
        rise = checks[-1]["loss"] / max(best["loss"], 1e-12) - 1
        why = f"lowest at step {best['step']:,}, at the end {rise:.0%} higher"
        judge("validation loss", best["step"], rise > MAX_RISE_FROM_BEST, why)
    if len(train) >= MIN_WINDOWS:
        _judge_trends(train, judge)
    if train:
        seconds = [row["seconds"] for row in train]
        wait = sum(row["data_wait_fraction"] * row["seconds"] for row in train) / sum(seconds)
        judge("data wait", wait, wait > MAX_DATA_WAIT, f"{wait:.1%} of the time went by waiting for data")
        num_positions = sum(row["num_tokens"] / (1 - row["pad_fraction"]) for row in train)
        pad = 1 - sum(row["num_tokens"] for row in train) / num_positions
        judge("padding", pad, pad > MAX_PAD, f"{pad:.1%} of what was computed was padding")
    return rows


def _judge_trends(train: Sequence[dict[str, Any]], judge: Any) -> None:
    norms, speeds = ([row[key] or 0.0 for row in train] for key in ("grad_norm", "tokens_per_sec"))
    spikes = [
        train[i]["step"]
        for i in range(SPIKE_MIN_HISTORY, len(norms))
        if norms[i] > SPIKE_FACTOR * median(norms[max(0, i - SPIKE_HISTORY) : i])
    ]
    where = f", the last at step {spikes[-1]:,}" if spikes else ""
    judge("gradient norm", len(spikes), bool(spikes), f"{len(spikes)} spikes in {len(norms)} logs{where}")
    quarter = len(speeds) // 4
    ratio = median(speeds[-quarter:]) / max(median(speeds[1 : 1 + quarter]), 1e-12)
    judge("throughput", ratio, ratio < MIN_SPEED_RATIO, f"at the end {ratio:.2f} × that of the start")


def health_text(rows: Sequence[dict[str, Any]]) -> str:
    """The table for a terminal."""
    lines = [f"{row['status']:<8} {row['signal']:<16} {row['why']}" for row in rows]
    advice = [f"; look at: {row['look_at']}" if row["look_at"] else "" for row in rows]
    return "\n".join(map("".join, zip(lines, advice, strict=True)))
