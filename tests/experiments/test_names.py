"""The learning curves with and without names: what stands in the table."""

from experiments.names import summarized


def test_draws_are_averaged_and_the_worst_difference_is_told():
    rows = [
        {"labelled": 0, "draw": 0, "without": float("nan"), "with": 30.0},
        {"labelled": 10, "draw": 0, "without": 10.0, "with": 30.0},
        {"labelled": 10, "draw": 1, "without": 20.0, "with": 19.0},
    ]
    table = summarized(rows)
    assert [row["labelled"] for row in table] == [0, 10]
    assert table[0]["without names"] == ""
    assert table[1]["without names"] == "15.0"
    assert table[1]["with names"] == "24.5"
    assert table[1]["smallest difference of a draw"] == "-1.0"
