"""Lists that people write, and what an annotator makes of them."""

import pytest

import tagkin
from tagkin import Annotator
from tagkin.collection import read_tag_list
from tagkin.errors import InvalidInput

from .conftest import SPACE, assert_alike, row_of, seen


def test_a_list_of_tags(tmp_path):
    path = tmp_path / "exclude.txt"
    path.write_text("4k wallpaper\n# more\n\n salt, pepper \n")
    assert read_tag_list(path) == ["4k wallpaper", "salt, pepper"]
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        read_tag_list(tmp_path / "gone.txt")
    path.write_bytes(b"caf\xe9\n")
    with pytest.raises(InvalidInput, match="not UTF-8"):
        read_tag_list(path)


def test_one_tag_in_its_forms_is_learned_as_one(synthetic, tmp_path):
    forms = {"boat": ["boat", "boats", "sea|boat"], "snow": ["snow", "powder"]}
    tags = [
        [forms.get(tag, [tag])[i % len(forms.get(tag, [tag]))] for tag in row] + ["4K wallpaper"]
        for i, row in enumerate(synthetic.tags[:80])
    ]
    annotator = Annotator(
        aliases={"powder": "snow"},
        merge_plurals=True,
        exclude=["4k Wallpaper"],
        leaf_only=True,
    ).fit(seen(synthetic.X[:80]), tags)
    names = set(annotator.vocabulary_.names_)
    assert names == {"beach", "boat", "city", "night", "sea", "snow", "sunset"}
    column = annotator.method_.labels[:, [annotator.vocabulary_.index("boats")]].toarray().ravel()
    assert column.astype(bool).tolist() == ["boat" in row for row in synthetic.tags[:80]]
    again = tagkin.load(annotator.save(tmp_path / "model"))
    assert vars(again.unfitted()) == vars(annotator.unfitted())
    photos = seen(synthetic.X[300:310], first=300)
    assert_alike(again.suggest(photos, n=2), annotator.suggest(photos, n=2))
    photo = annotator.suggest(seen(synthetic.X[:40]), threshold=0.0)[1]
    assert "4K wallpaper" in photo.tags  # what it carries is said as it is
    for suggestion in annotator.suggest(seen(synthetic.X[:40]), threshold=0.0):
        tags = synthetic.tags[row_of(suggestion.file)]
        assert not {s.tag for s in suggestion.suggestions} & set(tags)


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
