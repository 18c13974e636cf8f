"""Tags are renamed, merged, nested and forgotten on the page, and undo brings them back."""

from collections.abc import Iterator
from typing import Any

import pytest

from tagkin.catalogue import Catalogue
from tests.catalogue.photographs import sidecar_text

from .served import Served, serve
from .window import NARROW, TAGS, Window

N = 12


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("tags"), N, put_tags) as served:
        yield served


def put_tags(catalogue: Catalogue, contents: list[int]) -> None:
    """Two photographs have a tag in a sidecar."""
    for file in catalogue.photographs.files_of(contents[:2]).values():
        catalogue.root.joinpath(f"{file.path}.xmp").write_text(sidecar_text(["harbour"]))
    catalogue.scan()


@pytest.fixture
def window(window: Window, served: Served) -> Iterator[Window]:
    """Undo brings every suggestion back."""
    yield window
    served.undo_all()
    assert suggested(served) == dict.fromkeys(TAGS, N + 1)


def suggested(served: Served) -> dict[str, int]:
    with served.review.readers.connection() as catalogue:
        tags = catalogue.tags.list_all()
        return {tag.name: tag.n_suggested for tag in tags if not tag.n_found}


def edit(window: Window, served: Served, name: str) -> Any:
    page = window.open(f"/tags/{served.tags[name]}")
    page.locator(".head [data-edit]").click()
    page.locator("#edit-tag[open]").wait_for()
    return page


def test_renamed_and_undone(window: Window, served: Served) -> None:
    page = edit(window, served, "boat")
    page.locator("#new-name").fill("ship")
    window.press("Enter")
    window.shows("boat renamed to ship.")
    page.locator("h1", has_text="ship").wait_for()
    assert page.locator("#grid .tile").count() == N + 1  # its suggestions came along
    page.locator("#message button").click()
    window.shows("Undone the change of boat.")
    page.locator("h1", has_text="boat").wait_for()
    page.locator("#redo").click()
    window.shows("Redone the change of boat.")
    assert "ship" in suggested(served)


def test_files_keep_the_old_name(window: Window) -> None:
    page = window.open("/overview")
    page.locator("[data-edit][data-name=harbour]").click()
    page.locator("#new-name").fill("port")
    window.press("Enter")
    window.shows("harbour renamed to port. Files of 2 photographs keep harbour.")


def test_a_name_that_is_a_tag_merges(window: Window, served: Served) -> None:
    page = edit(window, served, "boat")
    page.locator("#new-name").fill("Bridge")
    page.locator("#edit-note", has_text="bridge is a tag already").wait_for()
    assert page.locator("#edit-rename button").inner_text() == "Merge"
    page.locator("#edit-rename button").click()
    window.shows("boat merged into bridge.")
    assert "boat" not in suggested(served)
    page.locator("h1", has_text="bridge").wait_for()


def test_late_answers_about_names_are_dropped(window: Window, served: Served) -> None:
    page = edit(window, served, "boat")
    late: list[Any] = []
    page.route("**/complete?text=brid", lambda route: late.append(route))
    page.locator("#new-name").fill("brid")
    page.locator("#new-name").fill("bridge")
    page.locator("#edit-note", has_text="bridge is a tag already").wait_for()
    for route in late:
        route.continue_()
    window.settle()
    assert page.locator("#edit-rename button").inner_text() == "Merge"
    page.unroute("**/complete?text=brid")
    window.press("Escape")
    page.locator("#edit-tag").wait_for(state="hidden")
    window.press("r")
    page.locator("#edit-tag[open]").wait_for()
    window.press("Escape")
    page.locator("#edit-tag").wait_for(state="hidden")
    assert page.locator("#new-name").input_value() == "boat"


def test_a_name_that_cannot_be_is_said_in_the_dialog(window: Window, served: Served) -> None:
    page = edit(window, served, "boat")
    page.locator("#new-name").fill("boat")
    window.press("Enter")
    page.locator("#edit-note", has_text="'boat' is already the tag's name.").wait_for()
    assert page.locator("#edit-tag[open]").count() == 1
    assert ["400" in fault for fault in window.faults] == [True]  # the browser says so, too
    window.faults.clear()


def test_nested(window: Window, served: Served) -> None:
    page = edit(window, served, "boat")
    page.locator("#parent").fill("vehicle")
    page.locator("#edit-nest button").click()
    window.shows("boat renamed to vehicle|boat.")
    assert suggested(served)["vehicle|boat"] == N + 1


def test_forgotten_is_never_suggested(window: Window, served: Served) -> None:
    page = edit(window, served, "city")
    page.locator("#edit-tag [data-change=forget]").click()
    window.shows("city forgotten: it is neither learned nor suggested.")
    page.locator(".done", has_text="You forgot this tag").wait_for()
    assert suggested(served)["city"] == 0
    page = window.open("/tags")
    assert "city" not in page.locator("#tags").inner_text()
    page = window.open("/overview")
    row = page.locator("#quality tr", has_text="city")
    assert "forgotten" in row.inner_text()
    run = page.locator("#runs li", has_text="Forgot ").first
    assert "city" in run.inner_text()
    run.locator("button").click()
    window.shows("Undone the change of city.")
    page.locator("#quality tr", has_text="city").locator("td", has_text=str(N + 1)).first.wait_for()


def test_learned_again(window: Window, served: Served) -> None:
    page = window.open(f"/tags/{served.tags['city']}")
    window.press("f")
    page.locator("#learn-again").click()
    window.shows("city is learned again by the next training.")
    page.locator(".done", has_text="No suggestions left").wait_for()


def test_accessible_and_narrow(window: Window, served: Served) -> None:
    page = edit(window, served, "boat")
    window.is_accessible("#edit-tag")
    box = page.locator("#edit-tag").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= NARROW[0]
