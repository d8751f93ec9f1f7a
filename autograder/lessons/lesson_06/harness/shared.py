"""What the harness of lesson 06 shares: processes that form a group by gloo over loopback, inside the sandbox.

A rank is forked from this process, which has torch loaded and no threads yet; where nothing can be forked it is
started anew. It answers calls over a pipe until it is told to end.
"""

from __future__ import annotations

import contextlib
import linecache
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable
from datetime import timedelta
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F

from course_lib.data import collate

CELL = "<your cell>"
DIED = "died"
GROUP_SECONDS = 6.0  # that a rank waits inside a collective for one that does not come
CALL_SECONDS = 25.0  # for all ranks to answer
GAP, DEEP = 50.0, 150.0  # between the logits of a loud model
LARGE = 30.0  # a loss of a loud model is far below or above it
NO_WORD = 2  # an id that no text has
PAD_ID = 0  # stands inside of texts as well
GRACE_SECONDS = 1.0  # that a rank which has answered stays connected for the sake of those that have not


class Parted(Exception):
    """The ranks did not call the same collectives: one waited, and no other came."""


class Crew:
    """`world_size` processes in one group, or, without `joins`, in none. Ended by `close`."""

    def __init__(self, world_size: int, *, joins: bool = True, local_ranks: list[int] | None = None) -> None:
        context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        number = sum(path.name.startswith("meeting-") for path in Path.cwd().iterdir())
        meeting = Path.cwd() / f"meeting-{number}"
        meeting.touch()
        port = free_port() if not joins else 0
        self.pipes: list[Any] = []
        self.processes: list[Any] = []
        for rank in range(world_size):
            ours, theirs = context.Pipe()
            local_rank = rank if local_ranks is None else local_ranks[rank]
            place = {"rank": rank, "world_size": world_size, "local_rank": local_rank, "port": port}
            place["local_world_size"] = world_size if local_ranks is None else 1 + max(local_ranks)
            process = context.Process(
                target=_serve_rank, args=(theirs, str(meeting), joins, place), daemon=True
            )
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def call(self, function: str, *, seconds: float = CALL_SECONDS, **arguments: Any) -> list[Any]:
        """`function(rank, world_size, **arguments)` of this harness on every rank; their results in order.

        Raises an error of the type that a rank met, and `Parted` when a rank waits for one that never comes.
        """
        for pipe in self.pipes:
            pipe.send((function, arguments))
        answers: dict[int, Any] = {}
        deadline, first = time.monotonic() + seconds, 0.0
        while len(answers) < len(self.pipes) and time.monotonic() < deadline:
            open_pipes = [pipe for rank, pipe in enumerate(self.pipes) if rank not in answers]
            for ready in wait(open_pipes, timeout=0.05):
                rank = self.pipes.index(ready)
                try:
                    answers[rank] = self.pipes[rank].recv()
                except EOFError:
                    answers[rank] = {"type": DIED, "message": "", "where": ""}
            first = first or (time.monotonic() if answers else 0.0)
            if answers and len(answers) < len(self.pipes) and time.monotonic() - first > GRACE_SECONDS:
                for rank in answers:  # whoever still waits for these now hears that they are gone
                    self.processes[rank].kill()
        _raise_first(answers, len(self.pipes))
        return [answers[rank]["value"] for rank in range(len(self.pipes))]

    def close(self) -> None:
        for pipe in self.pipes:
            with contextlib.suppress(OSError):
                pipe.send(None)
        for process in self.processes:
            process.join(0.5)
            process.kill()
            process.join(5.0)


def on_ranks(function: str, world_size: int, **arguments: Any) -> dict[str, Any]:
    """One call on new ranks: {"ranks": their results, "parted": ""}, or who waited for whom."""
    crew = Crew(world_size)
    try:
        return {"ranks": crew.call(function, **arguments), "parted": ""}
    except Parted as error:
        return {"ranks": [], "parted": str(error)}
    finally:
        crew.close()


