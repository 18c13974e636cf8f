"""Every method of label transfer, on visual features and in the semantic space.

    python -m examples.methods flickr8k coco          # about 10 minutes on two cores
    python -m examples.methods flickr8k --choose      # settings by 3-fold cross-validation
    python -m examples.methods flickr8k --calibration build/methods   # calibration per label

The data (features and labels of Flickr8k and COCO) is read from the folder TAGKIN_DATA, or from
../shared/data. Settings are fixed unless --choose is given. It chooses them by cross-validation on
the training images, separately for visual features and for the space.
"""

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from tagkin import SemanticSpace
from tagkin.arrays import Array
from tagkin.calibration import LabelCalibrator, expected_calibration_error
from tagkin.evaluation import evaluate, label_report
from tagkin.paper import LinearSVM, NeighborVoting, RidgeTransfer, TagProp, TagRelevance, TwoPassKNN

FOLDS = KFold(3, shuffle=True, random_state=0)
FOLDER = Path(
    os.environ.get("TAGKIN_DATA", Path(__file__).parent.parent.parent / "shared" / "data")
)
GRIDS: dict[str, dict[str, list[Any]]] = {
    "NNvot": {"n_neighbors": [20, 50, 100, 200]},
    "TagRel": {"n_neighbors": [20, 50, 100, 200]},
    "TagProp": {"n_neighbors": [50, 100, 200]},
    "2PKNN": {"n_per_label": [1, 2, 5], "decay": [1.0, 3.0, 10.0]},
    "SVM": {"C": [10.0**power for power in range(-3, 4)]},
    "ridge": {"regularization": [0.05, 0.5, 5.0, 50.0, 500.0]},
}


@dataclass(frozen=True)
class Dataset:
    """Features and labels of training and test images, and the fixed settings."""

    features: np.ndarray
    labels: np.ndarray
    is_test: np.ndarray
    n_neighbors: int
    n_landmarks: int


def read(name: str) -> Dataset:
    """Load one of the two datasets."""
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        sys.exit(f"{path.name} is not in {FOLDER}. Set TAGKIN_DATA to the folder that has it.")
    data = np.load(path)
    X = data["features"].astype(np.float32) * data["scale"]
    if name == "coco":
        labels = np.unpackbits(data["labels"], axis=1)[:, :80]
        return Dataset(X, labels, data["is_test"], n_neighbors=50, n_landmarks=2048)
    labels, is_test = data["votes"] >= 2, data["split"] == "test"
    known, asked = labels[~is_test].sum(axis=0) >= 10, labels[is_test].any(axis=0)
    return Dataset(X, labels[:, known & asked], is_test, n_neighbors=100, n_landmarks=3000)


def methods(k: int) -> dict[str, Any]:
    """The methods with fixed settings."""
    return {
        "NNvot": NeighborVoting(k),
        "TagRel": TagRelevance(k),
        "TagProp": TagProp(k),
        "2PKNN": TwoPassKNN(5, decay=1.0),
        "SVM": LinearSVM(),
        "ridge": RidgeTransfer(),
    }


def line(cells: list[str]) -> str:
    """A row of the table: two names, six numbers, and a note."""
    method, space, *numbers, note = cells
    return f"{method:8}{space:10}" + "".join(f"{number:>8}" for number in numbers) + f"  {note}"


def run(name: str, choosing: bool, seed: int) -> None:
    """Print the table of one dataset."""
    data = read(name)
    known, new = ~data.is_test, data.is_test
    Y, truth = data.labels[known], data.labels[new]
    print(f"\n{name}: {known.sum():,} training and {new.sum():,} test images, {Y.shape[1]} labels")
    start = time.perf_counter()
    space = SemanticSpace(n_landmarks=data.n_landmarks, random_state=seed)
    space.fit(data.features[known], Y)
    spaces = {"visual": data.features, "semantic": space.transform(data.features)}
    print(f"Space of {space.n_components_} dimensions in {time.perf_counter() - start:.0f} s\n")
    print(line(["method", "space", "MAP", "Prec@5", "Rec@5", "N+", "MiAP", "seconds", "settings"]))
    for title, method in methods(data.n_neighbors).items():
        for where, Z in spaces.items():
            start = time.perf_counter()
            setting = ""
            if choosing:
                found = GridSearchCV(method, GRIDS[title], cv=FOLDS).fit(Z[known], Y)
                method = found.best_estimator_
                setting = ", ".join(f"{k}={v:g}" for k, v in found.best_params_.items())
            else:
                method.fit(Z[known], Y)
            print_row(title, where, truth, method.decision_function(Z[new]), start, setting)
    start = time.perf_counter()
    scores = RidgeTransfer.of_space(space).decision_function(spaces["semantic"][new])
    print_row("ridge", "of space", truth, scores, start, "the space's own kernel ridge")


