"""Suggestions that follow decisions, on photographs that are looked at in earnest."""

import threading

import numpy as np
import pytest
import scipy.sparse

from tagkin.annotator import Annotator
from tagkin.catalogue import (
    ACCEPTED,
    REJECTED,
    Filters,
    open_for_scan,
)
from tagkin.catalogue.live_review import LiveReview
from tagkin.transfer.live import LiveScores

from .photographs import WORDS, put_red_and_blue


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return put_red_and_blue(tmp_path_factory.mktemp("photos"))


@pytest.fixture(scope="module")
def learned(root, shared_cache, tmp_path_factory):
    """A catalogue with a model, and suggestions as the review has them."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAGKIN_CATALOGUES", str(home / "data"))
        patch.setenv("TAGKIN_CACHE", str(shared_cache))
        with open_for_scan(root) as catalogue:
            catalogue.scan()
            catalogue.model.train(Annotator(names=False), {})
            wanted = {"threshold": 0.0, "n": 20, "n_kin": 5}
            catalogue.model.suggest(
                *catalogue.model.load(), wanted, contents=catalogue.photographs.with_tags()
            )
            yield catalogue


def numbers(catalogue):
    tags = dict(catalogue.database.rows("SELECT name, id FROM tags"))
    contents = dict(catalogue.database.rows("SELECT path, content FROM photographs"))
    return tags, contents


def opened(catalogue):
    return catalogue.live_review()


def test_it_opens_with_what_was_suggested(learned):
    live, (tags, contents) = opened(learned), numbers(learned)
    for name in WORDS:
        stored = learned.database.rows(
            "SELECT content, confidence FROM suggestions WHERE tag = ?", (tags[name],)
        )
        assert dict(live.for_tag(tags[name])) == pytest.approx(dict(stored), abs=1e-4)
    untagged = contents["20.png"]
    assert live.for_photograph(untagged)[0][0] == tags["red"]
    assert live.for_photograph(-1) == live.for_tag(-1) == []


def test_a_question_is_one_tag_with_its_surest_photographs(learned):
    live, (tags, _) = opened(learned), numbers(learned)
    first, second = live.questions(5)
    assert {first.tag, second.tag} == {tags[name] for name in WORDS}
    some = live.for_tag(first.tag, len(first.contents))
    assert list(zip(first.contents, first.confidences, strict=True)) == some
    assert live.ranking() == [first.tag, second.tag]
    every = live.for_tag(first.tag)
    content, sure = every[1]
    assert live.for_tag(first.tag, after=(sure, content)) == every[2:]
    assert live.for_tag(first.tag, 1, (sure, content)) == every[2:3]
    mine = dict(live.for_photograph(content))
    assert live.for_photograph(content, [first.tag, -1]) == [(first.tag, mine[first.tag])]
    assert live.questions(1) == [first]
    assert live.questions(0) == []


def test_decisions_change_what_remains_and_can_be_taken_back(learned):
    live, (tags, contents) = opened(learned), numbers(learned)
    red = tags["red"]
    before = live.for_tag(red)
    decided = [contents[f"{i}.png"] for i in (20, 21, 22, 23)]
    live.learn([(c, red, i % 2 == 0) for i, c in enumerate(decided)])
    after = dict(live.for_tag(red))
    assert not set(decided) & set(after)
    asked = {one.tag: one.contents for one in live.questions(2, "learn-most")}
    assert not set(decided) & set(asked[red])
    reds, blues = ([after[contents[f"{i}.png"]] for i in some] for some in ((24, 26), (25, 27)))
    assert min(reds) > max(blues)
    live.learn([(c, red, None) for c in decided])
    assert live.for_tag(red) == [(c, pytest.approx(p, abs=1e-5)) for c, p in before]
    live.learn([(-1, red, True), (decided[0], -1, True)])  # what it does not know
    assert live.for_tag(red) == [(c, pytest.approx(p, abs=1e-5)) for c, p in before]


def test_a_new_start_remembers_what_was_decided(learned):
    live, (tags, contents) = opened(learned), numbers(learned)
    learned.decisions.decide(ACCEPTED, Filters(tags=["red"], photographs=["20.png"]))
    learned.decisions.decide(REJECTED, Filters(tags=["red"], photographs=["21.png"]))
    live.learn([(contents["20.png"], tags["red"], True), (contents["21.png"], tags["red"], False)])
    again = dict(opened(learned).for_tag(tags["red"]))
    assert again == pytest.approx(dict(live.for_tag(tags["red"])), abs=1e-4)


def test_what_is_accepted_in_bulk_is_no_answer(learned):
    """Nobody looked at each: what the page promises of the others stays as it was."""
    tags, _ = numbers(learned)
    before = dict(opened(learned).for_tag(tags["red"]))
    accepted = learned.decisions.decide(ACCEPTED, Filters(tags=["blue"], at_least=0.5))
    assert accepted.run is not None
    live = opened(learned)
    assert live.n_decided(tags["blue"]) == 0
    after = dict(live.for_tag(tags["red"]))
    learned.decisions.undo(accepted.run)
    assert after == pytest.approx(before, abs=1e-4)


def test_many_threads_at_once(learned):
    live, (tags, contents) = opened(learned), numbers(learned)
    each = [(contents[f"{i}.png"], tags[name], i % 2 == 0) for i in range(24, 32) for name in WORDS]
    errors = []

    def work(own):
        try:
            for one in own:
                live.learn([one])
                live.questions(2)
                live.for_photograph(one[0])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(each[k::4],)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    at_once = opened(learned)
    at_once.learn(each)
    for name in WORDS:
        assert dict(live.for_tag(tags[name])) == pytest.approx(
            dict(at_once.for_tag(tags[name])), abs=1e-3
        )


def test_a_new_fit_forgets_no_decision_and_takes_no_half_answer_for_a_whole(learned):
    """Of a photograph that was tagged by answers, only the answers are known."""
    tags, contents = numbers(learned)
    learned.decisions.decide(REJECTED, Filters(tags=["red"], photographs=["21.png"]))
    learned.decisions.decide(ACCEPTED, Filters(tags=["red"], photographs=["22.png"]))
    answered = {
        content.content: content
        for content in learned.photographs.with_tags()
        if not content.is_complete and (content.tags or content.rejected)
    }
    assert set(answered) >= {contents["21.png"], contents["22.png"]}
    assert answered[contents["21.png"]].rejected == ["red"]
    assert answered[contents["22.png"]].known_tags == ["red"]
    learned.model.refit(Annotator(names=False))
    live = opened(learned)
    assert live.n_decided(tags["red"]) >= 1
    assert contents["22.png"] not in dict(live.for_tag(tags["red"]))


def test_decisions_before_a_refit_are_known_if_names_count(learned):
    """A stored model does not hold what scores names; the live order needs it all the same."""
    tags, contents = numbers(learned)
    some = [f"{i}.png" for i in range(21, 24)]
    learned.decisions.decide(ACCEPTED, Filters(tags=["red"], photographs=some))
    learned.model.refit(Annotator())
    annotator = learned.model.load()[0]
    assert annotator.model_.names is not None
    live = LiveReview.open(learned.database, annotator)
    assert live.n_decided(tags["red"]) >= 1
    assert contents["23.png"] not in dict(live.for_tag(tags["red"]))


def test_a_finished_tag_answers_only_what_was_suggested(learned):
    tags, contents = numbers(learned)
    with learned.database.run("suggest") as run:
        learned.suggestions.replace(run.id, [(contents[f"{i}.png"], []) for i in range(24, 32)])
    (n_open,) = learned.database.row("SELECT n_suggested FROM tags WHERE name = 'blue'")
    before = opened(learned).n_decided(tags["blue"])
    finished = learned.completeness.finish_tag(tags["blue"])
    assert len(finished) > n_open > 0
    assert opened(learned).n_decided(tags["blue"]) == before + n_open
    learned.decisions.undo(finished.run)


class CountingScores(LiveScores):
    """Scores that remember which labels were asked for accepted images."""

    def __init__(self, *arrays):
        super().__init__(*arrays)
        self.asked = []

    def accepted(self, label):
        self.asked.append(label)
        return super().accepted(label)


def test_only_tags_with_new_decisions_are_doubted_again():
    rng = np.random.default_rng(0)
    embeddings = rng.normal(size=(8, 3)).astype(np.float32)
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    candidates = scipy.sparse.csc_array(rng.uniform(0.2, 0.8, size=(8, 2)))
    scores = CountingScores(candidates, embeddings, embeddings, np.ones(8))
    live = LiveReview(scores, contents=range(8), tags=[10, 20])
    live.learn([(content, tag, True) for content in range(4) for tag in (10, 20)])
    assert {(content, tag) for content, tag, _ in live.list_doubtful(100)} == {
        (content, tag) for content in range(4) for tag in (10, 20)
    }
    scores.asked.clear()
    live.learn([(0, 20, False)])
    after = live.list_doubtful(100)
    assert scores.asked == [1]
    assert (0, 20) not in {doubt[:2] for doubt in after}
    assert (0, 10) in {doubt[:2] for doubt in after}
