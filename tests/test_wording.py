"""Numbers in the sentences that users read: src/tagkin/wording.py writes them.

A number stands with its word (1 tag, 2 tags), and shares are percentages in plain words.
"""

import numpy as np
import pytest

from tagkin.labels import Vocabulary
from tagkin.wording import count


@pytest.mark.parametrize(
    ("n", "message"), [(0, "0 tags"), (1, "1 tag"), (2, "2 tags"), (np.int64(1), "1 tag")]
)
def test_one_and_several(n, message):
    assert count(n, "tag") == message, "one is singular, all others plural: src/tagkin/wording.py"


def test_a_vocabulary_of_one_tag():
    facts = Vocabulary(min_count=2).fit([["a", "b"], ["a"]]).describe()
    hint = "one is singular: describe() in src/tagkin/labels/vocabulary.py"
    assert facts[0] == "1 tag, learned from 2 images.", hint
    assert facts[1] == "1 tag was dropped, each on fewer than 2 images: b.", hint
