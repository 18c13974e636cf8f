"""Filters in every mode: what a page shows, its counts and its links."""

import re

import pytest

from tagkin.catalogue import Catalogue
from tests.catalogue.suggested import content

from .browser import Browser
from .conftest import OFFERED, tag

pytestmark = pytest.mark.usefixtures("shared")

IN_2024 = {path: row for path, row in OFFERED.items() if path.startswith("2024/")}


def test_tags_and_their_suggestions(browser: Browser, catalogue: Catalogue) -> None:
    tags = browser.get("/api/v1/tags?folder=2024").json["tags"]
    expected: dict[str, int] = {}
    for row in IN_2024.values():
        for name in row:
            expected[name] = expected.get(name, 0) + 1
    assert {
        expected_path["name"]: expected_path["n_suggested"] for expected_path in tags
    } == expected
    sea = tag(catalogue, "sea")
    answer = browser.get(f"/api/v1/tags/{sea}/suggestions?folder=2024").json
    assert [expected_path["content"] for expected_path in answer["suggestions"]] == [
        content(catalogue, "2024/d.jpg")
    ]
    assert answer["tag"]["n_suggested"] == 1
    assert answer["suggestions"][0]["run"] == catalogue.runs.history(1, what="suggest")[0].id
    for path in ("/question?folder=2024&pays_little=true", f"/tags/{sea}?folder=2024"):
        shown = set(
            map(int, re.findall(r'class="tile"[^>]*data-content="(\d+)"', browser.get(path).text))
        )
        assert shown <= {content(catalogue, expected_path) for expected_path in IN_2024}
        assert shown


def test_events_are_of_the_filtered(browser: Browser, catalogue: Catalogue) -> None:
    assert browser.next_event() is not None
    assert browser.next_event("folder=2024") in {content(catalogue, path) for path in IN_2024}
    page = browser.get("/events?taken=1999").text
    assert "Nothing left to review with these filters" in page


def test_doubts_and_search(browser: Browser) -> None:
    def names(query: str) -> list[str]:
        return sorted(browser.search(query).names)

    labels = [doubt["aria-label"].rpartition(" on ")[2] for doubt in browser.doubts()]
    assert sorted(labels) == ["a.jpg", "d.jpg"]
    (left,) = browser.doubts("?folder=2024")
    assert left["aria-label"].endswith(" on d.jpg")
    assert names("folder=2024") == ["c.jpg", "d.jpg"]
    assert names("folder=2024&untagged=true") == ["d.jpg"]
    assert names("untagged=false&name=c") == ["c.jpg"]
    first = browser.search("type=jpg&n=3")
    rest = browser.search(f"type=jpg&n=3&after={first.next}")
    assert (len(first.names), len(rest.names)) == (3, 2)


def test_every_choice_leaves_as_many_as_it_says(browser: Browser) -> None:
    for filters in ("", "folder=2024", "untagged=true"):
        n = 0
        for select in browser.get(f"/filters?{filters}").elements("//select"):
            name = select.get("name")
            others = "&".join(p for p in filters.split("&") if p and not p.startswith(name))
            for option in select.xpath("option[@value != '']"):
                query = f"{others}&{name}={option.get('value').replace(' ', '%20')}"
                n_left = len(browser.search(query).names)
                assert option.text.endswith(f"({n_left})"), (filters, query)
                n += 1
        assert n > 5


def test_decisions_change_what_filters_leave(browser: Browser, catalogue: Catalogue) -> None:
    sea, d = tag(catalogue, "sea"), content(catalogue, "2024/d.jpg")
    query = f"/api/v1/tags/{sea}/suggestions?folder=2024"
    assert len(browser.get(query).json["suggestions"]) == 1
    browser.post("/api/v1/decisions", {"accept": [[d, sea]]})
    assert browser.get(query).json["suggestions"] == []
    assert browser.search(f"tag={sea}&folder=2024").contents == [d]
    browser.post("/api/v1/undo")
    assert len(browser.get(query).json["suggestions"]) == 1


def test_edits_of_tags_change_what_filters_leave(browser: Browser, catalogue: Catalogue) -> None:
    def offered() -> list[str]:
        page = browser.get(f"/events/{content(catalogue, '2024/d.jpg')}?folder=2024")
        return [item.text for item in page.elements("//*[@id='offers']//*[@class='name']")]

    assert offered() == ["beach", "sea"]
    browser.post(f"/api/v1/tags/{tag(catalogue, 'beach')}/change", {"what": "forget"})
    assert offered() == ["sea"]
    browser.post("/api/v1/undo")
    assert offered() == ["beach", "sea"]


def test_links_keep_filters_and_tokens_remove_them(browser: Browser, catalogue: Catalogue) -> None:
    beach = tag(catalogue, "beach")
    page = browser.get(f"/tags?folder=2024&tag={beach}&after=5").text
    assert f'href="doubtful?folder=2024&amp;tag={beach}"' in page
    assert f'href="tags?tag={beach}"' in page  # without the folder
    assert 'href="tags?folder=2024"' in page  # without the tag
    assert "Folder: 2024" in page
    assert "Tag: beach" in page


def test_filters_that_do_not_exist(browser: Browser) -> None:
    assert browser.get("/search?rating=9").status == 400
    assert browser.get("/search?type=doc").status == 400
    assert browser.get("/search?taken=May").status == 400
    assert browser.get("/search?tag=99999").status == 404
