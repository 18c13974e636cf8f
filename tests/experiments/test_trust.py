"""What is measured of small collections, on one that is made."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

from experiments import made
from experiments.trust import ASKED, FORGOTTEN, measure_forgotten, write_page


@pytest.fixture(scope="module")
def collection():
    """1,000 photographs whose tags can be told from their features."""
    rng = np.random.default_rng(0)
    Y = rng.random((1000, 6)) < 0.3
    X = Y @ rng.random((6, 24)) + 0.05 * rng.random((1000, 24))
    labels = [f"tag {t}" for t in range(6)]
    Y = scipy.sparse.csr_array(Y.astype(np.float32))
    return SimpleNamespace(X=X, Y=Y, labels=labels, train=np.arange(1000), prior=None)


def test_a_forgotten_tag_counts_as_wrong_and_is_right(collection):
    row = measure_forgotten(collection, 200, 0)
    n, given, right = (row[f"{what} 0.5"] for what in ("n", "given", "right"))
    assert n > 100
    assert right / n > 0.9
    assert given / right == pytest.approx(1 - FORGOTTEN, abs=0.05)


def test_a_page_of_what_was_measured(collection, tmp_path):
    row = {"collection": "photos", **measure_forgotten(collection, 200, 0)}
    made.write(tmp_path / "trust-forgotten.csv", [{**row, "nothing to measure": np.nan}])
    (tmp_path / "names-alone.csv").write_text("collection,least\nphotos,0.5\n")
    write_page([], tmp_path)
    page = (tmp_path / "trust.md").read_text(encoding="utf-8")
    right = row[f"right {ASKED[0]}"] / row[f"n {ASKED[0]}"]
    assert "| photos | 200 |" in page
    assert f", {right:.2f}" in page
    assert not re.search("<!-- [A-Z]", page)  # places that the template leaves for tables
