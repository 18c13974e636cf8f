"""The report in a real browser: nothing is cut off."""

import numpy as np
import pytest

from tagkin.evaluation import label_report
from tagkin.pages import Report, write_report
from tests.server.window import chromium

# px that the table's columns lack in its frame, which scrolls where they do
LACKING = """() => {
  const frame = document.querySelector(".scroll");
  return frame.scrollWidth - frame.clientWidth;
}"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as chrome:
        yield chrome


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_column_of_the_tag_table_is_seen(browser, scheme, tmp_path):
    rng = np.random.default_rng(0)
    names = ["person", "tennis racket", "dining table", "traffic light", "refrigerator"]
    truth = rng.random((400, len(names))) < 0.4
    labels = label_report(truth, rng.random(truth.shape), names=names, min_scores=0.5)
    path = tmp_path / "report.html"
    write_report(Report("Quality", labels=labels), path)
    page = browser.new_page(color_scheme=scheme)
    page.goto(path.as_uri())
    for width in (1300, 1101, 1000, 800):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(LACKING) <= 0, width
        last = page.locator("thead th").last.bounding_box()
        assert last["x"] + last["width"] <= width, width
    page.close()
