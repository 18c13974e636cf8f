"""Settings of a run: short commented files in configs/, one per dataset."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

__all__ = ["CONFIGS", "Config", "find_config"]

CONFIGS = Path(__file__).parent / "configs"


@dataclass(frozen=True)
class Config:
    """Settings for one dataset; the files in configs/ show how they are used."""

    name: str
    dataset: str
    stands_for: tuple[str, ...]
    """Datasets of the paper whose published numbers are shown for comparison."""
    stands_for_tags: tuple[str, ...] = ()
    top: int = 5
    """Labels per image, for precision, recall and N+."""
    regularization: float = 0.5
    n_landmarks: int = 4096
    seed: int = 0
    n_known: int = 0
    """Training images, sampled once; 0: all."""
    n_tagged: int = 0
    """Training images with tags, sampled once; 0: all."""
    n_new: int = 0
    """Test images, sampled once; 0: all."""
    n_new_small: int = 0
    """Test images of all experiments but the first, sampled once; 0: all."""
    cv_images: int = 0
    """Training images used to choose settings; 0: all."""
    resamples: int = 1000
    """Bootstrap resamples of the test images, for intervals and p values."""
    neighbors: tuple[int, ...] = (20, 50, 100, 200)
    """Numbers of neighbours that voting tries."""
    max_learned_neighbors: int = 100
    """Most neighbours that TagProp learns from; it tries the upper half only."""
    curve: tuple[int, ...] = (2, 5, 10, 20, 50, 100, 200)
    """Numbers of neighbours on the curves of experiment 4."""
    per_label: tuple[int, ...] = (1, 2, 5)
    decays: tuple[float, ...] = (1.0, 3.0, 10.0)
    costs: tuple[float, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
    regularizations: tuple[float, ...] = (2.0,)
    """Values besides the paper's that are tried for the best setting."""
    sub_known: int = 0
    sub_new: int = 0
    """Images in each split of experiment 5; 0: as many as in the official split."""
    sub_landmarks: int = 2048
    sub_sizes: tuple[int, ...] = (100, 300, 1000, 3000)
    """Numbers of images to learn the projections from; all images of the split come last."""
    sub_tagprop: int = 20
    """Neighbours of TagProp in experiment 5, where its weights are learned for each split."""
    splits: int = 5
    timed: tuple[int, ...] = (1000, 3000)
    """Numbers of images in the timing figure; all training images come last."""
    qualitative: bool = False
    """Only show suggestions and neighbours on photographs."""
    map_images: int = 1200
    """Images in the t-SNE map."""

    def space_parameters(self) -> dict[str, Any]:
        """Parameters that every result depends on, for its path."""
        return {
            "landmarks": self.n_landmarks,
            "kappa": self.regularization,
            "seed": self.seed,
            "known": self.n_known or "all",
            "new": self.n_new or "all",
        }


def find_config(name: str) -> Config:
    """Load the config with this name, or from this path of a TOML file."""
    path = Path(name) if name.endswith(".toml") else CONFIGS / f"{name}.toml"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in CONFIGS.glob("*.toml")))
        raise SystemExit(f"There is no config {path}. Available: {known}.")
    values = tomllib.loads(path.read_text())
    allowed = {f.name for f in fields(Config)} - {"name"}
    unknown = sorted(set(values) - allowed)
    if unknown:
        raise SystemExit(
            f"{path} has unknown settings: {', '.join(unknown)}. Known settings are "
            f"{', '.join(sorted(allowed))}."
        )
    lists: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
    return Config(name=path.stem, **lists)
