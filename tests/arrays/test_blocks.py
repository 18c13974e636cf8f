import numpy as np
import pytest

from tagkin import arrays, memory_budget
from tagkin.errors import InvalidInput


def test_row_blocks_cover_all_rows_within_the_budget():
    with memory_budget(1000):
        blocks = list(arrays.row_blocks(23, 300))
    assert [b.stop - b.start for b in blocks] == [3] * 7 + [2]
    assert np.concatenate([np.arange(23)[b] for b in blocks]).tolist() == list(range(23))


def test_a_row_larger_than_the_budget_is_a_block_of_its_own():
    with memory_budget(10):
        assert len(list(arrays.row_blocks(4, 300))) == 4


def test_the_budget_ends_with_its_block():
    before = arrays.block_rows(1)
    with memory_budget(7):
        assert arrays.block_rows(1) == 7
    assert arrays.block_rows(1) == before
    for none in (0, float("inf"), "1 GB"):
        with pytest.raises(InvalidInput, match="positive"), memory_budget(none):
            pass
