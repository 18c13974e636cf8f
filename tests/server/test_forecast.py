"""The line on top says how long the rest takes at one's own pace."""

import datetime

import pytest

from tagkin.catalogue import Catalogue
from tagkin.server.forecasting import Forecast
from tagkin.server.order import Order, Reading
from tests.catalogue.suggested import content, offer


@pytest.fixture
def paced(catalogue: Catalogue) -> Catalogue:
    """Three seconds per answer, all accepted; 30 suggestions are left, all of them at 80 %."""
    catalogue.completeness.declare_incomplete("")  # else yes says that tags were forgotten
    tags = {f"tag {i:02}": 0.8 for i in range(60)}
    catalogue.database.execute("DELETE FROM suggestions")
    offer(catalogue, {"a.jpg": tags})
    number = content(catalogue, "a.jpg")
    start = datetime.datetime.fromisoformat("2026-01-01T12:00:00+00:00")
    for step in range(3):
        pairs = catalogue.database.rows(
            "SELECT content, tag FROM suggestions ORDER BY tag LIMIT 10"
        )
        run = catalogue.decisions.decide_pairs([(number, tag) for _, tag in pairs]).run
        moment = start + datetime.timedelta(seconds=30 * step)
        catalogue.database.execute(
            "UPDATE runs SET started_at = ? WHERE id = ?", (moment.isoformat(), run)
        )
    return catalogue


@pytest.mark.parametrize(
    ("n_left", "text"),
    [
        (0, ""),
        (20, "About a minute left at your pace"),
        (100, "About 5 minutes left at your pace"),
        (
            600,
            "About 30 minutes left at your pace; the next ten minutes bring about 26 correct tags",
        ),
        (6000, "About 5 hours left at your pace; the next ten minutes bring about 26 correct tags"),
    ],
)
def test_minutes(paced: Catalogue, n_left: int, text: str) -> None:
    assert Forecast().text(Reading(paced, Order()), n_left) == text


def test_nothing_is_said_at_the_pace_of_a_script(paced: Catalogue) -> None:
    paced.database.execute("UPDATE runs SET started_at = '2026-01-01T12:00:00+00:00'")
    assert Forecast().text(Reading(paced, Order()), 100) == ""


def test_nothing_is_said_without_a_pace(catalogue: Catalogue) -> None:
    assert Forecast().text(Reading(catalogue, Order()), 1000) == ""
