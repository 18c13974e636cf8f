"""Stacks: a burst is one tile, and a decision on it goes to all its photographs."""

import re

import pytest

from tagkin.catalogue import Catalogue
from tests.catalogue.suggested import content, decisions

from .browser import Browser
from .conftest import tag


@pytest.fixture
def burst(catalogue: Catalogue) -> list[int]:
    """a.jpg and b.jpg are one burst."""
    contents = [content(catalogue, path) for path in ("a.jpg", "b.jpg")]
    with catalogue.database.transaction():
        for photograph in contents:
            catalogue.database.execute(
                "UPDATE contents SET burst = ? WHERE id = ?", (min(contents), photograph)
            )
    return contents


def test_a_burst_is_where_its_surest_photograph_is(
    browser: Browser, catalogue: Catalogue, burst: list[int]
) -> None:
    a, b = burst
    holiday = tag(catalogue, "holiday")
    answer = browser.get(f"/api/v1/tags/{holiday}/suggestions").json
    (suggestion,) = answer["suggestions"]
    assert (suggestion["content"], suggestion["burst"]) == (a, min(burst))
    assert [(c, p) for c, p, _ in suggestion["stack"]] == [(b, 0.7)]
    assert answer["tag"]["n_suggested"] == 2
    first = browser.get(f"/api/v1/tags/{holiday}/suggestions?n=1").json
    rest = browser.get(f"/api/v1/tags/{holiday}/suggestions?n=1&after={first['next']}").json
    assert rest["suggestions"] == []  # not again below, with the second photograph
    each = browser.get(f"/api/v1/tags/{holiday}/suggestions?burst={min(burst)}").json["suggestions"]
    assert [(s["content"], s["stack"]) for s in each] == [(a, []), (b, [])]
    page = browser.get(f"/tags/{holiday}").text
    assert f"tags/{holiday}?burst={min(burst)}" in page
    assert "a.jpg and 1 more of its burst" in page


def test_only_filtered_photographs_are_in_a_stack(
    browser: Browser, catalogue: Catalogue, burst: list[int]
) -> None:
    holiday, sea = tag(catalogue, "holiday"), tag(catalogue, "sea")
    query = f"/api/v1/tags/{holiday}/suggestions?tag={sea}"  # which a.jpg has
    (suggestion,) = browser.get(query).json["suggestions"]
    assert suggestion["stack"] == []


def test_a_photograph_has_the_suggestions_of_its_burst(
    browser: Browser, catalogue: Catalogue, burst: list[int]
) -> None:
    a, b = burst
    answer = browser.photograph("a.jpg")
    assert [member["content"] for member in answer["members"]] == [b]
    decided = {
        suggestion["name"]: [c for c, _, _ in suggestion["decisions"]]
        for suggestion in answer["suggestions"]
    }
    assert decided["holiday"] == [a, b]
    assert decided["dog"] == [a]
    assert decided["sea"] == [b]
    alone = browser.get(f"/photographs/{a}?burst={min(burst)}")
    names = alone.elements("//ol[@id='suggestions']//*[@class='name']/text()")
    assert set(names) == {"holiday", "dog"}
    assert alone.elements("//*[@id='burst']") == []
    (holiday,) = (s for s in answer["suggestions"] if s["name"] == "holiday")
    number = tag(catalogue, "holiday")
    pairs = [[content, number, *shown] for content, *shown in holiday["decisions"]]
    browser.post("/api/v1/decisions", {"accept": pairs})
    assert decisions(catalogue) == {("a.jpg", "holiday"): 1, ("b.jpg", "holiday"): 1}


def test_search_and_doubts(browser: Browser, catalogue: Catalogue, burst: list[int]) -> None:
    results = browser.search()
    assert len(results.names) == 4
    (stack,) = filter(None, results.stacks)
    assert stack == [max(burst)] or stack == [min(burst)]
    assert len(browser.search(f"burst={min(burst)}").names) == 2
    assert len(browser.search("burst=any").names) == 1
    catalogue.database.execute(
        "INSERT INTO doubts SELECT ?, tag, run, kind, 0.85, x'' FROM doubts WHERE content = ?",
        burst[::-1],
    )
    (doubt,) = browser.doubts("?kind=wrong")
    assert (doubt["data-content"], doubt["data-stack"]) == (str(burst[0]), f"[{burst[1]}]")
    each = browser.get(f"/doubtful?kind=wrong&burst={min(burst)}").text
    assert each.count("<li data-content=") == 2
    assert browser.get(f"/search?burst={min(burst)}").text.count('class="tile"') == 2
    assert re.search(r"Also on 1 more of its burst", browser.get("/doubtful").text)


def test_a_filter_names_the_burst_in_words(browser: Browser, burst: list[int]) -> None:
    address = f"?burst={min(burst)}"
    assert "Burst: this one" in browser.get(f"/search{address}").text
    assert "this one (2)</option>" in browser.get(f"/filters{address}").text
