"""Records say what they may hold, and are checked by that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest
import scipy.sparse

from tagkin.errors import InvalidInput
from tagkin.records.forms import LEFT_OUT, Axes, check_record, form_of
from tagkin.records.rules import (
    AxisSizes,
    FileNames,
    Flags,
    Floats,
    Indices,
    Number,
    Refused,
    Size,
    Sparse,
    Table,
    Text,
    TextLists,
    Texts,
    Whole,
)


@dataclass(frozen=True)
class Lines:
    slopes: Annotated[np.ndarray, Floats("D", low=0)]
    names: Annotated[list[str] | None, Texts("D")] = None


@dataclass(frozen=True)
class Model:
    points: Annotated[np.ndarray, Floats("N", "m")]
    lines: Lines
    other: Annotated[Lines | None, Axes(D="others")] = None
    level: float = 0.5
    note: str = ""

    def check_stored(self) -> None:
        if self.note == "wrong":
            raise InvalidInput("its note is wrong")


class Estimator:
    coef_: Annotated[np.ndarray, Floats("D")]
    seen_: Annotated[int, Whole().or_absent()]
    cached_: Annotated[dict[str, int], LEFT_OUT]

    def __init__(self, n_neighbors: int = 5, space: Any = None):
        self.n_neighbors, self.space = n_neighbors, space


def model(**changes: Any) -> Model:
    values = {"points": np.ones((4, 2)), "lines": Lines(np.ones(3)), **changes}
    return Model(**values)


def test_a_sound_record_passes():
    check_record(model(other=Lines(np.ones(2), ["a", "b"])), AxisSizes(), "model")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"points": np.ones((4, 2), int)}, "model.points is an array of int64 .* not an array of"),
        ({"points": np.ones(4)}, r"model.points has the shape \(4,\), not \(N, m\)"),
        ({"points": np.full((4, 2), np.nan)}, "model.points has numbers that are NaN"),
        ({"points": np.ones((4, 0))}, "model.points is empty"),
        ({"lines": Lines(-np.ones(3))}, "model.lines.slopes has numbers from -1 to -1"),
        ({"lines": Lines(np.ones(3), ["a"])}, "names has 1 entries where model.lines.slopes has 3"),
        ({"lines": None}, "model.lines is a NoneType, not a Lines"),
        ({"level": "high"}, "model.level is 'high', not a number"),
        ({"note": "wrong"}, "model cannot be used: its note is wrong"),
    ],
)
def test_what_a_record_cannot_hold_is_refused(changes, message):
    with pytest.raises(Refused, match=message):
        check_record(model(**changes), AxisSizes(), "model")


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (Number(above=0), 0.1, 0.0),
        (Number(), 0.1, float("nan")),
        (Whole(1, 9), 9, 9.0),
        (Whole(), 0, True),
        (Text("[a-z]+"), "abc", "a1"),
        (Floats("r", "r", triangular=True), np.eye(2), np.zeros((2, 2))),
        (Floats("r"), np.ones(2), np.ones(2, np.float16)),
        (Indices("r"), np.array([0, 2]), np.array([0, -1])),
        (Indices("r", ascending=True), np.array([0, 2]), np.array([2, 2])),
        (Flags("r"), np.array([True]), np.array([1])),
        (Sparse("N", "D", high=1), scipy.sparse.csr_array(np.eye(2)), np.eye(2)),
        (FileNames("N"), ["a..b/c.jpg"], ["a/../../c.jpg"]),
        (TextLists("N"), [["a"], []], [["a"], "b"]),
        (Table(Whole()), {"a": 1}, ["a"]),
        (Size("D"), 3, -3),
    ],
)
def test_rules(rule, good, bad):
    rule.check(good, AxisSizes(), "value")
    for value in (bad, None):
        with pytest.raises(Refused, match=r"^value "):
            rule.check(value, AxisSizes(), "value")
    rule.or_none().check(None, AxisSizes(), "value")


def test_an_estimator_stores_its_parameters_and_what_it_declares():
    form = form_of(Estimator)
    assert list(form.parameters) == ["n_neighbors", "space"]
    assert set(form.learned) == {"coef_", "seen_"}
    assert form.left_out == {"cached_"}


def test_what_was_not_learned_is_not_asked_for():
    check_record(Estimator(), AxisSizes(), "model", fitted=False)
    with pytest.raises(Refused, match=r"model lacks coef_"):
        check_record(Estimator(), AxisSizes(), "model")
