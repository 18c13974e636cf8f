"""A page in a real browser that is older than the catalogue, or whose server does not answer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tagkin.catalogue import Catalogue
from tests.catalogue.suggested import new_suggestion

from .served import Served, serve
from .window import Window

N = 70


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """Serve a review of its own for each test, because nothing here can be undone."""
    with serve(tmp_path, N) as served:
        yield served


@pytest.fixture
def window(chrome: Any, served: Served) -> Iterator[Window]:
    window = Window(chrome, served.address)
    yield window
    window.close()


def refit(catalogue: Catalogue) -> None:
    """Suggest other tags for every photograph but two, as a model learned anew does."""
    contents = [c for (c,) in catalogue.database.rows("SELECT id FROM contents ORDER BY id")]
    with catalogue.database.run("suggest", model="e" * 64) as run:
        each = [
            (content, [new_suggestion("beach" if i < 2 else "snow", 0.7, [])])
            for i, content in enumerate(contents)
        ]
        catalogue.suggestions.replace(run.id, each)


def contents(page: Any) -> list[int]:
    return page.eval_on_selector_all(
        "#grid .tile", "all => all.map(one => Number(one.dataset.content))"
    )


# --- suggestions replaced between showing and deciding -----------------------------------------


def test_a_grid_is_stored_after_a_refit(window: Window, served: Served) -> None:
    page = window.open(f"/tags/{served.tags['beach']}")
    shown = contents(page)
    page.locator(".mark-event").evaluate_all("all => all.forEach(one => one.click())")
    page.locator("#grid .tile").first.click()  # all but the first are wrong
    refit(served.catalogue)
    assert page.locator("#verdict").inner_text() == "Accept 1, reject 59"
    window.press("Enter")
    window.shows("beach: 1 accepted, 59 rejected.")
    expected = {(suggestion, "beach"): 1 if suggestion == shown[0] else -1 for suggestion in shown}
    assert served.decisions() == expected
    window.press("u")
    window.shows("Undone 60 decisions: beach.")
    assert served.decisions() == {}
    page.wait_for_function("() => document.querySelectorAll('#grid .tile').length === 60")
    assert set(contents(page)) == set(shown)  # to be decided on again
    assert window.faults == []


def test_all_of_a_photograph_are_stored_after_a_refit(window: Window, served: Served) -> None:
    page = window.page
    page.route(
        "**/api/v1/state", lambda route: route.fulfill(status=204)
    )  # it does not hear of them
    window.open(f"/photographs/{served.contents[0]}")
    content = int(page.locator("#photograph").get_attribute("data-content"))
    names = page.locator("#suggestions .name").all_inner_texts()
    served.review.decide([], [(content, names[0])], only_open=False)  # another window
    refit(served.catalogue)
    window.press("a")
    window.shows("3 suggestions accepted. 1 decided otherwise")
    assert served.decisions() == {(content, name): -1 if name == names[0] else 1 for name in names}
    assert window.faults == []


def test_an_answer_to_a_doubt_is_stored_after_a_refit(window: Window, served: Served) -> None:
    page = window.open("/doubtful?kind=missing")
    content = int(page.locator("#doubts > li").first.get_attribute("data-content"))
    refit(served.catalogue)
    served.catalogue.database.execute("DELETE FROM doubts")
    window.press("n")
    window.shows("city left out.")
    assert served.decisions() == {(content, "city"): -1}
    assert window.faults == []


# --- answers that do not come ------------------------------------------------------------------


LOSE_FIRST = """
(address) => {
  const ask = window.fetch;
  window.fetch = async (asked, ...given) => {
    const answer = await ask(asked, ...given);
    if (asked !== address) return answer;
    window.fetch = ask;
    await answer.text();
    throw new TypeError("Failed to fetch");
  };
}
"""


def lose_first(page: Any, address: str) -> None:
    """Let the review get the first of some requests, and the page no answer to it."""
    page.evaluate(LOSE_FIRST, address)


def test_a_lost_answer_is_asked_for_again_and_marks_may_change(
    window: Window, served: Served
) -> None:
    """The review stores the first attempt, and the page does not hear of it."""
    page = window.open(f"/tags/{served.tags['beach']}")
    shown = contents(page)

    lose_first(page, "api/v1/decisions")
    window.press("Enter")
    window.shows("The review does not answer")
    assert contents(page) == shown
    page.locator("#grid .tile").nth(3).click()
    window.press("Enter")
    window.shows("beach: 0 accepted, 1 rejected. 59 already decided.")
    expected = {(suggestion, "beach"): -1 if suggestion == shown[3] else 1 for suggestion in shown}
    assert served.decisions() == expected


def test_a_lost_answer_to_undo_undoes_no_second_step(window: Window, served: Served) -> None:
    page = window.open(f"/photographs/{served.contents[0]}")
    for rows in (3, 2):
        window.press("1")
        page.wait_for_function(
            "n => document.querySelectorAll('#suggestions .row').length === n", arg=rows
        )

    lose_first(page, "api/v1/undo")
    window.press("u")
    window.shows("The review does not answer")
    assert len(served.decisions()) == 1
    window.press("u")
    window.shows("Undone 1 decision")
    assert len(served.decisions()) == 1
    window.press("u")
    page.wait_for_function("() => document.querySelectorAll('#suggestions .row').length === 4")
    assert served.decisions() == {}


def test_a_page_that_could_not_be_stored_stays_with_its_marks(
    window: Window, served: Served
) -> None:
    page = window.open(f"/tags/{served.tags['beach']}")
    shown = contents(page)
    waiting: list[Any] = []
    page.route("**/decisions", lambda route: waiting.append(route))
    page.locator("#grid .tile").nth(3).click()
    with page.expect_request("**/decisions"):
        window.press("Enter")
    window.press("Enter")
    window.shows("still being stored")
    waiting[0].abort()
    window.shows("The review does not answer")
    assert contents(page) == shown
    assert page.locator("#verdict").inner_text() == "Accept 59, reject 1"
    page.unroute("**/decisions")
    window.press("Enter")
    window.shows("beach: 59 accepted, 1 rejected.")
    assert len(served.decisions()) == 60


def test_a_next_page_that_cannot_be_prefetched_is_no_fault(window: Window, served: Served) -> None:
    page = window.page
    page.route("**/tags/*after=*", lambda route: route.abort())
    window.open(f"/tags/{served.tags['beach']}")
    window.press("Enter")
    window.shows("beach: 60 accepted, 0 rejected.")
    assert served.decided(1)
    assert {fault.partition(":")[0] for fault in window.faults} == {"Failed to load resource"}


# --- answers in another order than the requests --------------------------------------------------


def test_a_step_of_this_window_is_no_news_of_another(window: Window, served: Served) -> None:
    """The page looks at the state after the step is stored, and before it gets the answer."""
    page = window.open(f"/tags/{served.tags['beach']}")
    late: list[tuple[Any, Any]] = []

    def hold(route: Any) -> None:
        late.append((route, route.fetch(timeout=120_000)))

    page.route("**/decisions", hold)
    window.press("Enter")
    while not late:
        window.settle()
    with page.expect_response("**/api/v1/state"):
        pass  # it looks every other second
    window.settle()
    assert "another window" not in page.locator("#message").inner_text()
    ((route, response),) = late
    route.fulfill(response=response)
    window.shows("beach: 60 accepted, 0 rejected.")
    assert window.faults == []


def test_a_late_answer_does_not_cover_the_photograph_that_a_person_went_to(
    window: Window, served: Served
) -> None:
    page = window.open(f"/photographs/{served.contents[0]}")
    first = page.locator("#photograph").get_attribute("data-content")
    late: list[Any] = []
    page.route(f"**/photographs/{first}", lambda route: late.append(route))
    with page.expect_request(f"**/photographs/{first}"):
        window.press("1")  # when it is stored, the page asks for the photograph anew
    window.press("ArrowRight")
    page.wait_for_function(
        "first => document.querySelector('#photograph').dataset.content !== first", arg=first
    )
    with page.expect_response(f"**/photographs/{first}"):
        late[0].continue_()
    window.settle()
    assert page.locator("#photograph").get_attribute("data-content") != first
    assert len(served.decisions()) == 1
    assert window.faults == []


# --- the tag field -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/photographs/{}", "/search?name=IMG"])
def test_escape_leaves_the_tag_field(window: Window, served: Served, path: str) -> None:
    page = window.open(path.format(served.contents[0]))
    window.press("t")
    page.keyboard.type("bea")
    page.locator("#completions option[value=beach]").wait_for(state="attached")
    window.press("Escape")
    assert window.focused() != "tag"
    window.press("?")  # a key of the page again
    page.locator("#keys[open]").wait_for()
    window.press("Escape")
    page.locator("#keys[open]").wait_for(state="detached")
    window.press("t")
    page.wait_for_function("() => document.activeElement.id === 'tag'")
    assert window.faults == []


# --- what a key or a button is about -----------------------------------------------------------


def test_the_undo_button_of_a_message_undoes_the_step_of_the_message(
    window: Window, served: Served
) -> None:
    page = window.open(f"/photographs/{served.contents[0]}")
    content = int(page.locator("#photograph").get_attribute("data-content"))
    name = page.locator("#suggestions .name").first.inner_text()
    window.press("1")
    window.shows(f"{name} accepted.")
    served.review.decide([(content, "mine")], [], only_open=False)  # another window
    page.locator("#message button", has_text="Undo").click()
    window.shows(f"Undone 1 decision: {name}.")
    assert served.decisions() == {(content, "mine"): 1}
    assert window.faults == []


def test_a_second_key_is_for_the_next_doubt_before_the_answer_comes(
    window: Window, served: Served
) -> None:
    page = window.open("/doubtful?kind=missing")
    doubted = [
        int(doubt.get_attribute("data-content")) for doubt in page.locator("#doubts > li").all()
    ]
    waiting: list[Any] = []
    page.route("**/decisions", lambda route: waiting.append(route))
    with page.expect_request("**/decisions"):
        window.press("y")
    with page.expect_request("**/decisions"):
        window.press("n")
    with page.expect_request("**/decisions"):
        window.press("n")
    for route in waiting[:2]:
        with page.expect_response("**/decisions"):
            route.continue_()
    waiting[2].abort()
    window.shows("The review does not answer")
    page.wait_for_function(
        "n => +document.querySelector('#doubts > li').dataset.content === n", arg=doubted[2]
    )
    assert served.decisions() == {(doubted[0], "city"): 1, (doubted[1], "city"): -1}


# --- the end of the work in the background -----------------------------------------------------


def tell_state(page: Any, changes: dict[str, Any]) -> None:
    """Let the page hear the review's state with these changes, from now on."""

    def answer(route: Any) -> None:
        state = route.fetch().json()
        route.fulfill(json=state | changes | {"version": state["version"] + changes["version"]})

    page.unroute_all(behavior="wait")
    page.route("**/api/v1/state", answer)


def open_while_suggesting(window: Window, served: Served) -> Any:
    """Open the page of all tags before the first suggestion, while work runs in the background."""
    served.catalogue.database.execute("DELETE FROM suggestions")
    running = {"state": "running", "job": "catch-up", "text": "Suggesting: 0 of 61"}
    tell_state(window.page, {"version": 0, "fit": running | {"scan": None}})
    page = window.open("/tags")
    page.locator("#fit", has_text="Suggesting: 0 of 61").wait_for()
    return page


def test_suggestions_that_come_with_the_end_of_the_work_are_shown(
    window: Window, served: Served
) -> None:
    page = open_while_suggesting(window, served)
    assert page.locator("#tags").count() == 0
    refit(served.catalogue)
    tell_state(page, {"version": 1, "fit": {"state": "done", "job": "catch-up", "text": ""}})
    page.locator("#tags a", has_text="snow").wait_for()


def test_an_empty_page_is_loaded_again_when_the_work_fails(window: Window, served: Served) -> None:
    page = open_while_suggesting(window, served)
    with page.expect_request(lambda request: request.url.endswith("/tags")):
        tell_state(page, {"version": 1, "fit": {"state": "failed", "text": "No tags."}})
    page.locator("#fit", has_text="No tags.").wait_for()
