"""What lesson 06 measures and compares with: a training on one process, and a cell for workers of our own."""

ONE_PROCESS = '''
import torch.nn.functional as F

def train_in_parallel(model, batches, optimizer):
    """The plain loop, on one process and one thread."""
    model.train()
    for batch in batches:
        loss = F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

train_in_parallel.num_processes = 1
'''


def nothing(entry: str) -> str:
    """A cell under the learner's name that does nothing: the harness beside it computes what must come out."""
    return f"def {entry}(*arguments):\n    raise NotImplementedError\n"
