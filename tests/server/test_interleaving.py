"""What happens between showing a page and deciding on it: every order of events, by the API."""

import itertools

import pytest

from tagkin.catalogue import Catalogue
from tests.catalogue.photographs import check_invariants
from tests.catalogue.suggested import content, decisions, offer

from .browser import Browser
from .conftest import tag

REPLACED = {"a.jpg": {"dog": 0.4}, "b.jpg": {"holiday": 0.6}, "2024/c.jpg": {"sea": 0.5}}


def refit(catalogue: Catalogue, _: Browser) -> None:
    """Replace one of two suggestions of "holiday", and drop the other."""
    offer(catalogue, REPLACED)


def decide_elsewhere_and_undo(catalogue: Catalogue, other: Browser) -> None:
    number = tag(catalogue, "holiday")
    page = {"reject": [content(catalogue, "a.jpg"), content(catalogue, "b.jpg")]}
    other.decide_page(number, page)
    other.post("/api/v1/undo")


def rename(catalogue: Catalogue, _: Browser) -> None:
    catalogue.tags.change("rename", [current_name(catalogue)], "vacation")


def merge(catalogue: Catalogue, _: Browser) -> None:
    catalogue.tags.change("merge", [current_name(catalogue)], "beach")


def current_name(catalogue: Catalogue) -> str:
    return catalogue.database.value(
        "SELECT t.name FROM tags s JOIN tags t ON t.id = coalesce(s.same_as, s.id) "
        "WHERE s.name = 'holiday'"
    )


EVENTS = (refit, decide_elsewhere_and_undo, rename, merge)
# None, and all four, each event once at each place.
SOME_ORDERS = [(), *(EVENTS[k:] + EVENTS[:k] for k in range(4))]
OTHER_ORDERS = [
    order
    for n_events in (1, 4)
    for order in itertools.permutations(EVENTS, n_events)
    if order not in SOME_ORDERS
]


@pytest.fixture
def other(browser: Browser) -> Browser:
    """A second window."""
    window = Browser(browser.port)
    window.cookie, window.folder = browser.cookie, browser.folder
    return window


def name_order(order: tuple) -> str:
    return "-".join(event.__name__ for event in order)


@pytest.mark.parametrize("way", ["tag", "photographs"])
@pytest.mark.parametrize("order", SOME_ORDERS, ids=name_order)
def test_what_a_page_showed_is_decided_whatever_happened_since(
    browser: Browser, other: Browser, catalogue: Catalogue, order: tuple, way: str
) -> None:
    check_order(browser, other, catalogue, order, way)


@pytest.mark.parametrize("way", ["tag", "photographs"])
@pytest.mark.parametrize("order", OTHER_ORDERS, ids=name_order)
def test_every_other_order_of_events(
    browser: Browser, other: Browser, catalogue: Catalogue, order: tuple, way: str
) -> None:
    check_order(browser, other, catalogue, order, way)


def check_order(
    browser: Browser, other: Browser, catalogue: Catalogue, order: tuple, way: str
) -> None:
    """Decide on a page after some events, undo and redo the decisions."""
    number = tag(catalogue, "holiday")
    page = browser.get(f"/api/v1/tags/{number}/suggestions").json["suggestions"]
    first, second = ([step["content"], step["confidence"], step["run"]] for step in page)
    for event in order:
        event(catalogue, other)
    if way == "tag":
        body = {"accept": [first], "reject": [second], "together": True}
        done = browser.decide_page(number, body).json
    else:
        yes, no = ([step[0], number, *step[1:]] for step in (first, second))
        done = browser.post("/api/v1/decisions", {"accept": [yes], "reject": [no]}).json
    name = current_name(catalogue)
    assert (done["accepted"], done["rejected"], done["already"], done["kept"]) == (1, 1, 0, 0)
    assert decisions(catalogue) == {("a.jpg", name): 1, ("b.jpg", name): -1}
    confidences = catalogue.database.rows(
        "SELECT confidence FROM decisions WHERE holds ORDER BY verdict"
    )
    assert None not in [confidence for (confidence,) in confidences]
    check_invariants(catalogue)
    assert browser.post("/api/v1/undo").json["decisions"] == 2
    assert decisions(catalogue) == {}
    check_invariants(catalogue)
    assert browser.post("/api/v1/redo").json["decisions"] == 2
    assert decisions(catalogue) == {("a.jpg", name): 1, ("b.jpg", name): -1}
    check_invariants(catalogue)


