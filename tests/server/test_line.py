"""Unlikely suggestions come below a line; an unmarked tile means the same on every page."""

import pytest

from tagkin.catalogue import Catalogue
from tagkin.catalogue.columns import pack_evidence
from tests.catalogue.suggested import content, offer

from .browser import Browser
from .conftest import tag

PATHS = ("a.jpg", "b.jpg", "2024/c.jpg", "2024/d.jpg")
ABOVE = (
    "//*[@id='grid']//button[contains(@class, 'tile')][not(ancestor::*[contains(@class, 'below')])]"
)
BELOW = "//*[@id='grid']//*[contains(@class, 'below')]//button[contains(@class, 'tile')]"


@pytest.mark.parametrize(
    ("confidences", "n_likely"),
    [
        ((0.9, 0.8, 0.7, 0.5), 4),
        ((0.4, 0.3, 0.2, 0.1), 0),
        ((0.9, 0.499, 0.3, 0.1), 1),  # the second is shown as 50 %
    ],
)
def test_the_unlikely_are_below_a_line_and_unmarked(
    browser: Browser, catalogue: Catalogue, confidences: tuple[float, ...], n_likely: int
) -> None:
    offer(catalogue, {path: {"new": p} for path, p in zip(PATHS, confidences, strict=True)})
    page = browser.get(f"/tags/{tag(catalogue, 'new')}")
    likely, unlikely = page.elements(ABOVE), page.elements(BELOW)
    assert (len(likely), len(unlikely)) == (n_likely, 4 - n_likely)
    assert {tile.get("aria-pressed") for tile in likely + unlikely} == {"false"}
    assert ("More likely wrong than right" in page.text) == (n_likely < 4)


def test_a_page_to_learn_from_says_why(browser: Browser, catalogue: Catalogue) -> None:
    offer(catalogue, {"a.jpg": {"new": 0.5}})
    assert "so your answers teach it most" in browser.get("/question?strategy=learn-most").text
    assert 'id="reason"' not in browser.get("/question").text


def test_what_stays_undecided_is_not_asked_again(browser: Browser, catalogue: Catalogue) -> None:
    """Until there are new suggestions."""
    catalogue.database.execute("DELETE FROM suggestions")
    offer(catalogue, {path: {"new": 0.3} for path in PATHS} | {PATHS[0]: {"new": 0.6}})
    number = tag(catalogue, "new")
    contents = {content(catalogue, path) for path in PATHS}
    yes = content(catalogue, PATHS[0])
    left = sorted(contents - {yes})
    answer = browser.post(
        "/api/v1/decisions",
        {"accept": [[yes, number]], "left": [[c, number] for c in left[:2]], "only_open": True},
    )
    assert answer.json["accepted"] == 1
    asked = browser.get("/question?pays_little=true").elements(
        "//*[@id='grid']//button/@data-content"
    )
    assert [int(number) for number in asked] == left[2:]
    answer = browser.post("/api/v1/decisions", {"left": [[left[2], number]]})
    assert answer.json["run"] is None
    assert not browser.get("/question?pays_little=true").elements("//*[@id='grid']")
    shown = browser.get(f"/api/v1/tags/{number}/suggestions").json["suggestions"]
    assert {card["content"] for card in shown} == set(left)  # they are open


def test_the_end_that_pays_little_is_announced(browser: Browser, catalogue: Catalogue) -> None:
    offer(catalogue, {path: {"new": 0.9} for path in PATHS})
    assert browser.get("/question").elements("//*[@id='grid']")
    offer(catalogue, {path: {"new": 0.3} for path in PATHS})
    assert browser.get("/question").elements("//*[@id='grid']")  # the first question
    other = [content(catalogue, PATHS[0]), "other"]
    browser.post("/api/v1/decisions", {"accept": [other]})
    page = browser.get("/question").text
    assert "What is left pays little" in page
    assert "About 1 correct tag among 4 suggestions. Most of them are wrong." in page
    assert browser.get("/question?pays_little=true").elements("//*[@id='grid']")
    assert browser.get("/question?strategy=learn-most").elements("//*[@id='grid']")


def test_a_tile_says_what_its_suggestion_comes_from(browser: Browser, catalogue: Catalogue) -> None:
    """The largest of the shares that are stored, in words that a line above explains."""
    offer(catalogue, {path: {"new": 0.9} for path in PATHS})
    number = tag(catalogue, "new")
    for path, shares in zip(
        PATHS,
        (
            {"time": 0.6},
            {"place": 0.2, "folder": 0.5},
            {"name": 0.7},
            {"readout": 0.5, "time": 0.4},
        ),
        strict=True,
    ):
        catalogue.database.execute(
            "UPDATE suggestions SET evidence = ? WHERE content = ? AND tag = ?",
            (pack_evidence(shares=shares), content(catalogue, path), number),
        )
    page = browser.get(f"/tags/{number}")
    words = {
        int(tile.get("data-content")): tile.xpath("string(*[@class='because'])")
        for tile in page.elements(ABOVE)
    }
    expected = ("same time", "same folder", "by its name", "")
    assert words == dict(zip((content(catalogue, p) for p in PATHS), expected, strict=True))
    (line,) = page.elements("//*[@id='reasons']")
    assert {element.text for element in line.xpath(".//strong")} == {
        *("Same time", "Same folder", "By its name")
    }
    assert "Without a word: similar photographs have the tag." in line.text_content()
