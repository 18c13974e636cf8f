"""A closer look in a real browser: zoom, pan, the next photograph, kin beside it."""

from collections.abc import Iterator
from typing import Any

import pytest

from .served import Served, serve
from .window import NARROW, Window

OPEN = "document.querySelector('#closer').open"
NAMES = "[...document.querySelectorAll('#closer figure:not([hidden]) img')].map(one => one.alt)"
BESIDE = f"({NAMES}).length"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("closer"), 12) as served:
        yield served


def names(page: Any) -> list[str]:
    return page.evaluate(NAMES)


def titles(page: Any) -> list[str]:
    return page.eval_on_selector_all("#grid .tile", "all => all.map(one => one.title)")


def view(page: Any) -> list[float]:
    """The scale and the place of the first picture, as the browser draws it."""
    text = "new DOMMatrix(getComputedStyle(document.querySelector('#closer img')).transform)"
    return page.evaluate(f"(m => [m.a, m.e, m.f])({text})")


def test_zoom_and_pan_stay_with_the_next_photograph(window: Window, served: Served) -> None:
    page = window.open(f"/tags/{served.tags['beach']}")
    shown = titles(page)
    window.press("z", "+", "+", "Shift+ArrowRight")
    scale, x, _ = view(page)
    assert scale == pytest.approx(2.25)
    assert x < 0
    assert page.locator("#closer-scale").inner_text() == "225 %"
    window.press("ArrowRight")
    assert names(page) == [shown[1]]
    assert view(page) == [scale, x, 0]
    assert f"2 of {len(shown)}" in page.locator("#closer-name").inner_text()
    for _ in range(20):
        window.press("Shift+ArrowRight", "Shift+ArrowDown")  # not beyond the edge
    width, height = page.evaluate(
        "(b => [b.clientWidth, b.clientHeight])(document.querySelector('#closer figure'))"
    )
    assert view(page)[1:] == pytest.approx(
        [-(scale - 1) / 2 * width, -(scale - 1) / 2 * height], abs=1
    )
    window.press("0")
    assert view(page) == [1, 0, 0]
    window.press("ArrowLeft", "ArrowLeft")
    assert page.locator("#closer-name").inner_text() == "This is the first photograph."
    window.press(" ")
    assert "marked as wrong" in page.locator("#closer-name").inner_text()
    window.press("ArrowRight", "Escape")
    assert page.evaluate(OPEN) is False
    assert window.focused("title") == shown[1]  # the page followed
    assert page.locator("#grid .tile").first.get_attribute("aria-pressed") == "true"


def test_the_larger_copy_comes_when_it_is_needed(window: Window, served: Served) -> None:
    window.resize((800, 600))
    asked: list[str] = []
    page = window.open(f"/tags/{served.tags['beach']}")
    page.on("request", lambda request: asked.append(request.url))
    window.press("End", "z")  # nobody has looked at it closer yet
    page.wait_for_function("() => document.querySelector('#closer img').naturalWidth > 0")
    assert not [url for url in asked if "/2048/" in url]
    with page.expect_response(lambda answer: "/2048/" in answer.url) as answer:
        window.press("+", "+")
    assert answer.value.status == 200
    window.press("Escape")


def test_by_mouse_the_point_below_stays(window: Window, served: Served) -> None:
    page = window.open(f"/tags/{served.tags['beach']}")
    page.locator("#look-closer").click()
    box = page.locator("#closer figure").first.bounding_box()
    left, top = box["x"] + box["width"] / 4, box["y"] + box["height"] / 2
    page.mouse.move(left, top)
    page.mouse.wheel(0, -208)
    page.wait_for_function("() => document.querySelector('#closer.zoomed')")
    scale, x, y = view(page)
    assert scale == pytest.approx(2, abs=0.01)
    assert x == pytest.approx(box["width"] / 4, abs=3)
    assert y == pytest.approx(0, abs=1)
    page.mouse.down()
    page.mouse.move(left + 50, top, steps=3)
    page.mouse.up()
    assert view(page)[1] == pytest.approx(x + 50, abs=1)
    page.locator("[data-closer=close]").click()
    assert page.evaluate(OPEN) is False


