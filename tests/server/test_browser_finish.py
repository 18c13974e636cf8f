"""Finished photographs and tags in a real browser: key, button, offer and undo."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tagkin.catalogue import Suggested
from tagkin.server import Review

from .browser import Running
from .window import NARROW, TAGS, Window, make_catalogue

N, N_CITY = 12, 5
ROWS = "document.querySelectorAll('#suggestions .row').length"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, chrome: Any) -> Iterator[SimpleNamespace]:
    """Photographs with two likely and one or two unlikely suggestions each."""
    home = tmp_path_factory.mktemp("finish")
    catalogue = make_catalogue(home / "photos", home / "catalogue.sqlite", N)
    contents = [c for (c,) in catalogue.rows("SELECT id FROM contents ORDER BY id")]
    with catalogue.run("suggest", model="f" * 64) as run:
        confidences = dict(zip(TAGS, (0.9, 0.8, 0.3, 0.2), strict=True))
        suggested = [Suggested(tag, p, []) for tag, p in confidences.items()]
        catalogue.suggestions.replace(
            run.id,
            [(c, suggested if i < N_CITY else suggested[:3]) for i, c in enumerate(contents)],
        )
    review = Review(catalogue, home / "cache", fits=False)
    running = Running(review)
    yield SimpleNamespace(
        address=running.access.address(running.port), review=review, catalogue=catalogue
    )
    running.stop()
    review.close()


@pytest.fixture
def window(chrome: Any, served: SimpleNamespace) -> Iterator[Window]:
    found = Window(chrome, served.address)
    yield found
    found.close()
    while served.review.undo().run is not None:
        pass
    assert found.faults == []


def n_finished(served: SimpleNamespace) -> int:
    with served.review.readers.connection() as catalogue:
        return catalogue.completeness.count_finished()


def has_rows(page: Any, n: int) -> None:
    page.wait_for_function(f"n => {ROWS} === n", arg=n)


def test_a_photograph_by_key_and_button(window: Window, served: SimpleNamespace) -> None:
    page = window.open("/photographs")
    has_rows(page, 4)
    assert page.locator("#offer").count() == 0
    window.press("1")
    has_rows(page, 3)
    window.press("Shift+1")
    page.locator("#offer", has_text="You answered every likely suggestion").wait_for()
    assert n_finished(served) == 0
    assert page.locator("#finish").get_attribute("aria-describedby") == "offer"
    window.press("f")
    window.said("Finished; 2 suggestions rejected.")
    page.locator("#finished", has_text="no other tags belong to it").wait_for()
    assert n_finished(served) == 1
    window.press("f")
    window.said("This photograph is finished already.")
    window.press("u")
    window.said("Undone 1 finished photograph and 2 decisions")
    has_rows(page, 2)
    page.locator("#finish").click()
    page.locator("#unfinish").wait_for()
    page.wait_for_function("() => document.activeElement.id === 'next'")  # Enter goes on
    page.locator("#unfinish").click()
    has_rows(page, 2)
    assert n_finished(served) == 0


def test_several_in_search(window: Window, served: SimpleNamespace) -> None:
    page = window.open("/search?name=IMG")
    window.press("f")
    window.said("Select photographs first.")
    window.press(" ", "ArrowRight", " ", "f")
    window.said("2 photographs finished; 8 suggestions rejected.")
    assert n_finished(served) == 2
    assert page.locator("#grid [aria-pressed=true]").count() == 0
    window.press("Home", " ", "ArrowRight", "ArrowRight", " ")
    page.locator("#selection #finish").click()
    window.said("1 photograph finished; 4 suggestions rejected. 1 photograph finished already.")
    page.locator("#message button", has_text="Undo").click()
    window.said("Undone 1 finished photograph and 4 decisions")
    assert n_finished(served) == 2
    first = page.locator("#grid .tile").first.get_attribute("data-content")
    page = window.open(f"/photographs/{first}")
    page.locator("#finished", has_text="Finished with 1 other:").wait_for()


def test_everything_of_a_tag(window: Window, served: SimpleNamespace) -> None:
    city = served.catalogue.value("SELECT id FROM tags WHERE name = 'city'")
    page = window.open(f"/tags/{city}?n=3")
    assert page.locator("#finish").count() == 0
    window.press("e")
    window.said("First decide on all suggestions of this tag.")
    page = window.open(f"/tags/{city}")
    assert page.locator("#grid .tile").count() == N_CITY
    page.locator("#grid .tile").nth(2).click()  # it is right
    page.locator("#finish").click()
    # all photographs and a broken file, without those on the page
    window.said(f"city: rejected for {N + 1 - N_CITY} photographs without an answer.")
    page.locator(".done", has_text="No suggestions left for this tag").wait_for()
    with served.review.readers.connection() as catalogue:
        counts = catalogue.tags.count(city)
    assert (counts.n_accepted, counts.n_rejected) == (1, N)
    window.press("u")
    window.said(f"Undone {N + 1 - N_CITY} decisions: city.")
    window.press("u")
    window.said(f"Undone {N_CITY} decisions: city.")
    page.wait_for_function("n => document.querySelectorAll('#grid .tile').length === n", arg=N_CITY)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible_and_fits(window: Window, served: SimpleNamespace, scheme: str) -> None:
    axe = pytest.importorskip("axe_core_python.sync_playwright", reason="axe-core is not installed")

    def check(page: Any) -> None:
        page.emulate_media(color_scheme=scheme)
        page.evaluate(axe.Axe().axe_script)
        told = page.evaluate("() => axe.run({resultTypes: ['violations']})")
        faults = [one for one in told["violations"] if one["impact"] in ("serious", "critical")]
        assert [(one["id"], one["nodes"][0]["html"]) for one in faults] == []
        window.resize(NARROW)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
        window.resize((1280, 900))

    page = window.open("/photographs")
    for n in (3, 2):
        window.press("1")
        has_rows(page, n)
    page.locator("#offer").wait_for()
    check(page)
    window.press("f")
    page.locator("#finished").wait_for()
    check(page)
    beach = served.catalogue.value("SELECT id FROM tags WHERE name = 'beach'")
    page = window.open(f"/tags/{beach}")
    page.locator("#finish").wait_for()
    check(page)
    page = window.open("/search?name=IMG")
    window.press(" ")
    page.locator("#selection:not([hidden]) #finish").wait_for()
    check(page)
