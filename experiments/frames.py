"""Frames cut from photographs: bursts that look less alike, with and without names."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance

from tagkin import FeatureAnnotator
from tagkin.annotator.series import find_series
from tagkin.features import extract

__all__ = ["cut_frames", "frame_rows"]

N_PHOTOGRAPHS, N_FRAMES, SEED = 400, 3, 12
WANTED = (0.5, 0.8, 0.9)
BACKBONE = "efficientnet-lite0-whole"

Row = dict[str, Any]


def frame_rows(photographs: Sequence[Path], Y: np.ndarray, seed: int = SEED) -> list[Row]:
    """Learn from three frames of each of 400 photographs, and test on all other photographs.

    Y (N×D) has the tags of the photographs. Tags count if two of the 400 have them.
    """
    order = np.random.default_rng(seed).permutation(len(photographs))
    cut, others = order[:N_PHOTOGRAPHS], order[N_PHOTOGRAPHS:]
    columns = Y[cut].sum(axis=0) >= 2
    labels = np.repeat(Y[cut][:, columns], N_FRAMES, axis=0)
    truth = Y[others][:, columns] > 0
    new = np.asarray(extract([photographs[i] for i in others], BACKBONE).features)
    event = np.repeat(np.arange(len(cut)), N_FRAMES)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        files = cut_frames([photographs[i] for i in cut], Path(name), seed)
        features = np.asarray(extract(files, BACKBONE).features)
        numbers = [10 * e + i % N_FRAMES for i, e in enumerate(event.tolist())]
        numbered = [f"/gone/IMG_{number:05}.jpg" for number in numbers]
        unnamed = [f"/gone/{file.stem}.jpg" for file in files]
        groups = {
            "none": np.arange(len(files)),
            "by looks": find_series(unnamed, features),
            "by names": find_series(numbered, features),
            "as they are": event,
        }
    for title, of_frame in groups.items():
        annotator = FeatureAnnotator().fit(features, labels, groups=of_frame)
        P = annotator.predict_proba(new)
        row: Row = {"groups": title, "frames with their event": _share_linked(of_frame, event)}
        for wanted in WANTED:
            given = annotator.calibration_.threshold(wanted) <= P
            row[f"asked {wanted}"] = float(truth[given].mean()) if given.any() else float("nan")
            row[f"suggestions at {wanted}"] = int(given.sum())
        rows.append(row)
    return rows


def cut_frames(photographs: Sequence[Path], folder: Path, seed: int) -> list[Path]:
    """Write three frames of each photograph, as a hand-held camera would take them.

    Each is 70 to 95 % of the side, turned by up to 4°, up to half a stop darker or brighter.
    """
    rng, files = np.random.default_rng(seed), []
    for photograph in photographs:
        with Image.open(photograph) as opened:
            image = opened.convert("RGB")
        for _ in range(N_FRAMES):
            turned = image.rotate(rng.uniform(-4, 4), resample=Image.Resampling.BICUBIC)
            side = rng.uniform(0.7, 0.95)
            left, top = rng.uniform(0, 1 - side, 2)
            box = np.array([left, top, left + side, top + side]) * np.tile(image.size, 2)
            shot = turned.resize(image.size, Image.Resampling.BICUBIC, tuple(box.tolist()))
            shot = ImageEnhance.Brightness(shot).enhance(2 ** rng.uniform(-0.5, 0.5))
            files.append(folder / f"{rng.bytes(4).hex().translate(LETTERS)}.jpg")
            shot.save(files[-1], quality=90)
    return files


LETTERS = str.maketrans("0123456789", "ghijklmnop")  # names without numbers


def _share_linked(groups: np.ndarray, event: np.ndarray) -> float:
    """Return the share of frames that are in a group with another frame of their event."""
    together = (groups[:, None] == groups) & (event[:, None] == event)
    return float((together.sum(axis=1) > 1).mean())
