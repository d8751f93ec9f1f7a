"""FSDP2 on two gloo processes: equal weights, parts that are parts, checkpoints for another number of processes."""

import pytest
import torch

from course_lib.base.errors import UserError
from course_lib.data.batching import evaluation_batches
from course_lib.distributed.ranks import Ranks
from course_lib.runs.config import TrainConfig
from course_lib.training.callbacks import TrainState
from course_lib.training.evaluation import evaluate
from course_lib.training.loop import fit
from tests.course_lib.scripts.small import (
    MAX_NORM,
    SCRIPTS,
    Samples,
    make_batches,
    make_model,
    make_optimizer,
    torchrun,
)
from tests.later import Later

fsdp = Later("course_lib.distributed.fsdp")


def train(model, optimizer, batches, **options):
    options = {"max_epochs": 2, "max_norm": MAX_NORM, "grad_accum_steps": 6, **options}
    fit(model, batches, optimizer, **options)
    return model.state_dict()


@pytest.fixture(scope="module")
def alone():
    model = make_model()
    return train(model, make_optimizer(model), make_batches(Ranks(), 6))


@pytest.fixture(scope="module")
def sharded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fsdp")
    model, batches, state = make_model(), make_batches(Ranks(), 6), TrainState()
    optimizer = make_optimizer(model)
    train(model, optimizer, batches, max_steps=1, state=state)
    fsdp.save_sharded(folder / "of-one", model, optimizer)
    torch.save({"sampler": batches.order.state_dict(), "state": state.state_dict()}, folder / "of-one.pt")
    torchrun(SCRIPTS / "two_fsdp.py", folder)
    return folder, [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.further
@pytest.mark.parametrize(("case", "tolerance"), [("plain", 1e-11), ("offload", 1e-11), ("bf16", 0.1)])
def test_two_processes_that_share_a_model_end_as_one_that_has_it_all(sharded, alone, case, tolerance):
    first, second = (result[case] for result in sharded[1])
    assert second["weights"] == {}  # the whole model is put together on the first process alone
    assert first["weights"].keys() == alone.keys()
    for name, tensor in first["weights"].items():
        torch.testing.assert_close(tensor, alone[name], rtol=0, atol=tolerance)
    total = sum(tensor.numel() for tensor in alone.values())
    assert first["num_own"] + second["num_own"] == total
    assert abs(first["num_own"] - second["num_own"]) < 0.1 * total
    assert first["dtype"] == "torch.float64"  # also with bf16-mixed: only what travels and computes is bf16


@pytest.mark.further
def test_evaluation_of_parts_equals_that_of_the_whole(sharded):
    model = make_model()
    first, second = (result["plain"] for result in sharded[1])
    model.load_state_dict(first["weights"])
    whole = evaluate(model, evaluation_batches(Samples(29, seed=1), 4))
    assert first["scores"] == second["scores"]
    assert first["scores"]["loss"] == pytest.approx(whole["loss"])
    assert first["scores"]["accuracy"] == whole["accuracy"]


@pytest.mark.further
def test_a_checkpoint_of_two_processes_continues_on_one(sharded, alone):
    folder, _ = sharded
    model = make_model()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    optimizer = make_optimizer(model)
    fsdp.load_sharded(folder / "sharded", model, optimizer)
    saved = torch.load(folder / "progress.pt", weights_only=True)
    batches = make_batches(Ranks(), 6)
    batches.order.load_state_dict(saved["sampler"])
    weights = train(model, optimizer, batches, state=TrainState(**saved["state"]))
    for name, tensor in weights.items():
        torch.testing.assert_close(tensor, alone[name], rtol=0, atol=1e-11)


@pytest.mark.further
def test_a_checkpoint_of_one_process_continues_on_two(sharded, alone):
    _, (first, _) = sharded
    for name, tensor in first["from_one"].items():
        torch.testing.assert_close(tensor, alone[name], rtol=0, atol=1e-11)


@pytest.mark.further
def test_a_folder_gets_its_name_when_it_is_whole(sharded, tmp_path):
    folder, _ = sharded
    assert (folder / "sharded" / ".metadata").exists()
    assert not list(folder.glob(".building-*"))
    with pytest.raises(UserError, match="cannot read the checkpoint folder"):
        model = make_model()
        fsdp.load_sharded(tmp_path / "none", model, make_optimizer(model))


@pytest.fixture(scope="module")
def searches(tmp_path_factory):
    folder = tmp_path_factory.mktemp("searches")
    torchrun(SCRIPTS / "two_searches.py", folder, timeout=400)
    return [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.further
def test_processes_with_unequal_memory_end_on_the_smallest_micro_batch(searches, alone):
    first, second = searches
    assert first["alone"][0] < second["alone"][0]  # each by itself would take another
    for kind in ("ddp", "fsdp", "accumulated", "fails", "too little"):
        assert first[kind] == second[kind]
    assert first["ddp"][0] == first["alone"][0]
    assert first["ddp"][1].endswith("; the least of 2 processes")
    # Of the second alone steps of 5 failed, in backward, where the first would wait for it.
    assert first["fails"][0] == 4
    assert first["too little"][0] == 0 and first["too little"][1].startswith("no micro-batch fits in 0.0 MB")


@pytest.mark.further
def test_a_search_takes_steps_of_the_split_model_and_leaves_no_trace(searches, alone):
    first, second = searches
    whole = sum(tensor.numel() for tensor in alone.values())
    assert first["rehearsed"]["ddp"] == ("DistributedDataParallel", whole)
    assert first["rehearsed"]["fsdp"] == second["rehearsed"]["fsdp"] == ("FSDPTextClassifier", whole // 2)
    assert first["accumulated"][0] < first["fsdp"][0]  # whole gradients wait for the last micro-batch
    for one in searches:
        assert one["is as it was"] and all(one["gradients"])
        assert (one["world_size"], one["sum"]) == (2, 3)
    for name, tensor in first["trained"].items():  # split and trained after all that
        torch.testing.assert_close(tensor, alone[name], rtol=0, atol=1e-11)


def test_the_folder_in_force_outlives_saves_whose_checkpoint_file_was_never_written(tmp_path):
    model = make_model()
    parts = fsdp.ShardedParts(tmp_path, model, make_optimizer(model), keep=0)
    in_force = parts.state_dict()
    for _ in range(3):  # each time a kill comes after the parts, and before the file that names them
        fsdp.ShardedParts(tmp_path, model, parts.optimizer, keep=0).load_state_dict(in_force)
        assert parts.state_dict() != in_force
        assert (tmp_path / in_force["folder"]).is_dir()
    assert len(list(tmp_path.iterdir())) == 2


def test_one_process_keeps_its_model_as_it_is(tmp_path):
    model = make_model()
    assert fsdp.shard(model) is model and type(model) is type(make_model())
    optimizer = make_optimizer(model)
    fsdp.save_sharded(tmp_path / "a", model, optimizer)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with torch.no_grad():
        model.head.bias.add_(1.0)
    fsdp.load_sharded(tmp_path / "a", model, optimizer)
    assert torch.equal(model.head.bias, before["head.bias"])


@pytest.mark.parametrize("optimizer", ["adafactor", "muon", "lamb", "adamw-8bit"])
def test_an_optimizer_that_must_see_whole_matrices_is_refused(optimizer):
    with pytest.raises(UserError, match="take adamw"):
        TrainConfig(data="docstrings", sharding="fsdp", optimizer=optimizer)


@pytest.mark.filterwarnings("error")
def test_one_process_saves_and_loads_parts_without_a_word(tmp_path):
    model = make_model()
    optimizer = make_optimizer(model)
    fsdp.save_sharded(tmp_path / "parts", model, optimizer)
    fsdp.load_sharded(tmp_path / "parts", model, optimizer)
