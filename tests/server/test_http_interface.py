"""The HTTP interface for other programs: described, versioned, behind the secret."""

import os
import sys
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from examples.review_client import ReviewClient, main
from tagkin.catalogue import Catalogue
from tagkin.server import Review, answer_types
from tests.catalogue.suggested import content, decisions

from .browser import Browser, Running
from .conftest import OFFERED, put_photographs, tag, with_suggestions

DOCUMENT = "/api/v1/openapi.json"


def test_it_is_described_behind_the_secret(running: Running, browser: Browser) -> None:
    assert Browser(running.port).get(DOCUMENT).status == 403
    document = browser.get(DOCUMENT).json
    assert document["info"]["version"] == "1"
    assert all(path.startswith("/api/v1/") for path in document["paths"])
    routes = [route for path in document["paths"].values() for route in path.values()]
    assert all(route["description"] for route in routes)
    assert {"/api/v1/decisions", "/api/v1/photographs/at"} <= document["paths"].keys()


def test_answers_are_as_described(browser: Browser, catalogue: Catalogue) -> None:
    number, beach = content(catalogue, "a.jpg"), tag(catalogue, "beach")
    gets: dict[str, type] = {
        "state": answer_types.State,
        "tags": answer_types.TagPage,
        "tags/complete?text=b": answer_types.Completions,
        f"tags/{beach}/suggestions": answer_types.SuggestionPage,
        "photographs/next": answer_types.NextPhotograph,
        f"photographs/{number}": answer_types.Photograph,
        "photographs/at?path=2024/d.jpg": answer_types.Photograph,
        "search": answer_types.Results,
    }
    described = browser.get(DOCUMENT).json["paths"]
    for path, model in gets.items():
        TypeAdapter(model).validate_python(browser.get(f"/api/v1/{path}").json)
    decided = browser.post("/api/v1/decisions", {"accept": [[number, "dog"]]}).json
    TypeAdapter(answer_types.Decided).validate_python(decided)
    TypeAdapter(answer_types.Undone).validate_python(browser.post("/api/v1/undo").json)
    failed = browser.get("/api/v1/photographs/at?path=nowhere.jpg")
    assert failed.status == 404
    TypeAdapter(answer_types.Error).validate_python(failed.json)
    for path, methods in described.items():
        for route in methods.values():
            answers = (route["responses"][name]["content"] for name in ("200", "default"))
            answer, error = (kinds["application/json"]["schema"]["$ref"] for kinds in answers)
            assert answer, path
            assert error.endswith("/Error"), path
    decide = described["/api/v1/decisions"]["post"]["responses"]["200"]["content"]
    assert decide["application/json"]["schema"]["$ref"].endswith("/Decided")


def test_a_client_asks_decides_and_undoes(
    running: Running, catalogue: Catalogue, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = running.access.address(running.port)
    client = ReviewClient(address)
    photograph = client.photograph(root / "2024/d.jpg")
    suggested = {s["name"]: s["confidence"] for s in photograph["suggestions"]}
    assert suggested == pytest.approx(OFFERED["2024/d.jpg"])
    answer = client.decide(photograph, accept=["beach", "my own"], reject=["dog"])
    assert (answer["accepted"], answer["rejected"]) == (2, 1)
    assert decisions(catalogue) == {
        ("2024/d.jpg", "beach"): 1,
        ("2024/d.jpg", "my own"): 1,
        ("2024/d.jpg", "dog"): -1,
    }
    (confidence,) = catalogue.database.row(
        "SELECT confidence FROM decisions WHERE tag = ?", (tag(catalogue, "beach"),)
    ) or (None,)
    assert confidence == pytest.approx(0.92)
    client.undo(answer["run"])
    assert decisions(catalogue) == {}
    assert main([address, str(root / "2024/d.jpg")]) == 0
    assert "beach" in capsys.readouterr().out
    assert main([address, str(root / "2024/d.jpg"), "--reject", "sea"]) == 0
    assert decisions(catalogue) == {("2024/d.jpg", "sea"): -1}
    assert main([address, str(root / "nowhere.jpg")]) == 1
    assert "is not in the catalogue" in capsys.readouterr().err
    assert main(["http://127.0.0.1:1/?key=old", str(root / "2024/d.jpg")]) == 1  # nobody answers
    assert "No review answers at http://127.0.0.1:1/?key=old" in capsys.readouterr().err


def test_names_that_json_cannot_contain() -> None:
    named = TypeAdapter(answer_types.NamedTag).validate_python({"id": 1, "name": "a\udcff\x01"})
    assert named["name"] == "a\ufffd\ufffd"


@pytest.mark.skipif(
    sys.platform in ("win32", "darwin"), reason="file names are Unicode on this system"
)
def test_an_error_names_a_folder_that_is_not_utf8(tmp_path: Path) -> None:
    with with_suggestions(put_photographs(tmp_path / os.fsdecode(b"\xff"))) as catalogue:
        review = Review(catalogue, tmp_path / "cache", fits=False)
        running = Running(review)
        browser = Browser(running.port)
        browser.open(running.access.key)
        answer = browser.get("/api/v1/photographs/at?path=/elsewhere/a.jpg")
        assert (answer.status, "\ufffd" in answer.json["error"]) == (400, True)
        running.stop()
        review.close()
