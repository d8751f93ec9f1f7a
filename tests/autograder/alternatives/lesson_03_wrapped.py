# A right solution of lesson 03 whose attribute names are worked out.

# %%
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl, checkpoint_wrapper

from autograder import exercise


@exercise("3.5")
def checkpoint_blocks(model):
    """torch's own wrapper in the place of each block, which keeps its mode."""
    for name, block in list(model.blocks.named_children()):
        wrapped = checkpoint_wrapper(block, checkpoint_impl=CheckpointImpl.NO_REENTRANT)
        setattr(model.blocks, name, wrapped.train(block.training))
    return model
