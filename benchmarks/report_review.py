"""The section of docs/benchmarks.md on the review page."""

from typing import Any

from benchmarks.tables import table, timings


def review_section(found: dict[str, Any] | None) -> str:
    """How fast pages are with many photographs; nothing where it was not measured."""
    if not found:
        return ""
    calls = timings("request", found["calls"], 0)
    pictures = found["thumbnails"]
    return f"""## The review page

With {found["photographs"]:,} photographs and {found["suggestions"]:,} suggestions, `tagkin review`
answers after {found["start_seconds"]:.1f} s, including the scan for changes. Then all pages and
requests of scripts are requested over HTTP in turn, while a fit on all photographs runs in the
background. The target is 200 ms for 95 of 100 requests. CPU is the server's CPU time. The server
makes {pictures["made"]:.0f} thumbnails of 256 pixels per second and thread from 12-megapixel
photographs, and serves {pictures["again"]:,.0f} stored thumbnails per second.

{calls}"""


def scrolling_section(found: dict[str, Any] | None) -> str:
    """How smooth a large grid scrolls; nothing where it was not measured."""
    if not found:
        return ""
    rows = [
        [
            name,
            f"{1000 * one['main_thread_seconds'] / one['frames']:.1f} ms",
            *(f"{one[key]:.0f} ms" for key in ("median_ms", "p95_ms")),
            f"{one['dropped_share']:.0%}",
            f"{one['blank_share']:.1%}" if "blank_share" in one else "–",
        ]
        for name, one in (("first time", found["first"]), ("again", found["again"]))
    ]
    header = ["pass", "CPU per frame", "frame, median", "95 of 100", "dropped"]
    header += ["no picture yet"]
    speed = found.get("pixels_per_second", 2400)
    load = "" if found["load"] is None else f" (load {found['load']:.0f} on this machine)"
    browser = found["browser"].split(".")[0]
    return f"""## Scrolling

A headless Chromium {browser} without a GPU scrolls through a grid of {found["photographs"]:,}
photographs at {speed:,} pixels per second, a first time while results and pictures are loading, and
again. A frame should take 16.7 ms. CPU is the time of the page's main thread. Other processes can
delay frames{load}. *No picture yet* is the share of visible photographs, over all frames, whose
thumbnail has not arrived.

{table(header, rows)}"""
