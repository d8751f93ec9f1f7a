"""A right and fast solution of the mini project's timed exercise: `workbook calibrate` measures it."""

TRAIN_CLASSIFIER = """
import numpy as np
import torch

from course_lib import BucketBatchSampler, ModelConfig, TextClassifier, collate, make_optimizer
from course_lib import train_step, train_tokenizer

WIDTH = 384

def train_classifier(texts, labels, *, num_epochs, seed):
    torch.manual_seed(seed)
    names = sorted(set(labels))
    number = {name: index for index, name in enumerate(names)}
    tokenizer = train_tokenizer(texts, vocab_size=2048)
    model = TextClassifier(
        ModelConfig(
            vocab_size=tokenizer.get_vocab_size(), num_classes=len(names), max_length=WIDTH,
            d_model=32, num_layers=1, num_heads=2, dropout=0.0,
        )
    )
    optimizer = make_optimizer(model, learning_rate=5e-3)

    def tokenised(texts):
        return [np.array(e.ids[:WIDTH] or [1]) for e in tokenizer.encode_batch(list(texts))]

    ids = tokenised(texts)
    sampler = BucketBatchSampler([len(row) for row in ids], 16, seed=seed)
    for epoch in range(num_epochs):
        sampler.set_epoch(epoch)
        for indices in sampler:
            train_step(model, collate([(ids[i], number[labels[i]]) for i in indices]), optimizer)

    def predict(texts):
        rows = tokenised(texts)
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        found = [""] * len(rows)
        model.eval()
        with torch.inference_mode():
            for start in range(0, len(order), 64):
                chosen = order[start : start + 64]
                batch = collate([(rows[i], 0) for i in chosen])
                for i, best in zip(chosen, model(batch["input_ids"], batch["attention_mask"]).argmax(1).tolist()):
                    found[i] = names[best]
        return found

    return predict
"""
