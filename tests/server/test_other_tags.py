"""Folders, places and people on pages and for scripts."""

from tagkin.catalogue import Catalogue
from tests.catalogue.suggested import content

from .browser import Browser


def test_folders_are_completed_searched_and_shown(browser: Browser, catalogue: Catalogue) -> None:
    catalogue.scan(kinds={"folders": "all"})
    assert browser.get("/api/v1/tags/complete?text=2024").json["tags"] == []
    (tag,) = browser.get("/api/v1/tags/complete?text=2024&others=true").json["tags"]
    assert (tag["name"], tag["kind"]) == ("2024", "folder")
    results = browser.get(f"/api/v1/search?tag={tag['id']}").json["photographs"]
    assert [card["name"] for card in results] == ["c.jpg", "d.jpg"]
    page = browser.get(f"/search?tag={tag['id']}").text
    assert '2024<small class="kind">folder</small>' in page
    number = content(catalogue, "2024/d.jpg")
    tags = browser.get(f"/api/v1/tags?tag={tag['id']}").json["tags"]
    assert tags == browser.get("/api/v1/tags?folder=2024").json["tags"] != []
    (other,) = browser.get(f"/api/v1/photographs/{number}").json["others"]
    assert (other["tag"], other["name"], other["kind"]) == (tag["id"], "2024", "folder")
    page = browser.get(f"/photographs/{number}").text
    assert f'href="search?tag={tag["id"]}"' in page
    assert browser.get(f"/search?tag={tag['id'] + 1}").status == 404