def _raise_first(answers: dict[int, Any], world_size: int) -> None:
    """The first error that has a cause of its own; then those of ranks that were left alone."""
    failed = {rank: answer for rank, answer in answers.items() if "value" not in answer}
    for rank, answer in failed.items():
        if not _is_lost_peer(answer):
            kind = type(answer["type"], (Exception,), {})
            raise kind(f"on rank {rank}: {answer['message']}{answer['where']}")
    for rank, answer in failed.items():
        if answer["type"] == DIED:
            raise Parted(
                f"rank {rank} was ended by gloo, which got a message of another size than it waited for"
            )
        others = [other for other in answers if other not in failed]
        did = f"rank {others[0]} had already returned" if others else "the others wait at another place"
        raise Parted(f"rank {rank} waits in a collective{answer['where']} for the others, and {did}")
    if silent := [rank for rank in range(world_size) if rank not in answers]:
        raise Parted(f"rank {silent[0]} never came back")


def _is_lost_peer(answer: dict[str, Any]) -> bool:
    if answer["type"] == DIED:
        return True
    words = "gloo", "Connection closed", "Timed out", "timed out", "Connection reset", "peer", "wait timeout"
    types = "RuntimeError", "DistBackendError", "DistNetworkError", "DistStoreError"
    return answer["type"] in types and any(word in answer["message"] for word in words)


def _serve_rank(pipe: Any, meeting: str, joins: bool, place: dict[str, int]) -> None:
    """The life of a rank. It leaves without clean-up: nothing of the learner's may hold it."""
    try:
        if sys.platform == "linux":
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # the only network there is
        torch.set_num_threads(1)
        rank, world_size = place["rank"], place["world_size"]
        if joins:
            dist.init_process_group(
                "gloo",
                init_method=f"file://{meeting}-of-ranks",
                rank=rank,
                world_size=world_size,
                timeout=timedelta(seconds=GROUP_SECONDS),
            )
        else:  # what torchrun would say
            names = {"RANK": rank, "WORLD_SIZE": world_size, "LOCAL_RANK": place["local_rank"]}
            names |= {"LOCAL_WORLD_SIZE": place["local_world_size"], "MASTER_PORT": place["port"]}
            os.environ |= {name: str(value) for name, value in names.items()} | {"MASTER_ADDR": "127.0.0.1"}
        while True:
            request = pipe.recv()
            if request is None:
                break
            function, arguments = request
            try:
                answer: dict[str, Any] = {
                    "value": portable(globals()[function](rank, world_size, **arguments))
                }
            except BaseException as error:
                answer = {"type": type(error).__name__, "message": str(error)[:500], "where": _where(error)}
            pipe.send(answer)
    finally:
        os._exit(0)


def _where(error: BaseException) -> str:
    """The last line of the cell that an error came through. Frames are closed to the harness; lines are not."""
    import traceback

    try:
        found = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno or 0 for frame in found if frame.filename == CELL]
    except PermissionError:
        lines = []
    return f" (line {lines[-1]} of the cell: `{linecache.getline(CELL, lines[-1]).strip()}`)" if lines else ""


def portable(value: Any) -> Any:
    """Tensors as arrays, so that they travel by value and not as shared memory."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy()
    if isinstance(value, dict):
        return {key: portable(item) for key, item in value.items()}
    return [portable(item) for item in value] if isinstance(value, list | tuple) else value


def free_port() -> int:
    import socket

    with socket.socket() as any_socket:
        any_socket.bind(("127.0.0.1", 0))
        return int(any_socket.getsockname()[1])


def shares(seed: int, rows: list[list[int]]) -> list[list[dict[str, torch.Tensor]]]:
    """For each rank its batches of random texts, of these numbers of rows; every rank has a favourite class.

    Every batch is wider than its longest text, and every second one of a rank has its padding on the left.
    """
    rng = np.random.default_rng(seed)
    found: list[list[dict[str, torch.Tensor]]] = []
    for rank, sizes in enumerate(rows):
        found.append([])
        for size in sizes:
            texts = [rng.integers(3, 60, size=rng.integers(2, 20)) for _ in range(size)]
            for text in texts:
                text[rng.integers(len(text))] = PAD_ID
            labels = np.where(rng.random(size) < 0.7, rank % 5, rng.integers(5, size=size))
            batch = collate([(ids, int(label)) for ids, label in zip(texts, labels, strict=True)])
            batch = wider(batch, int(rng.integers(1, 4)))
            found[-1].append(padded_left(batch) if (len(found[-1]) + rank) % 2 else batch)
    return found


def wider(batch: dict[str, torch.Tensor], num_columns: int) -> dict[str, torch.Tensor]:
    """The same batch with so many columns of padding more, as one of a fixed width has them."""
    columns = {name: F.pad(batch[name], (0, num_columns)) for name in ("input_ids", "attention_mask")}
    return batch | columns


def padded_left(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The same texts, each at the end of its row."""
    ids, mask = batch["input_ids"], batch["attention_mask"]
    order = mask.int().argsort(dim=1, stable=True)
    return batch | {"input_ids": ids.gather(1, order), "attention_mask": mask.gather(1, order)}


