"""Suggestions as arrays: one entry for each suggestion, in their order."""

import numpy as np
import pandas
import pytest

import tagkin
from tagkin import suggestion_columns
from tagkin.annotator import Kin, PhotoSuggestions, TagSuggestion
from tagkin.errors import InvalidInput

from .conftest import seen

SHARES = [f"{name}_share" for name in ("kin", "readout", "name", "time", "place", "folder")]


def test_a_frame_has_the_suggestions_for_photographs_that_to_dict_has(fitted, synthetic):
    suggested = fitted.suggest(seen(synthetic.X[300:340], first=300))
    frame = pandas.DataFrame(suggestion_columns(suggested))
    plain = pandas.json_normalize(
        [photo.to_dict() for photo in suggested], record_path="suggestions", meta="file"
    )
    assert len(frame) > 20
    for name in ("file", "tag", "confidence", *SHARES[1:]):
        assert frame[name].tolist() == plain[name].tolist()
    assert np.allclose(frame[SHARES].sum(axis=1), 1)


def test_the_share_of_kin_is_that_of_all_kin(fitted, synthetic):
    suggested = fitted.suggest(seen(synthetic.X[300:310], first=300), n_kin=1000)
    shares = [sum(kin.share for kin in s.kin) for photo in suggested for s in photo.suggestions]
    few = fitted.suggest(seen(synthetic.X[300:310], first=300), n_kin=1)
    assert np.allclose(suggestion_columns(few)["kin_share"], shares, atol=1e-6)


def test_images_are_rows_and_keep_their_numbers():
    rng = np.random.default_rng(0)
    Y = rng.random((150, 3)) < 0.4
    X = Y @ rng.random((3, 8)) + 0.1 * rng.random((150, 8))
    suggested = tagkin.FeatureAnnotator().fit(X[:120], Y[:120]).suggest(X[120:])
    columns = suggestion_columns(suggested)
    assert columns["image"].tolist() == [i for i, row in enumerate(suggested) for _ in row]
    assert columns["tag"].tolist() == [s.name for row in suggested for s in row]
    assert columns["confidence"].tolist() == [s.confidence for row in suggested for s in row]


def test_no_suggestions_are_empty_columns():
    for nothing, first in (([], "image"), ([[]], "image"), ([PhotoSuggestions("a", ())], "file")):
        columns = suggestion_columns(nothing)
        assert list(columns) == [first, "tag", "confidence", *SHARES]
        assert {column.shape for column in columns.values()} == {(0,)}


def test_suggestions_of_a_method_have_no_confidence_and_are_refused():
    rng = np.random.default_rng(0)
    Y = rng.random((60, 3)) < 0.4
    method = tagkin.paper.NeighborVoting(5).fit(rng.random((60, 4)), Y)
    with pytest.raises(InvalidInput, match=r"Pass the result of Annotator\.suggest"):
        suggestion_columns(method.suggest(rng.random((2, 4)), n=2))


def test_paths_stay_whole():
    kin = (Kin("b.jpg", 1.0),)
    photos = [
        PhotoSuggestions(file, (TagSuggestion("a", 0.5, kin, 0.0, 0.0),))
        for file in ("x", "x" * 300)
    ]
    assert suggestion_columns(photos)["file"].tolist() == ["x", "x" * 300]
