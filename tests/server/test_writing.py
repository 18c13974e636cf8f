"""Tags written into files from the page, and undone: every byte against the folder itself."""

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tagkin.catalogue import ACCEPTED, REJECTED, Catalogue, Filters
from tagkin.collection.sidecars import tags_of
from tagkin.server import Review
from tests.catalogue.photographs import check_invariants
from tests.collection.sidecars.wrapped_exiftool import needs_exiftool

from .browser import Browser
from .conftest import put_photograph

WRITTEN = {"a.jpg.xmp": ["beach", "sea", "holiday"], "b.jpg.xmp": ["beach", "sea", "holiday"]}


def bytes_of(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def wait_for(browser: Browser, state: str) -> Any:
    """The state of the job as soon as it is this."""
    while (answer := browser.get("/api/v1/state").json["write"])["state"] != state:
        assert answer["state"] in ("running", state), answer
        time.sleep(0.01)
    return answer


@pytest.fixture
def accepted(catalogue: Catalogue) -> Catalogue:
    catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.7))
    return catalogue


def plan_page(browser: Browser, address: str = "/write") -> str:
    while 'id="planning"' in (text := browser.get(address).text):
        pass
    return text


def test_the_plan_then_the_files_then_undo(
    browser: Browser, accepted: Catalogue, root: Path
) -> None:
    before = bytes_of(root)
    page = plan_page(browser)
    assert "Write 3 files" in page
    assert "Lightroom reads sidecars of RAW files only" in page
    assert "4 tags into 3 sidecars, 1 of them new" in page
    for text in ("2024/d.jpg.xmp", "new sidecar, ", "a.jpg.xmp", "existing sidecar", "holiday"):
        assert text in page
    assert bytes_of(root) == before
    assert browser.post("/api/v1/write").status == 200
    done = wait_for(browser, "done")
    assert (done["text"], done["failures"]) == ("Wrote 4 tags into 3 sidecars, 1 of them new.", [])
    after = bytes_of(root)
    assert {name: set(tags_of(after[name])) for name in WRITTEN} == {
        name: set(tags) for name, tags in WRITTEN.items()
    }
    page = plan_page(browser)
    assert "Nothing to write" in page
    assert f'data-undo-write="{done["run"]}"' in page
    assert browser.post(f"/api/v1/write/{done['run']}/undo").status == 200
    text = "restored 2 files byte for byte and removed 1 file that it had made."
    assert wait_for(browser, "done")["text"] == f"Undid run {done['run']}: {text}"
    assert bytes_of(root) == before
    page = plan_page(browser)
    assert "Write 3 files" in page
    assert "data-undo-write" not in page
    check_invariants(accepted)


@needs_exiftool
def test_into_the_photographs(browser: Browser, accepted: Catalogue, root: Path) -> None:
    before = bytes_of(root)
    page = plan_page(browser, "/write?embed=true")
    assert "7 tags into 3 photographs and 2 sidecars" in page
    browser.post("/api/v1/write?embed=true")
    done = wait_for(browser, "done")
    assert done["failures"] == []
    assert (root / "2024" / "d.jpg_original").read_bytes() == before["2024/d.jpg"]
    browser.post(f"/api/v1/write/{done['run']}/undo")
    wait_for(browser, "done")
    assert bytes_of(root) == before


def test_names_of_new_sidecars(browser: Browser, accepted: Catalogue, root: Path) -> None:
    assert "2024/d.xmp" in plan_page(browser, "/write?sidecars=img.xmp")
    browser.post("/api/v1/write?sidecars=img.xmp")
    wait_for(browser, "done")
    assert (root / "2024" / "d.xmp").exists()
    assert browser.get("/write?sidecars=img").status == 422


def test_filters_choose_the_photographs(browser: Browser, accepted: Catalogue, root: Path) -> None:
    before = bytes_of(root)
    page = plan_page(browser, "/write?folder=2024")
    assert "1 tag into 1 sidecar, all of them new" in page
    assert "Folder: 2024" in page
    assert "a.jpg.xmp" not in page
    assert browser.post("/api/v1/write?folder=2024").status == 200
    wait_for(browser, "done")
    after = bytes_of(root)
    assert tags_of(after.pop("2024/d.jpg.xmp")) == ["beach"]
    assert after == before
    assert "with these filters" in plan_page(browser, "/write?folder=2024")
    assert "Write 2 files" in plan_page(browser)


def test_rejected_tags_leave_the_files_when_asked(
    browser: Browser, catalogue: Catalogue, root: Path
) -> None:
    before = bytes_of(root)
    catalogue.decisions.decide(REJECTED, Filters(photographs=["a.jpg"], tags=["sea"]))
    assert "Nothing to write" in plan_page(browser)
    page = plan_page(browser, "/write?remove=true")
    assert '<del class="token">sea</del>' in page
    assert "1 tag removed" in page
    assert browser.post("/api/v1/write?remove=true").status == 200
    done = wait_for(browser, "done")
    assert done["text"] == "Removed 1 tag."
    assert tags_of((root / "a.jpg.xmp").read_bytes()) == ["beach"]
    assert "no rejected tag is in a sidecar" in plan_page(browser, "/write?remove=true")
    browser.post(f"/api/v1/write/{done['run']}/undo")
    wait_for(browser, "done")
    assert bytes_of(root) == before


def test_one_job_at_a_time(browser: Browser, accepted: Catalogue, root: Path) -> None:
    with accepted.database.transaction():  # the job waits for it
        assert browser.post("/api/v1/write").status == 200
        second = browser.post("/api/v1/write")
        assert second.status == 400
        assert "Files are being written already" in second.json["error"]
        assert 'id="job-share"' in browser.get("/write").text
    wait_for(browser, "done")
    assert "holiday" in tags_of((root / "a.jpg.xmp").read_bytes())


def test_failures_are_named(browser: Browser, accepted: Catalogue, root: Path) -> None:
    os.remove(root / "2024" / "d.jpg")
    browser.post("/api/v1/write")
    done = wait_for(browser, "done")
    assert done["n_failures"] == 1
    assert done["failures"][0]["file"].endswith("d.jpg")
    assert "vanished. Scan the folder" in browser.get("/write").text


def test_decisions_that_wait_are_named(browser: Browser, accepted: Catalogue, root: Path) -> None:
    assert 'id="edited"' not in plan_page(browser)
    put_photograph(root / "2024" / "d.jpg", 255, [])
    os.utime(root / "2024" / "d.jpg")
    accepted.scan()
    page = plan_page(browser, "/write?remove=true")  # a plan of its own
    assert "Write 2 files" in page
    assert (
        "1 photograph was edited or replaced: 2024/d.jpg. Decisions on the former picture wait. "
        "New suggestions keep them if the new one shows the same; otherwise accept its tags again."
    ) in page


def test_only_writes_are_undone_as_writes(browser: Browser, accepted: Catalogue) -> None:
    run = accepted.decisions.last_run()
    response = browser.post(f"/api/v1/write/{run}/undo")
    assert response.status == 400
    assert response.json["error"] == f"Run {run} wrote no tags."
    assert browser.post("/api/v1/write/12345/undo").status == 404


def test_the_end_of_a_review_ends_the_job_between_files(
    accepted: Catalogue, review: Review, browser: Browser, root: Path
) -> None:
    before = bytes_of(root)
    with accepted.database.transaction():
        browser.post("/api/v1/write")
        end = threading.Thread(target=review.writer.close)
        end.start()
        while review.writer.is_open:
            time.sleep(0.01)
    end.join()
    assert bytes_of(root) == before
