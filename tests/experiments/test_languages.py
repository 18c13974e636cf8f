"""Labels in other languages: every label has a translation, and images stay the same."""

import numpy as np
import scipy.sparse

from experiments.languages import read_translations, translated
from experiments.names import Task
from tagkin.tag_meanings import CaptionEncoder, NamePrior


def test_every_label_has_a_translation_in_each_language():
    by_language = read_translations()
    assert {"English", "German", "French", "Spanish", "Japanese"} <= set(by_language)
    for words in by_language.values():
        assert set(words) == set(by_language["English"])
        assert all(words.values())


def test_translated_labels_have_the_same_images():
    Y = scipy.sparse.csr_array(np.eye(2))
    rows = np.arange(2)
    prior = NamePrior(CaptionEncoder())
    task = Task("photos", np.eye(2), Y, ["dog", "cat"], rows, rows, prior)
    german = translated(task, {"dog": "Hund", "cat": "Katze"})
    assert german.labels == ["Hund", "Katze"]
    assert german.Y is Y
