import pytest
import torch
import torch.nn.functional as F

from course_lib.models.transformers import ModelConfig, TextClassifier, masked_mean


def make(**changes):
    torch.manual_seed(0)
    config = {"vocab_size": 50, "num_classes": 3, "max_length": 40, "d_model": 16, **changes}
    return TextClassifier(ModelConfig(**config))


def batch(rows=4, width=10):
    torch.manual_seed(1)
    lengths = torch.tensor([width, 7, 3, 1])[:rows]
    mask = torch.arange(width) < lengths[:, None]
    return torch.randint(3, 50, (rows, width)) * mask, mask


def test_logits_do_not_depend_on_padding():
    model = make().eval()
    ids, mask = batch()
    logits = model(ids, mask)
    wide = model(F.pad(ids, (0, 25)), F.pad(mask, (0, 25)))
    torch.testing.assert_close(wide, logits, rtol=1e-5, atol=1e-6)
    junk = torch.where(mask, ids, torch.full_like(ids, 17))  # what stands under the padding is not read
    torch.testing.assert_close(model(junk, mask), logits, rtol=1e-5, atol=1e-6)
    alone = model(ids[1:2, :7], mask[1:2, :7])  # nor do the neighbours matter
    torch.testing.assert_close(alone[0], logits[1], rtol=1e-5, atol=1e-6)


def test_order_and_content_matter_and_an_integer_mask_is_accepted():
    model = make().eval()
    ids, mask = batch()
    logits = model(ids, mask)
    assert not torch.allclose(model(ids.flip(1), mask)[0], logits[0], atol=1e-4)
    torch.testing.assert_close(model(ids, mask.long()), logits)


def test_every_parameter_learns_and_a_row_without_tokens_is_finite():
    model = make()
    ids, mask = batch()
    mask[3] = False
    F.cross_entropy(model(ids, mask), torch.tensor([0, 1, 2, 0])).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert all(p.grad.abs().sum() > 0 for p in model.parameters())


def test_too_wide_a_batch_names_the_fix():
    with pytest.raises(ValueError, match="41 tokens wide but the model has 40 positions"):
        make()(torch.ones(1, 41, dtype=torch.int64), torch.ones(1, 41, dtype=torch.bool))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"num_heads": 3}, "multiple of num_heads"),
        ({"dropout": 1.0}, "dropout"),
        ({"num_layers": 0}, "layers"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(changes, says):
    with pytest.raises(ValueError, match=says):
        make(**changes)


def test_masked_mean():
    hidden = torch.arange(12.0).reshape(2, 3, 2)
    mask = torch.tensor([[True, True, False], [False, False, False]])
    assert masked_mean(hidden, mask).tolist() == [[1.0, 2.0], [0.0, 0.0]]
