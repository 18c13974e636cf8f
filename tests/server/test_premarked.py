"""Tiles below one half are marked as wrong when a page opens, and the page says so."""

import re

import pytest

from tagkin.catalogue import Catalogue
from tests.catalogue.suggested import offer

from .browser import Browser
from .conftest import tag

PATHS = ("a.jpg", "b.jpg", "2024/c.jpg", "2024/d.jpg")


@pytest.mark.parametrize(
    ("confidences", "marks", "ask", "why", "verdict"),
    [
        ((0.9, 0.8, 0.7, 0.5), 0, "Mark the wrong ones", None, "Accept 4"),
        (
            (0.4, 0.3, 0.2, 0.1),
            4,
            "Mark the right ones",
            "Each is more likely wrong than right.",
            "Reject 4",
        ),
        (
            (0.9, 0.8, 0.4, 0.1),
            2,
            "Check the marks",
            "Only the first 2 are likely right, so the others start marked as wrong.",
            "Accept 2, reject 2",
        ),
        (
            (0.9, 0.499, 0.3, 0.1),  # the second is shown as 50 %
            3,
            "Check the marks",
            "Only the first is likely right, so the others start marked as wrong.",
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
    why: str | None,
    verdict: str,
) -> None:
    offer(catalogue, {path: {"new": p} for path, p in zip(PATHS, confidences, strict=True)})
    page = browser.get(f"/tags/{tag(catalogue, 'new')}").text
    pressed = re.findall(r'class="tile[^"]*" aria-pressed="(\w+)"', page)
    assert pressed == ["false"] * (4 - marks) + ["true"] * marks
    assert f'id="ask">{ask}</p>' in page
    assert re.findall(r'id="reason">(.*?)</p>', page) == ([why] if why else [])
    assert f'id="verdict">{verdict}</span>' in page


def test_a_page_to_learn_from_says_why(browser: Browser, catalogue: Catalogue) -> None:
    offer(catalogue, {"a.jpg": {"new": 0.5}})
    assert "so your answers teach it most" in browser.get("/question?strategy=learn-most").text
    assert 'id="reason"' not in browser.get("/question").text
