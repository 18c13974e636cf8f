"""Textual views, and denoising of noisy tags, on real photographs.

    python -m examples.words views flickr8k coco     # the three textual kernels
    python -m examples.words tags                    # COCO's own noisy tags
    python -m examples.words noise flickr8k coco     # more and more noise, with a figure

The data is read from the folder TAGKIN_DATA, or from ../shared/data.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import scipy.sparse

mpl.use("Agg")
import matplotlib.pyplot as plt

from examples.methods import FOLDER, label_names, read
from examples.noise import with_noise
from experiments.blends import choose_blend
from tagkin import SemanticSpace, evaluate
from tagkin.arrays import Array
from tagkin.neighbors import Neighbors, nearest
from tagkin.paper import NeighborVoting, OntologyView, TagDenoiser, WordVectorView

N_NEIGHBORS = (25, 50, 100, 200)
NOISE: dict[str, dict[str, Any]] = {
    "no added noise": {},
    "half missing": {"dropped": 0.5},
    "as many wrong": {"wrong": 1.0},
    "three times as many wrong": {"wrong": 3.0},
    "half missing, as many wrong": {"dropped": 0.5, "wrong": 1.0},
    "one personal tag per image": {"personal": 1.0},
    "70 % of the images untagged": {"untagged": 0.7},
    "everything": {"dropped": 0.5, "wrong": 2.0, "personal": 1.0, "untagged": 0.5},
}


@dataclass(frozen=True)
class Tagged:
    """Tagged images to learn from, and labelled images to evaluate on."""

    known: np.ndarray
    tags: scipy.sparse.csr_array
    new: np.ndarray
    truth: np.ndarray
    evaluated: np.ndarray
    """Columns of the tags that are also labels, in the order of the columns of `truth`."""
    n_landmarks: int


def tagged_coco(n_known: int, n_new: int) -> Tagged:
    """COCO's images with tags from captions, and the 56 labels that are also tags."""
    data = np.load(FOLDER / "coco.npz")
    order = np.random.default_rng(0).permutation(np.flatnonzero(data["has_tags"]))
    known, new = order[:n_known], order[n_known : n_known + n_new]
    features = data["features"][np.concatenate([known, new])].astype(np.float32) * data["scale"]
    tags = scipy.sparse.csr_array(
        (np.ones(len(data["tag_rows"]), np.float32), (data["tag_rows"], data["tag_cols"])),
        shape=(len(data["features"]), len(data["tag_names"])),
    )
    labels = np.unpackbits(data["labels"], axis=1)[:, :80]
    words = {str(tag): column for column, tag in enumerate(data["tag_names"])}
    both = [(i, words[str(name)]) for i, name in enumerate(data["label_names"]) if name in words]
    of_label, of_tag = np.array(both).T
    return Tagged(
        features[:n_known], tags[known], features[n_known:], labels[new][:, of_label], of_tag, 2048
    )


def tagged_flickr8k() -> Tagged:
    """Flickr8k with simulated tags: each noun is drawn with the share of people who named it."""
    data, votes = read("flickr8k"), np.load(FOLDER / "flickr8k.npz")["votes"]
    rng = np.random.default_rng(0)
    tags = scipy.sparse.csr_array(rng.random(votes.shape) < votes / 5, dtype=np.float32)
    known, new = ~data.is_test, data.is_test
    expert = votes >= 2
    evaluated = np.flatnonzero((expert[known].sum(axis=0) >= 10) & expert[new].any(axis=0))
    truth = expert[new][:, evaluated]
    return Tagged(data.features[known], tags[known], data.features[new], truth, evaluated, 2048)


def best_map(neighbors: Array, tags: Any, collection: Tagged) -> float:
    """Best MAP of voting, in percent, over numbers of neighbours."""
    Y = tags[:, collection.evaluated]
    unused = np.zeros((Y.shape[0], 1), dtype=int), np.zeros((Y.shape[0], 1))
    best = 0.0
    for k in N_NEIGHBORS:
        model = NeighborVoting(k, weighted=True).fit_neighbors(*unused, Y)
        lists = Neighbors(neighbors[:, :k], np.zeros((len(neighbors), k)))
        scores = model.score_neighbors(*lists)
        best = max(best, evaluate(collection.truth, scores)["MAP"])
    return 100 * best


def neighbors_in_space(collection: Tagged, tags: Any, view: Any = "indicator") -> Array:
    """Neighbours of the new images in a space learned from tags."""
    space = SemanticSpace(n_landmarks=collection.n_landmarks, text_view=view, random_state=0)
    space.fit(collection.known, tags)
    known, new = space.transform(collection.known), space.transform(collection.new)
    return nearest(new, known, max(N_NEIGHBORS)).indices


