"""Every mode as a page, and the pictures on it."""

import io
import re
from importlib import resources
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from tagkin.catalogue import Catalogue
from tests.catalogue.suggested import content

from .browser import Browser
from .conftest import MARKUP, OFFERED, tag

pytestmark = pytest.mark.usefixtures("shared")

PAGES = [
    "/tags",
    "/events/1",
    "/doubtful",
    "/doubtful?kind=wrong",
    "/search",
    "/write",
    "/overview",
]


@pytest.mark.parametrize("path", PAGES)
def test_modes(browser: Browser, path: str) -> None:
    response = browser.get(path)
    assert response.status == 200, response.text
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "9 suggestions left for 4 photographs, about 5 correct" in response.text
    assert '<link rel="icon" href="static/' in response.text
    for asset in re.findall(r'(?:href|src)="(static/[^"]+)"', response.text):
        unchanged = browser.get(asset)
        assert unchanged.status == 200
        assert unchanged.headers["cache-control"] == "private, max-age=86400, immutable"


def test_home_leads_to_the_fast_way(browser: Browser) -> None:
    assert browser.get("/").headers["location"] == "tags"


def test_addresses_are_relative_to_the_base_of_the_page(browser: Browser) -> None:
    """Every path begins with a secret, which scripts and templates need not know."""
    absolute = re.compile(r"""["'`]/(?:api|tags|photographs|doubtful|search|overview|question)""")
    page = browser.get("/tags").text
    assert f'<base href="{browser.folder}/">' in page
    assets = set(re.findall(r'(?:href|src)="(static/[^"]+)"', page))
    assert len(assets) > 10
    for text in (page, *(browser.get(asset).text for asset in assets)):
        assert not absolute.findall(text)


def test_what_is_shown(browser: Browser, catalogue: Catalogue) -> None:
    tags = browser.get("/tags").text
    assert tags.index("holiday") < tags.index("dog")  # 1.65 right against 0.5
    grid = browser.get(f"/tags/{tag(catalogue, 'beach')}").text
    first, second = (content(catalogue, f"2024/{name}.jpg") for name in "dc")
    assert grid.index(f'data-content="{first}"') < grid.index(f'data-content="{second}"')
    photograph = browser.get(f"/photographs/{first}").text
    assert "d.jpg" in photograph
    assert "45 %" in photograph  # the share of the first kin in the score
    assert "Suggested 60 % by its kin, 30 % by the photograph itself, 10 %" in photograph
    assert "seems wrong <span>(90 %)</span>" in browser.get("/doubtful").text
    page = browser.get("/overview").text
    assert "2 without tags" in page
    assert "Write them into files" not in page  # nothing is accepted yet


def test_names_with_markup_are_text(browser: Browser, catalogue: Catalogue) -> None:
    pages = [browser.get(path).text for path in (*PAGES, f"/tags/{tag(catalogue, MARKUP)}")]
    assert any("&lt;script&gt;alert(1)&lt;/script&gt;" in page for page in pages)
    assert any("&lt;script&gt;alert(1)&lt;_script&gt;" in page for page in pages)
    assert not [page for page in pages if "<script>alert" in page]


def test_what_is_not_there(browser: Browser) -> None:
    for path in ("/nowhere", "/tags/99999", "/photographs/99999", "/static/x.js"):
        assert browser.get(path).status == 404, path
    assert browser.get("/search?similar=99999").status == 404
    assert browser.get("/tags/one").status == 422
    assert browser.get("/api/v1/tags/99999/suggestions").json == {
        "error": "There is no tag with the number 99999."
    }


# --- pictures ------------------------------------------------------------------------------


def pictures(browser: Browser, path: str) -> list[str]:
    answer = browser.photograph(path)
    return [answer["thumbnail"], answer["picture"]]


def test_thumbnails_stand_upright_and_are_kept_for_a_day(
    browser: Browser, catalogue: Catalogue
) -> None:
    for path in pictures(browser, "a.jpg"):
        response = browser.get(path)
        assert response.headers["content-type"] == "image/jpeg"
        assert response.headers["cache-control"] == "private, max-age=86400, immutable"
        image = Image.open(io.BytesIO(response.body))
        assert image.size == (40, 60)  # never larger than it is, and turned
        assert abs(np.asarray(image).mean() - 20) < 3
        assert not image.getexif()


def test_one_that_cannot_be_decoded_has_a_placeholder(
    browser: Browser, catalogue: Catalogue
) -> None:
    name = f"{MARKUP.replace('/', '_')}.jpg"
    for path in pictures(browser, name):
        response = browser.get(path)
        assert response.status == 200
        assert response.headers["cache-control"] == "private, max-age=60"
        assert response.headers["content-type"] == "image/svg+xml"
        texts = [element.text for element in ElementTree.fromstring(response.body).iter()]
        text = " ".join(filter(None, texts))
        assert text == "not an image tagkin reads (found unknown data)"


def test_a_card_of_a_tag_shows_its_most_confident_photographs(
    browser: Browser, catalogue: Catalogue
) -> None:
    beach = tag(catalogue, "beach")
    card = f"//ul[@id='tags']//a[@data-tag='{beach}']//img/@src"
    addresses = browser.get("/tags").elements(card)
    led = [browser.get(f"/{address}").headers["location"] for address in addresses]
    best = sorted(
        (path for path, row in OFFERED.items() if "beach" in row),
        key=lambda path: -OFFERED[path]["beach"],
    )
    assert led == [f"{browser.folder}/{pictures(browser, path)[0]}" for path in best]
    only = browser.get(f"/tags/{beach}/pictures/0?folder=2024").headers["location"]
    assert only == f"{browser.folder}/{pictures(browser, '2024/d.jpg')[0]}"
    assert browser.get(f"/tags/{beach}/pictures/3").status == 404


def test_pictures_need_the_right_digest_and_size(browser: Browser, catalogue: Catalogue) -> None:
    small, _ = pictures(browser, "a.jpg")
    other, _ = pictures(browser, "b.jpg")
    digest = small.rpartition("-")[2]
    for path in (
        other.replace(other.rpartition("-")[2], digest),
        small.replace("/256/", "/255/"),
        f"/thumbnails/256/99999-{digest}",
    ):
        assert browser.get(path).status == 404, path


def test_a_doubt_says_how_likely_it_is(browser: Browser, catalogue: Catalogue) -> None:
    pair = content(catalogue, "a.jpg"), tag(catalogue, "sea")
    update = "UPDATE doubts SET confidence = ? WHERE content = ? AND tag = ?"
    catalogue.database.execute(update, (0.12, *pair))
    try:
        page = browser.get("/doubtful?kind=wrong").text
    finally:
        catalogue.database.execute(update, (0.9, *pair))
    assert "may be wrong, but is probably not <span>(12 %)</span>" in page
    assert "seems wrong <span>(90 %)</span>" in browser.get("/doubtful?kind=wrong").text


def test_every_icon_that_a_page_names_is_drawn() -> None:
    files = resources.files("tagkin.server")
    texts = [
        file.read_text(encoding="utf-8")
        for folder in ("templates", "static")
        for file in (files / folder).iterdir()
        if file.name.endswith((".jinja", ".js"))
    ]
    drawn = {name for text in texts for name in re.findall(r'<symbol id="i-(\w+)"', text)}
    named = {name for text in texts for name in re.findall(r"""icon\(['"](\w+)['"]""", text)}
    assert named - drawn == set()
    assert len(named) > 10