def print_row(
    title: str, where: str, truth: np.ndarray, scores: Array, start: float, setting: str
) -> None:
    """Evaluate one method and print its row."""
    seconds = time.perf_counter() - start
    found = evaluate(truth, scores)
    cells = [f"{100 * found[key]:.1f}" for key in ("MAP", "macro_precision", "macro_recall")]
    cells += [f"{found['n_plus']}", f"{100 * found['MiAP']:.1f}", f"{seconds:.1f}", setting]
    print(line([title, where, *cells]), flush=True)


def calibration(name: str, seed: int, folder: Path) -> None:
    """Calibrate votes on held-out training images; evaluate them on the test images."""
    data = read(name)
    known, new = ~data.is_test, data.is_test
    Y, truth = data.labels[known], data.labels[new]
    # in a pipeline, since embeddings of training images depend on their own labels
    pipeline = make_pipeline(
        SemanticSpace(n_landmarks=data.n_landmarks, random_state=seed),
        NeighborVoting(data.n_neighbors),
    )
    held_out = cross_val_predict(
        pipeline, data.features[known], Y, cv=FOLDS, method="decision_function"
    )
    calibrator = LabelCalibrator().fit(held_out, Y)
    scores = pipeline.fit(data.features[known], Y).decision_function(data.features[new])
    probabilities = calibrator.predict_proba(scores)
    raw = expected_calibration_error(truth, scores / data.n_neighbors)
    print(
        f"\n{name}: expected calibration error on the test images {raw:.4f} for the share of votes,"
    )
    print(f"{expected_calibration_error(truth, probabilities):.4f} for calibrated probabilities")
    print("precision wanted, reached; suggestions per image; images without any")
    for wanted in (0.5, 0.7, 0.8, 0.9):
        given = probabilities >= calibrator.threshold(wanted)
        each, none = given.sum(axis=1).mean(), (~given.any(axis=1)).mean()
        print(f"  {wanted:.1f}  {truth[given].mean():.2f}  {each:.2f}  {none:.0%}")
    folder.mkdir(parents=True, exist_ok=True)
    names = [str(label) for label in label_names(name)]
    least = calibrator.threshold(0.5)
    report = label_report(truth, probabilities, names=names, min_scores=least)
    (folder / f"labels-{name}.csv").write_text(report.to_csv())
    print(f"Wrote labels-{name}.csv to {folder}.")


def label_names(name: str) -> list[str]:
    """Names of the labels that `read` returns."""
    data = np.load(FOLDER / f"{name}.npz")
    if name == "coco":
        return [str(label) for label in data["label_names"]]
    labels, is_test = data["votes"] >= 2, data["split"] == "test"
    kept = (labels[~is_test].sum(axis=0) >= 10) & labels[is_test].any(axis=0)
    return [str(noun) for noun, keep in zip(data["label_names"], kept, strict=True) if keep]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", nargs="+", choices=["flickr8k", "coco"])
    parser.add_argument("--choose", action="store_true", help="settings by cross-validation")
    parser.add_argument("--seed", type=int, default=0, help="seed for choosing landmarks")
    parser.add_argument(
        "--calibration", metavar="FOLDER", type=Path, help="write calibration and a label report"
    )
    options = parser.parse_args()
    for name in options.dataset:
        if options.calibration:
            calibration(name, options.seed, options.calibration)
        else:
            run(name, options.choose, options.seed)


if __name__ == "__main__":
    main()
