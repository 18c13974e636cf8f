"""The order that follows decisions, opened from a catalogue with a model in earnest."""

import gc
import threading
import weakref

import pytest

from tagkin.annotator import Annotator
from tagkin.catalogue import Shown, open_for_scan
from tagkin.catalogue.collection_model import CollectionModel
from tagkin.catalogue.live_review import LiveReview
from tagkin.server.answers import doubts_answer, suggestions_answer, tags_answer
from tagkin.server.live_order import LiveOrder
from tagkin.server.order import Reading
from tests.catalogue.photographs import put_red_and_blue

PATIENCE = 300.0


@pytest.fixture
def catalogue(tmp_path):
    with open_for_scan(put_red_and_blue(tmp_path / "photos")) as opened:
        opened.scan()
        opened.model.refit(Annotator(names=False))
        yield opened


def test_what_is_expected_and_what_is_doubted_follow_decisions(catalogue):
    order = LiveOrder(catalogue.path)
    try:
        assert order.wait(PATIENCE)
        tag = catalogue.database.value("SELECT id FROM tags WHERE name = 'red'")
        before = order.expected()
        shown = order.suggestions(catalogue, tag, 100, None)
        assert before[tag] == pytest.approx(sum(one.confidence for one in shown))
        some = [(one.content, tag) for one in shown]
        assert doubts_answer(Reading(catalogue, order), "accepted", 60, 0)["doubts"] == []
        batch = catalogue.decisions.decide_pairs(some[1:4], some[4:5], together=True)
        single = catalogue.decisions.decide_pairs(some[:1])
        for run in (batch.run, single.run):
            order.learn(catalogue.decisions.verdicts_after(run))
        assert order.wait(PATIENCE)
        after = order.expected()
        left = order.suggestions(catalogue, tag, 100, None)
        assert after[tag] == pytest.approx(sum(one.confidence for one in left))
        told = suggestions_answer(Reading(catalogue, order), tag, 60, None)["tag"]
        assert told["expected"] == round(after[tag], 1)
        rows = {one["id"]: one for one in tags_answer(Reading(catalogue, order), 0, 10)["tags"]}
        assert rows.keys() <= before.keys()
        assert all(one["expected"] == round(after[number], 1) for number, one in rows.items())
        found = doubts_answer(Reading(catalogue, order), "accepted", 60, 0)["doubts"]
        assert {one["content"] for one in found} == {content for content, _ in some[1:4]}
        sure = [one["confidence"] for one in found]
        assert sure == sorted(sure)
        assert all(one["was_accepted"] for one in found)
        kept = catalogue.decisions.decide_pairs([(found[0]["content"], tag)])
        order.learn(catalogue.decisions.verdicts_after(kept.run))
        assert order.wait(PATIENCE)
        again = doubts_answer(Reading(catalogue, order), "accepted", 60, 0)["doubts"]
        assert [one["content"] for one in again] == [one["content"] for one in found[1:]]
    finally:
        order.close()


def test_a_hidden_tag_is_not_asked_about(catalogue):
    order = LiveOrder(catalogue.path)
    try:
        assert order.wait(PATIENCE)
        tag, _ = order.question(catalogue, "most-right")
        catalogue.tags.change("hide", [catalogue.tags.count(tag).name])
        # the order has not been opened again yet
        asked = order.question(catalogue, "most-right")
        assert asked is None or asked[0] != tag
        assert suggestions_answer(Reading(catalogue, order), tag, 60, None)["suggestions"] == []
        order.renew()
        assert order.wait(PATIENCE)
        assert tag not in order.expected()
        catalogue.undo()
        order.renew()
        assert order.wait(PATIENCE)
        assert order.question(catalogue, "most-right")[0] == tag
    finally:
        order.close()


