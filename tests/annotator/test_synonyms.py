"""Lists that people write, and what an annotator makes of them."""

import pytest

from tagkin import Annotator
from tagkin.collection import read_tag_list
from tagkin.errors import InvalidInput

from .conftest import SPACE, seen


def test_a_list_of_tags(tmp_path):
    path = tmp_path / "exclude.txt"
    path.write_text("4k wallpaper\n# more\n\n salt, pepper \n")
    assert read_tag_list(path) == ["4k wallpaper", "salt, pepper"]
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        read_tag_list(tmp_path / "gone.txt")
    path.write_bytes(b"caf\xe9\n")
    with pytest.raises(InvalidInput, match="not UTF-8"):
        read_tag_list(path)


def test_flat_and_hierarchical_tags_are_one_without_asking(synthetic):
    tags = [
        ["place|beach" if tag == "beach" and i % 3 == 0 else tag for tag in row]
        for i, row in enumerate(synthetic.tags[:60])
    ]
    annotator = Annotator(space=SPACE).fit(seen(synthetic.X[:60]), tags)
    assert "beach" in annotator.vocabulary_.names_
    assert "place|beach" not in annotator.vocabulary_.names_
    n = sum("beach" in row for row in synthetic.tags[:60])
    assert annotator.vocabulary_.counts_[annotator.vocabulary_.index("beach")] == n
