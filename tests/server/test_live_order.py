"""The order that follows decisions, opened from a catalogue with a model in earnest."""

import pytest

from tagkin.annotator import Annotator
from tagkin.catalogue import decide_batch, open_for_scan, refit, scan, verdicts_of
from tagkin.server.answers import doubts_answer, suggestions_answer, tags_answer
from tagkin.server.live_order import LiveOrder
from tests.catalogue.photographs import put_red_and_blue

PATIENCE = 300.0


@pytest.fixture
def catalogue(tmp_path):
    with open_for_scan(put_red_and_blue(tmp_path / "photos")) as opened:
        scan(opened)
        refit(opened, Annotator(names=False))
        yield opened


def test_what_is_expected_and_what_is_doubted_follow_decisions(catalogue):
    order = LiveOrder(catalogue.path)
    try:
        assert order.wait(PATIENCE)
        tag = catalogue.value("SELECT id FROM tags WHERE name = 'red'")
        before = order.expected()
        shown = order.suggestions(catalogue, tag, 100, None)
        assert before[tag] == pytest.approx(sum(one.confidence for one in shown))
        some = [(one.content, tag) for one in shown]
        assert doubts_answer(catalogue, order, "accepted", 60, 0)["doubts"] == []
        batch = decide_batch(catalogue, some[1:4], some[4:5], together=True)
        single = decide_batch(catalogue, some[:1])
        for run in (batch.run, single.run):
            order.learn(verdicts_of(catalogue, run))
        assert order.wait(PATIENCE)
        after = order.expected()
        left = order.suggestions(catalogue, tag, 100, None)
        assert after[tag] == pytest.approx(sum(one.confidence for one in left))
        told = suggestions_answer(catalogue, order, tag, 60, None)["tag"]
        assert told["expected"] == round(after[tag], 1)
        rows = {one["id"]: one for one in tags_answer(catalogue, order, 0, 10)["tags"]}
        assert rows.keys() <= before.keys()
        assert all(one["expected"] == round(after[number], 1) for number, one in rows.items())
        found = doubts_answer(catalogue, order, "accepted", 60, 0)["doubts"]
        assert {one["content"] for one in found} == {content for content, _ in some[1:4]}
        sure = [one["confidence"] for one in found]
        assert sure == sorted(sure)
        assert all(one["was_accepted"] for one in found)
        kept = decide_batch(catalogue, [(found[0]["content"], tag)])
        order.learn(verdicts_of(catalogue, kept.run))
        assert order.wait(PATIENCE)
        again = doubts_answer(catalogue, order, "accepted", 60, 0)["doubts"]
        assert [one["content"] for one in again] == [one["content"] for one in found[1:]]
    finally:
        order.close()