def test_the_former_review_leaves_memory_before_a_new_one_is_read(catalogue, monkeypatch):
    load, n_alive = CollectionModel.load, []
    reviews = weakref.WeakSet()

    def count_and_load(*args):
        gc.collect()
        n_alive.append(len(reviews))
        return load(*args)

    monkeypatch.setattr(CollectionModel, "load", count_and_load)
    rank = LiveReview.ranking
    monkeypatch.setattr(LiveReview, "ranking", lambda live: reviews.add(live) or rank(live))
    order = LiveOrder(catalogue.path)
    try:
        for _ in range(2):
            assert order.wait(PATIENCE)
            assert len(reviews) == 1
            order.list_doubtful()
            order.renew()
        assert order.wait(PATIENCE)
        assert n_alive == [0, 0, 0]
    finally:
        order.close()


class Held:
    """A function that is called as ever, and returns when it may."""

    def __init__(self, function):
        self.function, self.n_calls = function, 0
        self.is_called, self.may_return = threading.Event(), threading.Event()

    def __call__(self, *args):
        found = self.function(*args)
        self.n_calls += 1
        self.is_called.set()
        assert self.may_return.wait(PATIENCE)
        return found


def test_a_fit_that_ends_while_it_is_opened_is_not_missed(catalogue, monkeypatch):
    held = Held(CollectionModel.load)
    monkeypatch.setattr(CollectionModel, "load", lambda *args: held(*args))
    order = LiveOrder(catalogue.path)
    try:
        assert held.is_called.wait(PATIENCE)
        assert order.is_opening
        order.renew()  # it has read the model that was there before
        held.may_return.set()
        assert order.wait(PATIENCE)
        assert order.is_live
        assert held.n_calls == 2
    finally:
        held.may_return.set()
        order.close()


def test_all_of_what_was_learned_is_told_at_once(catalogue, monkeypatch):
    order = LiveOrder(catalogue.path)
    held = Held(LiveReview.ranking)
    try:
        assert order.wait(PATIENCE)
        monkeypatch.setattr(LiveReview, "ranking", lambda *args: held(*args))
        before = order.expected()
        tag = catalogue.database.value("SELECT id FROM tags WHERE name = 'red'")
        first = order.suggestions(catalogue, tag, 1, None)
        batch = catalogue.decisions.decide_pairs([(first[0].content, tag)])
        order.learn(catalogue.decisions.verdicts_after(batch.run))
        assert held.is_called.wait(PATIENCE)
        assert order.expected() == before
        assert not order.wait(0)
        held.may_return.set()
        assert order.wait(PATIENCE)
        assert order.expected()[tag] < before[tag]
    finally:
        held.may_return.set()
        order.close()


def test_a_reopened_suggestion_that_came_later_is_shown(catalogue):
    """Its decision was on a page of before the last fit, and was undone."""
    order = LiveOrder(catalogue.path)
    try:
        assert order.wait(PATIENCE)
        tag = catalogue.database.value("SELECT id FROM tags WHERE name = 'red'")
        before = order.suggestions(catalogue, tag, 100, None)
        assert {one.run for one in before} == {
            catalogue.database.value("SELECT max(run) FROM suggestions")
        }
        known = {one.content for one in before}
        other = next(
            c
            for (c,) in catalogue.database.rows("SELECT id FROM contents ORDER BY id")
            if c not in known
        )
        with catalogue.database.transaction() as connection:
            connection.execute("DELETE FROM found WHERE tag = ?", (tag,))
        page = [Shown(other, tag, 0.25, before[0].run)]
        for run in (
            catalogue.decisions.decide_pairs(page).run,
            catalogue.decisions.undo_last().run,
        ):
            order.learn(catalogue.decisions.verdicts_after(run))
        assert order.wait(PATIENCE)
        after = order.suggestions(catalogue, tag, 100, None)
        assert [one.content for one in after] == [one.content for one in before] + [other]
        assert after[-1].confidence == 0.25
        full = order.suggestions(catalogue, tag, len(before), None)
        assert [one.content for one in full] == [one.content for one in before]
    finally:
        order.close()
