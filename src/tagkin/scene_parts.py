"""Parts of the painted scenes: a canvas, the sky, and things on the ground.

Each thing that is painted adds its name to the labels of the canvas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from PIL import Image, ImageDraw

WIDTH, HEIGHT = 320, 240
FINER = 2  # painted larger and then reduced, for smooth edges

Colour = tuple[int, int, int]
Point = tuple[float, float]
Position = tuple[float, float, float]  # x, y and height of a thing
T = TypeVar("T")


def colours_of(codes: str) -> list[Colour]:
    """Colours from their codes, such as "ff8000 00ff00"."""
    return [(int(c[:2], 16), int(c[2:4], 16), int(c[4:], 16)) for c in codes.split()]


# Pairs of colours: the sky at the top, and at the horizon.
_SKIES = {
    "day": "3678c8 c4e0f0 58a8d0 f0eed6 2896a0 ceecdc 7896dc fadcd6 1e5aaa 82beeb c4ced6 eeece4",
    "overcast": "6c7682 c4c8ca 827e8c d6cecc 5c6e74 aabab8",
    "sunset": "463c82 fa9650 783c78 ff785a 28508c ffc46e 963246 ffb43c",
    "night": "06081a 242c5a 0a1428 1e5064 180a2c 542c64 04040a 2c2c38",
}
# The tint of each light, and its strength.
_AMBIENT = {
    "day": ((255, 250, 235), 0.06),
    "overcast": ((120, 130, 140), 0.36),
    "sunset": ((150, 60, 60), 0.36),
    "night": ((8, 12, 36), 0.64),
}
BRIGHT = "c8322c e68c28 f0ce46 3c965a 2e6eb4 7846a0 f0f0ec 282c38 dc6e96 3cb4be"
SNOW = (244, 247, 252)


def mix(a: Colour, b: Colour, share: float) -> Colour:
    """Blend two colours: share 0 is `a`, 1 is `b`."""
    red, green, blue = (int(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return red, green, blue


def darker(colour: Colour, share: float = 0.3) -> Colour:
    """Darken a colour."""
    return mix(colour, (10, 10, 24), share)


def lighter(colour: Colour, share: float = 0.3) -> Colour:
    """Lighten a colour."""
    return mix(colour, (255, 252, 240), share)


class Canvas:
    """A picture being painted. Coordinates are pixels of the finished picture."""

    def __init__(self, rng: np.random.Generator, light: str) -> None:
        self.rng, self.light = rng, light
        self.labels: set[str] = set()
        self.image = Image.new("RGB", (WIDTH * FINER, HEIGHT * FINER))
        self.draw = ImageDraw.Draw(self.image, "RGBA")
        self.horizon = self.between(0.36, 0.7) * HEIGHT

    def between(self, low: float, high: float) -> float:
        """A random number between low and high."""
        return low + (high - low) * float(self.rng.random())

    def count(self, low: int, high: int) -> int:
        """A random integer from low to high."""
        return int(self.rng.integers(low, high + 1))

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return bool(self.rng.random() < probability)

    def one_of(self, things: Sequence[T]) -> T:
        """A random choice."""
        return things[int(self.rng.integers(len(things)))]

    def lit(self, colour: Colour | str) -> Colour:
        """A colour (or one of several codes) with random variation, in the light of the scene."""
        if isinstance(colour, str):
            colour = self.one_of(colours_of(colour))
        own = self.rng.integers(-20, 21, size=3).tolist()
        red, green, blue = (max(0, min(255, x + y)) for x, y in zip(colour, own, strict=True))
        hue, share = _AMBIENT[self.light]
        return mix((red, green, blue), hue, share)

    def polygon(self, points: Sequence[Point], colour: Colour, alpha: int = 255) -> None:
        """A filled polygon."""
        self.draw.polygon([(x * FINER, y * FINER) for x, y in points], (*colour, alpha))

    def shape(
        self, position: Position, points: str, colour: Colour, alpha: int = 255, way: int = 1
    ) -> None:
        """A filled polygon of a thing, in units of its size; way −1 mirrors it."""
        x, y, size = position
        number = [float(part) * size for part in points.split()]
        at = [(x + way * dx, y + dy) for dx, dy in zip(number[::2], number[1::2], strict=True)]
        self.polygon(at, colour, alpha)

    def disc(
        self, position: Position, oval: str, colour: Colour, alpha: int = 255, way: int = 1
    ) -> None:
        """A disc of a thing: its centre and its two radii, in units of the thing's size."""
        x, y, size = position
        dx, dy, rx, ry = (float(part) * size * FINER for part in oval.split())
        x, y = x * FINER + way * dx, y * FINER + dy
        self.draw.ellipse([x - rx, y - ry, x + rx, y + ry], (*colour, alpha))

    def box(self, x: float, y: float, width: float, height: float, colour: Colour) -> None:
        """A rectangle from its upper left corner."""
        corners = [x * FINER, y * FINER, (x + width) * FINER, (y + height) * FINER]
        self.draw.rectangle(corners, colour)

    def line(self, points: Sequence[Point], colour: Colour, width: float, alpha: int = 255) -> None:
        """A line through points."""
        at = [(x * FINER, y * FINER) for x, y in points]
        self.draw.line(at, (*colour, alpha), max(1, round(width * FINER)), joint="curve")

    def shade(self, top: float, bottom: float, above: Colour, below: Colour) -> None:
        """A horizontal band that blends from one colour to another."""
        first, last = round(top * FINER), round(bottom * FINER)
        share = np.linspace(0, 1, max(1, last - first))[:, None, None]
        column = np.asarray(above) * (1 - share) + np.asarray(below) * share
        strip = Image.fromarray(column.astype(np.uint8))
        self.image.paste(strip.resize((WIDTH * FINER, len(share)), 0), (0, first))

    def ridge(self, base: float, height: float, rough: float) -> list[Point]:
        """A rolling line across the picture, as points from left to right."""
        x = np.linspace(0, 2 * math.pi, 25)
        waves = [self.between(0, 1) * np.sin(k * x + self.between(0, 6)) / k for k in (1, 2, 3)]
        y = base - height * (np.sum(waves, axis=0) + rough * self.rng.random(25))
        return list(zip((x * WIDTH / 2 / math.pi).tolist(), y.tolist(), strict=True))

    def ground(self, ridge: list[Point], colour: Colour) -> None:
        """Fill everything below the line."""
        self.polygon([(0, HEIGHT), *ridge, (WIDTH, HEIGHT)], colour)

    def strokes(self, top: float, n: int, colour: Colour, length: float, alpha: int = 90) -> None:
        """Short horizontal lines on the ground, longer in front."""
        for x, depth in self.rng.random((n, 2)).tolist():
            y = top + (HEIGHT - top) * depth**1.4
            half = length * (0.3 + depth) / 2
            ends = [(x * WIDTH - half, y), (x * WIDTH + half, y)]
            self.line(ends, colour, 0.6 + 1.2 * depth, alpha)