def test_kin_beside_the_suggestion(window: Window, served: Served) -> None:
    page = window.open(f"/tags/{served.tags['beach']}")
    shown = titles(page)
    window.press("ArrowRight", "ArrowRight", "ArrowRight", "z", "k")
    page.wait_for_function(f"() => {BESIDE} === 2")
    first = names(page)
    assert first == [shown[3], shown[1]]  # its kin are the first two of their folder
    boxes = [page.locator("#closer figure").nth(i).bounding_box() for i in (0, 1)]
    assert boxes[0]["width"] == pytest.approx(boxes[1]["width"], abs=1)
    window.press("ArrowDown")
    assert names(page) == [shown[3], shown[2]]
    assert "kin for beach, 2 of 2" in page.locator("#closer-name").inner_text()
    window.press("ArrowRight")  # another photograph, with its own kin
    page.wait_for_function(f"name => ({NAMES})[0] === name", arg=shown[4])
    assert names(page)[1] == shown[1]
    window.press("k")
    page.wait_for_function(f"() => {BESIDE} === 1")
    window.resize(NARROW)
    window.press("k")
    page.wait_for_function(f"() => {BESIDE} === 2")
    boxes = [page.locator("#closer figure").nth(i).bounding_box() for i in (0, 1)]
    assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"]  # one above the other
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    window.press("Escape")


def test_by_photograph_the_page_turns(window: Window, served: Served) -> None:
    page = window.open(f"/photographs/{served.contents[0]}")
    first = page.locator("h1").inner_text()
    page.locator("#photograph .large").click()
    assert names(page) == [first]
    window.press("+", "ArrowRight")
    page.wait_for_function(f"name => ({NAMES})[0] !== name", arg=first)
    assert names(page) == [page.locator("h1").inner_text()]
    assert view(page)[0] == 1.5
    window.press("ArrowLeft")
    page.wait_for_function(f"name => ({NAMES})[0] === name", arg=first)
    window.press("ArrowLeft")
    assert page.locator("#closer-name").inner_text() == "This is the first photograph."
    window.press("z")
    assert page.evaluate(OPEN) is False


def test_the_closer_look_is_accessible(window: Window, served: Served) -> None:
    page = window.open(f"/tags/{served.tags['beach']}")
    window.press("z", "k")
    page.wait_for_function(f"() => {BESIDE} === 2")
    window.is_accessible("#closer")
    window.press("Escape")


def test_the_key_after_closing_counts(window: Window, served: Served) -> None:
    """The browser may tell of the closed dialog after the next key, so the page does not wait."""
    page = window.open(f"/tags/{served.tags['beach']}")
    window.press("End", "z")
    page.evaluate(
        """() => {
          const closed = new Promise((resolve) => {
            document.querySelector("#closer").addEventListener("close", resolve, { once: true });
          });
          for (const key of ["z", "Home"]) {
            const given = { key, bubbles: true, cancelable: true };
            document.activeElement.dispatchEvent(new KeyboardEvent("keydown", given));
          }
          return closed;
        }"""
    )
    assert window.focused("title") == titles(page)[0]


def test_kin_that_come_late_are_dropped(window: Window, served: Served) -> None:
    page = window.open(f"/tags/{served.tags['beach']}")
    held: list[Any] = []
    page.route("**/photographs/*", lambda route: held.append(route))
    with page.expect_request("**/photographs/*"):
        window.press("k")
    window.press("ArrowRight")
    with page.expect_response("**/photographs/*"):
        held.pop(0).continue_()
    window.settle()
    assert names(page) == titles(page)[1:2]
    page.unroute("**/photographs/*")
