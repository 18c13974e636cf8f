"""The nearest photographs of one photograph, as in the paper's strip of neighbours.

``python -m experiments.neighbor_strip`` draws docs/images/neighbors.webp in some seconds, from the
free photographs in docs/images/photographs. The semantic space learns from the labels of all of
them but the first of the strip.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from tagkin import SemanticSpace, Vocabulary
from tagkin.features import extract, get_backbone
from tagkin.neighbors import nearest

IMAGES = Path(__file__).parent.parent / "docs" / "images"
QUERY, LABEL = "oakland-zoo-otters.jpg", "animal"
N_NEIGHBORS = 7
WIDTH, HEIGHT, GAP, BORDER = 168, 112, 12, 6
BLUE, GREEN, NONE = "#4477AA", "#228833", "#BBBBBB"  # Paul Tol's bright scheme
TEXT, TEXT_SIZE, TITLE = "#7D8896", 27, 42  # legible on light and dark, at half the size


def rank_neighbors() -> tuple[list[str], list[bool], dict[str, np.ndarray]]:
    """Files, whether each has the label, and the nearest files of the query in both spaces."""
    with (IMAGES / "photographs" / "photographs.csv").open(encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["file"] != QUERY)
    files = [row["file"] for row in rows]
    X = extract([str(IMAGES / "photographs" / name) for name in files], get_backbone()).features
    Y = Vocabulary().fit_transform([row["labels"].split() for row in rows[1:]])
    space = SemanticSpace().fit(X[1:], Y)
    found = {
        "visual features": nearest(X[:1], X[1:], N_NEIGHBORS).indices[0] + 1,
        "semantic space": nearest(
            space.transform(X[:1]), space.transform(X[1:]), N_NEIGHBORS
        ).indices[0]
        + 1,
    }
    return files, [LABEL in row["labels"].split() for row in rows], found


def draw() -> Image.Image:
    """Draw a row for each space: the query, then its neighbours, nearest first."""
    files, has_label, found = rank_neighbors()
    font = ImageFont.load_default(TEXT_SIZE)
    width = (N_NEIGHBORS + 1) * (WIDTH + GAP) + GAP
    strip = Image.new("RGBA", (width, len(found) * (HEIGHT + GAP + TITLE) + GAP))
    pen = ImageDraw.Draw(strip)
    for line, (title, indices) in enumerate(found.items()):
        top = GAP + line * (HEIGHT + GAP + TITLE)
        n_right = sum(has_label[i] for i in indices)
        text = f"{title}: {n_right} of the {N_NEIGHBORS} nearest photographs have the label {LABEL}"
        pen.text((GAP, top), text, fill=TEXT, font=font)
        for place, i in enumerate([0, *indices]):
            left, y = GAP + place * (WIDTH + GAP), top + TITLE
            color = BLUE if place == 0 else GREEN if has_label[i] else NONE
            pen.rectangle((left, y, left + WIDTH - 1, y + HEIGHT - 1), fill=color)
            picture = Image.open(IMAGES / "photographs" / files[i]).convert("RGB")
            strip.paste(_cut(picture), (left + BORDER, y + BORDER))
    return strip


def _cut(picture: Image.Image) -> Image.Image:
    """The middle of a picture, in the proportions of the strip."""
    size = (WIDTH - 2 * BORDER, HEIGHT - 2 * BORDER)
    scale = max(size[0] / picture.width, size[1] / picture.height)
    scaled = picture.resize((round(picture.width * scale) + 1, round(picture.height * scale) + 1))
    left, top = (scaled.width - size[0]) // 2, (scaled.height - size[1]) // 2
    return scaled.crop((left, top, left + size[0], top + size[1]))


if __name__ == "__main__":
    draw().save(IMAGES / "neighbors.webp", quality=80, method=6)