def compare(collection: Tagged, tags: Any) -> dict[str, float]:
    """MAP of the visual baseline and of spaces from raw, denoised and partly denoised tags."""
    visual = nearest(collection.new, collection.known, max(N_NEIGHBORS)).indices
    paper = TagDenoiser(blend=1.0).fit_transform(collection.known, tags)
    blend = choose_blend(collection.known, tags)
    chosen = TagDenoiser(blend=blend).fit_transform(collection.known, tags)
    return {
        "visual baseline": best_map(visual, tags, collection),
        "space on raw tags": best_map(neighbors_in_space(collection, tags), tags, collection),
        "space on denoised tags": best_map(neighbors_in_space(collection, paper), tags, collection),
        "chosen on held-out tags": best_map(
            neighbors_in_space(collection, chosen), chosen, collection
        ),
        "blend": blend,
    }


def views(name: str) -> None:
    """Print the table of textual views for one dataset."""
    data = read(name)
    names = label_names(name)
    known, new = ~data.is_test, data.is_test
    Y, truth = data.labels[known], data.labels[new]
    print(f"\n{name}: NNvot with {data.n_neighbors} neighbours, {Y.shape[1]} labels")
    print(f"{'':34}{'MAP':>8}{'Prec@5':>8}{'Rec@5':>8}{'N+':>8}")
    ontology, vectors = OntologyView(names), WordVectorView(names)
    for title, view in {
        "visual baseline": None,
        "indicator (linear)": "indicator",
        "ontology (WordNet, Lin)": ontology,
        "word vectors (GloVe, 50-d)": vectors,
    }.items():
        embeddings: Array = data.features
        if view is not None:
            space = SemanticSpace(n_landmarks=data.n_landmarks, text_view=view, random_state=0)
            embeddings = space.fit(data.features[known], Y).transform(data.features)
        model = NeighborVoting(data.n_neighbors).fit(embeddings[known], Y)
        found = evaluate(truth, model.decision_function(embeddings[new]))
        cells = [f"{100 * found[key]:.1f}" for key in ("MAP", "macro_precision", "macro_recall")]
        print(f"{title:34}" + "".join(f"{c:>8}" for c in [*cells, found["n_plus"]]), flush=True)
    print(f"not in WordNet: {', '.join(ontology.fit(Y).unknown_) or 'none'}")
    print(f"without a vector: {', '.join(vectors.fit(Y).unknown_) or 'none'}")


def tags(n_known: int = 30_000) -> None:
    """Print the table for COCO's own tags."""
    collection = tagged_coco(n_known, 6000)
    print(f"\nCOCO, {n_known:,} images with tags from captions, 6,000 test images, 56 labels")
    for title, value in compare(collection, collection.tags).items():
        print(f"{title:28}{value:8.1f}" if title != "blend" else f"(blend {value:g})")


def noise(name: str, folder: Path) -> None:
    """Print and draw MAP against the kind of noise."""
    collection = tagged_coco(10_000, 6000) if name == "coco" else tagged_flickr8k()
    print(f"\n{name}: {collection.known.shape[0]:,} training images, MAP of NNvot at its best K")
    rows = {}
    for title, setting in NOISE.items():
        noisy = with_noise(collection.tags, **setting)
        rows[title] = compare(collection, noisy)
        cells = [f"{value:8.2f}" for value in rows[title].values()]
        if len(rows) == 1:
            print(" " * 38 + "  visual     raw  denoised chosen   blend")
        print(f"{title:38}" + "".join(cells), flush=True)
    draw(name, rows, folder / f"noise-{name}.svg")


def draw(name: str, rows: dict[str, dict[str, float]], path: Path) -> None:
    """One row of dots per kind of noise."""
    figure, axis = plt.subplots(figsize=(8, 0.42 * len(rows) + 1.3), layout="constrained")
    styles = {
        "visual baseline": ("o", "0.6"),
        "space on raw tags": ("s", "C0"),
        "space on denoised tags": ("^", "C1"),
        "chosen on held-out tags": ("D", "C2"),
    }
    for kind, (marker, color) in styles.items():
        values = [row[kind] for row in rows.values()]
        axis.plot(values, np.arange(len(rows)), marker, color=color, label=kind, ms=7, alpha=0.9)
    axis.set(yticks=np.arange(len(rows)), yticklabels=list(rows), xlabel=f"MAP on {name} (%)")
    axis.invert_yaxis()
    axis.grid(axis="both", color="0.92")
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    print(f"Wrote {path}.")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["views", "tags", "noise"])
    parser.add_argument("dataset", nargs="*", default=["flickr8k", "coco"])
    parser.add_argument("--figures", type=Path, default=Path("build/words"))
    options = parser.parse_args()
    if not FOLDER.exists():
        sys.exit(f"{FOLDER} does not exist. Set TAGKIN_DATA to the folder that has the data.")
    if options.what == "tags":
        tags()
    for name in options.dataset if options.what != "tags" else []:
        if options.what == "views":
            views(name)
        else:
            noise(name, options.figures)


if __name__ == "__main__":
    main()
