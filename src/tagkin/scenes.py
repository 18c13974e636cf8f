"""A synthetic collection of photographs: painted scenes with tags like those of people.

Sea and mountains, cities at night, snow, boats, balloons: thirty tags, several per picture.
Colours, light, horizon, grain and print vary at random and are independent of the tags, so that
pictures that look alike often show different things. The true labels are known; the tags miss some
of them, and a few are wrong.

A thousand pictures take about ten seconds: ``python -m tagkin.scenes``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from PIL import Image, ImageChops, ImageFilter, ImageOps

from tagkin.scene_parts import (
    FINER,
    HEIGHT,
    SNOW,
    WIDTH,
    Canvas,
    darker,
    lighter,
    mix,
    paint_balloons,
    paint_birds,
    paint_boat,
    paint_bridge,
    paint_car,
    paint_flowers,
    paint_house,
    paint_lighthouse,
    paint_palm,
    paint_plane,
    paint_rain,
    paint_sky,
    paint_tree,
    paint_windmill,
)

__all__ = ["TAGS", "make_scenes", "paint"]

TAGS = [
    "balloon",
    "beach",
    "bird",
    "boat",
    "bridge",
    "car",
    "city",
    "cloud",
    "desert",
    "field",
    "flower",
    "forest",
    "house",
    "lighthouse",
    "moon",
    "mountain",
    "night",
    "palm",
    "plane",
    "rain",
    "rainbow",
    "road",
    "sea",
    "sky",
    "snow",
    "stars",
    "sun",
    "sunset",
    "tree",
    "windmill",
]

_FORGOTTEN, _WRONG = 0.05, 0.02


# --- grounds -----------------------------------------------------------------------------


def _mountains(c: Canvas, snowy: bool) -> None:
    c.labels.add("mountain")
    rock, far = c.lit("6e6e7c 7c6254 546870 8c7882"), c.lit("becce0")
    height = c.between(0.45, 0.95) * c.horizon
    for depth in (0.5, 0.0):
        tone = mix(rock, far, depth)
        for middle in c.rng.uniform(-20, WIDTH + 20, size=c.count(2, 4)).tolist():
            h, w = height * c.between(0.55, 1), c.between(0.8, 1.3)
            peak = (middle, c.horizon - h, h + 4)
            seam = " ".join(
                f"{j:.3f} {y}"
                for j, y in zip(c.rng.uniform(-0.08, 0.08, 4), (0.3, 0.55, 0.8, 1), strict=True)
            )
            c.shape(peak, f"0 0 {w} 1 {-w} 1", tone)
            c.shape(peak, f"0 0 {seam} {w} 1", darker(tone, 0.32))
            if snowy:
                white, s = c.lit(SNOW), c.between(0.25, 0.5)
                bright = f"0 0 {-w * s} {s} {-0.5 * w * s} {0.8 * s} {-0.2 * w * s} {1.1 * s}"
                c.shape(peak, f"{bright} {0.12 * w * s} {0.7 * s}", white)
                shady = (
                    f"{0.12 * w * s} {0.7 * s} {0.4 * w * s} {1.05 * s} {0.6 * w * s} {0.85 * s}"
                )
                c.shape(peak, f"0 0 {shady} {w * s} {s}", darker(white, 0.2))


def _water(c: Canvas) -> None:
    near = c.lit("185482 1e7882 3c5a6e 143c64 508278")
    c.shade(c.horizon, HEIGHT, mix(near, c.lit("b4c8d8"), 0.4), near)
    c.strokes(c.horizon + 2, 90, lighter(near, 0.55), 22, 110)
    c.strokes(c.horizon + 2, 50, darker(near, 0.4), 30, 80)


def _seaside(c: Canvas) -> None:
    c.labels.add("sea")
    if c.chance(0.3):
        _mountains(c, snowy=c.chance(0.4))
    elif c.chance(0.25):
        _skyline(c)
    _water(c)
    shore = HEIGHT - c.between(28, 70) if c.chance(0.45) else HEIGHT
    if c.chance(0.28):
        paint_bridge(c, c.horizon + c.between(4, 20))
    elif c.chance(0.35):
        y = c.horizon + c.between(6, 30)
        paint_lighthouse(c, (c.between(40, 280), y, c.between(50, 110)))
    if c.chance(0.55):
        for depth in sorted(c.rng.random(c.count(1, 3)).tolist()):
            y = c.horizon + 8 + depth * (shore - c.horizon - 20)
            paint_boat(c, (c.between(30, 290), y, (22 + 46 * depth) * c.between(0.7, 1.3)))
    if shore < HEIGHT:
        c.labels.add("beach")
        sand, edge = c.lit("e8d0a0 d6be96 f0e2c4"), c.ridge(shore, 8, 0.1)
        c.line([(x, y - 1.5) for x, y in edge], (250, 252, 252), 4, 190)
        c.ground(edge, sand)
        c.strokes(shore + 6, 60, darker(sand, 0.2), 10)
        for _ in range(c.count(1, 3) if c.chance(0.5) else 0):
            paint_palm(c, (c.between(20, 300), HEIGHT - c.between(2, 24), c.between(70, 150)))


def _countryside(c: Canvas) -> None:
    winter = c.light != "sunset" and c.chance(0.35)
    if c.chance(0.4):
        _mountains(c, snowy=winter or c.chance(0.4))
    c.labels.add("snow" if winter else "field")
    colour = c.lit(SNOW) if winter else c.lit("78a046 aaaa50 d2b85a 508246 966e46")
    for k in range(3):
        hill = c.ridge(c.horizon + 4 + 0.22 * k * (HEIGHT - c.horizon), 12, 0.05)
        c.ground(hill, mix(lighter(colour, 0.25), darker(colour, 0.08), k / 2))
    c.strokes(c.horizon + 26, 40 if winter else 160, darker(colour, 0.25), 9)
    if c.chance(0.35):
        _road(c)
    things = [paint_tree, paint_tree, paint_house] + [paint_windmill] * c.chance(0.3)
    for depth in sorted((c.rng.random(c.count(0, 7)) ** 1.5).tolist()):
        y = c.horizon + 8 + depth * 0.5 * (HEIGHT - c.horizon)
        c.one_of(things)(c, (c.between(10, 310), y, (34 + 60 * depth) * c.between(0.8, 1.3)))
    if not winter and c.light != "night" and c.chance(0.35):
        paint_flowers(c, c.between(0.68, 0.85) * HEIGHT)


def _forest(c: Canvas) -> None:
    c.labels.add("forest")
    c.labels.discard("sky")
    if c.chance(0.35):
        c.labels.add("snow")
    ground = c.lit(SNOW) if "snow" in c.labels else c.lit("466438 6e5a3c 3c5446")
    top = 0.8 * c.horizon
    c.ground(c.ridge(top + 10, 6, 0.1), ground)
    c.strokes(top + 20, 90, darker(ground, 0.3), 8)
    for depth in sorted(c.rng.random(c.count(20, 30)).tolist()):
        y = top + 14 + depth * 0.75 * (HEIGHT - top)
        paint_tree(c, (c.between(-10, 330), y, (50 + 90 * depth) * c.between(0.8, 1.2)))


def _skyline(c: Canvas) -> None:
    c.labels.add("city")
    for depth in (0.45, 0.0):
        x = -10.0
        while x < WIDTH:
            width, height = c.between(14, 42), c.between(0.2, 0.85) * c.horizon * (0.85 + depth / 3)
            wall = mix(c.lit("787e8c 968278 5a6478 b4b0aa"), c.lit("c8d2dc"), depth)
            top = c.horizon - height
            c.box(x, top, width, height + 6, wall)
            if c.chance(0.2):
                c.line([(x + width / 2, top), (x + width / 2, top - 16)], wall, 1.5)
            if depth == 0:
                shine = (255, 214, 120) if c.light == "night" else lighter(wall, 0.35)
                columns = max(2, int(width / 7))
                for row, lights in enumerate(c.rng.random((int(height / 8), columns)) < 0.45):
                    for column, on in enumerate(lights.tolist()):
                        at = x + 2.5 + column * (width - 3) / columns
                        c.box(at, top + 4 + 8 * row, 2.6, 4, shine if on else darker(wall, 0.35))
            x += width + c.between(-2, 4)


def _city(c: Canvas) -> None:
    c.horizon = max(c.horizon, 0.55 * HEIGHT)
    _skyline(c)
    c.ground([(0, c.horizon), (WIDTH, c.horizon)], c.lit("969492"))
    if c.chance(0.3):
        _water(c)
        paint_bridge(c, c.horizon + c.between(14, 30))
        return
    for _ in range(c.count(0, 4) if c.chance(0.5) else 0):
        paint_tree(c, (c.between(10, 310), c.horizon + c.between(4, 12), c.between(24, 46)))
    _street(c)


def _desert(c: Canvas) -> None:
    c.labels.add("desert")
    if c.chance(0.25):
        _mountains(c, snowy=False)
    sand = c.lit("deb06e ce8c5a eccc96")
    for k in range(3):
        dune = c.ridge(c.horizon + 6 + 32 * k, 20, 0)
        c.ground(dune, darker(sand, 0.14 - 0.06 * k))
        c.line(dune, lighter(sand, 0.3), 1.4, 160)
    c.strokes(c.horizon + 50, 70, darker(sand, 0.2), 26)
    if c.chance(0.35):
        _street(c)
    elif c.chance(0.45):
        for _ in range(c.count(1, 4)):
            paint_palm(c, (c.between(20, 300), c.between(0.72, 0.9) * HEIGHT, c.between(50, 100)))


def _road(c: Canvas) -> None:
    """A road that leads into the distance."""
    c.labels.add("road")
    end, near, half, far = (
        c.between(60, 260),
        c.between(60, 260),
        c.between(45, 100),
        c.horizon + 16,
    )
    sides = [(end - 3, far), (end + 3, far), (near + half, HEIGHT), (near - half, HEIGHT)]
    c.polygon(sides, c.lit("6e6c70"))
    for k in range(6):
        marks = [((k + s) / 6) ** 2 for s in (0.15, 0.65)]
        left = [(end + (near - end) * u - 0.5 - 3 * u, far + (HEIGHT - far) * u) for u in marks]
        right = [(end + (near - end) * u + 0.5 + 3 * u, far + (HEIGHT - far) * u) for u in marks]
        c.polygon([*left, *right[::-1]], (240, 236, 220))


def _street(c: Canvas) -> None:
    """A road from left to right, usually with cars seen from the side."""
    c.labels.add("road")
    width = c.between(34, 56)
    top = c.between(c.horizon + 12, max(c.horizon + 14, HEIGHT - width))
    c.box(0, top, WIDTH, width, c.lit("545458 68645e"))
    for x in range(0, WIDTH, 32):
        c.box(x, top + 0.45 * width, 17, 2.4, (240, 236, 220))
    if c.chance(0.7):
        for lane in (0.38, 0.92):
            for _ in range(c.count(0, 2) + (lane > 0.5)):
                paint_car(c, (c.between(20, 300), top + lane * width, c.between(14, 30)))


# --- the whole picture -------------------------------------------------------------------


def _printed(c: Canvas) -> Image.Image:
    """The picture as a print: colour cast, fading, monochrome, grain, a frame."""
    picture = c.image.reduce(FINER)
    if c.chance(0.2):
        picture = picture.filter(ImageFilter.BoxBlur(c.between(0.3, 1)))
    if c.chance(0.14):
        tone = c.one_of([("black", "white"), ("#2a1a0c", "#f6e8cc"), ("#0c1a30", "#eef4fa")])
        picture = ImageOps.colorize(ImageOps.grayscale(picture), *tone)
    lift, ramp = c.between(0, 34), np.linspace(0, 1, 256) ** c.between(0.75, 1.25)
    tables = [lift + (255 - lift) * ramp * gain for gain in c.rng.uniform(0.82, 1.12, 3)]
    picture = picture.point(np.concatenate(tables).clip(0, 255).astype(int).tolist())
    grain = c.rng.normal(128, c.between(1, 8), (HEIGHT, WIDTH)).clip(0, 255).astype(np.uint8)
    noise = Image.fromarray(grain)
    picture = ImageChops.add(picture, Image.merge("RGB", [noise] * 3), 1, -128)
    if c.chance(0.12):
        edge = c.count(6, 16)
        inner = picture.resize((WIDTH - 2 * edge, HEIGHT - 2 * edge))
        picture = ImageOps.expand(inner, edge, c.one_of(["#f6f2ea", "#fdfdfd", "#16161a"]))
    return picture


def paint(rng: np.random.Generator) -> tuple[Image.Image, list[str]]:
    """Paint one scene.

    Returns
    -------
    picture : RGB image of 320 × 240
    labels : list of str
        The labels of the scene, sorted.
    """
    light = str(rng.choice(["day", "overcast", "sunset", "night"], p=[0.5, 0.16, 0.16, 0.18]))
    c = Canvas(rng, light)
    paint_sky(c)
    grounds = [_seaside] * 4 + [_countryside] * 4 + [_forest] * 2 + [_city] * 2 + [_desert]
    c.one_of(grounds)(c)
    flying = ((paint_balloons, 0.14), (paint_birds, 0.18), (paint_plane, 0.12))
    for thing, share in flying:
        if "forest" not in c.labels and c.chance(share):
            thing(c)
    if light in ("overcast", "night") and not c.labels & {"snow", "stars"} and c.chance(0.5):
        paint_rain(c)
    return _printed(c), sorted(c.labels)


def _as_a_person_tags(labels: list[str], rng: np.random.Generator) -> list[str]:
    """Drop some labels, and add a few wrong ones."""
    kept = [label for label in labels if rng.random() >= _FORGOTTEN]
    others = [tag for tag in TAGS if tag not in labels]
    wrong = [str(rng.choice(others)) for _ in kept if rng.random() < _WRONG]
    return list(dict.fromkeys(kept + wrong))


def make_scenes(folder: str | Path, n: int = 1000, n_untagged: int = 250, seed: int = 0) -> None:
    """Write scenes as JPEG files, with their labels and tags in ``metadata.jsonl``.

    Each line has ``file_name``, ``labels`` (the truth) and ``tags`` (noisy; empty for untagged
    scenes).

    Parameters
    ----------
    folder : path
        Created if it does not exist; files with the same names are replaced.
    n : int
        Number of scenes.
    n_untagged : int
        Number of scenes without tags; these come last.
    seed : int
        The same seed gives the same scenes, and a larger n only adds scenes.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number, of_scene in enumerate(np.random.SeedSequence(seed).spawn(n)):
        rng = np.random.default_rng(of_scene)
        picture, labels = paint(rng)
        tags = _as_a_person_tags(labels, rng) if number < n - n_untagged else []
        name = f"scene-{number:04}.jpg"
        picture.save(folder / name, quality=88)
        lines.append(json.dumps({"file_name": name, "labels": labels, "tags": tags}) + "\n")
    (folder / "metadata.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        "python -m tagkin.scenes", description="Paint a sample folder."
    )
    parser.add_argument("folder", nargs="?", default="build/scenes", help="default: build/scenes")
    make_scenes(parser.parse_args().folder)
