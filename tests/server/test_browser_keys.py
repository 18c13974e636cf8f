"""Every key that the `?` overlay names, pressed in a real browser: what it says is what happens."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .served import Served, put_map, serve
from .window import Window

N = 24
Check = Callable[[Window, Any, Served], None]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("keys"), N, put_map) as served:
        yield served


def there(page: Any, selector: str) -> None:
    page.locator(selector).first.wait_for()


def becomes(page: Any, expression: str, value: Any) -> None:
    """Wait until an expression of the page has a value."""
    page.wait_for_function(
        f"given => JSON.stringify({expression}) === given",
        arg=json.dumps(value, separators=(",", ":")),
    )


PRESSED = "document.querySelectorAll('#grid [aria-pressed=true]').length"
FOCUSED = "[...document.querySelectorAll('#grid .tile')].indexOf(document.activeElement)"
MODE = "document.body?.dataset.mode"  # a page that has just begun to load has no body yet
READY = f"[{MODE}, document.readyState]"  # keys are heard when everything is there
AT = "document.querySelector('#photograph').dataset.content"
ROW = "[...document.querySelectorAll('#suggestions .row')].indexOf(document.activeElement)"
OFFERS = "document.querySelectorAll('#offers > li').length"
ROWS = "document.querySelectorAll('#suggestions .row').length"
DOUBT = "[...document.querySelectorAll('#doubts > li')].indexOf(document.activeElement)"
DOUBTS = "document.querySelectorAll('#doubts > li').length"
SCALE = "document.querySelector('#map-scale').textContent"
ON_MAP = "document.querySelector('#selection:not([hidden]) #chosen')?.textContent ?? ''"
CARD = "[...document.querySelectorAll('#tags a')].indexOf(document.activeElement)"


def with_keys(*each: tuple[str, str, Any]) -> Check:
    """Keys one after the other, and what an expression is after each."""

    def run(window: Window, page: Any, served: Served) -> None:
        for keys, expression, value in each:
            window.press(*keys.split("  "))
            becomes(page, expression, value)

    return run


def closer(window: Window, page: Any, served: Served) -> None:
    window.press("z")
    there(page, "#closer[open] img")
    window.press("z")
    becomes(page, "document.querySelector('#closer').open", False)


def to_another(*keys: str) -> Check:
    """To another photograph, by each of the keys."""

    def run(window: Window, page: Any, served: Served) -> None:
        for key in keys:
            before = page.evaluate(AT)
            window.press(key)
            page.wait_for_function(f"before => {AT} !== before", arg=before)

    return run


def back(window: Window, page: Any, served: Served) -> None:
    for key in ("ArrowLeft", "b"):
        before = page.evaluate(AT)
        window.press("n")
        page.wait_for_function(f"before => {AT} !== before", arg=before)
        window.press(key)
        becomes(page, AT, before)


def opened(*keys: str) -> Check:
    """Each of them leads to the page of a photograph."""

    def run(window: Window, page: Any, served: Served) -> None:
        start = page.url
        for key in keys:
            if page.url != start:
                page.goto(start)
            window.press(key)
            becomes(page, MODE, "photograph")

    return run


def focus_in(selector: str, *keys: str) -> Check:
    def run(window: Window, page: Any, served: Served) -> None:
        for key in keys:
            window.press(key)
            becomes(page, f"document.activeElement.matches('{selector}')", True)
            window.press("Escape")
            becomes(page, f"document.activeElement.matches('{selector}')", False)

    return run


def kin_of_a_tile(window: Window, page: Any, served: Served) -> None:
    window.press("Home", "ArrowRight", "k")
    there(page, "#closer[open] figure:nth-child(2) img")
    window.press("z")
    becomes(page, "document.querySelector('#closer').open", False)
    becomes(page, FOCUSED, 1)


def to_map(window: Window, page: Any, served: Served) -> None:
    there(page, "#map:not([hidden])")
    window.press("m")
    becomes(page, "document.activeElement.matches('#map .dot')", True)


def move_on_map(window: Window, page: Any, served: Served) -> None:
    to_map(window, page, served)
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        box = page.locator("#map .peek")
        before = box.get_attribute("data-content")
        window.press(key)
        page.wait_for_function(
            "was => (document.querySelector('#map .peek').dataset.content ?? null) !== was",
            arg=before,
        )
    window.press("ArrowUp", "ArrowDown")  # none is there: it stays


def open_from_map(window: Window, page: Any, served: Served) -> None:
    to_map(window, page, served)
    window.press("ArrowRight", "Enter")
    becomes(page, MODE, "photograph")


def rename_tag(window: Window, page: Any, served: Served) -> None:
    becomes(page, FOCUSED, 0)
    window.press("r")
    there(page, "#edit-tag[open]")
    becomes(page, "document.activeElement.id", "new-name")
    page.locator("#edit-tag [data-change='']").click()
    becomes(page, "document.querySelector('#edit-tag').open", False)


def clear_map(window: Window, page: Any, served: Served) -> None:
    window.press("Escape")
    becomes(page, ON_MAP, "")
    becomes(page, "document.activeElement.matches('#map .dot')", True)


def finish_on_map(window: Window, page: Any, served: Served) -> None:
    window.press("f")
    window.shows("Select photographs first.")
    window.press("ArrowRight", " ", "f")
    window.shows("1 photograph finished;")
    becomes(page, ON_MAP, "")


def ask(window: Window, page: Any, served: Served) -> None:
    window.press("q")
    there(page, "#grid[data-strategy=most-right]")


def similar(window: Window, page: Any, served: Served) -> None:
    window.press("s")
    page.wait_for_url("**/search?similar=*")
    becomes(page, "document.querySelectorAll('#grid .tile').length", N)


def tag_chosen(window: Window, page: Any, served: Served) -> None:
    window.press("t")
    becomes(page, "document.activeElement.id", "tag")
    becomes(page, PRESSED, 1)
    window.press("Escape")


def next_tag(window: Window, page: Any, served: Served) -> None:
    before = page.locator("h1").inner_text()
    window.press("n")
    page.wait_for_function("was => document.querySelector('h1').textContent !== was", arg=before)


def accept_page(window: Window, page: Any, served: Served) -> None:
    """What follows is the rest of the tag, as many as a page has where nothing else is chosen."""
    for key, n_accepted in (("Enter", 9), ("a", N + 1 - 10 - 1)):
        becomes(page, FOCUSED, 0)
        window.press(" ", key)
        window.shows(f"beach: {n_accepted} accepted, 1 rejected.")


def next_event(window: Window, page: Any, served: Served) -> None:
    for key in ("Enter", "n"):
        was = page.locator("h1").inner_text()
        window.press(key)
        page.wait_for_function("was => document.querySelector('h1').textContent !== was", arg=was)


def accept_and_reject(window: Window, page: Any, served: Served) -> None:
    becomes(page, FOCUSED, 0)
    window.press(" ", "Shift+Enter")
    window.shows("beach: 9 accepted, 1 rejected.")


def finish_photograph(window: Window, page: Any, served: Served) -> None:
    window.press("n")
    becomes(page, ROWS, 4)
    window.press("f")
    there(page, "#finished")
    becomes(page, ROWS, 0)


def finish_chosen(window: Window, page: Any, served: Served) -> None:
    window.press("Home", " ", "f")
    window.shows("1 photograph finished;")
    becomes(page, PRESSED, 0)


def finish_tag(window: Window, page: Any, served: Served) -> None:
    window.press("e")
    window.shows("First decide on all suggestions of this tag.")
    window.open(f"/tags/{served.tags['beach']}?n=60")
    becomes(page, FOCUSED, 0)
    window.press("e")
    there(page, ".done")


def undone(*keys: str) -> Check:
    def run(window: Window, page: Any, served: Served) -> None:
        for key in keys:
            accept_first(window, page)
            take_back(window, page, key)

    return run


def redone(window: Window, page: Any, served: Served) -> None:
    for key in ("U", "Control+Shift+Z", "Control+y"):
        accept_first(window, page)
        take_back(window, page, "u")
        window.press(key)
        window.shows("Redone 1 decision")
        becomes(page, ROWS, 3)
        take_back(window, page, "u")


def accept_first(window: Window, page: Any) -> None:
    window.press("1")
    window.shows("accepted.")
    becomes(page, ROWS, 3)


def take_back(window: Window, page: Any, key: str) -> None:
    window.press(key)
    window.shows("Undone 1 decision")
    becomes(page, ROWS, 4)


def all_keys(window: Window, page: Any, served: Served) -> None:
    window.press("?")
    there(page, "#keys[open]")
    window.press("Escape")
    becomes(page, "document.querySelector('#keys').open", False)


def goes(letter: str, mode: str) -> Check:
    def run(window: Window, page: Any, served: Served) -> None:
        assert page.evaluate(MODE) != mode
        window.press("g", letter)
        becomes(page, READY, [mode, "complete"])

    return run


def not_in_a_burst(window: Window, page: Any, served: Served) -> None:
    window.press("o")  # tests/server/test_browser_stacks.py has bursts
    window.shows("This photograph is not in a burst.")


def filtered(window: Window, page: Any, served: Served) -> None:
    window.press("v")
    there(page, "#choices")
    page.locator("#choices [name=folder]").select_option("2021")
    page.wait_for_url("**folder=2021")
    there(page, "#choices")
    becomes(page, "document.activeElement.name", "folder")
    page.locator(".chosen-filters .token a").click()
    page.wait_for_url(lambda address: "folder" not in address)
    becomes(page, "document.querySelectorAll('.token').length", 0)


def written(window: Window, page: Any, served: Served) -> None:
    served.review.decide([(served.contents[0], served.tags["beach"])], [], only_open=True)
    window.open("/write")
    there(page, "#write")
    window.press("w")
    page.locator(".outcome", has_text="Wrote 1 tag into 1 sidecar, all of them new.").wait_for()
    page.locator(".outcome [data-undo-write]").click()
    page.locator(".outcome", has_text="removed 1 file that it had made.").wait_for()


def back_to_tags(window: Window, page: Any, served: Served) -> None:
    for key in ("b", "Escape"):
        window.press(key)
        becomes(page, MODE, "tags")
        window.press("ArrowRight", "Enter")  # the first tag
        becomes(page, MODE, "tag")


RANGE = ("ArrowRight  Shift+ArrowRight  Shift+ArrowRight  Shift+ArrowLeft", PRESSED, 2)
# Of each section, where it begins, and what is pressed there: all checks of a visit follow each
# other on one page, and each finds what those before it have left.
CHECKS: dict[str, tuple[str, list[dict[str, Check]]]] = {
    "Everywhere": (
        "/photographs/1",
        [
            {
                "Show these shortcuts": all_keys,
                "Undo the last step, without limit": undone("u", "Control+z"),
                "Redo": redone,
                "Filter the photographs": filtered,
                "By tag": goes("t", "tags"),
                "By event": goes("e", "event"),
                "Doubtful": goes("d", "doubtful"),
                "Search": goes("s", "search"),
                "Write": goes("w", "write"),
                "Overview": goes("o", "overview"),
            }
        ],
    ),
    "Tags": (
        "/tags",
        [
            {
                "Move": with_keys(("ArrowRight  ArrowRight", CARD, 1), ("ArrowLeft", CARD, 0)),
                "Find a tag": focus_in("#filter", "/"),
                "The best page of any tag": ask,
            }
        ],
    ),
    "By tag": (
        "/tags/{beach}?n=10",
        [
            {
                "Move": with_keys(("ArrowRight", FOCUSED, 1), ("ArrowDown  ArrowLeft", FOCUSED, 6)),
                "First, last photograph": with_keys(("End", FOCUSED, 9), ("Home", FOCUSED, 0)),
                "Mark or unmark": with_keys((" ", PRESSED, 1), (" ", PRESSED, 0)),
                "Mark a range; with the mouse: drag, or Shift and click": with_keys(RANGE),
                "Mark or unmark the whole event": with_keys(
                    ("Home  x", PRESSED, 8), ("x", PRESSED, 0)
                ),
                "Look closer": closer,
                "Kin behind this suggestion": kin_of_a_tile,
                "Show each photograph of a burst": not_in_a_burst,
                "Back to all tags": back_to_tags,
                "The next tag": next_tag,
                "The best page of any tag": ask,
            },
            {
                "Rename, merge or nest this tag": rename_tag,
                "Forget this tag, or learn it again": with_keys(
                    ("f", "document.querySelector('#learn-again') !== null", True)
                ),
            },
            {"Accept the likely ones, except those marked as wrong": accept_page},
            {"The same, and reject the others below the line": accept_and_reject},
            {"I have seen everything for this tag": finish_tag},
        ],
    ),
    "By event": (
        "/events/1",
        [
            {
                "Move": with_keys(("ArrowRight", FOCUSED, 1), ("ArrowDown  ArrowLeft", FOCUSED, 6)),
                "First, last photograph": with_keys(("End", FOCUSED, 7), ("Home", FOCUSED, 0)),
                "Mark or unmark": with_keys((" ", PRESSED, 1), (" ", PRESSED, 0)),
                "Mark a range; with the mouse: drag, or Shift and click": with_keys(RANGE),
                "Look closer": closer,
                "Type a tag for all": focus_in("#tag", "t", "/"),
                "Open the photograph; of a burst, show each": opened("o"),
            },
            {"The next event": next_event, "Back": with_keys(("b", MODE, "event"))},
            {
                "Give this tag to its photographs, except those taken out": with_keys(
                    ("1", OFFERS, 3)
                ),
                "Reject it for all of them": with_keys(("Shift+Digit2", OFFERS, 2)),
                "Finished: they have all their tags": with_keys(("f", OFFERS, 0)),
            },
        ],
    ),
    "A photograph": (
        "/photographs/1",
        [
            {
                "Look closer": closer,
                "The next suggestion": with_keys(("ArrowDown", ROW, 1), ("j", ROW, 2)),
                "The previous suggestion": with_keys(("ArrowUp", ROW, 1)),
                "Kin behind a suggestion": with_keys(
                    ("k", "document.querySelectorAll('.evidence:not([hidden]) .kin').length", 1)
                ),
                "Type a tag": focus_in("#tag", "t", "/"),
                "The next photograph, or event": to_another("ArrowRight", "Enter", "n"),
                "Back": back,
                "Similar photographs": similar,
            },
            {
                "Accept this suggestion": with_keys(("1", ROWS, 3)),
                "Reject it": with_keys(("Shift+Digit2", ROWS, 2)),
                "Accept all likely suggestions": with_keys(("a", ROWS, 0)),
                "Reject all suggestions": with_keys(("n", ROWS, 4), ("x", ROWS, 0)),
                "Finished: it has all its tags": finish_photograph,
            },
        ],
    ),
    "Doubtful": (
        "/doubtful?kind=missing",
        [
            {
                "Look closer": closer,
                "The next doubt": with_keys(
                    ("ArrowDown", DOUBT, 1), ("ArrowRight", DOUBT, 2), ("j", DOUBT, 3)
                ),
                "The previous doubt": with_keys(("ArrowUp", DOUBT, 2), ("ArrowLeft", DOUBT, 1)),
                "Yes: remove a wrong tag, add a missing tag": with_keys(("y", DOUBTS, 14)),
                "No: change nothing": with_keys(("n", DOUBTS, 13)),
                "Open the photograph": opened("o"),
            }
        ],
    ),
    "Search": (
        "/search?name=IMG",
        [
            {
                "Move": with_keys(("ArrowRight", FOCUSED, 1), ("ArrowDown  ArrowLeft", FOCUSED, 7)),
                "First, last photograph": with_keys(("End", FOCUSED, N - 1), ("Home", FOCUSED, 0)),
                "Mark or unmark": with_keys((" ", PRESSED, 1), (" ", PRESSED, 0)),
                "Mark a range; with the mouse: drag, or Shift and click": with_keys(RANGE),
                "Select all shown": with_keys(("Control+a", PRESSED, N)),
                "Clear selection": with_keys(("Escape", PRESSED, 0)),
                "Look closer": closer,
                "Search for a tag": focus_in("#with", "/"),
                "Finished: the selection has all its tags": finish_chosen,
                "Tag the selection": tag_chosen,
                "Similar photographs": similar,
                "Open the photograph; of a burst, show each": opened("Enter", "o"),
            }
        ],
    ),
    "Write": ("/write", [{"Write the files": written}]),
    "Overview": (
        "/overview",
        [
            {
                "To the map": to_map,
                "On the map: move to the next photograph": move_on_map,
                "On the map: zoom in": with_keys(("+", SCALE, "150 %")),
                "On the map: zoom out": with_keys(("-", SCALE, "100 %")),
                "On the map: select or unselect; with the mouse: Shift and drag": with_keys(
                    (" ", ON_MAP, "1 photograph selected")
                ),
                "Tag the selection": focus_in("#tag", "t"),
                "Clear selection": clear_map,
                "Finished: the selection has all its tags": finish_on_map,
                "On the map: open the photograph": open_from_map,
            }
        ],
    ),
}


@pytest.mark.parametrize("section", CHECKS)
def test_every_key_does_what_the_overlay_says(section: str, window: Window, served: Served) -> None:
    start, visits = CHECKS[section]
    start = start.format(**served.tags)
    page = window.open(start)
    window.press("?")
    listed = page.locator("#keys section", has=page.locator(f"h3:text-is('{section}')"))
    listed.wait_for()
    names = {name for visit in visits for name in visit}
    assert set(listed.locator("dd").all_inner_texts()) == names
    assert "+ + +" not in listed.locator("kbd").all_inner_texts()  # the key is +
    window.press("Escape")
    becomes(page, "document.querySelector('#keys').open", False)
    for visit in visits:
        if visit is not visits[0]:
            window.open(start)
        for check in visit.values():
            check(window, page, served)
        served.undo_all()
