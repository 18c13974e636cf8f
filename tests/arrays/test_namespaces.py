import numpy as np
import pytest

from tagkin import arrays
from tagkin.errors import InvalidInput
from tests.conftest import needs_torch


@needs_torch
def test_mixed_kinds_are_refused():
    import torch

    with pytest.raises(InvalidInput, match="NumPy arrays and torch tensors together"):
        arrays.namespace(np.ones(3), torch.ones(3))
    with pytest.raises(InvalidInput, match="different devices: cpu, meta"):
        arrays.namespace(torch.ones(3), torch.ones(3, device="meta"))
