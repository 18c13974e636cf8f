"""Photographs to show, and what is suggested for them."""

import numpy as np
import pytest
from PIL import Image

from tagkin.annotator.suggestions import Kin, PhotoSuggestions, TagSuggestion


@pytest.fixture
def files(tmp_path):
    """Twelve plain photographs of different colours and shapes."""
    folder = tmp_path / "photos"
    folder.mkdir()
    rng = np.random.default_rng(0)
    names = []
    for k in range(12):
        size = (300, 200) if k % 2 else (180, 260)
        colour = tuple(int(v) for v in rng.integers(60, 200, 3))
        name = folder / f"photo-{k:02}.png"
        Image.new("RGB", size, colour).save(name)
        names.append(str(name))
    return names


@pytest.fixture
def photo(files):
    kin = tuple(Kin(file, share) for file, share in zip(files[1:4], (0.5, 0.3, 0.2), strict=True))
    suggestions = (
        TagSuggestion("sea", 0.9, kin, 0.0, 0.0),
        TagSuggestion("boat", 0.5, kin[:1], 0.1, 0.3),
    )
    return PhotoSuggestions(files[0], suggestions, ("holiday",))
