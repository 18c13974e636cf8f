"""What is said after a few examples of own words, where nothing else is tagged.

    python -m experiments trust --examples

Four words get eight examples each in 500 photographs (or all of a smaller collection), with their
real names and with invented ones. The other photographs are untagged. Draws are not those that the
start was chosen on.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from experiments import made
from experiments.moments import load_personal
from experiments.names import load_task
from tagkin import FeatureAnnotator
from tagkin.arrays import expit
from tagkin.tag_meanings import CaptionEncoder, NamePrior

__all__ = ["main"]

SETS = ("photos", "flickr8k", "traveller")
N_PHOTOGRAPHS, N_WORDS, N_EXAMPLES, FIRST_DRAW = 500, 4, 8, 200
INVENTED = ("Zorbu", "Quimp", "Veltra", "Moxil")
LEAST = 6  # photographs of a word beside its examples
BANDS = ((0.5, 1.01), (0.3, 0.5), (0.1, 0.3))


def open_set(name: str) -> tuple[np.ndarray, np.ndarray, list[str], dict[str, Any]]:
    """Return features, labels as a bool matrix, their names, and the moments of photographs."""
    if name == "traveller":
        person = load_personal(name)
        words = sorted({tag for row in person.tags for tag in row})
        return person.X, person.matrix(words) > 0, words, person.moments()
    task = load_task(name)
    some = np.sort(np.random.default_rng(3).permutation(task.train)[:3000])
    return np.asarray(task.X[some], np.float32), task.Y[some].toarray() > 0, task.labels, {}


def measure(name: str, draw: int) -> Iterator[dict[str, Any]]:
    """Count what is said, and what of it is right, with real words, invented ones, and by name."""
    X, Y, words, moments = open_set(name)
    rng = np.random.default_rng(draw)
    rows = np.sort(rng.permutation(len(X))[:N_PHOTOGRAPHS])
    X, Y, counts = X[rows], Y[rows], Y[rows].sum(axis=0)
    taken: dict[str, Any] = {key: [value[i] for i in rows] for key, value in moments.items()}
    is_usual = (counts >= N_EXAMPLES + LEAST) & (counts < 0.45 * len(rows))
    tags = np.sort(rng.permutation(np.flatnonzero(is_usual))[:N_WORDS])
    truth, is_example = Y[:, tags], np.zeros((len(rows), N_WORDS), bool)
    for t in range(N_WORDS):
        is_example[rng.permutation(np.flatnonzero(truth[:, t]))[:N_EXAMPLES], t] = True
    prior, real = NamePrior(CaptionEncoder()), [words[t] for t in tags]
    alone = expit(prior.log_odds(X, prior.meanings(real).table()))
    yield {"set": name, "draw": draw, "words": "names alone"} | _count(alone, truth, is_example)
    for kind, names in (("real", real), ("invented", list(INVENTED))):
        lists = [[names[t] for t in np.flatnonzero(row)] for row in is_example]
        annotator = FeatureAnnotator(prior=prior)
        annotator.fit(X, lists, complete=np.zeros(len(X), bool), **taken)
        asked = annotator.suggest(X, known=np.arange(len(X)), threshold=0.1, n=N_WORDS, **taken)
        P = np.zeros(truth.shape)
        for i, row in enumerate(asked):
            for suggestion in row:
                P[i, names.index(str(suggestion.name))] = suggestion.confidence
        yield {"set": name, "draw": draw, "words": kind} | _count(P, truth, is_example)


def _count(P: np.ndarray, truth: np.ndarray, is_example: np.ndarray) -> dict[str, float]:
    counts: dict[str, float] = {}
    for low, high in BANDS:
        chosen = (low <= P) & (high > P) & ~is_example
        band = f"{low:.0%}"
        counts |= {f"n {band}": int(chosen.sum()), f"said {band}": float(P[chosen].sum())}
        counts[f"right {band}"] = int(truth[chosen].sum())
    return counts


def main(arguments: list[str]) -> None:
    """Measure all draws, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m experiments trust", description=__doc__)
    parser.add_argument("--examples", action="store_true", help="this experiment")
    parser.add_argument("--draws", type=int, default=10)
    draws = parser.parse_args(arguments).draws
    rows = [
        row
        for name in SETS
        for draw in range(FIRST_DRAW, FIRST_DRAW + draws)
        for row in measure(name, draw)
    ]
    made.write(
        made.RESULTS / "examples-draws.csv", rows, f"{FIRST_DRAW} to {FIRST_DRAW + draws - 1}"
    )
    table = []
    for name in SETS:
        for kind in ("names alone", "real", "invented"):
            chosen = [row for row in rows if (row["set"], row["words"]) == (name, kind)]
            line: dict[str, Any] = {"collection": name, "words": kind}
            for low, _ in BANDS:
                n, said, right = (
                    sum(row[f"{what} {low:.0%}"] for row in chosen)
                    for what in ("n", "said", "right")
                )
                line[f"{low:.0%} and more"] = (
                    f"{n}: {said / n:.2f}, {right / n:.2f}" if n else "none"
                )
            table.append(line)
    made.write(made.RESULTS / "examples.csv", table, f"{FIRST_DRAW} to {FIRST_DRAW + draws - 1}")
    made.write_pages()
