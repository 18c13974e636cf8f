"""The first minutes of a review in a real browser: what it says while it reads, and offers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tagkin.catalogue import Catalogue, open_for_scan
from tagkin.server import Review
from tests.catalogue.suggested import new_suggestion

from .browser import Running
from .served import Served, serve
from .window import Window


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("review"), 12) as served:
        yield served


def test_words_of_others_come_only_when_asked_for(chrome: Any, tmp_path: Path) -> None:
    root = tmp_path / "photos"
    root.mkdir()
    for n in range(3):
        pixels = np.random.default_rng(n).integers(0, 255, (40, 60, 3), np.uint8)
        Image.fromarray(pixels).save(root / f"{n}.jpg")
    review = Review(open_for_scan(root, command="review"), tmp_path / "cache", fits=False)
    assert review.catch_up()
    review.fit.wait(120)
    assert review.state()["suggestions"] == 0
    running = Running(review)
    window = Window(chrome, running.access.address(running.port))
    try:
        for mode in ("/events", "/tags"):
            page = window.open(mode)
            page.get_by_text("No suggestions yet.").wait_for()
            assert page.locator("#progress").inner_text() == ""  # nothing to count yet
        review.fit.words = ["tree"]  # as long as they are looked for
        assert window.open("/tags").locator("#common-tags").count() == 0
        review.fit.words = ()
        window.open("/tags").get_by_role("button", name="Suggest common tags").click()
        page.locator("#tags a").first.wait_for()  # cards of common tags
        assert review.state()["suggestions"] > 0
        assert window.faults == []
    finally:
        window.close()
        running.stop()
        review.close()


@pytest.mark.parametrize("mode", ["/tags", "/tags/{tag}", "/events", "/search"])
def test_escape_closes_the_filters_and_stays(window: Window, served: Served, mode: str) -> None:
    page = window.open(mode.format(tag=served.tags["beach"]))
    address = page.url
    window.press("v")
    page.locator("#filters[open] select").first.focus()
    window.press("Escape")
    page.locator("#filters:not([open])").wait_for()
    assert page.evaluate("document.activeElement.matches('#filters summary')")
    window.settle()
    assert page.url == address


def test_tiles_say_that_they_load(window: Window, served: Served) -> None:
    held: list[Any] = []
    is_held = True

    def hold(route: Any) -> None:
        if is_held:
            held.append(route)
        else:
            route.continue_()

    page, address = window.page, f"{window.base}/tags/{served.tags['beach']}"
    page.route("**/thumbnails/**", hold)
    page.goto(address, wait_until="commit")  # it has loaded when its pictures have
    tile, word = page.locator("#grid .tile").first, "getComputedStyle({}, '::before')"
    tile.wait_for()
    page.wait_for_function(
        f"() => {word.format('document.querySelector(`#grid .tile`)')}.visibility === 'visible'"
    )
    assert "Loading…" in tile.evaluate(f"tile => {word.format('tile')}.content")
    is_held = False
    for route in held:
        route.continue_()
    page.wait_for_function("() => document.querySelector('#grid .tile img').naturalWidth > 0")
    assert tile.evaluate(f"tile => {word.format('tile')}.zIndex") == "-1"  # the picture covers it


def test_all_accepted_the_parent_follows_its_child(chrome: Any, tmp_path: Path) -> None:
    tags = {"Verkehr": 0.9, "Verkehr|Auto": 0.8, "Auto": 0.7}

    def offer_levels(catalogue: Catalogue, contents: list[int]) -> None:
        catalogue.database.execute("DELETE FROM suggestions")
        with catalogue.database.run("suggest") as run:
            suggested = [new_suggestion(tag, confidence, []) for tag, confidence in tags.items()]
            catalogue.suggestions.replace(run.id, [(contents[0], suggested)])

    with serve(tmp_path, 3, offer_levels) as served:
        window = Window(chrome, served.address)
        page = window.open(f"/photographs/{served.contents[0]}")
        page.locator("#suggestions li", has_text="Verkehr|Auto").get_by_title("Accept").click()
        window.shows("Verkehr|Auto accepted.")
        page.get_by_text("No suggestions.").wait_for()
        carried = page.locator("#carried .name").all_inner_texts()
        assert sorted(carried) == sorted(tags)
        page = window.open("/write")
        assert "1 tag" in page.locator("#main").inner_text()
        assert window.faults == []
        window.close()
