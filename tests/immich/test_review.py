"""The review page on photographs of a server, in a real browser."""

from tagkin.server import Review
from tests.catalogue.suggested import new_suggestion
from tests.server.browser import Running
from tests.server.window import Window, chromium


def test_a_review_from_suggestion_to_undo(catalogue, immich, photos, tmp_path):
    """A person accepts, writes to Immich and undoes, without leaving the page."""
    contents = [content.content for content in catalogue.photographs.with_tags()]
    with catalogue.database.run("suggest", model="f" * 64) as run:
        suggested = [new_suggestion("boat", 0.9), new_suggestion("bridge", 0.4)]
        catalogue.suggestions.replace(run.id, [(content, suggested) for content in contents])
    review = Review(catalogue, tmp_path / "thumbnails", fits=False)
    running = Running(review)
    try:
        with chromium() as browser:
            window = Window(browser, running.server.address)
            page = window.open(f"/photographs/{contents[0]}")
            page.locator("img").first.wait_for()
            window.press("1")
            page.locator("#suggestions .row").nth(0).wait_for()
            page = window.open("/write")
            page.locator("h1", has_text="Write tags to Immich").wait_for()
            assert page.locator("#way").count() == 0
            page.locator("#write", has_text="Write 1 photograph").click()
            page.locator(".outcome", has_text="Wrote 1 tag into 1 photograph").wait_for()
            assert [photo for photo in photos if "boat" in immich.tags_of(photo)]
            page.locator(".outcome [data-undo-write]").click()
            page.locator(".outcome", has_text="removed its tags from 1 photograph").wait_for()
            assert not [photo for photo in photos if "boat" in immich.tags_of(photo)]
            page = window.open("/overview")
            page.get_by_text(f"Immich at {immich.address}").first.wait_for()
            assert window.faults == []
    finally:
        running.stop()
        review.close()
