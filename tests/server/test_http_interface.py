"""The HTTP interface for other programs: described, versioned, behind the secret."""

from pathlib import Path

import pytest
from pydantic import BaseModel

from examples.review_client import ReviewClient, main
from tagkin.catalogue import Catalogue
from tagkin.server import answer_models
from tests.catalogue.suggested import content, decisions

from .browser import Browser, Running
from .conftest import OFFERED, tag

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
    gets: dict[str, type[BaseModel]] = {
        "state": answer_models.State,
        "tags": answer_models.TagPage,
        "tags/complete?text=b": answer_models.Completions,
        f"tags/{beach}/suggestions": answer_models.SuggestionPage,
        "photographs/next": answer_models.NextPhotograph,
        f"photographs/{number}": answer_models.Photograph,
        "photographs/at?path=2024/d.jpg": answer_models.Photograph,
        "search": answer_models.Results,
    }
    described = browser.get(DOCUMENT).json["paths"]
    for path, model in gets.items():
        model.model_validate(browser.get(f"/api/v1/{path}").json)
        assert browser.get(f"/api/{path}").status == 200  # the pages' own
    decided = browser.post("/api/v1/decisions", {"accept": [[number, "dog"]]}).json
    answer_models.Decided.model_validate(decided)
    answer_models.Undone.model_validate(browser.post("/api/v1/undo").json)
    failed = browser.get("/api/v1/photographs/at?path=nowhere.jpg")
    assert failed.status == 404
    answer_models.Error.model_validate(failed.json)
    route = described["/api/v1/decisions"]["post"]["responses"]["200"]["content"]
    assert route["application/json"]["schema"]["$ref"].endswith("/Decided")


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
