"""Search by words on the page, with a backbone that reads words."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tagkin.annotator import Annotator
from tagkin.catalogue import open_for_scan
from tagkin.catalogue.word_search import NO_MATCH
from tagkin.server import Review
from tests.features.joint import write_colors, write_joint_encoder

from .browser import Browser, Running
from .conftest import tag

pytest.importorskip("tokenizers")


class Colors(NamedTuple):
    """A review of plain photographs, with a model that understands colours."""

    review: Review
    browser: Browser
    colors: dict[str, str]
    backbone: Path


@pytest.fixture
def colors(tmp_path: Path, data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Colors]:
    monkeypatch.setenv("TAGKIN_CACHE", str(tmp_path / "cache"))  # that of the review
    backbone = write_joint_encoder(tmp_path / "encoder") / "image.onnx"
    names = write_colors(tmp_path / "colors")
    catalogue = open_for_scan(tmp_path / "colors", command="review")
    catalogue.scan()
    catalogue.model.refit(Annotator(str(backbone)))
    review = Review(catalogue, tmp_path / "cache", fits=False)
    running = Running(review)
    browser = Browser(running.port)
    browser.open(running.access.key)
    yield Colors(review, browser, names, backbone)
    running.stop()
    review.close()


def names_of(browser: Browser, query: str) -> list[str]:
    return browser.search(query).names


def test_photographs_come_in_the_order_in_which_words_fit(colors: Colors) -> None:
    ranked = names_of(colors.browser, "words=green")
    assert len(ranked) == 24
    assert {colors.colors[name] for name in ranked[:8]} == {"green"}
    first = colors.browser.search("words=green&n=5")
    page = colors.browser.get("/search?words=green&n=24")
    fits = page.elements("//ul[@id='grid']//rect[@class='full']/@width")
    assert (fits[0], fits[-1]) == ("100.0%", "0.0%")
    assert NO_MATCH not in page.text
    assert 'class="bar"' in colors.browser.get("/search?words=green").text
    assert 'class="bar"' not in colors.browser.get("/search").text
    rest = names_of(colors.browser, f"words=green&n=500&after={first.next}")
    assert first.names + rest == ranked


def test_words_go_with_filters(colors: Colors) -> None:
    with colors.review.readers.connection() as catalogue:
        old = tag(catalogue, "old")
    ranked = names_of(colors.browser, f"words=blue&tag={old}")
    assert sorted(ranked) == sorted(colors.colors)[:12]
    assert {colors.colors[name] for name in ranked[:4]} == {"blue"}
    assert names_of(colors.browser, "words=blue&name=07") == ["07.png"]
    assert names_of(colors.browser, "words=blue&untagged=true") == []
    best = names_of(colors.browser, "words=blue&untagged=false&n=8")
    assert {colors.colors[name] for name in best} == {"blue"}
    page = colors.browser.get("/search?words=red").text
    assert 'name="words" value="red"' in page
    assert page.index("00.png") < page.index("01.png")


def test_a_backbone_without_words_says_so(colors: Colors) -> None:
    path = colors.backbone.with_suffix(".json")
    settings = json.loads(path.read_text())
    del settings["text"]
    path.write_text(json.dumps(settings))
    page = colors.browser.get("/search?words=red")
    assert page.status == 200
    assert "names no text encoder" in page.text


def test_suggestions_stay_while_a_fit_runs(colors: Colors) -> None:
    def n_suggestions() -> int:
        return colors.browser.get("/api/v1/state").json["suggestions"]

    assert n_suggestions() > 0
    assert colors.review.start_fit()
    while colors.review.fit.is_running:
        assert n_suggestions() > 0
        colors.review.fit.wait(0.05)
    colors.review.fit.wait(300)
    assert colors.browser.get("/api/v1/state").json["fit"]["state"] == "done"
    assert {colors.colors[name] for name in names_of(colors.browser, "words=green&n=8")} == {
        "green"
    }
