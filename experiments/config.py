"""What is run: short commented files in configs/, one for each dataset."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

__all__ = ["CONFIGS", "Config", "find_config"]

CONFIGS = Path(__file__).parent / "configs"


@dataclass(frozen=True)
class Config:
    """One dataset's settings; see the files in configs/ for what each is for."""

    name: str
    dataset: str
    stands_for: tuple[str, ...]
    """Datasets of the paper whose published numbers are set beside these."""
    stands_for_tags: tuple[str, ...] = ()
    top: int = 5
    """Labels that each image is given, for precision, recall and N+."""
    regularization: float = 0.5
    n_landmarks: int = 4096
    seed: int = 0
    n_known: int = 0
    """Training images, drawn once; 0: all."""
    n_tagged: int = 0
    """Training images with tags, drawn once; 0: all."""
    n_new: int = 0
    """Test images, drawn once; 0: all."""
    n_new_small: int = 0
    """Test images of all experiments but the first, drawn once; 0: all."""
    cv_images: int = 0
    """Training images that settings are chosen on; 0: all."""
    resamples: int = 1000
    """Of the images, for intervals and tests."""
    neighbors: tuple[int, ...] = (20, 50, 100, 200)
    """Tried for votes; ML-kNN tries those up to `longest`, TagProp the upper half of those."""
    longest: int = 100
    curve: tuple[int, ...] = (2, 5, 10, 20, 50, 100, 200)
    """Neighbours along the curves of experiment 4."""
    per_label: tuple[int, ...] = (1, 2, 5)
    decays: tuple[float, ...] = (1.0, 3.0, 10.0)
    costs: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
    penalties: tuple[float, ...] = (0.1, 0.3, 1.0)
    """Of the logistic regression."""
    regularizations: tuple[float, ...] = (2.0,)
    """Others than the paper's, tried for the best setting."""
    sub_known: int = 0
    sub_new: int = 0
    """Images of each split of experiment 5; 0: as many as the official split has."""
    sub_landmarks: int = 2048
    sub_sizes: tuple[int, ...] = (100, 300, 1000, 3000)
    """Images that projections are learned from; all of the split's come last."""
    sub_tagprop: int = 20
    """Neighbours of TagProp there, which learns its weights anew each time."""
    splits: int = 5
    timed: tuple[int, ...] = (1000, 3000)
    """Images of the timing figure; all training images come last."""
    qualitative: bool = False
    """Show suggestions and neighbours on photographs, and nothing else."""
    map_images: int = 1200
    """Images drawn by t-SNE."""
    expected: dict[str, float] = field(default_factory=dict)
    """Figures to expect, in percent, within one point."""

    def space_parameters(self) -> dict[str, Any]:
        """What every result rests on, for its path."""
        return {
            "landmarks": self.n_landmarks,
            "kappa": self.regularization,
            "seed": self.seed,
            "known": self.n_known or "all",
            "new": self.n_new or "all",
        }


def find_config(name: str) -> Config:
    """The config of a name, or of a path to a TOML file."""
    path = Path(name) if name.endswith(".toml") else CONFIGS / f"{name}.toml"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in CONFIGS.glob("*.toml")))
        raise SystemExit(f"There is no config {path}. Those here are {known}.")
    values = tomllib.loads(path.read_text())
    allowed = {f.name for f in fields(Config)} - {"name"}
    unknown = sorted(set(values) - allowed)
    if unknown:
        raise SystemExit(
            f"{path} sets {', '.join(unknown)}, which no experiment knows. Known are "
            f"{', '.join(sorted(allowed))}."
        )
    lists: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
    return Config(name=path.stem, **lists)
