"""Right solutions of lesson 10 that hardly look like one."""

# %%
# No passes and nothing drawn: words are counted once, and a text has the label that its words speak for (naive Bayes).
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable

from autograder import exercise


@exercise("10.2")
def train_classifier(
    texts: list[str], labels: list[str], *, num_epochs: int, seed: int
) -> Callable[[list[str]], list[str]]:
    """Counts of words by label, and how often each label occurs."""

    def words_of(text: str) -> set[str]:
        return set(re.findall(r"\w+|[^\w\s]", text))

    num_texts = Counter(labels)
    num_with: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text, label in zip(texts, labels, strict=True):
        for word in words_of(text):
            num_with[word][label] += 1
    names = sorted(num_texts)

    def score(words: set[str], label: str) -> float:
        known = (num_with[word][label] for word in sorted(words) if word in num_with)
        total = num_texts[label] + 2
        return math.log(num_texts[label]) + sum(math.log((number + 0.2) / total) for number in known)

    def predict(questions: list[str]) -> list[str]:
        found = []
        for text in questions:
            words = words_of(text)
            found.append(max(names, key=lambda label: score(words, label)))
        return found

    return predict
