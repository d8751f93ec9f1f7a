"""Wrong solutions of 10.2."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong
from autograder.lessons.lesson_10.baselines import NAIVE_TRAINING
from autograder.lessons.lesson_10.references import TRAIN_CLASSIFIER

_TRAIN = edited(TRAIN_CLASSIFIER, ("def train_classifier", '@exercise("10.2")\ndef train_classifier'))
_STEP = "            train_step(model, collate([(ids[i], number[labels[i]]) for i in indices]), optimizer)\n"

# Right and too slow: it must never pass.
SLOW_TRAINING = edited(NAIVE_TRAINING, ("def train_classifier", '@exercise("10.2")\ndef train_classifier'))

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "10.2": wrong(
        _TRAIN,
        {
            "one update an epoch": (
                "some texts are left out of every pass",
                _STEP,
                _STEP + "            break\n",
            ),
            "one epoch too few": (
                "one epoch too few",
                "range(num_epochs)",
                "range(1, num_epochs)",
            ),
            "one of equal texts": (
                "a text that stands in several places is learnt once",
                "    torch.manual_seed(seed)\n",
                "    torch.manual_seed(seed)\n    label_of = dict(zip(texts, labels))\n"
                "    texts, labels = list(label_of), list(label_of.values())\n",
            ),
            "one seed for all": (
                "`seed` is not used",
                ("manual_seed(seed)", "manual_seed(0)"),
                ("16, seed=seed", "16, seed=0"),
            ),
            "one epoch too many": ("more epochs are trained", "range(num_epochs)", "range(num_epochs + 1)"),
            "each epoch twice": ("more epochs are trained", "range(num_epochs)", "range(2 * num_epochs)"),
            "scores less their mean in the batch": (
                "depends on those beside it",
                'model(batch["input_ids"], batch["attention_mask"]).argmax(1)',
                '(lambda s: (s - s.mean(0)) / (s.std(0) + 1e-9))(model(batch["input_ids"], '
                'batch["attention_mask"])).argmax(1)',
            ),
            "short batches left out": (
                "some texts are left out of every pass",
                _STEP,
                "            if len(indices) < 16:\n                continue\n" + _STEP,
            ),
            "texts drawn with replacement": (
                "drawn with replacement",
                _STEP,
                "            indices = torch.randint(len(ids), (len(indices),)).tolist()\n" + _STEP,
            ),
            "a tenth set aside": (
                "some texts are left out of every pass",
                ("    ids = tokenised(texts)\n", "    ids = tokenised(texts)[len(texts) // 10 :]\n"),
                ("number[labels[i]]", "number[labels[i + len(texts) // 10]]"),
            ),
            "a width that all share": (
                "a width that is taken from the lengths of all",
                "        rows = tokenised(texts)\n",
                "        rows = tokenised(texts)\n"
                "        width = int(np.percentile([len(row) for row in rows] or [1], 75))\n"
                "        rows = [row[:width] for row in rows]\n",
            ),
            "a width that most need": (
                "its end is cut off",
                "        rows = tokenised(texts)\n",
                "        rows = tokenised(texts)\n"
                "        lengths = [len(row) for row in rows]\n"
                "        width = int(np.percentile(lengths, 95)) if len(rows) > 30 else WIDTH\n"
                "        rows = [row[:width] for row in rows]\n",
            ),
            "an empty text takes its neighbour's first word": (
                "an empty text is given something of its neighbour's",
                "        rows = tokenised(texts)\n",
                "        texts = list(texts)\n"
                "        behind = [*texts[1:], ''] if texts else []\n"
                "        rows = tokenised([a or ' '.join(b.split()[:1]) for a, b in zip(texts, behind)])\n",
            ),
            "a text that stands twice answered once": (
                "answered once, as in a dict",
                ("    def predict(texts):\n", "    def each(texts):\n"),
                (
                    "    return predict\n",
                    "    def predict(texts):\n        return each([*dict.fromkeys(texts)])\n\n    return predict\n",
                ),
            ),
            "texts that are equal but for the case predicted once": (
                "texts that are nearly equal are taken for one another",
                ("    def predict(texts):\n", "    def each(texts):\n"),
                (
                    "    return predict\n",
                    "    def predict(texts):\n"
                    "        first = {text.lower(): text for text in reversed(texts)}\n"
                    "        found = dict(zip(first, each([*first.values()])))\n"
                    "        return [found[text.lower()] for text in texts]\n\n"
                    "    return predict\n",
                ),
            ),
            "one model for so many labels": (
                "a second training takes the place",
                ("    model = TextClassifier(", "    model = made("),
                (
                    '@exercise("10.2")',
                    "MODELS = {}\n\n\ndef made(config):\n    key = config.vocab_size, config.num_classes\n"
                    '    return MODELS.setdefault(key, TextClassifier(config))\n\n\n@exercise("10.2")',
                ),
            ),
            "texts sorted in place": (
                "sorted, shuffled or changed in place",
                "    def predict(texts):\n",
                "    texts.sort()\n\n    def predict(texts):\n",
            ),
            "a seed of 0 is none": (
                "without, the seed",
                "    torch.manual_seed(seed)\n",
                "    if seed:\n        torch.manual_seed(seed)\n",
            ),
            "words that all trainings share": (
                "a second training takes the place",
                ('@exercise("10.2")', 'NUMBER_OF = {}\n\n@exercise("10.2")'),
                (
                    "    ids = tokenised(texts)\n",
                    "    for text in texts:\n        for word in text.split():\n"
                    "            NUMBER_OF.setdefault(word, len(NUMBER_OF) % 2000 + 2)\n    ids = tokenised(texts)\n",
                ),
                (
                    "[np.array(e.ids[:WIDTH] or [1]) for e in tokenizer.encode_batch(list(texts))]",
                    "[np.array([NUMBER_OF[w] for w in t.split() if w in NUMBER_OF][:WIDTH] or [1]) for t in texts]",
                ),
                ("tokenizer.get_vocab_size()", "2048"),
            ),
            "texts cut at four tokens": ("the training learns less", "e.ids[:WIDTH]", "e.ids[:4]"),
            "one epoch whatever is asked for": (
                "`num_epochs` is not used",
                "range(num_epochs)",
                "range(1)",
            ),
            "five epochs whatever is asked for": (
                "`num_epochs` is not used",
                "range(num_epochs)",
                "range(5)",
            ),
            "words numbered in the order of a set": (
                "the order of a set",
                (
                    "    ids = tokenised(texts)\n",
                    "    words = {w for t in texts for w in t.split()}\n"
                    "    number_of = {w: i for i, w in enumerate(words)}\n    ids = tokenised(texts)\n",
                ),
                (
                    "[np.array(e.ids[:WIDTH] or [1]) for e in tokenizer.encode_batch(list(texts))]",
                    "[np.array([number_of.get(w, 0) % 2000 for w in t.split()][:WIDTH] or [1]) for t in texts]",
                ),
                ("tokenizer.get_vocab_size()", "2048"),
            ),
            "no texts": (
                "an empty list of texts",
                "        model.eval()\n",
                "        model.eval()\n        torch.stack([torch.zeros(1)] * len(rows))\n",
            ),
            "a global model": (
                "a second training takes the place",
                ("    torch.manual_seed(seed)\n", "    global model, names\n    torch.manual_seed(seed)\n"),
            ),
            "the seed not used": ("without, the seed", "    torch.manual_seed(seed)\n", "    torch.seed()\n"),
            "two thirds of the texts left out": (
                "some texts are left out of every pass",
                "    torch.manual_seed(seed)\n",
                "    torch.manual_seed(seed)\n    texts = texts[: len(texts) // 3]\n",
            ),
            "an empty text is left out": (
                "empty texts are left out",
                "        return found\n",
                "        return [name for name, text in zip(found, texts) if text]\n",
            ),
            "predictions in the order of length": (
                "in another order than the questions",
                "found[i] = names[best]",
                "found[order.index(i)] = names[best]",
            ),
            "class numbers instead of names": (
                "class numbers instead of names",
                "found[i] = names[best]",
                "found[i] = best",
            ),
            "labels without the spaces around them": (
                "the names of labels are cleaned",
                "    torch.manual_seed(seed)\n",
                "    torch.manual_seed(seed)\n    labels = [label.strip() for label in labels]\n",
            ),
            "the tail of the texts left out": (
                "the tail of the last batch is dropped",
                "        return found\n",
                "        return found[: len(rows) // 16 * 16]\n",
            ),
        },
    )
    + wrong(
        _TRAIN,
        {
            "untrained under the clock": (
                "under the clock less is trained",
                ('@exercise("10.2")', 'CALLS = []\n\n@exercise("10.2")'),
                (
                    "    torch.manual_seed(seed)\n",
                    "    torch.manual_seed(seed)\n    CALLS.append(len(texts))\n"
                    "    num_epochs *= max(CALLS) < 400 or len(texts) > 400 or num_epochs != 2\n",
                ),
            ),
            "half of the texts under the clock": (
                "under the clock less is trained",
                ('@exercise("10.2")', 'CALLS = []\n\n@exercise("10.2")'),
                (
                    "    torch.manual_seed(seed)\n",
                    "    torch.manual_seed(seed)\n    CALLS.append(len(texts))\n"
                    "    if max(CALLS) > 400 and len(texts) < 400 and num_epochs == 2:\n"
                    "        texts, labels = texts[::2], labels[::2]\n",
                ),
            ),
        },
        is_timed=True,
    )
    + wrong(SLOW_TRAINING, {"padding to a global maximum": ("padding, tokenising again",)}, is_timed=True)
}
