"""Series, filters and writes in a real browser, as a person uses them."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tagkin.server import Review

from .browser import Running
from .window import NARROW, Window, make_catalogue

N = 12


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, chrome: Any) -> Iterator[SimpleNamespace]:
    """The first three photographs are one series."""
    home = tmp_path_factory.mktemp("stacks")
    catalogue = make_catalogue(home / "photos", home / "catalogue.sqlite", N)
    contents = [c for (c,) in catalogue.rows("SELECT id FROM contents ORDER BY id")]
    with catalogue.transaction() as connection:
        for content in contents[:3]:
            connection.execute(
                "UPDATE contents SET series = ? WHERE id = ?", (contents[0], content)
            )
    review = Review(catalogue, home / "cache", fits=False)
    running = Running(review)
    yield SimpleNamespace(
        address=running.access.address(running.port),
        review=review,
        contents=contents,
        beach=catalogue.value("SELECT id FROM tags WHERE name = 'beach'"),
        catalogue=catalogue,
    )
    running.stop()
    review.close()


@pytest.fixture
def window(chrome: Any, served: SimpleNamespace) -> Iterator[Window]:
    opened = Window(chrome, served.address)
    yield opened
    opened.close()
    while served.review.undo().run is not None:
        pass
    assert opened.faults == []


def decided(served: SimpleNamespace, verdict: int) -> set[int]:
    query = "SELECT content FROM decisions WHERE holds AND verdict = ?"
    return {content for (content,) in served.catalogue.rows(query, (verdict,))}


def test_a_burst_costs_one_action(window: Window, served: SimpleNamespace) -> None:
    page = window.open(f"/tags/{served.beach}")
    assert page.locator("#grid .tile").count() == N + 1 - 2
    assert page.locator(".stack-size").all_inner_texts() == ["3"]
    assert page.locator("#verdict").inner_text() == f"Accept all {N + 1}"
    page.locator(".tile[data-stack]").click()
    assert page.locator("#verdict").inner_text() == f"Accept {N - 2}, reject 3"
    window.press("Enter")
    window.said(f"beach: {N - 2} accepted, 3 rejected.")
    assert decided(served, -1) == set(served.contents[:3])
    window.press("u")
    window.said(f"Undone {N + 1} decisions")
    page.locator(".tile[data-stack]").focus()
    window.press("o")
    page.wait_for_url("**series=*")
    page.wait_for_function("() => document.querySelectorAll('#grid .tile').length === 3")
    page.locator("#grid .tile").nth(1).click()
    window.press("Enter")
    window.said("beach: 2 accepted, 1 rejected.")
    assert len(decided(served, -1)) == 1


def test_by_photograph_and_search(window: Window, served: SimpleNamespace) -> None:
    page = window.open(f"/photographs/{served.contents[0]}")
    assert page.locator("#series-title").inner_text() == "Series of 3"
    window.press("1")
    window.said("accepted for 3 photographs.")
    assert decided(served, 1) == set(served.contents[:3])
    window.press("u")
    window.said("Undone 3 decisions")
    page = window.open("/search")
    page.locator(".tile[data-stack]").click()
    assert page.locator("#chosen").inner_text() == "3 photographs selected"
    page.locator("#tag").fill("together")
    page.locator("#tag").press("Enter")
    window.said("together: added to 3 photographs.")
    page = window.open("/search?series=any")
    page.locator(".tile[data-stack]").focus()
    window.press("Enter")
    page.wait_for_url(f"**series={served.contents[0]}")
    page.wait_for_function("() => document.querySelectorAll('#grid .tile').length === 3")


def test_filters_are_kept_from_mode_to_mode(window: Window, served: SimpleNamespace) -> None:
    page = window.open("/tags")
    window.press("v")
    page.locator("#choices [name=folder]").select_option("2021")
    page.locator(".chosen-filters .token", has_text="Folder: 2021").wait_for()
    page.locator("#tags a").first.click()
    page.wait_for_url("**/tags/*folder=2021*")
    window.press("Enter")
    window.said("accepted")
    paths = served.catalogue.rows(
        "SELECT DISTINCT p.path FROM decisions d JOIN photographs p ON p.content = d.content "
        "WHERE d.holds"
    )
    assert paths
    assert all(path.startswith("2021/") for (path,) in paths)
    window.press("g", "d")
    page.wait_for_url("**/doubtful?folder=2021")
    page.go_back()
    page.wait_for_url("**folder=2021*")


@pytest.mark.parametrize("path", ["/tags/{beach}", "/photographs/{content}", "/search"])
def test_filters_and_stacks_are_accessible(
    window: Window, served: SimpleNamespace, path: str
) -> None:
    axe = pytest.importorskip("axe_core_python.sync_playwright", reason="axe-core is not installed")
    page = window.open(path.format(beach=served.beach, content=served.contents[0]))
    window.press("v")
    page.locator("#choices").wait_for()
    page.evaluate(axe.Axe().axe_script)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        told = page.evaluate("() => axe.run({resultTypes: ['violations']})")
        assert told["passes"]
        faults = [
            (one["id"], one["nodes"][0]["html"])
            for one in told["violations"]
            if one["impact"] in ("serious", "critical")
        ]
        assert faults == [], scheme
    window.resize(NARROW)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
