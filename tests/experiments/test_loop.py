"""Evenings of answers: actions against all ways there are, and one small evening."""

import itertools

import numpy as np
import pytest

from experiments.evening import Evening, Refit, Tiles, Way, open_collection, play
from experiments.evening_model import Collection
from experiments.loop_page import START, Measured, write_page
from experiments.loop_targets import (
    Played,
    list_half_tagged,
    list_personal,
    list_rows,
    reach,
)
from experiments.persons import keys_to_type, laid_out, marked
from tagkin.server.asking import best_page

# --- actions ------------------------------------------------------------------------------


def cheapest(wanted, headings):
    """Over all ways to mark by ranges and headings: two actions, one, and one for an exception."""
    best = len(wanted) + 1
    n = len(wanted)
    starts = [i for i in range(n) if i == 0 or headings[i] != headings[i - 1]]
    for n_ranges in range(3):
        for ends in itertools.combinations(range(n + 1), 2 * n_ranges):
            ranges = list(zip(ends[::2], ends[1::2], strict=True))
            for clicked in itertools.product((False, True), repeat=len(starts)):
                marks = [any(a <= i < b for a, b in ranges) for i in range(n)]
                for start, is_clicked in zip(starts, clicked, strict=True):
                    for i in range(n):
                        marks[i] |= is_clicked and headings[i] == headings[start]
                wrong = sum(m != w for m, w in zip(marks, wanted, strict=True))
                best = min(best, 1 + 2 * n_ranges + sum(clicked) + wrong)
    return best


@pytest.mark.parametrize("seed", range(10))
def test_marks_are_set_as_cheaply_as_can_be(seed):
    rng = np.random.default_rng(seed)
    wanted, headings = rng.random(8) < rng.random(), np.sort(rng.integers(0, 4, 8))
    assert marked(wanted, headings) == cheapest(wanted.tolist(), headings.tolist())
    assert marked(wanted) == cheapest(wanted.tolist(), list(range(8)))


def test_a_heading_marks_its_event_on_one_side_of_the_line():
    is_likely = np.array([True, True, True, False, False, False])
    events = np.array([7, 7, 3, 7, 7, 7])
    times = np.array([2.0, 1.0, 0.0, 1.5, 1.6, 1.7])
    order, headings = laid_out(is_likely, events, times)
    assert order.tolist() == [2, 1, 0, 3, 4, 5]
    assert headings.tolist() == [0, 1, 1, 2, 2, 2]
    right = np.array([True, True, True, True, True, True])
    wanted = (right != is_likely)[order]
    assert marked(wanted, headings) == 2  # all right ones below the line by one click
    assert marked(wanted) == 3


def test_names_are_completed():
    assert keys_to_type(["cat", "car", "dog", "do"]).tolist() == [4, 4, 4, 3]


# --- an evening ---------------------------------------------------------------------------


NAMES = [f"tag {i}" for i in range(6)]


@pytest.fixture(scope="module")
def opened():
    rng = np.random.default_rng(1)
    truth = rng.random((500, 6)) < [0.05, 0.1, 0.2, 0.3, 0.4, 0.5]
    X = truth @ rng.random((6, 16)) + 0.35 * rng.random((500, 16))
    return open_collection(Collection(X[:400], truth[:400], 80, X[400:], truth[400:], 10, NAMES))


