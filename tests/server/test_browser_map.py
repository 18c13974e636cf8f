"""The map in a real browser: photographs from near, and what is selected there can be tagged."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tagkin.server import Review

from .browser import Running
from .test_browser_keys import put_map
from .window import NARROW, Window, make_catalogue

N = 24


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, chrome: Any) -> Iterator[SimpleNamespace]:
    home = tmp_path_factory.mktemp("map")
    catalogue = make_catalogue(home / "photos", home / "catalogue.sqlite", N)
    put_map(catalogue)
    review = Review(catalogue, home / "cache", fits=False)
    running = Running(review)
    yield SimpleNamespace(address=running.access.address(running.port), catalogue=catalogue)
    running.stop()
    review.close()


@pytest.fixture(scope="module")
def opened(chrome: Any, served: SimpleNamespace) -> Iterator[Window]:
    found = Window(chrome, served.address)
    yield found
    found.close()


@pytest.fixture
def page(opened: Window) -> Iterator[Any]:
    opened.start_again()
    page = opened.open("/overview")
    page.locator("#map canvas").scroll_into_view_if_needed()
    yield page
    assert opened.faults == []


def tagged(served: SimpleNamespace, name: str) -> list[int]:
    rows = served.catalogue.rows(
        "SELECT d.content FROM decisions d JOIN tags t ON t.id = d.tag "
        "WHERE t.name = ? AND d.holds AND d.verdict = 1 ORDER BY d.content",
        (name,),
    )
    return [content for (content,) in rows]


def box_of(page: Any) -> tuple[float, float, float, float]:
    box = page.locator("#map canvas").bounding_box()
    return box["x"], box["y"], box["width"], box["height"]


def drag(page: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """From one place to another, as shares of the map."""
    x, y, width, height = box_of(page)
    page.mouse.move(x + start[0] * width, y + start[1] * height)
    page.mouse.down()
    page.mouse.move(x + end[0] * width, y + end[1] * height, steps=4)
    page.mouse.up()


def test_photographs_come_when_one_comes_nearer(page: Any) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    x, y, width, height = box_of(page)
    page.mouse.move(x + 2, y + 2)  # no dot is there
    page.evaluate("() => fetch('api/state').then((answer) => answer.text())")
    assert not [url for url in asked if "thumbnails" in url]
    with page.expect_response(lambda answer: "/thumbnails/" in answer.url) as answer:
        page.locator("[data-zoom='2']").click()
    assert answer.value.status == 200
    assert page.locator("#map-scale").inner_text() == "200 %"
    page.locator("[data-zoom='0']").click()
    assert page.locator("#map-scale").inner_text() == "100 %"
    page.mouse.move(x + width / 3, y + height / 3)
    page.mouse.wheel(0, -200)  # the map is not in use: the page scrolls
    assert page.locator("#map-scale").inner_text() == "100 %"
    page.keyboard.press("m")
    page.mouse.wheel(0, -200)
    page.wait_for_function("document.querySelector('#map-scale').textContent === '195 %'")


def test_the_selection_is_tagged(page: Any, opened: Window, served: SimpleNamespace) -> None:
    contents = served.catalogue.rows("SELECT id FROM contents ORDER BY id")
    page.keyboard.down("Shift")
    drag(page, (0, 0.3), (0.49, 0.7))
    page.keyboard.up("Shift")
    n = len(contents) // 2
    page.locator("#chosen", has_text=f"{n} photographs selected").wait_for()
    page.locator("#tag").fill("outing")
    page.keyboard.press("Enter")
    opened.said(f"outing: added to {n} photographs.")
    assert tagged(served, "outing") == [content for (content,) in contents[:n]]
    page.locator("#map-selection").wait_for(state="hidden")
    page.locator("[data-drag=select]").click()
    drag(page, (0.9, 0.3), (1, 0.7))
    page.locator("#chosen", has_text="selected").wait_for()
    page.locator("#tag").fill("outing")
    page.locator("#remove").click()
    opened.said("outing: removed from")
    page.locator("#undo").click()
    opened.said("Undone")
    page.locator("#undo").click()
    opened.said(f"Undone {n} decisions: outing.")
    assert tagged(served, "outing") == []


def test_a_drag_moves_the_map(page: Any, opened: Window) -> None:
    page.locator("[data-zoom='2']").click()
    page.locator("#map .peek").wait_for(state="hidden")
    drag(page, (0.6, 0.3), (0.3, 0.3))
    assert page.locator("#map-selection").is_hidden()
    assert page.url.endswith("/overview")  # it was no click
    opened.resize(NARROW)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
