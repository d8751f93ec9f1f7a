"""What solutions of the mini project are measured against: a right training that takes no care of time."""

from autograder.lessons.checking import edited

NAIVE_TRAINING = '''
import numpy as np
import torch

from course_lib import ModelConfig, TextClassifier, naive_epoch, train_tokenizer
from course_lib.measuring.naive import pad_to_maximum

WIDTH = 384

def train_classifier(texts, labels, *, num_epochs, seed):
    """Every text as wide as the longest may be, tokenised in every epoch, a sync at every step."""
    torch.manual_seed(seed)
    names = sorted(set(labels))
    tokenizer = train_tokenizer(texts, vocab_size=2048)
    model = TextClassifier(
        ModelConfig(
            vocab_size=tokenizer.get_vocab_size(), num_classes=len(names), max_length=WIDTH,
            d_model=32, num_layers=1, num_heads=2, dropout=0.0,
        )
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)

    def tokenised(texts):
        return [np.array(tokenizer.encode(text).ids[:WIDTH] or [1]) for text in texts]

    for epoch in range(num_epochs):
        samples = [(ids, names.index(label)) for ids, label in zip(tokenised(texts), labels)]
        naive_epoch(model, samples, optimizer, pad_to=WIDTH, micro_batch_size=16, seed=seed + epoch)

    def predict(texts):
        model.eval()
        found = []
        samples = [(ids, 0) for ids in tokenised(texts)]
        with torch.inference_mode():
            for start in range(0, len(samples), 64):
                batch = pad_to_maximum(samples[start : start + 64], WIDTH)
                logits = model(batch["input_ids"], batch["attention_mask"])
                found += [names[i] for i in logits.argmax(1).tolist()]
        return found

    return predict
'''

_TOKENISED = "        samples = [(ids, names.index(label)) for ids, label in zip(tokenised(texts), labels)]\n"
_EPOCHS = "    for epoch in range(num_epochs):\n"

# The same training but for what takes time: the same batches in the same order, padded to their own longest text.
SAME_TRAINING = edited(
    NAIVE_TRAINING,
    ("naive_epoch, train_tokenizer\n", "collate, train_tokenizer\n"),
    (
        "        naive_epoch(model, samples, optimizer, pad_to=WIDTH, micro_batch_size=16, seed=seed + epoch)\n",
        """        order = np.random.default_rng(seed + epoch).permutation(len(samples)).tolist()
        for start in range(0, len(order), 16):
            batch = collate([samples[i] for i in order[start : start + 16]])
            logits = model(batch["input_ids"], batch["attention_mask"])
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(logits, batch["labels"]).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
""",
    ),
    ("pad_to_maximum(samples[start : start + 64], WIDTH)", "collate(samples[start : start + 64])"),
    (_EPOCHS + _TOKENISED, _TOKENISED[4:] + _EPOCHS),
)
