"""The first way of a person, in a browser: from choosing a folder to an undone write."""

from typing import Any

from .window import WIDE, Window


class StartWindow(Window):
    """A window on a start page."""

    def __init__(self, browser: Any, address: str):
        self.context = browser.new_context(reduced_motion="reduce")
        self.context.set_default_timeout(120_000)
        self.faults: list[str] = []
        self.page = self.tab()
        self.resize(WIDE)
        self.page.goto(address)
        self.page.wait_for_url("**/start")

    def look_at_folder(self, name: str) -> None:
        """Go to a folder in the one that is shown first, and wait for a picture."""
        self.page.get_by_role("link", name="Choose a folder").click()
        self.page.locator(".folders a", has_text=name).click()
        self.page.locator(".strip img").first.wait_for()
        self.page.wait_for_function("() => document.querySelector('.strip img').naturalWidth > 0")

    def use_folder(self) -> None:
        """Use the folder, and wait for the page of its tags."""
        self.page.get_by_role("button", name="Use this folder").click()
        self.page.wait_for_url("**/tags")

    def tag_and_write(self, tag: str) -> None:
        """Give a photograph a tag, and write it."""
        page = self.page
        page.goto(f"{page.url.rpartition('/')[0]}/photographs/1")
        page.locator("#tag").fill(tag)
        page.locator("#tag").press("Enter")
        page.locator("#carried .name", has_text=tag).wait_for()
        page.locator("nav a", has_text="Write").click()
        page.locator("#write").click()
        page.locator("#job [data-undo-write]").wait_for()  # when it is done

    def undo_write(self) -> None:
        """Undo the write that was just done."""
        self.page.locator("#job [data-undo-write]").click()
        self.page.locator(".outcome", has_text="Undid").wait_for()
