"""Labels in other languages: every label has a translation, and images stay the same."""

import numpy as np
import scipy.sparse

from experiments.languages import count_understood, read_translations, translated
from experiments.names import Task
from tagkin.tag_meanings import Meanings


class Prior:
    """Understands dogs, in two languages."""

    def meanings(self, names):
        kinds = np.array([2 if name in ("dog", "Hund") else 0 for name in names])
        rows = np.empty((0, 1))
        return Meanings(rows, np.arange(0), np.empty(0), np.empty(0), kinds)


def test_labels_are_translated_and_nothing_else():
    words = read_translations()
    images = np.zeros((2, 3))
    labels = scipy.sparse.csr_array(np.eye(2))
    task = Task("photos", images, labels, ["dog", "cat"], np.arange(1), np.arange(1, 2), Prior())
    german = translated(task, words["German"])
    assert german.labels == ["Hund", "Katze"]
    assert german.X is images
    assert count_understood(german) == 1


def test_every_language_has_every_label_once():
    for language, words in read_translations().items():
        assert len(words) == 78
        assert len(set(words.values())) == 78, language
        assert all(word == word.strip() and word for word in words.values())
