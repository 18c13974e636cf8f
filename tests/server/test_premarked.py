"""Tiles below one half are marked as wrong when a page opens, and the page says so."""

import re

import pytest

from tagkin.catalogue import Catalogue
from tests.catalogue.suggested import offer

from .browser import Browser
from .conftest import tag

PATHS = ("a.jpg", "b.jpg", "2024/c.jpg", "2024/d.jpg")


@pytest.mark.parametrize(
    ("confidences", "marks", "ask", "verdict"),
    [
        ((0.9, 0.8, 0.7, 0.5), 0, "Mark the wrong ones", "Accept 4"),
        ((0.4, 0.3, 0.2, 0.1), 4, "Mark the right ones", "Reject 4"),
        (
            (0.9, 0.8, 0.4, 0.1),
            2,
            "Check the marks: the first 2 are probably right, the others wrong",
            "Accept 2, reject 2",
        ),
        (
            (0.9, 0.4, 0.3, 0.1),
            3,
            "Check the marks: the first is probably right, the others wrong",
            "Accept 1, reject 3",
        ),
    ],
)
def test_marks(
    browser: Browser,
    catalogue: Catalogue,
    confidences: tuple[float, ...],
    marks: int,
    ask: str,
    verdict: str,
) -> None:
    offer(catalogue, {path: {"new": p} for path, p in zip(PATHS, confidences, strict=True)})
    page = browser.get(f"/tags/{tag(catalogue, 'new')}").text
    pressed = re.findall(r'class="tile[^"]*" aria-pressed="(\w+)"', page)
    assert pressed == ["false"] * (4 - marks) + ["true"] * marks
    assert f'id="ask">{ask}</p>' in page
    assert f'id="verdict">{verdict}</span>' in page
