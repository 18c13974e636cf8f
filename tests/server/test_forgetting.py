"""Answers on photographs that a person tagged say at once how often the person forgets tags."""

import datetime
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from tagkin.catalogue import Catalogue, open_for_scan
from tagkin.server.forgetting import Forgetting, ForgottenTags
from tagkin.server.order import Order, Reading
from tests.catalogue.suggested import content, new_suggestion, store

from .conftest import tag
from .test_near_answers import put

TAGS = ("sea", "dog", "boat", "tree")
TAGGED = [f"tagged {i:02}.jpg" for i in range(80)]
OTHERS = [f"other {i:02}.jpg" for i in range(80)]


@pytest.fixture
def half_tagged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalogue]:
    """Half of the photographs have tags in files; four others are suggested for all."""
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(tmp_path / "data"))
    root = tmp_path / "photos"
    root.mkdir()
    for i, name in enumerate((*TAGGED, *OTHERS)):
        time = datetime.datetime(2020, 1, 1) + datetime.timedelta(days=3 * i)
        put(root, name, f"{time:%Y:%m:%d %H:%M:%S}", ("own",) if name in TAGGED else ())
    rng = np.random.default_rng(1)
    with open_for_scan(root) as catalogue:
        catalogue.scan()
        with catalogue.database.run("suggest") as run:
            rows = [
                (content(catalogue, name), [new_suggestion(t, rng.uniform(0.3, 0.7)) for t in TAGS])
                for name in (*TAGGED, *OTHERS)
            ]
            store(catalogue, run.id, rows)
        yield catalogue


def play(catalogue: Catalogue, order: Order, n_pages: int, forgets: bool) -> list[tuple[int, int]]:
    """Answer pages; return how many tiles of each are of tagged photographs, and of others.

    Half of the suggestions for untagged photographs are right, and those for tagged ones, if the
    person forgets tags.
    """
    tagged = {content(catalogue, name) for name in TAGGED}
    pages = []
    for _ in range(n_pages):
        question = Reading(catalogue, order).question("most-right")
        if question is None:
            break
        asked = [s.content for s in question.suggestions]
        on_tagged = sum(number in tagged for number in asked)
        pages.append((on_tagged, len(asked) - on_tagged))
        yes = [n for n in asked if n % 2 and (forgets or n not in tagged)]
        no = [n for n in asked if n not in yes]
        each = [[(number, question.tag) for number in some] for some in (yes, no)]
        catalogue.decisions.decide_pairs(*each)
        order.learn([question.tag])
    return pages


def test_tiles_of_tagged_photographs_stop_after_two_pages_of_no(half_tagged: Catalogue) -> None:
    pages = play(half_tagged, Order(), 20, forgets=False)
    on_tagged, others = np.array(pages).T
    first = int(np.searchsorted(np.cumsum(on_tagged), 1))
    assert on_tagged[: first + 2].sum() >= 20  # they were asked as long as nobody had answered
    is_rest = np.cumsum(others[::-1])[::-1] == 0  # nothing else is left
    assert others[first + 2 :].sum() > 60
    assert on_tagged[first + 2 :][~is_rest[first + 2 :]].sum() == 0


def test_tiles_of_tagged_photographs_go_on_if_tags_were_forgotten(half_tagged: Catalogue) -> None:
    on_tagged, others = np.array(play(half_tagged, Order(), 6, forgets=True)).T
    assert on_tagged[2:].sum() > 0.5 * others[2:].sum()


def test_a_no_on_a_tagged_photograph_says_nothing_of_others(half_tagged: Catalogue) -> None:
    order, number = Order(), tag(half_tagged, "sea")
    pairs = [(content(half_tagged, name), number) for name in TAGGED[:30]]
    half_tagged.decisions.decide_pairs([], pairs)
    order.learn([number])
    reading = Reading(half_tagged, order)
    listed = {s.content: s for s in reading.correct(number, reading.suggestions(number, 200))}
    stored = {s.content: s for s in half_tagged.suggestions.for_tag(number, 200)}
    assert len(listed) == 130
    for name in OTHERS:
        each = content(half_tagged, name)
        assert listed[each].confidence == pytest.approx(stored[each].confidence, abs=1e-9)
    left = [listed[content(half_tagged, name)].confidence for name in TAGGED[30:]]
    assert max(left) < 0.1


def test_what_counts_as_tagged(half_tagged: Catalogue) -> None:
    """As in training: tags in files that nobody accepted here, in folders that are complete."""
    catalogue = half_tagged
    tagged = {content(catalogue, name) for name in TAGGED}
    assert set(catalogue.completeness.tagged_in_files()) == tagged
    one, other = (content(catalogue, names[0]) for names in (OTHERS, TAGGED))
    catalogue.decisions.decide_pairs([(one, tag(catalogue, "sea"))], [])
    catalogue.decisions.decide_pairs([(other, tag(catalogue, "sea"))], [])
    assert set(catalogue.completeness.tagged_in_files()) == tagged
    complete = {c.content for c in catalogue.photographs.with_tags() if c.is_complete}
    assert complete == tagged
    catalogue.completeness.declare_incomplete("")
    assert catalogue.completeness.tagged_in_files() == []
    contents = np.array([one, other])
    assert not ForgottenTags().is_tagged(catalogue, contents).any()


def test_the_offsets_are_the_most_likely_ones() -> None:
    rng = np.random.default_rng(3)
    tags, p = rng.integers(5, 9, 90), rng.uniform(0.02, 0.95, 90)
    y = rng.random(90) < 0.5 * p

    def loss(theta: np.ndarray) -> float:
        m = logit(p) + theta[0] + theta[1:][tags - 5]
        likely = np.where(y, np.logaddexp(0, -m), np.logaddexp(0, m)).sum()
        return float(likely + theta[0] ** 2 / 18 + (theta[1:] ** 2).sum() / 2)

    best = minimize(loss, np.zeros(5), tol=1e-10).x
    learned = Forgetting.learn(tags, p, y.astype(float))
    assert learned.common == pytest.approx(best[0], abs=1e-3)
    corrected = learned.correct(6, np.array([0.4]))
    assert corrected == pytest.approx(expit(logit(0.4) + best[0] + best[2]), abs=1e-3)
    assert Forgetting.learn(tags[:0], p[:0], y[:0]).correct(6, p) == pytest.approx(p)


@pytest.mark.parametrize("accepted", [0.0, 1.0])
def test_answers_that_all_agree(accepted: float) -> None:
    learned = Forgetting.learn(np.zeros(500, int), np.full(500, 0.999), np.full(500, accepted))
    assert abs(learned.common) < 30
    assert (learned.correct(0, np.array([0.5]))[0] > 0.5) == bool(accepted)
