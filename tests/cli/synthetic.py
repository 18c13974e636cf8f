"""A small collection of synthetic pictures with obvious tags."""

import json
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from tests.catalogue.photographs import sidecar_text

COLOURS = {"red": (200, 40, 40), "green": (40, 160, 60), "blue": (40, 70, 200)}
SHAPES = ("circle", "square")


def draw(path: Path, colour: str, shape: str, rng: np.random.Generator) -> None:
    """One shape somewhere, on grounds that differ: pictures that are alike would be one burst."""
    image = Image.new("RGB", (120, 90), tuple(int(v) for v in rng.integers(120, 250, 3)))
    x, y, side = (int(v) for v in rng.integers((5, 5, 40), (50, 35, 60)))
    pen = ImageDraw.Draw(image)
    box = (x, y, x + side, y + side)
    fill = tuple(int(v) for v in np.clip(np.array(COLOURS[colour]) + rng.integers(-25, 25), 0, 255))
    (pen.ellipse if shape == "circle" else pen.rectangle)(box, fill=fill)
    image.save(path, quality=92)


def make_photographs(folder: Path, n_each: int = 7, seed: int = 0) -> dict[str, list[str]]:
    """Pictures of every colour and shape; the tags of each by its name."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    tags = {}
    for colour in COLOURS:
        for shape in SHAPES:
            for k in range(n_each):
                name = f"{colour}-{shape}-{k}.jpg"
                draw(folder / name, colour, shape, rng)
                tags[name] = [colour, shape]
    return tags


def write_tag_file(path: Path, tags: dict[str, list[str]]) -> Path:
    """A tag file as Hugging Face has it."""
    rows = (json.dumps({"file_name": name, "tags": row}) for name, row in tags.items())
    path.write_text("\n".join(rows) + "\n")
    return path


def write_sidecar(photograph: Path, tags: list[str]) -> None:
    """An XMP file beside a photograph."""
    Path(f"{photograph}.xmp").write_text(sidecar_text(tags))