@pytest.mark.parametrize("order", list(itertools.permutations((refit, rename, merge))))
def test_a_decision_of_another_window_stands_whatever_happened_since(
    browser: Browser, other: Browser, catalogue: Catalogue, order: tuple
) -> None:
    number = tag(catalogue, "holiday")
    a, b = content(catalogue, "a.jpg"), content(catalogue, "b.jpg")
    other.post("/api/v1/decisions", {"reject": [[a, number]]})
    for event in order:
        event(catalogue, other)
    body = {"accept": [[a, 0.95, None], [b, 0.7, None]], "together": True}
    done = browser.decide_page(number, body).json
    assert (done["accepted"], done["rejected"], done["already"], done["kept"]) == (1, 0, 1, 1)
    name = current_name(catalogue)
    assert decisions(catalogue) == {("a.jpg", name): -1, ("b.jpg", name): 1}
    check_invariants(catalogue)


def test_the_page_of_a_renamed_tag_shows_the_tag_as_it_is_now(
    browser: Browser, other: Browser, catalogue: Catalogue
) -> None:
    number = tag(catalogue, "holiday")
    before = browser.get(f"/api/v1/tags/{number}/suggestions").json["suggestions"]
    rename(catalogue, other)
    answer = browser.get(f"/api/v1/tags/{number}/suggestions").json
    assert (answer["tag"]["name"], answer["tag"]["n_suggested"]) == ("vacation", 2)
    assert answer["suggestions"] == before
    assert "vacation" in browser.get(f"/tags/{number}").text


# --- steps that are sent twice because no answer came ------------------------------------------


def test_a_step_that_is_sent_again_is_done_once(
    browser: Browser, other: Browser, catalogue: Catalogue
) -> None:
    number = tag(catalogue, "holiday")
    a, b = content(catalogue, "a.jpg"), content(catalogue, "b.jpg")
    browser.decide_page(number, {"accept": [a, b], "step": "one"})
    again = browser.decide_page(number, {"accept": [a, b], "step": "one"}).json
    assert (again["run"], again["already"], again["kept"]) == (None, 2, 0)
    # the marks changed before it was sent again; what others decided is theirs
    changed = browser.decide_page(number, {"accept": [a], "reject": [b], "step": "one"}).json
    assert (changed["rejected"], changed["already"], changed["kept"]) == (1, 1, 0)
    assert other.decide_page(number, {"accept": [b], "step": "two"}).json["kept"] == 1
    assert decisions(catalogue) == {("a.jpg", "holiday"): 1, ("b.jpg", "holiday"): -1}


def test_undo_and_redo_that_are_sent_again_are_done_once(
    browser: Browser, catalogue: Catalogue
) -> None:
    a = content(catalogue, "a.jpg")
    for name in ("one", "two", "three"):
        browser.post("/api/v1/decisions", {"accept": [[a, name]]})
    for _ in range(2):
        assert browser.post("/api/v1/undo", {"step": "first"}).json["decisions"] == 1
    assert set(decisions(catalogue)) == {("a.jpg", "one"), ("a.jpg", "two")}
    browser.post("/api/v1/undo", {"step": "second"})
    assert set(decisions(catalogue)) == {("a.jpg", "one")}
    for _ in range(2):
        assert browser.post("/api/v1/redo", {"step": "third"}).json["decisions"] == 1
    assert set(decisions(catalogue)) == {("a.jpg", "one"), ("a.jpg", "two")}
