"""The HTTP interface for other programs."""

import os
import sys
from pathlib import Path

import pytest

from examples.review_client import ReviewClient, main
from tagkin.catalogue import Catalogue
from tagkin.server import Review
from tests.catalogue.suggested import decisions

from .browser import Browser, Running
from .conftest import OFFERED, put_photographs, tag, with_suggestions


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
        assert (answer.status, "\udcff" in answer.json["error"]) == (400, True)
        running.stop()
        review.close()
