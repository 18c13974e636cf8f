"""The review page in a real browser: what a person does, with the mouse and with keys alone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from tagkin.catalogue import Catalogue, Decided

from .served import Served, serve
from .window import NARROW, Window

MODES = [
    "/tags",
    "/tags/{tag}?n=10",
    "/events",
    "/doubtful?kind=missing&start=25",
    "/search?name=IMG_000",
    "/write",
    "/overview",
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("review"), 130) as served:
        yield served


def contents(page: Any, selector: str = "#grid .tile") -> list[int]:
    return page.eval_on_selector_all(selector, "all => all.map(one => Number(one.dataset.content))")


def pressed(page: Any) -> list[int]:
    return contents(page, "#grid .tile[aria-pressed=true]")


def columns(page: Any) -> int:
    """The number of tiles in the first row."""
    return page.eval_on_selector_all(
        "#grid .tile",
        "all => new Set(all.map(one => one.getBoundingClientRect().left)).size",
    )


# --- by tag --------------------------------------------------------------------------------


def test_a_grid_with_two_exceptions_undo_reload(window: Window, served: Served) -> None:
    page = window.open("/")
    page.locator("#tags a", has_text="beach").click()
    page.locator("h1", has_text="beach").wait_for()
    shown = contents(page)
    assert len(shown) == 60
    assert page.locator("#verdict").inner_text() == "Accept 60"
    for at in (3, 7):
        page.locator("#grid .tile").nth(at).click()
    assert page.locator("#verdict").inner_text() == "Accept 58, reject 2"
    page.locator("#accept").click()
    window.shows("beach: 58 accepted, 2 rejected.")
    wrong = {shown[3], shown[7]}
    assert served.decided(-1) == {(content, "beach") for content in wrong}
    assert served.decided(1) == {
        (suggestion, "beach") for suggestion in shown if suggestion not in wrong
    }
    following = contents(page)
    assert not set(following) & set(shown)
    page.locator("#undo").click()
    window.shows("Undone 60 decisions: beach.")
    assert served.decided(1) == set()
    page.wait_for_function(
        "n => +document.querySelector('#grid .tile').dataset.content === n", arg=shown[0]
    )
    page.locator("#redo").click()
    window.shows("Redone 60 decisions: beach.")
    page.reload()
    assert contents(page) == following
    assert "left for" in page.locator("#progress").inner_text()


def test_ranges(window: Window, served: Served) -> None:
    page = window.open(f"/tags/{served.tags['boat']}")
    shown = contents(page)
    tiles = page.locator("#grid .tile")
    tiles.nth(4).click()
    tiles.nth(9).click(modifiers=["Shift"])
    assert pressed(page) == shown[4:10]
    last = contents(page, ".event:last-child .tile")
    page.locator(".mark-event").last.click()
    window.shows(f"{len(last)} photographs of this event marked as wrong.")
    assert pressed(page) == shown[4:10] + last
    page.locator(".mark-event").first.focus()
    window.press("Enter")  # all that are not marked yet
    first = contents(page, ".event:first-child .tile")
    assert pressed(page) == first + last
    page.locator(".mark-event").first.click()
    window.shows(f"{len(first)} photographs of this event unmarked.")
    tiles.first.focus()
    window.press("Enter")
    window.shows(f"boat: {60 - len(last)} accepted, {len(last)} rejected.")
    assert {c for c, _ in served.decided(-1)} == set(last)


@contextmanager
def unlikely(served: Served, tag: int, but: int) -> Iterator[None]:
    """Lower the confidences of a tag, except for one photograph."""
    query = "UPDATE suggestions SET confidence = confidence + ? WHERE tag = ? AND content <> ?"
    served.catalogue.database.execute(query, (-0.6, tag, but))
    try:
        yield
    finally:
        served.undo_all()
        served.catalogue.database.execute(query, (0.6, tag, but))


def test_below_the_line_a_click_accepts(window: Window, served: Served) -> None:
    number = served.tags["boat"]
    first = contents(window.open(f"/tags/{number}?n=30"))[0]
    with unlikely(served, number, first):
        page = window.open(f"/tags/{number}?n=30")
        shown = contents(page)
        assert (shown[0], contents(page, "#grid .below .tile")) == (first, shown[1:])
        assert page.locator("#verdict").inner_text() == "Accept 1"
        window.press("End", "x")
        window.shows("29 photographs of this event marked as right.")
        window.press("x")
        page.locator("#grid .tile").nth(2).click()
        assert page.locator("#verdict").inner_text() == "Accept 2"
        assert page.locator("#verdict-on-all").inner_text() == "Accept 2, reject 28"
        window.press("Home", " ")
        assert pressed(page) == [first, shown[2]]
        window.press("Enter")
        window.shows("boat: 1 accepted, 1 rejected, 28 left open.")
        assert served.decisions() == {(first, "boat"): -1, (shown[2], "boat"): 1}
        following = contents(page)
        assert not set(following) & set(shown)
        page.locator("#grid .tile").nth(4).click()
        page.locator("#accept-and-reject").click()
        window.shows("boat: 1 accepted, 59 rejected.")


def finish_tag(tag: int, catalogue: Catalogue) -> Decided:
    return catalogue.completeness.finish_tag(tag)


def test_the_end_that_pays_little_is_said_once(window: Window, served: Served) -> None:
    number = served.tags["boat"]
    others = [tag for tag in served.tags.values() if tag != number]
    for other in others:
        served.review.change(partial(finish_tag, other))
    with unlikely(served, number, 0):
        page = window.open("/question")
        page.locator("h1", has_text="What is left pays little").wait_for()
        window.is_accessible()
        window.press("q")
        page.locator("#grid[data-strategy=most-right]").wait_for()
        page.locator("#grid .tile").first.click()
        window.press("Enter")
        window.shows("1 accepted, 0 rejected")
        page.locator("#grid[data-strategy=most-right]").wait_for()


def test_keys_for_marks_do_nothing_without_photographs(window: Window, served: Served) -> None:
    page = window.open(f"/tags/{served.tags['boat']}?taken=1900")
    assert page.locator("#grid").count() == 0
    window.press("x", " ", "o", "Shift+Enter")
    window.settle()
    assert "of this event" not in page.locator("#message").inner_text()
    assert window.faults == []


def test_a_suggestion_by_name_looks_different(window: Window, served: Served) -> None:
    page = window.open(f"/tags/{served.tags['beach']}?n=10")
    assert page.locator(".because").count() == 0
    assert page.locator("#reasons").count() == 0  # all come from pictures
    page = window.open(f"/tags/{served.tags['city']}?n=10")
    assert page.locator("#grid .tile.named .because").count() == 10
    assert "By its name: the tag is a word that fits" in page.locator("#reasons").inner_text()
    window.press("k")
    text = page.locator("#closer-name", has_text="kin for city, 1 of 2").inner_text()
    assert "6 % · Suggested 80 % by the meaning of the tag's name" in text  # of the score
    page = window.open(f"/photographs/{served.contents[0]}")
    named = page.locator("#suggestions .row.named")
    assert named.locator(".name").all_inner_texts() == ["city"]
    assert "by its name" in named.inner_text()


def test_drag_to_mark(window: Window, served: Served) -> None:
    page = window.open(f"/tags/{served.tags['boat']}?n=30")
    shown, tiles = contents(page), page.locator("#grid .tile")

    def middle(at: int) -> tuple[float, float]:
        box = tiles.nth(at).bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def drag(start: int, end: int) -> None:
        page.mouse.move(*middle(start))
        page.mouse.down()
        page.mouse.move(*middle(end), steps=4)

    width = columns(page)
    block = [row * width + column for row in (0, 1) for column in (1, 2)]
    drag(1, 2 * width + 3)
    drag_back = middle(width + 2)
    page.mouse.move(*drag_back, steps=4)  # a smaller rectangle: those outside are as before
    page.mouse.up()
    assert pressed(page) == [shown[at] for at in block]
    assert page.locator(".lasso").count() == 0
    assert page.locator("#verdict").inner_text() == "Accept 26, reject 4"
    drag(1, 2)  # from a marked one
    page.mouse.up()
    assert pressed(page) == [shown[at] for at in block[2:]]
    tiles.nth(0).click()  # a click is still a click
    assert pressed(page) == [shown[0], *(shown[at] for at in block[2:])]
    page = window.open("/search?name=IMG")
    drag(0, 1)
    page.mouse.up()
    page.locator("#chosen", has_text="2 photographs selected").wait_for()


def test_by_keys_alone(window: Window, served: Served) -> None:
    page = window.open("/")
    page.wait_for_function("() => document.activeElement?.matches('#start')")
    window.press("ArrowRight")
    name = page.evaluate("document.activeElement.querySelector('strong').textContent")
    window.press("Enter")
    page.locator("#grid").wait_for()
    shown = contents(page)
    window.press("ArrowRight", "ArrowDown", " ")  # one
    window.press("ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight", "Shift+ArrowLeft")  # two
    first = columns(page) + 1
    assert pressed(page) == shown[first : first + 3]
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    window.press("End", "ArrowLeft", " ", "ArrowRight", " ")
    assert pressed(page) == shown[first : first + 3] + shown[-2:]
    window.press("a")
    window.shows(f"{name}: 55 accepted, 5 rejected.")
    assert len(served.decided(-1)) == 5
    window.press("u")
    window.shows("Undone 60 decisions")
    window.press("?")
    page.locator("#keys[open]").wait_for()
    assert (
        "Accept the likely ones, except those marked as wrong" in page.locator("#keys").inner_text()
    )
    window.press("Escape")
    page.locator("#keys[open]").wait_for(state="detached")
    window.press("g", "o")
    page.locator("#quality").wait_for()
    window.press("g", "t")
    page.wait_for_function("() => document.activeElement?.matches('#start')")
    window.press("/")
    page.keyboard.type("cit")
    assert page.locator("#tags > li:visible").count() == 1


def test_question_after_question(window: Window, served: Served) -> None:
    page = window.open("/")
    page.locator("#start").click()
    for step in (1, 2):
        page.locator("#grid[data-strategy=most-right]").wait_for()
        shown, name = contents(page), page.locator("h1").inner_text()
        window.press("Enter")
        window.shows(f"{name}: {len(shown)} accepted, 0 rejected.")
        pair = "([n, name]) => +document.querySelector('#grid .tile').dataset.content !== n || "
        pair += "document.querySelector('h1').textContent !== name"
        page.wait_for_function(pair, arg=[shown[0], name])
        assert len(served.decided(1)) >= step
    assert "/question" in page.url
    page.locator("#strategy").select_option("learn-most")
    page.locator("#grid[data-strategy=learn-most]").wait_for()


def test_all_of_a_tag_leads_to_the_next(window: Window, served: Served) -> None:
    page = window.open(f"/tags/{served.tags['bridge']}")
    page.locator("#n").select_option("500")
    page.wait_for_function("() => document.querySelectorAll('#grid .tile').length > 100")
    then = page.locator("#then").inner_text()
    window.press("Enter")
    window.shows("bridge: 131 accepted, 0 rejected.")
    assert page.locator("h1").inner_text() in then
    assert page.locator("h1").inner_text() != "bridge"
    page.evaluate("localStorage.clear()")


# --- the other modes -----------------------------------------------------------------------


@pytest.mark.parametrize("size", [(1280, 500), NARROW])
def test_the_next_photograph_is_in_reach(
    window: Window, served: Served, size: tuple[int, int]
) -> None:
    window.resize(size)
    page = window.open(f"/photographs/{served.contents[0]}")
    box = page.locator("#next").bounding_box()
    assert box["y"] + box["height"] <= size[1]


def test_by_photograph(window: Window, served: Served) -> None:
    page = window.open(f"/photographs/{served.contents[0]}")
    first = int(page.locator("#photograph").get_attribute("data-content"))
    names = page.locator("#suggestions .name").all_inner_texts()
    window.press("2")
    window.shows(f"{names[1]} accepted.")
    page.locator("#carried", has_text=names[1]).wait_for()
    window.press("Shift+1")
    window.shows(f"{names[0]} rejected.")
    assert served.decided(1) == {(first, names[1])}
    assert served.decided(-1) == {(first, names[0])}
    page.wait_for_function("() => document.querySelectorAll('#suggestions .row').length === 2")
    window.press("k")
    page.locator(".evidence:visible .kin img").first.wait_for()
    assert page.locator(".evidence:visible li").all_inner_texts() == ["60 %", "40 %"]
    window.press("t")
    page.keyboard.type("hol")
    page.keyboard.type("iday")
    window.press("Enter")
    window.shows("holiday added.")
    page.locator("#carried", has_text="holiday").wait_for()
    page.locator("#tag").fill("bea")
    page.locator("#completions option[value=beach]").wait_for(state="attached")
    window.press("Escape")
    window.press("ArrowRight")
    page.wait_for_function(
        "n => +document.querySelector('#photograph').dataset.content !== n", arg=first
    )
    window.press("z")
    page.locator("#closer[open] img").wait_for()
    window.press("z", "ArrowLeft")
    page.wait_for_function(
        "n => +document.querySelector('#photograph').dataset.content === n", arg=first
    )


def test_by_event(window: Window, served: Served) -> None:
    page = window.open("/events")
    page.locator("#event").wait_for()
    shown = contents(page)
    names = page.locator("#offers .name").all_inner_texts()
    assert page.locator("#offers .quiet").first.inner_text() == f"all {len(shown)}"
    page.locator("#offers .give").nth(1).hover()
    assert page.locator("#grid .tile.meant").count() == len(shown)
    page.locator("#grid .tile").nth(2).click()
    window.press("2")
    window.shows(
        f"{names[1]} accepted for {len(shown) - 1} photographs, rejected for 1 photograph."
    )
    assert served.decided(-1) == {(shown[2], names[1])}
    assert served.decided(1) == {(c, names[1]) for c in shown if c != shown[2]}
    page.wait_for_function("() => document.querySelectorAll('#offers > li').length === 3")
    assert pressed(page) == []
    address = page.url
    page.locator("#offers [data-verdict=reject]").first.click()
    page.get_by_text(f"{names[0]} rejected for {len(shown)} photographs.", exact=True).wait_for()
    page.locator("#grid .tile").first.click()
    window.press("t")
    page.keyboard.type("holiday")
    window.press("Enter")
    window.shows(f"holiday accepted for {len(shown) - 1} photographs.")
    assert (shown[0], "holiday") not in served.decided(1)
    assert page.url == address
    page.locator("#next").click()
    page.wait_for_function("was => location.href !== was", arg=address)
    assert not set(contents(page)) & set(shown)


def test_doubtful(window: Window, served: Served) -> None:
    page = window.open("/doubtful?kind=missing")
    shown = contents(page, "#doubts > li")
    window.press("y")
    window.shows("city added.")
    page.wait_for_function("n => document.querySelectorAll('#doubts > li').length === n", arg=29)
    window.press("n")
    window.shows("city left out.")
    assert served.decided(1) == {(shown[0], "city")}
    assert served.decided(-1) == {(shown[1], "city")}
    window.press("u")
    window.shows("Undone 1 decision: city.")
    page.wait_for_function("n => document.querySelectorAll('#doubts > li').length === n", arg=29)


def test_search_and_tag_several(window: Window, served: Served) -> None:
    page = window.open("/search")
    page.locator("#name").fill("IMG_000")
    window.press("Enter")
    page.wait_for_function("() => document.querySelectorAll('#grid .tile').length === 10")
    tiles = contents(page)
    page.locator("#grid .tile").nth(1).click()
    page.locator("#grid .tile").nth(3).click(modifiers=["Shift"])
    assert page.locator("#chosen").inner_text() == "3 photographs selected"
    window.press("t")
    page.keyboard.type("boat")
    window.press("Enter")
    window.shows("boat: added to 3 photographs.")
    assert served.decided(1) == {(content, "boat") for content in tiles[1:4]}
    page.locator("#with").fill("boa")
    page.locator("#completions option[value=boat]").wait_for(state="attached")
    window.press("Enter")
    page.locator(".token", has_text="boat").wait_for()
    page.wait_for_function("() => document.querySelectorAll('#grid .tile').length === 3")
    assert set(contents(page)) == set(tiles[1:4])
    window.open("/search?untagged=true")
    # more are there than the page has at first
    page.wait_for_function("() => document.querySelectorAll('#grid .tile').length > 60")
    assert not set(contents(page)) & set(tiles[1:4])


def test_search_for_a_typed_tag(window: Window) -> None:
    page = window.open("/search?name=IMG")
    page.locator("#with").fill("beac")
    window.press("Enter")
    page.locator(".token", has_text="beach").wait_for()
    assert page.locator("#name").input_value() == "IMG"
    page.locator("#with").fill("nowhere")
    window.press("Enter")
    page.locator(".done", has_text="There is no tag nowhere.").wait_for()
    page.locator(".token", has_text="beach").wait_for()


def test_overview(window: Window, served: Served) -> None:
    page = window.open(f"/tags/{served.tags['beach']}")
    window.press("Enter")
    window.shows("60 accepted")
    window.open("/overview")
    assert page.locator("#quality tbody th a").first.inner_text() == "beach"
    page.locator("[data-sort=name]").click()
    page.locator("[data-sort=name]").click()
    names = page.locator("#quality tbody th a").all_inner_texts()
    assert names == sorted(names, reverse=True)
    page.locator("#runs [data-undo]").first.click()
    window.shows("Undone 60 decisions: beach.")
    assert served.decided(1) == set()
    page.locator("#runs .undone").first.wait_for()


def test_two_tabs(window: Window, served: Served) -> None:
    """The second accepts what the first has decided on: only the rest counts."""
    page, other = window.page, window.tab()
    address = f"{window.base}/tags/{served.tags['beach']}"
    page.goto(address)
    other.goto(address)
    shown = contents(other)
    other.locator("#grid .tile").nth(0).click()
    window.page = other
    window.press("Enter")
    window.shows("beach: 59 accepted, 1 rejected.")
    window.page = page
    page.bring_to_front()
    window.shows("Another window made decisions.")
    window.press("Enter")
    window.shows("59 already decided. 1 decided otherwise")
    assert served.decided(-1) == {(shown[0], "beach")}
    assert len(served.decided(1)) == 59


def test_all_that_are_left_of_a_photograph_are_accepted(window: Window, served: Served) -> None:
    """What another window has rejected meanwhile stays so."""
    page = window.page
    page.route("**/api/v1/state", lambda route: route.fulfill(status=204))  # it does not hear of it
    page.goto(f"{window.base}/photographs/{served.contents[0]}")
    content = int(page.locator("#photograph").get_attribute("data-content"))
    names = page.locator("#suggestions .name").all_inner_texts()
    served.review.decide([], [(content, names[0])], only_open=False)
    window.press("a")
    page.wait_for_function("() => !document.querySelector('#suggestions .row')")
    page.unroute("**/api/v1/state")
    assert served.decided(-1) == {(content, names[0])}
    assert served.decided(1) == {(content, name) for name in names[1:]}


def test_decisions_of_another_window_leave_a_typed_tag(window: Window, served: Served) -> None:
    first, second = served.contents[:2]
    page = window.open(f"/photographs/{first}")
    held: list[Any] = []
    page.route(f"**/photographs/{first}", lambda route: held.append(route))
    with page.expect_request(f"**/photographs/{first}"):  # the page with the other decisions
        served.review.decide([(second, "beach")], [], only_open=False)
    page.locator("#tag").fill("holi")
    window.settle()
    with page.expect_response(f"**/photographs/{first}"):
        held[0].continue_()
    window.settle()
    assert page.locator("#tag").input_value() == "holi"
    page.unroute(f"**/photographs/{first}")


def test_two_steps_back_end_where_the_address_says(window: Window, served: Served) -> None:
    """Also where the page between is slow to come."""
    page = window.open(f"/photographs/{served.contents[0]}")
    seen: list[str] = []
    for _ in range(3):
        if seen:
            window.press("ArrowRight")
        page.wait_for_function(
            "was => !was.some((one) => location.pathname.endsWith(one))",
            arg=[*seen, "/photographs"],
        )
        seen.append(page.evaluate("location.pathname"))
    held: list[Any] = []
    page.route(f"**{seen[1]}", lambda route: held.append(route))
    with page.expect_request(f"**{seen[1]}"):
        page.evaluate("history.back()")
    page.evaluate("history.back()")
    show = "n => document.querySelector('#photograph').dataset.content === n"
    page.wait_for_function(show, arg=seen[0].rpartition("/")[2])
    with page.expect_response(f"**{seen[1]}"):
        held[0].continue_()
    window.settle()
    assert page.evaluate("location.pathname") == seen[0]
    assert page.evaluate(show, seen[0].rpartition("/")[2])
    for route in held[1:]:
        route.continue_()
    page.unroute(f"**{seen[1]}")


# --- how it looks --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_accessible_and_fits(window: Window, served: Served, mode: str) -> None:
    page = window.open(mode.format(tag=served.tags["city"]))
    window.is_accessible()
    assert page.locator(".top nav a:visible").count() == 6


@pytest.mark.parametrize("height", [500, 560, 620, 680, 740])
def test_a_message_leaves_the_buttons_of_a_short_grid_free(
    window: Window, served: Served, height: int
) -> None:
    window.resize((1280, height))
    page = window.open(f"/tags/{served.tags['city']}?n=10")
    window.press("x")
    window.shows("of this event marked as wrong.")
    message = page.locator("#message").bounding_box()
    buttons = page.locator(".actions").bounding_box()
    assert message["y"] + message["height"] <= buttons["y"]


def test_narrow(window: Window, served: Served) -> None:
    window.resize(NARROW)
    page = window.open("/search?tag={beach}&tag={city}".format(**served.tags))
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    page = window.open(f"/tags/{served.tags['city']}")
    box = page.locator("#accept").bounding_box()
    assert box["y"] + box["height"] <= NARROW[1]


# --- other ports -----------------------------------------------------------------------------


@contextmanager
def other_port() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """A server of somebody else on this machine: its address, and all that it is sent."""
    received: list[tuple[str, str]] = []

    class Listener(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.append((self.path, str(self.headers)))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Set-Cookie", "tagkin=planted; Path=/")
            self.end_headers()
            self.wfile.write(b"<title>other</title><link rel=icon href=data:,>")

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Listener) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", received
        server.shutdown()
        thread.join()


def test_another_port_of_this_machine_gets_no_secret(window: Window, served: Served) -> None:
    page = window.open("/tags")
    (cookie,) = (entry["value"] for entry in page.context.cookies(page.url))
    folder = window.base.split("/")[3]
    with other_port() as (address, received):
        page.evaluate("address => { location.href = address; }", address)
        page.wait_for_url(address)
        page.goto(address)  # now with the cookie that this port has set
        assert len(received) == 2
        assert "tagkin=planted" in received[1][1]
        assert not [entry for entry in received if cookie in entry[1] or folder in "".join(entry)]
    window.open("/tags")
    page.locator("#tags a", has_text="beach").wait_for()  # the planted cookie locks nobody out


def test_the_link_to_the_content_stays_on_the_page(window: Window) -> None:
    page = window.open("/tags")
    page.locator("#tags a", has_text="boat").click()
    page.locator("h1", has_text="boat").wait_for()
    before = page.url
    page.locator(".skip").focus()
    window.press("Enter")
    assert (window.focused(), page.url) == ("main", before)
