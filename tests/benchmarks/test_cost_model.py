"""What larger collections cost: the page is the model's, and the model is what was measured."""

import pytest

from benchmarks import cost_model, report
from benchmarks.cost_model import Plan, Point, Rates


@pytest.fixture(scope="module")
def results():
    return report.stored()


def test_the_page_is_that_of_the_model(results):
    text = cost_model.PAGE.read_text()
    assert cost_model.page_with(text, results) == text


def test_what_was_measured_lies_on_the_curve(results):
    rates = Rates.of(cost_model.points(results))
    assert {point.where for point in rates.measured} >= {"one core", "2 workers"}
    assert {point.step for point in rates.measured} >= {"features", "sums", "GPU sums"}
    for point in rates.measured:
        assert 0.5 < rates.off(point) < 2, point


def test_a_rate_is_the_geometric_mean_of_its_points():
    rates = Rates.of([Point("sums", "a", 10, 10), Point("sums", "b", 10, 40)])
    assert rates.seconds["sums"] == pytest.approx(2)
    assert [rates.off(point) for point in rates.measured] == pytest.approx([0.5, 2])


def test_operations_by_hand():
    assert cost_model.sum_operations(3, 5, 7) == 3 * (2 * 5 * 7 + 49)
    assert cost_model.projection_operations(3, 5, 7, 2) == 2 * 3 * (35 + 14)


def test_ten_times_the_images_cost_ten_times_as_much(results):
    rates = Rates.of(cost_model.points(results))
    small, large = (cost_model.core_seconds(Plan(n, 16), rates, results) for n in (1e8, 1e9))
    for step in small:
        assert large[step] == pytest.approx(10 * small[step])
