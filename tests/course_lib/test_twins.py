"""Training on two processes by the loops of other libraries: all end with the weights that ours ends with."""

import pytest
import torch

from course_lib.training.reproducibility import weights_sha256
from tests.course_lib.scripts.small import SCRIPTS, torchrun
from tests.everyday import first_of

PEERS = {"ddp": "torch", "accelerate": "accelerate", "fabric": "lightning"}


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twins")

    def go(which):
        torchrun(SCRIPTS / "peers.py", which, folder)
        first, second = (torch.load(folder / f"{which}-{rank}.pt", weights_only=True) for rank in range(2))
        assert weights_sha256(first) == weights_sha256(second)  # all ranks end equal, bit for bit
        return first

    return go


@pytest.fixture(scope="module")
def ours(train):
    return train("ours")


@pytest.mark.parametrize("peer", first_of(["ddp", "accelerate", "fabric"], everyday=0, further=1))
def test_two_processes_end_with_the_weights_of_the_same_loop_by(peer, train, ours):
    pytest.importorskip(PEERS[peer])
    theirs = train(peer)
    assert theirs.keys() == ours.keys()
    for name in ours:
        torch.testing.assert_close(theirs[name], ours[name], rtol=1e-5, atol=1e-6)
    if peer == "ddp":  # written by hand, operation by operation
        assert weights_sha256(theirs) == weights_sha256(ours)
