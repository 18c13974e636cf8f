"""Which files were read and which could not be, incomplete folders, and the export of decisions."""

import json
from pathlib import Path
from urllib.parse import quote

from tagkin.catalogue import Catalogue, open_for_scan
from tagkin.catalogue.photographs import incomplete_folders
from tagkin.server import Review
from tests.catalogue.suggested import content, decisions

from .browser import Browser
from .conftest import put_photographs


def test_the_page_names_what_was_read_and_what_was_not(
    browser: Browser, catalogue: Catalogue, root: Path
) -> None:
    (root / "b.jpg.xmp").write_text("<no xmp")
    catalogue.scan()
    page = browser.get("/files")
    assert page.status == 200
    lines = [e.text_content() for e in page.elements("//ul[@class='read']/li")]
    assert lines == ["5 photographs", "3 sidecars with tags"]  # as last seen
    (failure,) = page.elements("//ul[@id='unread']/li")
    assert failure.xpath("string(strong)") == "b.jpg"
    assert failure.xpath("string(span)")
    assert str(root) in page.text
    assert "files" in browser.get("/overview").elements("//main//a[@href='files']")[0].get("href")


def test_keywords_inside_and_a_tag_file_are_counted(browser: Browser, catalogue: Catalogue) -> None:
    (catalogue.root / "metadata.jsonl").write_text('{"file_name": "a.jpg", "tags": ["town"]}\n')
    catalogue.scan()
    lines = [e.text_content() for e in browser.get("/files").elements("//ul[@class='read']/li")]
    assert lines[-1] == "the tag file metadata.jsonl"


def test_incomplete_is_declared_and_undone(browser: Browser, catalogue: Catalogue) -> None:
    options = browser.get("/files").elements("//select[@name='folder']/option")
    assert [option.text for option in options] == ["the whole collection", "2024"]
    body = {"folder": "2024", "step": "one"}
    done = browser.post("/api/v1/incomplete", body).json
    assert (done["photographs"], incomplete_folders(catalogue.database)) == (1, ["2024"])
    assert browser.post("/api/v1/incomplete", body).json["run"] == done["run"]  # the same step
    assert browser.post("/api/v1/incomplete", {"folder": "2024"}).json["run"] is None
    (button,) = browser.get("/files").elements("//ol[@id='declared']//button")
    undone = browser.post("/api/v1/undo", {"run": int(button.get("data-undo"))})
    assert undone.status == 200, undone.text
    assert incomplete_folders(catalogue.database) == []
    assert browser.post("/api/v1/incomplete", {"folder": ""}).json["photographs"] == 3


def test_only_folders_of_the_collection_are_declared(
    browser: Browser, catalogue: Catalogue
) -> None:
    for folder in ("..", "/etc", "2025", "2024/", "20", "%"):
        answer = browser.post("/api/v1/incomplete", {"folder": folder})
        assert (answer.status, answer.json["error"][:21]) == (400, "There is no such fold")
    assert incomplete_folders(catalogue.database) == []


def test_exported_decisions_can_be_imported(
    browser: Browser, catalogue: Catalogue, review: Review, tmp_path: Path
) -> None:
    pairs = [[content(catalogue, "a.jpg"), "holiday"], [content(catalogue, "b.jpg"), "日本"]]
    browser.post("/api/v1/decisions", {"accept": pairs})
    answer = browser.get("/decisions.jsonl")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert all(json.loads(line) for line in answer.text.splitlines())
    other = put_photographs(tmp_path / "other")
    with open_for_scan(other) as copy:
        copy.scan()
        copy.import_lines(answer.text.splitlines())
        assert decisions(copy) == decisions(catalogue)
    stranger = Browser(browser.port)
    assert stranger.get(f"/decisions.jsonl?key={quote('wrong')}").status == 403