def below() -> torch.Tensor:
    """What a loud model adds to its logits."""
    return torch.tensor([-GAP, 0.0, -DEEP, 0.0, 0.0])


def make_loud(model: Any) -> None:
    """Two classes come out 50 and 150 below the others: such a loss, and a probability that any ε swallows; of the
    second one nothing is left in float32."""
    model.head.register_forward_hook(lambda _, inputs, logits: logits + below())


def make_sick(model: Any) -> None:
    """A row with `NO_WORD` in it comes out as NaN, and no other row."""

    def spoil(_: Any, inputs: tuple[torch.Tensor], vectors: torch.Tensor) -> torch.Tensor:
        return vectors.masked_fill((inputs[0] == NO_WORD).unsqueeze(-1), float("nan"))

    model.token_embedding.register_forward_hook(spoil)


def with_no_word(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The same batch, but a sick model has no loss for its first row."""
    ids = batch["input_ids"].clone()
    ids[0, batch["attention_mask"][0].int().argmax()] = NO_WORD  # the first word of the text
    return batch | {"input_ids": ids}


class Watch:
    """Of a model's forwards: whether any ran in evaluation mode, whether each mask was made of the ids, how many words
    those have let through, and of which texts."""

    def __init__(self, model: Any = None) -> None:
        self.has_evaluated, self.is_from_ids, self.num_words = False, True, 0
        self.texts = set[bytes]()
        if model is not None:
            model.register_forward_pre_hook(self.note, with_kwargs=True)

    def note(self, module: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        self.has_evaluated |= not module.training
        ids, mask = [*inputs, *named.values()][:2]
        if isinstance(mask, torch.Tensor) and ids.dtype != torch.int64:
            ids, mask = mask, ids  # handed over by name, the mask first
        self.is_from_ids &= isinstance(mask, torch.Tensor) and torch.equal(mask.bool(), ids != PAD_ID)
        if isinstance(mask, torch.Tensor):
            self.num_words += int(mask.count_nonzero())
            self.texts |= texts_of(ids, mask)

    def num_foreign(self, batches: Iterable[dict[str, torch.Tensor]]) -> int:
        """How many texts went through the model that are in none of these batches."""
        own = (texts_of(batch["input_ids"], batch["attention_mask"]) for batch in batches)
        return len(self.texts.difference(*own))

    def report(self) -> dict[str, Any]:
        return {
            "has_evaluated": self.has_evaluated,
            "is_from_ids": self.is_from_ids,
            "num_words": self.num_words,
        }


def texts_of(ids: torch.Tensor, mask: torch.Tensor) -> set[bytes]:
    """The words of each row that the mask lets through, whatever padding stands around them."""
    if ids.shape != mask.shape:
        return set()
    return {
        row[let_through].cpu().numpy().tobytes() for row, let_through in zip(ids, mask.bool(), strict=True)
    }


def gradients_of(model: Any) -> torch.Tensor:
    """All gradients in one row; zeros where there is none."""
    return torch.cat(
        [(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in model.parameters()]
    )


def loss_of(model: Any, batch: dict[str, torch.Tensor], reduction: str = "mean") -> torch.Tensor:
    return F.cross_entropy(
        model(batch["input_ids"], batch["attention_mask"]), batch["labels"], reduction=reduction
    )


def loss_without_large(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """The mean loss where rows of a large loss count nothing, as those of `log(softmax + ε)` do in backward."""
    losses = loss_of(model, batch, "none")
    return losses.where(losses < LARGE, 0.0).mean()
