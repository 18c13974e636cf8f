"""Maps: layouts in the plane, dots, colours and small photographs."""

import itertools

import numpy as np
import pytest
from PIL import Image

from tagkin.errors import InvalidInput
from tagkin.pages import draw_map, lay_out
from tagkin.pages.layout import leading_directions, place_others
from tagkin.pages.map import (
    COLOURS,
    MARGIN,
    SIDE,
    TITLE,
    colour_dots,
    most_frequent,
    place_thumbnails,
    spread_out,
    to_pixels,
)


def test_the_legend_folds_case_and_shows_the_most_frequent_spelling():
    tags = [["Beach"], ["beach", "sea"], ["BEACH", "sea"], ["beach"], ["sea"], ["Sea"], ["x"]]
    assert most_frequent(tags, 2) == ["beach", "sea"]
    assert colour_dots(tags, ["Beach"]) == [COLOURS[0]] * 4 + ["#c3c8d1"] * 3


def clusters(n_each=25, d=20, seed=0):
    rng = np.random.default_rng(seed)
    middles = 6 * rng.standard_normal((3, d))
    which = np.repeat(np.arange(3), n_each)
    return middles[which] + 0.3 * rng.standard_normal((3 * n_each, d)), which


def share_of_like_neighbours(positions, which):
    distance = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    return (which[distance.argmin(axis=1)] == which).mean()


# --- layouts -----------------------------------------------------------------------------


def test_neighbours_stay_neighbours():
    X, which = clusters()
    positions = lay_out(X, random_state=0)
    assert positions.shape == (75, 2)
    assert share_of_like_neighbours(positions, which) == 1


def test_the_same_input_gives_the_same_places():
    X, _ = clusters()
    np.testing.assert_array_equal(lay_out(X, random_state=1), lay_out(X, random_state=1))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("d", [1, 2, 60])
def test_few_photographs_are_placed_too(n, d):
    positions = lay_out(np.random.default_rng(0).standard_normal((n, d)))
    assert positions.shape == (n, 2)
    assert np.isfinite(positions).all()


def test_photographs_that_are_all_the_same():
    for X in (np.ones((30, 4)), np.zeros((30, 4))):
        np.testing.assert_array_equal(lay_out(X), np.zeros((30, 2)))


def test_of_many_some_are_laid_out_and_the_rest_put_among_them():
    X, which = clusters(n_each=60)
    positions = lay_out(X, n_laid_out=60)
    assert positions.shape == (180, 2)
    assert share_of_like_neighbours(positions, which) == 1


def test_positions_among_others_against_a_loop():
    rng = np.random.default_rng(0)
    leading, few = rng.standard_normal((40, 5)), np.arange(0, 40, 3)
    laid = rng.standard_normal((len(few), 2))
    found = place_others(leading, few, laid)
    for k, row in enumerate(leading):
        nearest = np.argsort([np.linalg.norm(row - leading[f]) for f in few])[:3]
        expected = laid[list(few).index(k)] if k in few else laid[nearest].mean(axis=0)
        np.testing.assert_allclose(found[k], expected)


def test_only_directions_count():
    X, _ = clusters()
    longer = X * np.random.default_rng(1).integers(1, 5, (75, 1))
    np.testing.assert_allclose(
        leading_directions(longer, np.arange(75), 0),
        leading_directions(X, np.arange(75), 0),
        atol=1e-12,
    )