# --- the sky -----------------------------------------------------------------------------


def paint_sky(c: Canvas) -> None:
    """The sky in the light of the canvas, with sun, moon, stars and clouds."""
    colours = colours_of(_SKIES[c.light])
    pair = 2 * c.count(0, len(colours) // 2 - 1)
    above, below = colours[pair : pair + 2]
    c.shade(0, HEIGHT, below, below)
    c.shade(0, c.horizon, above, below)
    if c.light in ("night", "sunset"):
        c.labels.add(c.light)
    elif c.horizon > 0.52 * HEIGHT:
        c.labels.add("sky")
    if c.light == "night":
        for thing in (paint_stars, paint_moon):
            if c.chance(0.55):
                thing(c)
    elif c.light == "sunset" or (c.light == "day" and c.chance(0.4)):
        paint_sun(c, low=c.light == "sunset")
    if c.chance({"day": 0.45, "overcast": 0.5, "sunset": 0.3, "night": 0.15}[c.light]):
        paint_clouds(c)
    if c.light in ("day", "overcast") and c.chance(0.12):
        paint_rainbow(c)


def paint_stars(c: Canvas) -> None:
    """Many small stars."""
    c.labels.add("stars")
    for x, y, size in c.rng.random((c.count(60, 150), 3)).tolist():
        position = (x * WIDTH, y * c.horizon, 0.4 + 1.3 * size**4)
        c.disc(position, "0 0 1 1", (255, 252, 230), round(140 + 115 * size))


def paint_moon(c: Canvas) -> None:
    """A full moon with its halo."""
    c.labels.add("moon")
    x, y, r = c.between(30, 290), c.between(0.15, 0.6) * c.horizon, c.between(9, 24)
    for k in range(6):
        c.disc((x, y, r * (1.2 + 0.25 * k)), "0 0 1 1", (220, 226, 255), 16)
    c.disc((x, y, r), "0 0 1 1", (240, 238, 220))
    for crater in ("-.3 -.2 .22 .22", ".3 .25 .28 .28", ".1 -.45 .14 .14"):
        c.disc((x, y, r), crater, (212, 208, 192))


def paint_sun(c: Canvas, low: bool) -> None:
    """The sun, with or without rays; low on the horizon it is labelled sunset, not sun."""
    if not low:
        c.labels.add("sun")
    x, r = c.between(30, 290), c.between(11, 26)
    y = c.horizon - r * c.between(-0.3, 1.2) if low else c.between(0.15, 0.5) * c.horizon
    colour = (255, 226, 150) if low else (255, 246, 200)
    for k in range(8):
        c.disc((x, y, r * (1.1 + 0.3 * k)), "0 0 1 1", colour, 22)
    if not low and c.chance(0.5):
        for turn in np.arange(12) * math.pi / 6:
            dx, dy = r * math.cos(turn), r * math.sin(turn)
            c.line([(x + s * dx, y + s * dy) for s in (1.3, 1.9)], colour, 1.6, 200)
    c.disc((x, y, r), "0 0 1 1", colour)


def paint_clouds(c: Canvas) -> None:
    """Heaps of puffs, shaded below."""
    c.labels.add("cloud")
    white = c.lit("fafafc e2e2ea ffece2")
    for _ in range(c.count(1, 5)):
        x, y, size = c.between(0, WIDTH), c.between(0.08, 0.7) * c.horizon, c.between(10, 26)
        puffs = [
            (
                x + 2.5 * size * (dx - 0.5),
                y - size * dy * (1 - abs(2 * dx - 1)),
                size * (0.4 + 0.4 * s),
            )
            for dx, dy, s in c.rng.random((9, 3)).tolist()
        ]
        for shade, oval in ((darker(white, 0.14), "0 .25 1 .75"), (white, "0 0 1 .75")):
            for puff in puffs:
                c.disc(puff, oval, shade, 240)


def paint_rainbow(c: Canvas) -> None:
    """An arc that stands on the horizon."""
    c.labels.add("rainbow")
    x, y, r = c.between(60, 260), c.horizon + c.between(0, 30), c.between(90, 150)
    for k, colour in enumerate(colours_of("dc3c3c f09632 f5e150 5abe64 4682dc 8250b4")):
        s = (r - 3.2 * k) * FINER
        box = [x * FINER - s, y * FINER - s, x * FINER + s, y * FINER + s]
        c.draw.arc(box, 180, 360, (*colour, 150), round(3.6 * FINER))


def paint_rain(c: Canvas) -> None:
    """Slanting streaks over everything."""
    c.labels.add("rain")
    slant = c.between(-0.35, 0.35)
    for x, y, size in c.rng.random((c.count(120, 220), 3)).tolist():
        length = 7 + 13 * size
        end = (x * WIDTH + slant * length, y * HEIGHT + length)
        c.line([(x * WIDTH, y * HEIGHT), end], (226, 234, 244), 0.8, 130)


def paint_birds(c: Canvas) -> None:
    """A flock."""
    c.labels.add("bird")
    x, y, size = c.between(50, 270), c.between(0.2, 0.7) * c.horizon, c.between(7, 16)
    colour = (236, 238, 242) if c.light == "night" or c.chance(0.25) else (36, 36, 46)
    for dx, dy in c.rng.normal(size=(c.count(3, 9), 2)).tolist():
        position = (x + 34 * dx, y + 16 * dy, size * c.between(0.7, 1.2))
        for way in (-1, 1):
            c.shape(position, "0 0 .45 -.5 1 -.3 .45 -.26 0 .3", colour, way=way)


def paint_balloons(c: Canvas) -> None:
    """One to three striped hot-air balloons."""
    c.labels.add("balloon")
    for _ in range(c.count(1, 3)):
        x, r = c.between(24, 296), c.between(12, 32)
        position = (x, c.between(r + 6, max(r + 8, c.horizon - r)), r)
        first, second = c.lit(BRIGHT), c.lit(BRIGHT)
        c.shape(position, "-.3 1.2 .3 1.2 .16 1.7 -.16 1.7", darker(first, 0.6), 120)
        for k, half in enumerate((1, 0.72, 0.42, 0.14)):
            stripe = second if k % 2 else first
            c.disc(position, f"0 0 {half} 1", stripe)
            w, v = 0.82 * half, 0.2 * half
            c.shape(position, f"{-w} .57 {w} .57 {v} 1.4 {-v} 1.4", stripe)
        c.disc(position, "-.35 -.4 .25 .35", (255, 255, 255), 46)
        c.shape(position, "-.17 1.65 .17 1.65 .15 1.95 -.15 1.95", c.lit("6e4a2c"))


def paint_plane(c: Canvas) -> None:
    """A plane, perhaps with its trail."""
    c.labels.add("plane")
    position = (c.between(60, 260), c.between(0.15, 0.6) * c.horizon, c.between(18, 44))
    way, body = c.one_of((-1, 1)), c.lit("eceef2")
    if c.chance(0.5):
        c.shape(position, "-.5 0 -9 -.12 -9 .2", (255, 255, 255), 110, way)
    c.shape(position, "-.1 0 -.5 -.55 -.32 -.55 .25 0", darker(body, 0.25), way=way)
    c.shape(position, "-.75 0 -1 -.42 -.84 -.42 -.5 0", c.lit(BRIGHT), way=way)
    c.shape(position, "1 .02 .8 -.13 -.9 -.1 -1 0 -.7 .1 .8 .14", body, way=way)
    c.shape(position, "-.05 .05 -.6 .5 -.4 .5 .3 .05", darker(body, 0.25), way=way)
    for k in range(6):
        c.disc(position, f"{0.6 - 0.2 * k} -.03 .03 .03", (50, 70, 100), way=way)


# --- things on the ground ----------------------------------------------------------------


def paint_tree(c: Canvas, position: Position) -> None:
    """A fir or a leafy tree, in any season."""
    c.labels.add("tree")
    c.shape(position, "-.06 0 .06 0 .02 -.6 -.02 -.6", c.lit("604630"))
    if c.chance(0.45):
        green = c.lit("22543a")
        for k in range(4):
            low, half = 0.14 + 0.2 * k, 0.32 - 0.065 * k
            branch = f"{-half} {-low} {half} {-low} 0 {-low - 0.38}"
            c.shape(position, branch, lighter(green, 0.05 * k))
            if "snow" in c.labels:
                tip = f"{-half / 2} {-low - 0.17} {half / 3} {-low - 0.22} 0 {-low - 0.38}"
                c.shape(position, tip, c.lit(SNOW))
        return
    leaves = c.lit("428040 608c32 2c6846 c87828 aa3c28 d696aa")
    clumps = c.rng.normal(size=(12, 2)) * (0.16, 0.12) - (0, 0.72)
    for shade, shift, r in (
        (darker(leaves), 0.04, 0.16),
        (leaves, 0, 0.14),
        (lighter(leaves, 0.16), -0.05, 0.07),
    ):
        for dx, dy in clumps.tolist():
            c.disc(position, f"{dx + shift:.3f} {dy + shift:.3f} {r} {r}", shade)


def paint_palm(c: Canvas, position: Position) -> None:
    """A leaning palm."""
    c.labels.add("palm")
    x, y, size = position
    lean = c.between(-0.25, 0.25) * size
    crown = (x + lean, y - size)
    trunk = [(x, y), (x + 0.3 * lean, y - 0.5 * size), crown]
    c.line(trunk, c.lit("7c5c3c"), 0.06 * size)
    green = c.lit("3c8246 5a8c3c 286450")
    for turn in np.linspace(-0.3, math.pi + 0.3, 8).tolist():
        dx, dy = 0.48 * math.cos(turn), -0.25 * math.sin(turn)
        leaf = f"0 0 {0.55 * dx} {1.2 * dy - 0.02} {dx} {dy + 0.2} {0.55 * dx} {1.2 * dy + 0.07}"
        c.shape((*crown, size), leaf, green)


def paint_house(c: Canvas, position: Position) -> None:
    """A house; its windows are lit at night, its roof is white in snow."""
    c.labels.add("house")
    wall = c.lit("ece2cc c4604a f4f2ec 96aabe e2b86e")
    roof = c.lit(SNOW) if "snow" in c.labels else c.lit("963c30 544e54 6e4632")
    pane = (255, 220, 120) if c.light == "night" else c.lit("78a0be")
    c.shape(position, ".2 -1.05 .32 -1.05 .32 -.7 .2 -.7", darker(wall, 0.4))
    c.shape(position, "-.6 -.55 .6 -.55 .6 0 -.6 0", wall)
    c.shape(position, "0 -.55 .6 -.55 .6 0 0 0", darker(wall, 0.5), 60)
    c.shape(position, "-.7 -.5 -.35 -1 .35 -1 .7 -.5", roof)
    for middle in (-0.36, 0.36):
        for half, colour in ((0.13, lighter(wall, 0.6)), (0.1, pane)):
            a, b = middle - half, middle + half
            c.shape(
                position,
                f"{a} {-0.32 - half} {b} {-0.32 - half} {b} {half - 0.32} {a} {half - 0.32}",
                colour,
            )
    c.shape(position, "-.1 -.34 .1 -.34 .1 0 -.1 0", c.lit("5a3828"))


def paint_lighthouse(c: Canvas, position: Position) -> None:
    """A striped lighthouse on its rock."""
    c.labels.add("lighthouse")
    stripe = c.lit("c8322c 283c6e 28282c")
    c.shape(position, "-.7 .05 -.5 -.08 -.25 -.13 0 -.1 .3 -.15 .5 -.06 .7 .05", c.lit("5c585a"))
    for k in range(5):
        low, high, y = 0.13 - 0.014 * k, 0.116 - 0.014 * k, -0.06 - 0.15 * k
        band = f"{-low} {y} {low} {y} {high} {y - 0.15} {-high} {y - 0.15}"
        c.shape(position, band, stripe if k % 2 else c.lit("f4f4f0"))
    if c.light == "night":
        c.shape(position, "0 -.86 3 -1.4 3 -.6", (255, 240, 170), 80, c.one_of((-1, 1)))
    c.shape(position, "-.06 -.92 .06 -.92 .06 -.8 -.06 -.8", (255, 236, 150))
    c.shape(position, "-.09 -.92 .09 -.92 0 -1.03", stripe)


def paint_windmill(c: Canvas, position: Position) -> None:
    """A windmill with four sails."""
    c.labels.add("windmill")
    wall, sail = c.lit("dcd2be 966e50 aa5042"), c.lit("f6f2e6")
    c.shape(position, "-.2 0 .2 0 .11 -.6 -.11 -.6", wall)
    c.disc(position, "0 -.6 .13 .12", darker(wall, 0.5))
    turn, hub = c.between(0, 1.5), (position[0], position[1] - 0.62 * position[2], position[2])
    for k in range(4):
        cos, sin = math.cos(turn + k * math.pi / 2), math.sin(turn + k * math.pi / 2)
        corners = ((0.08, 0), (0.52, 0), (0.52, 0.12), (0.12, 0.12))
        arm = " ".join(f"{a * cos - b * sin:.3f} {a * sin + b * cos:.3f}" for a, b in corners)
        c.shape(hub, arm, sail, 230)
        tip = (hub[0] + 0.54 * hub[2] * cos, hub[1] + 0.54 * hub[2] * sin)
        c.line([hub[:2], tip], darker(wall, 0.7), 1.3)


def paint_boat(c: Canvas, position: Position) -> None:
    """A sailing boat or a small steamer."""
    c.labels.add("boat")
    hull, way = c.lit(BRIGHT), c.one_of((-1, 1))
    c.shape(position, "-.4 .07 .38 .07 .2 .3 -.2 .3", darker(hull, 0.6), 70)
    c.shape(position, "-.55 -.16 .55 -.16 .38 .06 -.4 .06", hull)
    c.shape(position, "-.57 -.19 .57 -.19 .55 -.14 -.55 -.14", lighter(hull, 0.6))
    if c.chance(0.7):
        sail = c.lit(f"faf8f0 faf8f0 faf8f0 {BRIGHT}")
        c.shape(position, "-.02 -.16 .02 -.16 .02 -1.15 -.02 -1.15", c.lit("5a422c"))
        c.shape(position, ".04 -1.12 .04 -.26 .5 -.26", sail, way=way)
        c.shape(position, "-.04 -1 -.04 -.26 -.36 -.26", darker(sail, 0.14), way=way)
    else:
        c.shape(position, "-.24 -.45 .16 -.45 .2 -.16 -.24 -.16", c.lit("f4f4f0"), way=way)
        c.shape(position, "-.06 -.62 .04 -.62 .04 -.42 -.06 -.42", c.lit("b43c32"), way=way)
        for k in range(3):
            c.disc(position, f"{0.12 * k - 0.16} -.3 .04 .05", c.lit("466e96"), way=way)


def paint_car(c: Canvas, position: Position) -> None:
    """A car from the side."""
    c.labels.add("car")
    colour, glass, way = c.lit(BRIGHT), c.lit("aac8dc"), c.one_of((-1, 1))
    c.disc(position, "0 0 1 .1", (10, 10, 16), 110)
    c.shape(position, "-.6 -.45 -.38 -.76 .22 -.76 .5 -.45", darker(colour, 0.12), way=way)
    c.shape(position, "-.47 -.46 -.32 -.69 -.06 -.69 -.06 -.46", glass, way=way)
    c.shape(position, "0 -.46 0 -.69 .19 -.69 .4 -.46", glass, way=way)
    c.shape(position, "-.95 -.12 -.95 -.4 -.55 -.47 .5 -.47 .92 -.36 .97 -.12", colour, way=way)
    c.shape(position, "-.9 -.32 .9 -.32 .92 -.28 -.9 -.28", lighter(colour, 0.5), way=way)
    for middle in (-0.55, 0.55):
        c.disc(position, f"{middle} -.12 .2 .2", (24, 24, 28))
        c.disc(position, f"{middle} -.12 .1 .1", (170, 172, 178))
    c.disc(position, ".9 -.32 .06 .06", (255, 244, 190), way=way)


def paint_flowers(c: Canvas, top: float) -> None:
    """A bed of flowers of one kind, larger in front."""
    c.labels.add("flower")
    petals, stem, size = c.lit(f"{BRIGHT[:48]} dc6e96"), c.lit("326e32"), c.between(6, 14)
    for depth in sorted(c.rng.random(c.count(8, 26)).tolist()):
        x, y = c.between(0, WIDTH), top + 6 + (HEIGHT - top) * depth
        position = (x, y, size * (0.45 + 0.75 * depth))
        c.shape(position, "-.06 0 .06 0 .25 2.4 .1 2.4", stem)
        for turn in (np.arange(6) * math.pi / 3 + x).tolist():
            c.disc(position, f"{0.55 * math.cos(turn)} {0.55 * math.sin(turn)} .4 .4", petals)
        c.disc(position, "0 0 .32 .32", c.lit("f0c83c"))


def paint_bridge(c: Canvas, y: float) -> None:
    """A suspension bridge, or one of stone arches, across the picture."""
    c.labels.add("bridge")
    colour, deck = c.lit("b04032 787c82 aa9678 3c4654"), y - c.between(12, 26)
    if c.chance(0.55):
        towers, height = (c.between(60, 110), c.between(200, 260)), c.between(50, 90)
        x = np.linspace(0, WIDTH, 41)
        u = (x - towers[0]) / (towers[1] - towers[0])
        outside = 1 - 2 * np.minimum(abs(u), abs(u - 1))
        sag = np.where((u >= 0) & (u <= 1), 4 * (u - 0.5) ** 2, outside).clip(0.06)
        cable = list(zip(x.tolist(), (deck - height * sag).tolist(), strict=True))
        c.line(cable, colour, 1.8)
        for at in cable:
            c.line([at, (at[0], deck)], colour, 0.7, 220)
        for tower in towers:
            c.box(tower - 4, deck - height, 8, height + y - deck + 14, darker(colour, 0.15))
    else:
        span, low = c.between(50, 90), y + 12
        c.box(0, deck - 4, WIDTH, low - deck + 4, colour)
        shadow = c.lit("3a5a78")
        for k in range(8):
            box = [span * (k - 0.78), deck + 6, span * (k - 0.02), 2 * low - deck - 6]
            c.draw.pieslice([FINER * side for side in box], 180, 360, shadow)
        for _ in range(40):
            stone = (c.between(0, WIDTH), c.between(deck + 2, y))
            c.line([stone, (stone[0] + 6, stone[1])], darker(colour, 0.3), 0.8, 110)
    c.box(0, deck - 4, WIDTH, 6, darker(colour, 0.2))
