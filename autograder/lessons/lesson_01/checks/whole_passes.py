"""What 1.2 asks of one pass: each index once, full batches, little padding."""

from __future__ import annotations

from collections.abc import Sequence

from autograder.engine import Job
from autograder.lessons.checking import require_each_once
from autograder.lessons.lesson_01.checks.passes import SIZE, Pass, Passes

MOST_PADDING = 0.15


def require_whole_pass(job: Job, one: Pass) -> None:
    """Each index once, in batches of the size asked for, at most one shorter, and as many as `len` says."""
    size, rows = len(one.lengths), one.micro_batch_size
    job.require(
        "strange" not in one.answer,
        expected="batches that are lists of ints",
        got=f"a {one.answer.get('strange')}",
        likely=_why_strange(str(one.answer.get("strange"))),
        look="what does `next(iter(sampler))` look like, and could it be an index of a list?",
    )
    job.require(
        one.answer["is_kept"],
        expected="the lengths as they were handed in",
        got="others",
        likely="`lengths` is sorted or changed in place: it belongs to whoever made the sampler",
        look="`np.asarray` makes no copy: write into an array of your own",
    )
    sizes, num_batches = one.answer["sizes"], -(-size // rows)
    job.require(
        sizes.any(),
        expected="the same batches after somebody has emptied those that came",
        got="empty ones",
        likely="lists that are kept are handed out: what their taker does to them is in the next pass",
        look="make new lists in each pass, such as by `.tolist()`",
    )
    highest = int(one.indices.max(initial=0))
    job.require(
        highest <= size,  # one too many is counted otherwise
        expected=f"indices 0 … {size - 1}",
        got=f"{highest}, as of a sampler for more samples",
        likely="batches are kept for all samplers by seed and epoch alone: one for other samples gets them too",
        look="keep nothing outside the object, or make the batches anew in each pass",
    )
    missing = sorted(set(range(size)) - set(one.indices.tolist()))
    job.require(
        not missing or missing != sorted(one.answer["looked"]),
        expected=f"all {size} indices once, after a look at the first batch",
        got="all but those of that first batch",
        likely="the pass goes on where one before it was broken off: the sampler keeps its place",
        look="keep nothing of a pass in `self`: each `__iter__` begins anew",
    )
    require_each_once(
        job,
        one.indices,
        range(size),
        expected=f"all {size} indices once",
        likely="the tail is dropped: the last, shorter batch is missing",
        look=f"count what comes out of an epoch of {size} samples in batches of {rows}",
        likely_repeated="the tail is filled up with samples that were already used",
        look_repeated="leave the last batch shorter",
    )
    short = int((sizes < rows).sum())
    job.require(
        sizes.max() <= rows,
        expected=f"batches of {rows}",
        got=f"one of {sizes.max()}",
        likely="batches larger than `micro_batch_size`: a short rest was put to another batch",
        look="print `[len(batch) for batch in sampler]`",
    )
    job.require(
        short <= 1 and sizes.min() > 0,
        expected=f"batches of {rows}, at most one shorter",
        got=f"{short} shorter ones, of {sizes.min()} at least",
        likely="each bucket ends in a short batch of its own" if sizes.min() else "a batch without any index",
        look="cut one sorted order into batches, or merge the rests of the buckets",
    )
    before, said = one.answer["len_before"], one.answer["len"]
    job.require(
        before == said == num_batches,
        expected=f"len(sampler) == {num_batches}, the number of batches, before a pass and after",
        got=f"{before}" if before == said else f"{before}, and afterwards {said}",
        likely={
            size: "`__len__` counts samples, not batches",
            size // rows: "`__len__` rounds down: the last, shorter batch counts too",
            num_batches + 1: "`__len__` counts one batch more where the batches fit exactly",
        }.get(said, "`__len__` is not the number of batches of an epoch"),
        look="divide the number of samples by the size of a batch, and round up",
    )


def _why_strange(kind: str) -> str:
    if kind in ("int64", "int32", "ndarray", "tuple", "Tensor"):
        return f"another type than a list of Python's ints, such as {kind}: `.tolist()` of an array makes one"
    return "a batch holds something else than indices"


def _padding(passes: Sequence[Pass]) -> float:
    slots = sum(len(batch) * int(one.lengths[batch].max()) for one in passes for batch in one.batches)
    return 1 - sum(int(one.lengths.sum()) for one in passes) / slots


def require_little_padding(job: Job, passes: Passes) -> float:
    """At most `MOST_PADDING` over the large passes, for that of one is in part luck; returns the share."""
    pad_fraction = _padding(passes.large)
    job.require(
        pad_fraction <= MOST_PADDING,
        expected=f"a pad fraction of at most {MOST_PADDING} over {len(passes.large)} passes",
        got=f"{pad_fraction:.4f}",
        likely="batches still mix short and long samples",
        look="which samples stand side by side just before you cut them into batches?",
    )
    of_size = [one for one in passes.few if len(one.lengths) == SIZE]
    for some, likely, look in (
        (
            [passes.moved],
            "what was made for the lengths of another sampler is used again",
            "keep nothing outside the object, or find it by the lengths themselves",
        ),
        (
            [passes.wide],
            "lengths are cut, or kept in a type that does not hold large ones",
            "take the lengths as they come: `np.asarray` finds a type that holds them",
        ),
        (
            [*passes.more, *passes.of_first],
            "in some epochs batches mix short and long samples",
            "what depends on the number of the epoch, beside the generator?",
        ),
        (
            of_size,
            "batches of another size than 16 mix short and long samples",
            "print the lengths of a batch, for several `micro_batch_size`",
        ),
    ):
        most = max(_padding([one]) for one in some)
        job.require(
            most <= 2 * MOST_PADDING,
            expected="as little padding in each of these passes",
            got=f"a pad fraction of {most:.2f}",
            likely=likely,
            look=look,
        )
    return round(pad_fraction, 4)
