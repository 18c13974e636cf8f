"""Bursts, filters and writes in a real browser, as a person uses them."""

from collections.abc import Iterator

import pytest

from tagkin.catalogue import Catalogue

from .served import Served, serve
from .window import Window

N = 12


def put_burst(catalogue: Catalogue, contents: list[int]) -> None:
    """Make the first three photographs a burst."""
    with catalogue.database.transaction():
        for content in contents[:3]:
            catalogue.database.execute(
                "UPDATE contents SET burst = ? WHERE id = ?", (contents[0], content)
            )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("stacks"), N, put_burst) as served:
        yield served


def test_a_burst_costs_one_action(window: Window, served: Served) -> None:
    page = window.open(f"/tags/{served.tags['beach']}")
    assert page.locator("#grid .tile").count() == N + 1 - 2
    assert page.locator(".stack-size").all_inner_texts() == ["3"]
    assert page.locator("#verdict").inner_text() == f"Accept {N + 1}"
    page.locator(".tile[data-stack]").click()
    assert page.locator("#verdict").inner_text() == f"Accept {N - 2}, reject 3"
    window.press("Enter")
    window.shows(f"beach: {N - 2} accepted, 3 rejected.")
    assert served.decided(-1) == {(content, "beach") for content in served.contents[:3]}
    window.press("u")
    window.shows(f"Undone {N + 1} decisions")


def test_a_stack_unfolds_in_its_place(window: Window, served: Served) -> None:
    page = window.open(f"/tags/{served.tags['beach']}")
    last = page.locator("#grid .tile").last
    last.click()
    page.locator(".tile[data-stack]").focus()
    window.press("o")
    page.wait_for_function(f"() => document.querySelectorAll('#grid .tile').length === {N + 1}")
    assert last.get_attribute("aria-pressed") == "true"  # as it was marked
    assert window.focused("data-content") in [str(content) for content in served.contents[:3]]
    page.locator("#grid .tile").nth(1).click()
    window.press("Enter")
    window.shows(f"beach: {N - 1} accepted, 2 rejected.")
    assert len({content for content, _ in served.decided(-1)} & set(served.contents[:3])) == 1


def test_by_photograph_and_search(window: Window, served: Served) -> None:
    page = window.open(f"/photographs/{served.contents[0]}")
    assert page.locator("#burst-title").inner_text() == "Burst of 3"
    window.press("1")
    window.shows("accepted for 3 photographs.")
    assert {content for content, _ in served.decided(1)} == set(served.contents[:3])
    window.press("u")
    window.shows("Undone 3 decisions")
    page = window.open("/search")
    page.locator(".tile[data-stack]").click()
    assert page.locator("#chosen").inner_text() == "3 photographs selected"
    page.locator("#tag").fill("together")
    page.locator("#tag").press("Enter")
    window.shows("together: added to 3 photographs.")
    page = window.open("/search?burst=any")
    page.locator(".tile[data-stack]").hover()
    page.locator(".open-stack").click()
    page.wait_for_function("() => document.querySelectorAll('#grid .tile').length === 3")
    assert page.url.endswith("/search?burst=any")


def test_filters_are_kept_from_mode_to_mode(window: Window, served: Served) -> None:
    page = window.open("/tags")
    window.press("v")
    page.locator("#choices [name=folder]").select_option("2021")
    page.locator(".chosen-filters .token", has_text="Folder: 2021").wait_for()
    page.locator("#tags a").first.click()
    page.wait_for_url("**/tags/*folder=2021*")
    window.press("Enter")
    window.shows("accepted")
    paths = served.catalogue.database.rows(
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
def test_filters_and_stacks_are_accessible(window: Window, served: Served, path: str) -> None:
    page = window.open(path.format(beach=served.tags["beach"], content=served.contents[0]))
    window.press("v")
    page.locator("#choices").wait_for()
    window.is_accessible()
