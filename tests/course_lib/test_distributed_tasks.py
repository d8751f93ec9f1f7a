"""Each task and kind of model on two processes, copied and split: the weights and scores of one process."""

import pytest
import torch

from course_lib.distributed.ranks import Ranks
from tests.course_lib.scripts.small import SCRIPTS, torchrun
from tests.later import Later

two_tasks = Later("tests.course_lib.scripts.two_tasks")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    two_tasks.make_tables(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_LIB_CACHE", str(folder / "cache"))
        alone = two_tasks.train_all(folder, Ranks())
        torchrun(SCRIPTS / "two_tasks.py", folder, timeout=600)
    return alone, [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.further
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_processes_train_what_one_trains_whatever_is_learned(trained):
    alone, ranks = trained
    assert len(alone) == 13
    for name, expected in alone.items():
        for rank in ranks:
            found = rank[name]
            assert found["scores"] == pytest.approx(expected["scores"], rel=1e-3, abs=1e-4), name
            assert found["weights"].keys() == expected["weights"].keys(), name
            for key, tensor in found["weights"].items():
                reason = f"{name}: {key}"
                torch.testing.assert_close(
                    tensor,
                    expected["weights"][key],
                    rtol=1e-3,
                    atol=1e-4,
                    msg=lambda m, r=reason: f"{r}: {m}",
                )