def test_distances_go_with_cosines():
    X, _ = clusters(d=8)
    leading = leading_directions(X, np.arange(75), 0)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    squares = ((leading[:, None] - leading[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squares, 2 - 2 * unit @ unit.T, atol=1e-12)


def test_numbers_that_are_none_are_refused():
    with pytest.raises(InvalidInput, match="NaN or infinity"):
        lay_out([[0.0, np.nan]] * 6)
    with pytest.raises(InvalidInput, match="shape"):
        lay_out(np.zeros(6))


# --- pictures ----------------------------------------------------------------------------


def drawn(path):
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def rgb(code):
    return tuple(int(code[i : i + 2], 16) for i in (1, 3, 5))


def test_dots_have_the_colour_of_their_tag(files, tmp_path):
    positions = np.random.default_rng(0).permutation(12)[:, None] * [1.0, 0.0] + [
        [0, k % 3] for k in range(12)
    ]
    tags = [["sea", "sky"], ["sky"], ["odd"], []] * 3
    path = draw_map(
        {"a": positions},
        files,
        tags,
        tmp_path / "map.png",
        n_thumbnails=0,
    )
    image = drawn(path)
    # by frequency: sky, odd, sea; sea is rarer than sky and gives the colour if both are there
    expected = [COLOURS[2], COLOURS[0], COLOURS[1], "#c3c8d1"] * 3
    for (x, y), colour in zip(to_pixels(positions).round().astype(int), expected, strict=True):
        assert tuple(image[MARGIN + TITLE + y, MARGIN + x]) == rgb(colour)


def test_layouts_stand_side_by_side(files, tmp_path):
    positions = np.random.default_rng(0).random((12, 2))
    tags = [["sea"]] * 12
    one = drawn(draw_map({"a": positions}, files, tags, tmp_path / "1.png"))
    two = drawn(draw_map({"a": positions, "b": -positions}, files, tags, tmp_path / "2.png"))
    assert one.shape[0] == two.shape[0]
    assert two.shape[1] == one.shape[1] + SIDE + MARGIN


def test_photographs_lie_over_no_other(files):
    rng = np.random.default_rng(0)
    at = to_pixels(rng.standard_normal((400, 2)))
    panel = Image.new("RGB", (SIDE, SIDE), "white")
    taken = place_thumbnails(panel, at, files * 40, ["#000000"] * 400, 50)
    assert 20 < len(taken) <= 50
    gaps = [np.abs(np.subtract(a, b)).max() for a, b in itertools.combinations(taken, 2)]
    assert min(gaps) > 80, "the longer side of a photograph"
    assert all(min(corner) >= 0 and max(corner) + 80 <= SIDE for corner in taken)


def test_photographs_are_spread_out():
    X, which = clusters(n_each=10, d=2)
    assert set(which[spread_out(X, most=3)]) == {0, 1, 2}
    assert sorted(spread_out(X, most=99)) == list(range(30))
    assert spread_out(np.zeros((0, 2)), most=5) == []


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_map_of_few(files, n, tmp_path):
    at = np.array([[0.0, 0.0], [1.0, 1.0]])[:n]
    image = drawn(draw_map({"a": at}, files[:n], [["x"]] * n, tmp_path / "m.png"))
    panel = image[MARGIN + TITLE : MARGIN + TITLE + SIDE, MARGIN : MARGIN + SIDE]
    for (x, y), file in zip(to_pixels(at).round().astype(int), files, strict=False):
        with Image.open(file) as photograph:
            colour = photograph.getpixel((5, 5))
        assert np.abs(panel[y - 20 : y + 20, x - 20 : x + 20].astype(int) - colour).max() <= 3
    # the frames of photographs, in the colour of their tag, and the legend below
    assert (panel == rgb(COLOURS[0])).all(axis=2).any() == bool(n)
    legend = image[MARGIN + TITLE + SIDE :]
    assert (legend == rgb(COLOURS[0])).all(axis=2).any() == bool(n)
    assert (legend == rgb("#c3c8d1")).all(axis=2).any()


def test_a_vanished_photograph_is_grey(tmp_path):
    path = draw_map({"a": [[0.0, 0.0]]}, ["gone.jpg"], [[]], tmp_path / "map.png")
    assert (drawn(path) == (214, 214, 218)).all(axis=2).sum() > 50 * 50


def test_any_tag_can_stand_in_the_legend(files, tmp_path):
    tags = [["夕焼け"], ["x" * 400], ["\ud800"], ["a\nb"]] * 3
    path = draw_map({"\x00": np.zeros((12, 2))}, files, tags, tmp_path / "map.png", n_thumbnails=1)
    image = drawn(path)
    title, legend = image[MARGIN : MARGIN + TITLE], image[MARGIN + TITLE + SIDE :]
    assert (title != 255).any()
    assert (image[:, -MARGIN:] == 255).all(), "nothing runs over the edge"
    for colour in COLOURS[:4]:
        rows, columns = np.nonzero((legend == rgb(colour)).all(axis=2))
        dot = legend[rows.min() : rows.max() + 1]
        assert (dot[:, columns.max() + 8 : columns.max() + 60] != 255).any(), "a name beside it"


def test_the_same_input_gives_the_same_picture(files, tmp_path):
    positions = np.random.default_rng(0).random((12, 2))
    pages = [
        draw_map({"a": positions}, files, [["sea"]] * 12, tmp_path / f"{k}.png").read_bytes()
        for k in range(2)
    ]
    assert pages[0] == pages[1]


def test_the_most_frequent_tags():
    assert most_frequent([["b", "b"], ["a"], ["c", "a"], ["b"]], 2) == ["a", "b"]


def test_places_that_do_not_fit_are_refused(files, tmp_path):
    tags = [[]] * 12
    for positions, what in (
        ({"a": np.zeros((3, 2))}, r"'a' has the shape \(3, 2\)"),
        ({"a": np.full((12, 2), np.nan)}, "finite"),
        ({}, "0 layouts"),
    ):
        with pytest.raises(InvalidInput, match=what):
            draw_map(positions, files, tags, tmp_path / "map.png")
