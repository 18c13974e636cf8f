"""The map in a real browser: photographs from near, and what is selected there can be tagged."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from .served import Served, put_map, serve
from .window import NARROW, WIDE, Window

N = 24


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("map"), N, put_map) as served:
        yield served


# Whether the map shows anything.
DRAWN = """() => {
  const frame = document.querySelector("#map .plane").getBoundingClientRect();
  return [...document.querySelectorAll("#map .dot")].some((dot) => {
    const { left, right, top, bottom } = dot.getBoundingClientRect();
    return left < frame.right && right > frame.left && top < frame.bottom && bottom > frame.top;
  });
}"""


@pytest.fixture
def page(window: Window) -> Any:
    page = window.open("/overview")
    page.locator("#map .plane").scroll_into_view_if_needed()
    return page


def box_of(page: Any) -> tuple[float, float, float, float]:
    """Return the left, the top, the width and the height of the map within its border."""
    box = page.locator("#map .plane").bounding_box()
    return box["x"] + 1, box["y"] + 1, box["width"] - 2, box["height"] - 2


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
    page.evaluate("() => fetch('api/v1/state').then((answer) => answer.text())")
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
    page.wait_for_function("() => document.querySelector('#map-scale').textContent === '195 %'")


def test_the_selection_is_tagged(page: Any, window: Window, served: Served) -> None:
    page.keyboard.down("Shift")
    drag(page, (0, 0.3), (0.49, 0.7))
    page.keyboard.up("Shift")
    n = len(served.contents) // 2
    page.locator("#chosen", has_text=f"{n} photographs selected").wait_for()
    bar = page.locator("#selection").bounding_box()
    assert bar["y"] + bar["height"] <= WIDE[1]  # in sight, wherever the map is
    page.locator("#tag").fill("outing")
    page.keyboard.press("Enter")
    window.shows(f"outing: added to {n} photographs.")
    assert served.decided(1) == {(content, "outing") for content in served.contents[:n]}
    page.locator("#selection").wait_for(state="hidden")
    page.locator("[data-drag-to=select]").click()
    drag(page, (0.9, 0.3), (1, 0.7))
    page.locator("#chosen", has_text="selected").wait_for()
    page.locator("#tag").fill("outing")
    page.locator("#remove").click()
    window.shows("outing: removed from")
    page.locator("#undo").click()
    window.shows("Undone")
    page.locator("#undo").click()
    window.shows(f"Undone {n} decisions: outing.")
    assert served.decisions() == {}


def test_coming_nearer_keeps_a_photograph_in_sight(page: Any) -> None:
    page.locator("[data-zoom='2']").click()
    drag(page, (0.5, 0.5), (0.5, 0.8))  # the middle of the map is empty now
    for _ in range(4):
        page.locator("[data-zoom='2']").click()
    assert page.locator("#map-scale").inner_text() == "3200 %"
    assert page.evaluate(DRAWN)


def test_a_drag_moves_the_map(page: Any, window: Window) -> None:
    page.locator("[data-zoom='2']").click()
    page.locator("#map .peek").wait_for(state="hidden")
    drag(page, (0.6, 0.3), (0.3, 0.3))
    assert page.locator("#selection").is_hidden()
    assert page.url.endswith("/overview")  # it was no click
    window.resize(NARROW)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]


# The places of the middles of all dots, and the sizes of those that are no photographs.
DOTS = """(dots) => [
  dots.map((dot) => dot.getBoundingClientRect()).map(({ left, right }) => (left + right) / 2),
  dots.filter((dot) => !dot.matches(".large")).map((dot) => dot.offsetWidth),
]"""


def test_dots_part_and_keep_their_size(page: Any) -> None:
    dots = page.locator("#map .dot")
    before, sizes = dots.evaluate_all(DOTS)
    assert set(sizes) == {16}
    for _ in range(3):
        page.locator("[data-zoom='2']").click()
    page.locator("#map .dot:not(.large)").first.wait_for(state="attached")
    after, sizes = dots.evaluate_all(DOTS)
    assert np.diff(after) == pytest.approx(8 * np.diff(before), abs=1)
    assert set(sizes) <= {16}


# Two fingers that part, as shares of the width of the map.
PINCH = """() => {
  const plane = document.querySelector("#map .plane");
  const { left, top, width, height } = plane.getBoundingClientRect();
  const fire = (kind, pointerId, x) => document.querySelector("#map #grid").dispatchEvent(
    new PointerEvent(kind, { pointerId, pointerType: "touch", bubbles: true,
      clientX: left + x * width, clientY: top + height / 2 }));
  const steps = { pointerdown: [0.45, 0.55], pointermove: [0.4, 0.6], pointerup: [0.4, 0.6] };
  for (const [kind, places] of Object.entries(steps)) places.forEach((x, i) => fire(kind, i, x));
}"""


def test_two_fingers_zoom(page: Any) -> None:
    page.locator("#map .dot").first.wait_for()
    page.evaluate(PINCH)
    assert page.locator("#map-scale").inner_text() == "200 %"
    assert page.locator("#selection").is_hidden()


def test_the_map_stays_while_the_page_around_it_changes(
    page: Any, window: Window, served: Served
) -> None:
    window.press("m", "ArrowRight")
    page.locator("#map .peek").wait_for()
    content = page.locator("#map .peek").get_attribute("data-content")
    served.review.decide([(served.contents[0], "outing")], [], only_open=False)  # another window
    page.locator(".facts", has_text="1 accepted, 0 rejected").wait_for()
    window.settle()
    assert page.locator("#map .peek").is_visible()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/photographs/{content}")
