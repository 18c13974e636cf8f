"""The section of docs/benchmarks.md on the review page."""

from typing import Any

from benchmarks.tables import table


def review_section(found: dict[str, Any] | None) -> str:
    """How fast pages are with many photographs; nothing where it was not measured."""
    if not found:
        return ""
    rows = [
        [
            name,
            *(
                f"{1000 * one[kind][k]:.0f} ms"
                for kind in ("seconds", "cpu_seconds")
                for k in (0, 1)
            ),
        ]
        for name, one in found["calls"].items()
    ]
    calls = table(["asked for", "median", "95 of 100", "CPU, median", "CPU, 95 of 100"], rows)
    pictures = found["thumbnails"]
    return f"""## The review page

{found["photographs"]:,} photographs with {found["suggestions"]:,} suggestions. `tagkin review` on
a catalogue that is up to date answers after {found["start_seconds"]:.1f} s, with the scan for
changes. Then every page and every request of a script is asked for over HTTP, in turn, while a
fit on all photographs runs in the background; 200 ms is the limit for 95 of 100. CPU is that of
the server. Thumbnails of 256 pixels are made of 12-megapixel photographs at
{pictures["made"]:.0f} per second and thread; those that are there are served at
{pictures["again"]:,.0f} per second.

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
    header = ["way down", "CPU for a frame", "a frame, median", "95 of 100", "dropped"]
    header += ["no picture yet"]
    speed = found.get("pixels_per_second", 2400)
    load = "" if found["load"] is None else f" (load {found['load']:.0f} on this machine)"
    browser = found["browser"].split(".")[0]
    return f"""## Scrolling

A grid of {found["photographs"]:,} photographs at {speed:,} pixels per second, in a headless
Chromium {browser} that draws without a GPU: the first time, while parts of the list
and pictures are fetched, and again. A frame has 16.7 ms. CPU is that of the page's main thread;
frames are late where other processes have the processor{load}. *No picture yet* is the share of
photographs in the window, over all frames, whose thumbnail has not arrived.

{table(header, rows)}"""


def live_section(found: dict[str, Any] | None) -> str:
    """How fast a review follows decisions; nothing where it was not measured."""
    if not found:
        return ""
    rows = [
        [
            f"{one['photographs']:,}",
            f"{one['tags']:,}",
            f"{one['suggestions']:,}",
            f"{one['decided_before']:,}",
            *(f"{1000 * one[when][k]:.0f} ms" for when in ("at_first", "later") for k in (0, 1)),
        ]
        for one in found["sizes"]
    ]
    header = ["photographs", "tags", "suggestions", "decided before"]
    header += ["first decisions", "CPU", "after those before", "CPU"]
    return f"""## Following decisions

60 decisions on one tag, until the next page is known: the first decisions on the tag, and after
many others on it. One second is the limit at 10,000 photographs. Median of 5 tags, on one thread.

{table(header, rows)}"""