def test_an_evening(opened, tmp_path):
    c = opened.collection
    evening = play(opened, 30)
    assert sum(evening.right) <= c.n_missing
    assert all(
        int(page.right.sum()) == n for page, n in zip(evening.tiles, evening.right, strict=True)
    )
    first, tag = evening.tiles[0].shown, evening.tags[0]
    stored = opened.suggested.confidences
    pages = [best_page(-np.sort(-column[column > 0])) for column in stored.T]
    best = max(page.value for page in pages if page is not None)
    np.testing.assert_allclose(pages[tag].value, best)
    np.testing.assert_allclose(first.sum(), pages[tag].expected_right)
    assert evening.refits
    assert all(refit.right_kept <= refit.right_before for refit in evening.refits)
    plain = play(opened, 5, Way(corrects=False, fits=False))
    shown = np.sort(np.concatenate([page.shown for page in plain.tiles]))
    assert np.isin(shown, stored).all()  # these are the model's own
    draws = [Played(opened, {"as on the page": evening})]
    rows, half = list_rows(draws, 30), list_half_tagged(draws)
    own = Measured(list_personal(draws), [], half, [["as on the page", "0.1", "0.2"]])
    sets = {"photos": Measured(rows, rows, half, [["as on the page", "0.6"]]), "traveller": own}
    write_page(sets, tmp_path / "loop.md")
    text = (tmp_path / "loop.md").read_text()
    missed = [row for row in (*rows, *half, *half, *own.evening) if row[2] is False]
    missed += [row for row in rows if row[2] is False and row[0].startswith(START)]
    assert text.count("**no**") == len(missed)
    judged = [ok for *_, ok in rows if ok is not None]
    assert len(judged) < len(rows)  # no photograph has a time, so moments suggest no tile
    assert text.splitlines()[2].endswith(f"meet {sum(judged)} of {len(judged)} targets.")
    assert "tiles by moment" not in text.split("## Targets")[0]
    assert ("## Why are targets missed?" in text) == (not all(judged))


def page(shown, right):
    """Tiles of untagged photographs, by their pictures."""
    n = len(shown)
    return Tiles(np.array(shown), np.array(right), np.zeros(n, bool), np.full(n, "picture"))


def test_rows_by_hand(opened):
    tiles = [
        page([0.75, 0.75, 0.3, 0.85], [True, False, False, True]),
        page([0.1, 0.2], [False, True]),
    ]
    evening = Evening(
        right=[2, 1],
        actions=[2, 3],
        clicks=[2, 4],
        unlikely=[False, True],
        tags=[0, 1],
        tiles=tiles,
        forecasts=[(0, 5, 4.0), (1, 50, 9.0)],  # the second one is of more answers than came
        refits=[Refit(100, 20, 90, 25, 19)],
        likely_new=[(0, 10), (1, 9), (2, 12)],
    )
    small = opened.collection._replace(truth=np.eye(4, dtype=bool)[:, :3], n_tagged=0, n_never=1)
    played = Played(opened._replace(collection=small), {"as on the page": evening})
    assert [(value, ok) for _, value, ok in list_rows([played], 30)] == [
        ("0.75, 0.50 (2 tiles)", False),
        ("0.85, 1.00 (1 tile)", False),
        ("0.78, 0.67 (3 tiles)", False),
        ("none", None),
        ("few", None),
        ("none", None),
        ("1.60 times what came", False),  # 4 of 2 + 1/2
        ("20 → 25; 1 lost", False),
        ("10 → 12 at the end; at least 0.900 of the start", False),
        ("1.667", False),
        ("0.60 of the actions", False),
        ("0.75", True),
    ]
    assert reach(evening, 2) == 1
    assert reach(evening, 3) == 2
    assert reach(evening, 4) is None


def test_means_and_ranges_of_draws(opened):
    """The mean decides, whatever a single draw says."""
    tiles = [[page([0.75] * 4, [True] * n_right + [False] * (4 - n_right))] for n_right in (4, 2)]
    small = opened.collection._replace(truth=np.ones((4, 1), dtype=bool), n_tagged=0)
    draws = []
    for (shown,), n_likely in zip(tiles, (8, 15), strict=True):
        n_right = int(shown.right.sum())
        evening = Evening(
            right=[n_right],
            actions=[2],
            unlikely=[False],
            tiles=[shown],
            likely_new=[(0, 10), (1, n_likely)],
        )
        draws.append(Played(opened._replace(collection=small), {"as on the page": evening}))
    rows = {title.split(":")[0]: (value, ok) for title, value, ok in list_rows(draws, 30)}
    gap = "0.75, 0.75 (8 tiles; gap -0.25 to +0.25)"
    assert rows["tiles at 70 % to 80 %"] == (gap, True)
    likely = "10 → 12 at the end; at least 1.150 (0.800 to 1.500) of the start"
    assert rows["right suggestions at 50 % on new photographs"] == (likely, True)
    reached = "0.500 in 1 of 2 draws"
    assert rows["actions per right tag until 70 %"] == (reached, False)
