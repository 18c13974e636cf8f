"""Learn a semantic space from partly tagged pictures and let tags pass between kin.

Pictures: handwritten digits (real ones, from scikit-learn) in up to three places on a shaded
wall. Tags: the digits to be seen, some forgotten, some wrong. Two thirds are tagged; for the
rest tags are suggested from their kin, first by looks alone, then in the semantic space.

Run with ``make demo``. Nothing is fetched; it takes seconds.
"""

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_digits

import tagkin

mpl.use("Agg")
import matplotlib.pyplot as plt

TAGS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
N_TAGGED, N_UNTAGGED, N_KIN = 1500, 500, 20
RIGHT, WRONG = "#2a9d4a", "#c8553d"


@dataclass(frozen=True)
class Collection:
    """Pictures (n×8×24), what is on them and how they were tagged (n×10)."""

    pictures: np.ndarray
    truth: np.ndarray
    tags: np.ndarray

    @property
    def features(self) -> np.ndarray:
        """Grey values as one row a picture."""
        return self.pictures.reshape(len(self.pictures), -1)


def make_collection(n: int, drawings: np.ndarray, digits: np.ndarray, seed: int) -> Collection:
    """Pictures with one to three of the drawings each; a fifth of the tags is forgotten."""
    rng = np.random.default_rng(seed)
    height, width = np.mgrid[0:8, 0:24] / [[[8]], [[24]]]
    pictures = np.empty((n, 8, 24), dtype=np.float32)
    truth = np.zeros((n, len(TAGS)))
    for picture, present in zip(pictures, truth, strict=True):
        light, slant, grain = rng.uniform(0, 6), rng.uniform(-4, 4, size=2), rng.uniform(0, 1.5)
        picture[...] = light + slant[0] * width + slant[1] * height + grain * rng.random((8, 24))
        for place in rng.permutation(3)[: rng.integers(1, 4)]:
            which = rng.integers(len(drawings))
            picture[:, 8 * place : 8 * place + 8] += rng.uniform(0.5, 1) * drawings[which]
            present[digits[which]] = 1
    forgotten, wrong = rng.random(truth.shape) < 0.2, rng.random(truth.shape) < 0.02
    tags = np.where(forgotten, 0, truth)
    tags[wrong] = 1
    return Collection(np.clip(pictures, 0, 22) / 22, truth, tags)


def show(label: str, scores: np.ndarray, truth: np.ndarray) -> None:
    """One line of the result table."""
    precision = 100 * tagkin.evaluate(truth, scores)["MAP"]
    best = 100 * truth[np.arange(len(truth)), scores.argmax(axis=1)].mean()
    bar = "█" * round(precision / 2.5)
    print(f"  {label:<22} {precision:5.1f}  {best:13.1f} %   {bar}")


def draw(
    new: Collection, known: Collection, kin: dict[str, np.ndarray], path: Path, n_rows: int = 5
) -> None:
    """Untagged pictures, their kin in both spaces, and what the kin suggest."""
    shown = 4
    figure = plt.figure(figsize=(12, 0.55 * n_rows + 0.8), layout="constrained")
    panels = np.asarray(figure.subfigures(1, 3, width_ratios=[1, shown + 1.1, shown + 1.1]))
    panels[0].suptitle("untagged", fontsize=11)
    for axis, picture in zip(panels[0].subplots(n_rows, 1), new.pictures, strict=False):
        axis.imshow(picture, cmap="bone", vmin=0, vmax=1)
        axis.axis("off")
    for panel, (name, indices) in zip(panels[1:], kin.items(), strict=True):
        panel.suptitle(f"kin {name}, and what they suggest", fontsize=11)
        grid = panel.subplots(n_rows, shown + 1, width_ratios=[1] * shown + [1.1])
        for row, axes in enumerate(grid):
            for axis, index in zip(axes, indices[row][:shown], strict=False):
                axis.imshow(known.pictures[index], cmap="bone", vmin=0, vmax=1)
                axis.set(xticks=[], yticks=[])
                shared = (known.truth[index] * new.truth[row]).sum() > 0
                axis.spines[:].set(color=RIGHT if shared else WRONG, linewidth=2.5)
            axes[-1].axis("off")
            votes = known.tags[indices[row]].mean(axis=0)
            for line, tag in enumerate(np.argsort(-votes, kind="stable")[:3]):
                axes[-1].text(
                    0,
                    0.95 - 0.42 * line,
                    f"{TAGS[tag]} {100 * votes[tag]:.0f} %",
                    color=RIGHT if new.truth[row, tag] else WRONG,
                    fontsize=8.5,
                    va="center",
                    transform=axes[-1].transAxes,
                )
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(output: str = "build/demo") -> None:
    """Make the pictures, learn, suggest, print and draw."""
    print("Making 2,000 pictures of digits, with tags as people give them ...")
    digits = load_digits()
    half = 1200  # drawings of the tagged pictures do not occur on the untagged ones
    known = make_collection(N_TAGGED, digits.images[:half], digits.target[:half], seed=1)
    new = make_collection(N_UNTAGGED, digits.images[half:], digits.target[half:], seed=2)
    lost = 1 - (known.tags * known.truth).sum() / known.truth.sum()
    wrong = (known.tags * (1 - known.truth)).sum() / known.tags.sum()
    print(
        f"  {N_TAGGED} are tagged ({100 * lost:.0f} % of the tags forgotten, {100 * wrong:.0f} % "
        f"of those given wrong), {N_UNTAGGED} are not.\n"
    )

    start = time.perf_counter()
    space = tagkin.SemanticSpace().fit(known.features, known.tags)
    seconds = time.perf_counter() - start
    print(f"Learned a space of {space.n_components_} dimensions in {seconds:.1f} s.")
    with tempfile.TemporaryDirectory() as folder:
        space = tagkin.load(tagkin.save(space, Path(folder) / "model"))

    places = {
        "by looks": (known.features, new.features),
        "in the semantic space": (space.transform(known.features), space.transform(new.features)),
    }
    kin = {}
    print(f"Each untagged picture gets the tags of its {N_KIN} nearest kin:\n")
    print(f"  {'kin found':<22} {'MAP':>5}  {'best tag right':>15}")
    for name, (of_known, of_new) in places.items():
        model = tagkin.NeighborVoting(N_KIN).fit(of_known, known.tags)
        kin[name] = model.kneighbors(of_new).indices
        show(name, model.decision_function(of_new), new.truth)

    path = Path(output) / "kin.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    draw(new, known, kin, path)
    print(f"\nLook at {path}: untagged pictures, their kin, and what the kin suggest.")


if __name__ == "__main__":
    main(*sys.argv[1:])
