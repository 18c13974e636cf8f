"""Rules against independent forms, and any value against any rule."""

import math
import random

import numpy as np
import pytest
import scipy.sparse

from tagkin.records.rules import (
    AxisSizes,
    Choice,
    Either,
    FileNames,
    Flag,
    Flags,
    Floats,
    Indices,
    ListOf,
    Number,
    Refused,
    Size,
    Sparse,
    Table,
    Text,
    TextLists,
    Texts,
    Whole,
    describe_value,
)

RULES = {
    "choice": Choice(("a", "b")),
    "either": Either(Whole(), Text("[a-z]*")),
    "file names": FileNames("N"),
    "flag": Flag(),
    "flags": Flags("N"),
    "floats": Floats("N", "D", low=-2, high=2),
    "indices": Indices("N", ascending=True),
    "list": ListOf(Number()),
    "number": Number(0, 1),
    "size": Size("N"),
    "sparse": Sparse("N", "D"),
    "table": Table(Texts("N")),
    "text": Text(),
    "text lists": TextLists("N"),
    "texts": Texts(),
    "whole": Whole(),
}


def any_value(rng: random.Random, depth: int = 2):
    """A value that a file may hold, or none should."""
    array = np.random.default_rng(rng.randrange(99))
    plain = [
        *(None, True, False, 0, 1, -1, 2**70, 0.5, math.nan, math.inf, "", "a", "a/../b", "\0"),
        *(b"a", object(), array.random(3), array.random((2, 3)), array.integers(-1, 5, 4)),
        *(np.array(["a"]), np.array(["a", None], dtype=object), np.zeros((0, 2))),
        *(array.random(2) < 0, np.ones(2, np.float16), np.float32(1), np.arange(2)),
        *(["a", "b"], {"a": []}, scipy.sparse.csr_array(array.random((2, 2)) - 0.2)),
    ]
    if not depth or rng.random() < 0.6:
        return rng.choice(plain)
    parts = [any_value(rng, depth - 1) for _ in range(rng.randrange(3))]
    return parts if rng.random() < 0.5 else {rng.choice(["a", "b", 1]): part for part in parts}


@pytest.mark.parametrize("name", RULES)
def test_any_value_passes_or_is_refused_by_its_place(name):
    """With no other error, the same way twice, and with None where the rule allows it."""
    rng, rule = random.Random(name), RULES[name]
    outcomes = set()
    for _ in range(400):
        value = any_value(rng)
        said = []
        for each in (rule, rule, rule.or_none()):
            try:
                each.check(value, AxisSizes(), "here")
                said.append("")
            except Refused as refusal:
                said.append(str(refusal))
        assert all(text == "" or text.startswith("here") for text in said)
        assert said[0] == said[1] == (said[2] if value is not None else said[0])
        assert value is not None or (said[0] and not said[2])
        outcomes.add(not said[0])
    assert outcomes == {True, False}, "some pass, and some do not"


@pytest.mark.parametrize("seed", range(20))
def test_numbers_of_an_array_are_checked_one_by_one(seed):
    rng = np.random.default_rng(seed)
    low, high = np.sort(rng.normal(size=2))
    shares = [0.3, 0.3, 0.3, 0.05, 0.05]
    values = rng.choice([low, high, (low + high) / 2, high + 1, low - 1], size=4, p=shares)
    holes = np.where(rng.random(4) < 0.2, np.nan, values)
    for array in (values, holes):
        inside = all(low <= value <= high for value in array.tolist())
        known = all(low <= value <= high or math.isnan(value) for value in array.tolist())
        for unknown, expected in ((False, inside), (True, known)):
            rule = Floats("D", low=low, high=high, unknown=unknown)
            assert passes(rule, array) == expected
        assert passes(Floats("D", endless=True), array) == (not np.isnan(array).any())
    assert passes(Floats("D", endless=True), np.array([math.inf, -math.inf]))


def passes(rule, value, sizes=None) -> bool:
    try:
        rule.check(value, sizes or AxisSizes(), "value")
    except Refused:
        return False
    return True


@pytest.mark.parametrize("seed", range(10))
def test_indices_lie_below_an_axis_that_came_before(seed):
    rng = np.random.default_rng(seed)
    sizes, n = AxisSizes(), int(rng.integers(1, 6))
    sizes.note("D", n, "labels")
    values = rng.integers(-1, n + 1, size=3)
    assert passes(Indices("k", below="D"), values, sizes) == (set(values) <= set(range(n)))
    ordered = values.min() >= 0 and (np.diff(values) > 0).all()
    assert passes(Indices("k", ascending=True), values) == ordered
    with pytest.raises(TypeError, match="an earlier field must have the axis E"):
        Indices("k", below="E").check(np.array([0]), AxisSizes(), "value")


def test_entries_of_a_sparse_matrix_are_in_order_and_once():
    sound = scipy.sparse.csr_array(np.array([[0.0, 1, 2], [3, 0, 0]]))
    assert passes(Sparse("N", "D"), sound)
    swapped = scipy.sparse.csr_array((sound.data, np.array([2, 1, 0]), sound.indptr), shape=(2, 3))
    twice = scipy.sparse.csr_array((sound.data, np.array([1, 1, 0]), sound.indptr), shape=(2, 3))
    assert not passes(Sparse("N", "D"), swapped)
    assert not passes(Sparse("N", "D"), twice)
    assert not passes(Sparse("N", "D", high=2), sound)


def test_names_of_axes_are_translated_through_parts_of_parts():
    sizes = AxisSizes()
    sizes.note("D", 3, "labels")
    inner = sizes.rename({"m": "D"}).rename({"q": "m", "r": "new"})
    assert inner.get("q") == 3
    inner.note("r", 7, "inner.r")
    assert sizes.get("new") == 7
    with pytest.raises(Refused, match=r"part has 4 entries where labels has 3"):
        inner.note("q", 4, "part")


def test_axes_with_longer_names_may_be_empty():
    assert passes(Floats("entries"), np.zeros(0))
    assert not passes(Floats("D"), np.zeros(0))
    assert not passes(Floats("N"), np.zeros(0))


def test_a_changed_rule_is_another_rule():
    rule = Floats("D")
    changed = rule.or_none().or_absent().kept_on_host()
    assert (changed.may_be_none, changed.may_be_absent, changed.on_host) == (True, True, True)
    assert (rule.may_be_none, rule.may_be_absent, rule.on_host) == (False, False, False)


def test_a_description_of_a_value_is_short():
    rng = random.Random(0)
    values = [any_value(rng) for _ in range(300)]
    assert all(len(describe_value(value)) <= 80 for value in [*values, "x" * 999, 10**5000])
