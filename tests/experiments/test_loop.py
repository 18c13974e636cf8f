"""Evenings of answers: actions against all ways there are, and one small evening."""

import itertools

import numpy as np
import pytest

from experiments.evening import Collection, Evening, Refit, Way, open_collection, play
from experiments.loop import START_ROWS, Played, list_rows, reach, write_page
from experiments.persons import keys_to_type, marked
from tagkin.server.asking import best_page

# --- actions ------------------------------------------------------------------------------


def cheapest(truth, guess):
    """Over all sets of runs, marked right or wrong: two actions for a run, one for an exception."""
    best = len(truth) + 1
    for states in itertools.product((None, True, False), repeat=len(truth)):
        pairs = itertools.pairwise((None, *states))
        n_runs = sum(now is not None and now != before for before, now in pairs)
        marks = (g if s is None else s for s, g in zip(states, guess, strict=True))
        best = min(best, 1 + 2 * n_runs + sum(t != m for t, m in zip(truth, marks, strict=True)))
    return best


@pytest.mark.parametrize("seed", range(10))
def test_marks_are_corrected_as_cheaply_as_can_be(seed):
    rng = np.random.default_rng(seed)
    truth, guess = rng.random(7) < rng.random(), np.arange(7) < rng.integers(8)
    assert marked(truth, guess) == cheapest(truth.tolist(), guess.tolist())


def test_names_are_completed():
    assert keys_to_type(["cat", "car", "dog", "do"]).tolist() == [4, 4, 4, 3]


# --- an evening ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def opened():
    rng = np.random.default_rng(1)
    truth = rng.random((500, 6)) < [0.05, 0.1, 0.2, 0.3, 0.4, 0.5]
    X = truth @ rng.random((6, 16)) + 0.35 * rng.random((500, 16))
    return open_collection(Collection(X[:400], truth[:400], 80, X[400:], truth[400:], 10))


def test_an_evening(opened, tmp_path):
    c = opened.collection
    evening = play(opened, 30)
    assert sum(evening.right) <= c.n_missing
    assert all(
        int(right.sum()) == n for (_, right), n in zip(evening.tiles, evening.right, strict=True)
    )
    first, tag = evening.tiles[0][0], evening.tags[0]
    pages = [best_page(-np.sort(-column[column > 0])) for column in opened.confidences.T]
    best = max(page.value for page in pages if page is not None)
    np.testing.assert_allclose(pages[tag].value, best)
    np.testing.assert_allclose(first.sum(), pages[tag].expected_right)
    assert evening.refits
    assert all(refit.right_kept <= refit.right_before for refit in evening.refits)
    stored = play(opened, 5, Way(corrects=False, fits=False))
    shown = np.sort(np.concatenate([tile for tile, _ in stored.tiles]))
    assert np.isin(shown, opened.confidences).all()  # these are the model's own
    played = Played(opened, [f"tag {i}" for i in range(6)], {"as on the page": evening})
    ways = dict.fromkeys(("percentages of the model", "no new fits"), evening)
    played = played._replace(evenings=played.evenings | ways)
    write_page({"photos": [played, played]}, {"photos": [played]}, tmp_path / "loop.md")
    text = (tmp_path / "loop.md").read_text()
    met = sum(ok for _, _, ok in list_rows([played]))
    assert text.splitlines()[2].endswith(f"meet {met} of 9 targets.")
    missed = [title for title, _, ok in list_rows([played]) if not ok]
    n_at_start = sum(title.startswith(START_ROWS) for title in missed)
    assert text.count("**no**") == len(missed) + n_at_start
    assert ("## Why are targets missed?" in text) == (met < 9)


def test_rows_by_hand(opened):
    tiles = [
        (np.array([0.75, 0.75, 0.3, 0.85]), np.array([True, False, False, True])),
        (np.array([0.1, 0.2]), np.array([False, True])),
    ]
    evening = Evening(
        right=[2, 1],
        actions=[2, 3],
        unlikely=[False, True],
        tags=[0, 1],
        tiles=tiles,
        forecasts=[(0, 5, 4.0), (1, 50, 9.0)],  # the second one is of more answers than came
        refits=[Refit(100, 20, 90, 25, 19)],
        likely_new=[(0, 10), (1, 9), (2, 12)],
    )
    small = opened.collection._replace(truth=np.eye(4, dtype=bool)[:, :3], n_tagged=0, n_never=1)
    played = Played(opened._replace(collection=small), [], {"as on the page": evening})
    assert [(value, ok) for _, value, ok in list_rows([played])] == [
        ("0.75, 0.50 (2 tiles)", False),
        ("0.85, 1.00 (1 tile)", False),
        ("0.78, 0.67 (3 tiles)", False),
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
    tiles = [
        [(np.array([0.75] * 4), np.array([True] * n_right + [False] * (4 - n_right)))]
        for n_right in (4, 2)
    ]
    small = opened.collection._replace(truth=np.ones((4, 1), dtype=bool), n_tagged=0)
    draws = []
    for (shown,), n_likely in zip(tiles, (8, 15), strict=True):
        n_right = int(shown[1].sum())
        evening = Evening(
            right=[n_right],
            actions=[2],
            unlikely=[False],
            tiles=[shown],
            likely_new=[(0, 10), (1, n_likely)],
        )
        draws.append(Played(opened._replace(collection=small), [], {"as on the page": evening}))
    rows = {title.split(":")[0]: (value, ok) for title, value, ok in list_rows(draws)}
    gap = "0.75, 0.75 (8 tiles; gap -0.25 to +0.25)"
    assert rows["tiles at 70 % to 80 %"] == (gap, True)
    likely = "10 → 12 at the end; at least 1.150 (0.800 to 1.500) of the start"
    assert rows["right suggestions at 50 % on new photographs"] == (likely, True)
    reached = "0.500 in 1 of 2 draws"
    assert rows["actions per right tag until 70 %"] == (reached, False)
