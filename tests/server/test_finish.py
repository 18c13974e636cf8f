"""Finished photographs and tags, as scripts and pages ask for them."""

import json
from pathlib import Path
from typing import Any

from tagkin.catalogue import Catalogue, open_for_scan
from tests.catalogue.photographs import check_invariants
from tests.catalogue.suggested import content, decisions, offer, open_suggestions

from .browser import Browser
from .conftest import OFFERED, tag

D = "2024/d.jpg"


def test_finish_a_photograph_and_undo(browser: Browser, catalogue: Catalogue) -> None:
    number = content(catalogue, D)
    assert browser.photograph(D)["finished"] is None
    done = browser.post("/api/v1/finish", {"photographs": [number]}).json
    assert (done["finished"], done["rejected"]) == (1, 3)
    assert done["state"]["can_undo"]
    answer = browser.photograph(D)
    assert (answer["finished"]["run"], answer["finished"]["n"]) == (done["run"], 1)
    assert not answer["suggestions"]
    assert not answer["offers_finish"]
    assert "Finished: no other tags belong to it" in browser.get(f"/photographs/{number}").text
    again = browser.post("/api/v1/finish", {"photographs": [number]}).json
    assert (again["run"], again["finished"]) == (None, 0)
    undone = browser.post("/api/v1/undo").json
    assert (undone["finished"], undone["decisions"]) == (1, 3)
    assert open_suggestions(catalogue) == OFFERED
    redone = browser.post("/api/v1/redo").json
    assert (redone["finished"], redone["decisions"]) == (1, 3)
    assert D not in open_suggestions(catalogue)
    check_invariants(catalogue)


def test_a_photograph_is_offered_once_likely_suggestions_are_answered(
    browser: Browser, catalogue: Catalogue
) -> None:
    """Its suggestions have confidences of 92, 60 and 20 %."""
    number = content(catalogue, D)

    def is_offered() -> bool:
        page = browser.get(f"/photographs/{number}").text
        answer = browser.photograph(D)["offers_finish"]
        assert ('id="offer"' in page) == answer
        return answer

    assert not is_offered()
    browser.post("/api/v1/decisions", {"accept": [[number, "beach"]]})
    assert not is_offered()
    browser.post("/api/v1/decisions", {"reject": [[number, "sea"]]})
    assert is_offered()
    assert catalogue.completeness.count_finished() == 0  # never by itself
    browser.post("/api/v1/finish", {"photographs": [number]})
    assert not is_offered()
    browser.post("/api/v1/undo")
    assert is_offered()


def test_a_finished_tag_offers_no_photograph(browser: Browser, catalogue: Catalogue) -> None:
    """Nobody was asked about the photographs one by one."""
    browser.post(f"/api/v1/tags/{tag(catalogue, 'holiday')}/finish", {})
    browser.post("/api/v1/decisions", {"reject": [[content(catalogue, "2024/c.jpg"), "beach"]]})
    for path, expected in ((D, False), ("2024/c.jpg", True)):
        answer = browser.photograph(path)
        assert answer["offers_finish"] is expected


def test_finish_a_tag_and_undo(browser: Browser, catalogue: Catalogue) -> None:
    beach = tag(catalogue, "beach")
    page = browser.get(f"/tags/{beach}").text
    assert "I have seen everything for this tag" in page
    assert "I have seen everything" not in browser.get(f"/tags/{beach}?n=1").text  # more follows
    done = browser.post(f"/api/v1/tags/{beach}/finish", {}).json
    assert (done["finished"], done["rejected"]) == (0, 3)  # of five, two have it
    assert set(decisions(catalogue).values()) == {-1}
    assert {("2024/c.jpg", "beach"), (D, "beach")} < set(decisions(catalogue))
    assert "No suggestions left" in browser.get(f"/tags/{beach}").text
    last = browser.runs()[0]
    assert (last.said, last.can_undo) == ('Finished "beach": rejected on 3 photographs', True)
    browser.post("/api/v1/undo", {"run": done["run"]})
    assert open_suggestions(catalogue) == OFFERED
    assert browser.post("/api/v1/tags/999/finish", {}).status == 404


def test_what_an_import_brought_is_undone_on_the_page(
    browser: Browser, catalogue: Catalogue, root: Path, tmp_path: Path
) -> None:
    with open_for_scan(root, tmp_path / "other.sqlite") as other:
        other.scan()
        offer(other)
        other.decisions.decide_pairs([(content(other, "b.jpg"), tag(other, "holiday"))], [])
        other.completeness.finish_tag(tag(other, "dog"))
        lines = [json.dumps(line) for line in other.export_lines()]
    catalogue.import_lines(lines)
    imported = browser.runs()[0]
    text = 'Imported 5 decisions: "dog", "holiday"'
    assert (imported.said, imported.can_undo) == (text, True)
    assert browser.post("/api/v1/undo", {"run": imported.id}).status == 200
    assert open_suggestions(catalogue) == OFFERED
    assert not any(run.can_undo for run in browser.runs())


def test_a_lost_answer_is_asked_for_again(browser: Browser, catalogue: Catalogue) -> None:
    body = {"photographs": [content(catalogue, "a.jpg"), content(catalogue, D)], "step": "one"}
    first, again = (browser.post("/api/v1/finish", body).json for _ in range(2))
    assert first["finished"] == again["finished"] == 2
    assert first["run"] == again["run"]
    assert [run.said for run in browser.runs() if run.said.startswith("Finished")] == [
        'Finished 2 photographs, and rejected 5 suggestions: "dog", "beach", "holiday" and 1 more'
    ]


def test_what_cannot_be_finished_is_said(browser: Browser, catalogue: Catalogue) -> None:
    bodies: list[dict[str, Any]] = [
        {},
        {"photographs": []},
        {"photographs": ["a.jpg"]},
        {"photographs": [1], "x": 1},
    ]
    for body in bodies:
        assert browser.post("/api/v1/finish", body).status in (400, 422)
    response = browser.post("/api/v1/finish", {"photographs": [content(catalogue, D), 999]})
    assert response.status == 400
    assert "1 of 2 photographs are not in the catalogue" in response.text
    assert catalogue.completeness.count_finished() == 0


def test_another_window_keeps_what_was_finished(browser: Browser, catalogue: Catalogue) -> None:
    number, beach = content(catalogue, D), tag(catalogue, "beach")
    version = browser.get("/api/v1/state").json["version"]
    browser.post("/api/v1/finish", {"photographs": [number]})
    assert (
        browser.get("/api/v1/state").json["version"] != version
    )  # so the other window looks again
    late = browser.decide_page(beach, {"accept": [[number, 0.92, None]]}).json
    assert (late["accepted"], late["kept"]) == (0, 1)
    answer = browser.post("/api/v1/decisions", {"accept": [[number, "sea"]]}).json  # one by one
    assert answer["accepted"] == 1
    assert catalogue.completeness.count_finished() == 1
