"""Finished photographs and tags in a real browser: key, button, offer and undo."""

from collections.abc import Iterator
from typing import Any

import pytest

from tagkin.catalogue import Catalogue
from tests.catalogue.suggested import new_suggestion

from .served import Served, serve
from .window import TAGS, WIDE, Window

N, N_CITY = 12, 5
ROWS = "document.querySelectorAll('#suggestions .row').length"


def put_suggestions(catalogue: Catalogue, contents: list[int]) -> None:
    """Give each photograph two likely and one or two unlikely suggestions."""
    confidences = dict(zip(TAGS, (0.9, 0.8, 0.3, 0.2), strict=True))
    suggested = [new_suggestion(tag, p, []) for tag, p in confidences.items()]
    with catalogue.database.run("suggest", model="f" * 64) as run:
        catalogue.suggestions.replace(
            run.id,
            [(c, suggested if i < N_CITY else suggested[:3]) for i, c in enumerate(contents)],
        )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("finish"), N, put_suggestions) as served:
        yield served


def n_finished(served: Served) -> int:
    with served.review.readers.connection() as catalogue:
        return catalogue.completeness.count_finished()


def has_rows(page: Any, n: int) -> None:
    page.wait_for_function(f"n => {ROWS} === n", arg=n)


def test_a_photograph_by_key_and_button(window: Window, served: Served) -> None:
    page = window.open(f"/photographs/{served.contents[0]}")
    has_rows(page, 4)
    assert page.locator("#offer").count() == 0
    window.press("1")
    has_rows(page, 3)
    window.press("Shift+1")
    page.locator("#offer", has_text="You answered every likely suggestion").wait_for()
    assert n_finished(served) == 0
    assert page.locator("#finish").get_attribute("aria-describedby") == "offer"
    window.press("f")
    window.shows("Finished; 2 suggestions rejected.")
    page.locator("#finished", has_text="no other tags belong to it").wait_for()
    assert n_finished(served) == 1
    window.press("f")
    window.shows("This photograph is finished already.")
    window.press("u")
    window.shows("Undone 1 finished photograph and 2 decisions")
    has_rows(page, 2)
    page.locator("#finish").click()
    page.locator("#unfinish").wait_for()
    page.wait_for_function("() => document.activeElement.id === 'next'")  # Enter goes on
    page.locator("#unfinish").click()
    has_rows(page, 2)
    assert n_finished(served) == 0


def test_several_in_search(window: Window, served: Served) -> None:
    page = window.open("/search?name=IMG")
    window.press("f")
    window.shows("Select photographs first.")
    window.press(" ", "ArrowRight", " ", "f")
    window.shows("2 photographs finished; 8 suggestions rejected.")
    assert n_finished(served) == 2
    assert page.locator("#grid [aria-pressed=true]").count() == 0
    window.press("Home", " ", "ArrowRight", "ArrowRight", " ")
    page.locator("#selection #finish").click()
    window.shows("1 photograph finished; 4 suggestions rejected. 1 photograph finished already.")
    page.locator("#message button", has_text="Undo").click()
    window.shows("Undone 1 finished photograph and 4 decisions")
    assert n_finished(served) == 2
    first = page.locator("#grid .tile").first.get_attribute("data-content")
    page = window.open(f"/photographs/{first}")
    page.locator("#finished", has_text="Finished with 1 other:").wait_for()


def test_everything_of_a_tag(window: Window, served: Served) -> None:
    city = served.tags["city"]
    page = window.open(f"/tags/{city}?n=3")
    assert page.locator("#finish").count() == 0
    window.press("e")
    window.shows("First decide on all suggestions of this tag.")
    page = window.open(f"/tags/{city}")
    assert page.locator("#grid .tile").count() == N_CITY
    page.locator("#grid .tile").nth(2).click()  # it is right
    page.locator("#finish").click()
    # all photographs and a broken file, without those on the page
    window.shows(f"city: rejected for {N + 1 - N_CITY} photographs without an answer.")
    page.locator(".done", has_text="No suggestions left for this tag").wait_for()
    with served.review.readers.connection() as catalogue:
        counts = catalogue.tags.count(city)
    assert (counts.n_accepted, counts.n_rejected) == (1, N)
    window.press("u")
    window.shows(f"Undone {N + 1 - N_CITY} decisions: city.")
    window.press("u")
    window.shows(f"Undone {N_CITY} decisions: city.")
    page.wait_for_function("n => document.querySelectorAll('#grid .tile').length === n", arg=N_CITY)


def test_it_is_accessible_and_fits(window: Window, served: Served) -> None:
    def check() -> None:
        window.is_accessible()
        window.resize(WIDE)

    page = window.open(f"/photographs/{served.contents[0]}")
    for n in (3, 2):
        window.press("1")
        has_rows(page, n)
    page.locator("#offer").wait_for()
    check()
    window.press("f")
    page.locator("#finished").wait_for()
    check()
    page = window.open(f"/tags/{served.tags['beach']}")
    page.locator("#finish").wait_for()
    check()
    page = window.open("/search?name=IMG")
    window.press(" ")
    page.locator("#selection:not([hidden]) #finish").wait_for()
    check()
