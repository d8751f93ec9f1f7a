"""Harness of 10.2: a whole training, from texts to predictions."""

from __future__ import annotations

from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook

from autograder.lessons.checking.harness_shared import elsewhere, learner, small
from autograder.lessons.lesson_10.harness.tables import secret_table

TEXTS_PER_STEP = 32
NUM_PROBES = 48


def predictions(
    texts: list[str], labels: list[str], unseen: list[str], num_epochs: int, seed: int
) -> list[str]:
    """Labels that a fresh training on `texts` gives to `unseen`."""
    predict = learner(texts, labels, num_epochs=num_epochs, seed=seed)
    return [str(label) for label in predict(unseen)]


def trained(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Trainings in one process, one after the other: what each says of its texts at once, and when all are done, or the
    error that this ends with; then for no text at all.

    "num_steps" are the updates of torch's optimizers: 0 for a training that has its own.
    """
    found, functions, steps = [], [], [0]

    def note(*_: Any) -> None:
        steps[0] += 1

    handle = register_optimizer_step_post_hook(note)
    for case in cases:
        steps[0] = 0
        predict = learner(case["texts"], case["labels"], num_epochs=case["num_epochs"], seed=case["seed"])
        functions.append((predict, case["unseen"]))
        found.append({"num_steps": steps[0], "labels": _labels(predict, case["unseen"])})
    handle.remove()
    for answer, (predict, unseen) in zip(found, functions, strict=True):
        answer["later"], answer["trouble"] = _labels_or_trouble(predict, unseen)
        answer["of_none"], answer["trouble_of_none"] = _labels_or_trouble(predict, [])
    return found


_TRAIN_ELSEWHERE = """
predict = learner(request["texts"], request["labels"], num_epochs=request["num_epochs"], seed=request["seed"])
print(json.dumps([str(label) for label in predict(request["unseen"])]))
"""


def trained_elsewhere(source: str, entry: str, case: dict[str, Any], hash_seed: int) -> list[str]:
    """The predictions of the same training in a fresh interpreter."""
    found: list[str] = elsewhere(_TRAIN_ELSEWHERE, source, entry, case, hash_seed)
    return found


def _labels(predict: Any, texts: list[str]) -> list[str]:
    return [str(label) for label in predict(list(texts))]


def _labels_or_trouble(predict: Any, texts: list[str]) -> tuple[list[str], str]:
    try:
        return _labels(predict, texts), ""
    except Exception as error:
        return [], repr(error)[:200]


def segment(seed: int, num_steps: int) -> dict[str, Any]:
    """One training of two epochs on secret texts, and what it says of texts that it was trained on and not."""
    num_texts = num_steps * TEXTS_PER_STEP
    texts, labels = secret_table(seed, num_texts + NUM_PROBES)
    predict = learner(texts[:num_texts], labels[:num_texts], num_epochs=2, seed=small(seed))
    probes = texts[num_texts // 2 :]
    return {"predictions": [str(label) for label in predict(probes)], "seed": seed, "num_steps": num_steps}


def answers(seed: int, num_steps: int) -> list[str]:
    """The right labels of that segment's probes. Asked of the baseline's process alone."""
    num_texts = num_steps * TEXTS_PER_STEP
    return secret_table(seed, num_texts + NUM_PROBES)[1][num_texts // 2 :]
