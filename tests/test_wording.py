"""Numbers in sentences, in what users see."""

import numpy as np
import pytest

from tagkin.labels import Vocabulary
from tagkin.wording import count, denoising_text


@pytest.mark.parametrize(
    ("n", "said"), [(0, "0 tags"), (1, "1 tag"), (2, "2 tags"), (np.int64(1), "1 tag")]
)
def test_one_and_several(n, said):
    assert count(n, "tag") == said


def test_denoising_in_plain_words():
    assert denoising_text(0) == "no, the tags are used unchanged"
    assert denoising_text(1.0).startswith("all of the weight of tags comes from similar")
    assert denoising_text(0.25).startswith("25 % of the weight")


def test_a_vocabulary_of_one_tag():
    facts = Vocabulary(min_count=2).fit([["a", "b"], ["a"]]).describe()
    assert facts[0] == "1 tag, learned from 2 images."
    assert facts[1] == "1 tag was dropped, each on fewer than 2 images: b."
