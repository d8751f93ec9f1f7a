"""What `class_throughput` measured, as the tables of RESULTS.md."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

Row = dict[str, Any]
LIKE = {"broken": "perfect", "hostile": "partial"}  # what else stock executes in much the same way


def table(found: Row) -> str:
    """The tables for RESULTS.md, and every cell where the two disagree."""
    lines = [
        "| lesson | submissions | ours, s | ours, submissions/h | stock, sampled | stock, s (class) "
        "| stock, submissions/h | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    totals = Counter[str]()
    for lesson_id, ours in found["ours"].items():
        of_lesson = [one for one in found["made"] if one["lesson_id"] == lesson_id]
        row = {"number": len(of_lesson), "ours": ours["seconds"], "sampled": 0, "stock": 0.0}
        for kind, number in Counter(one["stratum"] for one in of_lesson).items():
            times = _times(found, lesson_id, kind)
            row["sampled"] += len(times)
            row["stock"] += number * statistics.mean(times or _times(found, lesson_id, LIKE[kind]))
        row["stock"] += statistics.median(each["start_seconds"] for each in found["stock"].values())
        totals.update(row)
        lines.append(_row(lesson_id, row))
    lines.append(_row("all", dict(totals)))
    return "\n".join([*lines, "", *_stock_times(found), "", *_points(found)])


def _times(found: Row, lesson_id: str, kind: str) -> list[float]:
    """Seconds of stock, without its start, for each that was sampled."""
    names = [o["student"] for o in found["made"] if (o["lesson_id"], o["stratum"]) == (lesson_id, kind)]
    return [found["stock"][name]["seconds"] for name in names if name in found["stock"]]


def _row(name: str, row: Row) -> str:
    rates = [3600 * row["number"] / row[key] for key in ("ours", "stock")]
    return (
        f"| {name} | {row['number']} | {row['ours']:,.0f} | {rates[0]:,.0f} | {row['sampled']} | "
        f"{row['stock']:,.0f} | {rates[1]:,.0f} | {rates[0] / rates[1]:.1f} |"
    )


def _stock_times(found: Row) -> list[str]:
    strata = list(dict.fromkeys(one["stratum"] for one in found["made"]))
    lines = [f"| stock, s a submission | {' | '.join(strata)} |", f"|---{'|---' * len(strata)}|"]
    for lesson_id in found["ours"]:
        cells = []
        for kind in strata:
            of_kind = [o for o in found["made"] if (o["lesson_id"], o["stratum"]) == (lesson_id, kind)]
            times = _times(found, lesson_id, kind)
            cells.append(f"{statistics.mean(times):.0f} ({len(of_kind)})" if times else f"({len(of_kind)})")
        lines.append(f"| {lesson_id} (how many there are) | {' | '.join(cells)} |")
    return lines


def _points(found: Row) -> list[str]:
    """The points of both beside each other, and beside what each submission was made for."""
    compared, same, lines = 0, 0, []
    as_made: Counter[bool] = Counter()
    for one in found["made"]:
        who = f"- {one['student']}, {one['stratum']}{one['what'] and ', ' + one['what']}"
        ours = found["ours"][one["lesson_id"]]["students"][one["student"]]["scores"]
        if one["kind"] != "broken":  # how much of a broken file can be read is another question
            for name, points in _due(one).items():
                is_due = ours[name] == points or (one["kind"] == "hostile" and ours[name] < points)
                as_made[is_due] += 1
                lines += [] if is_due else [f"{who}: {name} has {ours[name]:g}, made for {points:g}"]
        if (stock := found["stock"].get(one["student"])) is None:
            continue
        if not any(points is not None for points in stock["scores"].values()):
            total = sum(points for points in ours.values() if points)
            lines.append(
                f"{who}: no grade from stock ({stock['error'][:60] or 'it says nothing'}), ours {total:g}"
            )
            continue
        for name in sorted(ours):
            pair = ours[name], stock["scores"].get(name)
            compared, same = compared + 1, same + (pair[0] == pair[1])
            lines += [] if pair[0] == pair[1] else [f"{who}: {name}: ours {pair[0]}, stock {pair[1]}"]
    return [
        f"{found['handed_in_units']} cells handed in, {found['distinct_units']} of them distinct; "
        f"{len(found['checks'])} checks ran, {sum(each['seconds'] for each in found['checks']):,.0f} s in all.",
        f"Same points in {same} of {compared} cells that stock graded; ours as made in {as_made[True]} of "
        f"{as_made.total()}.",
        *lines,
    ]


def _due(one: Row) -> dict[str, float]:
    return {f"check-{name.replace('.', '-')}": points for name, points in one["due"].items()}
