"""The section of the report on photographs and their features."""

from typing import Any

import numpy as np

from benchmarks.tables import table

TARGET = 0.7
"""Share of the network's own rate that large JPEGs should reach."""

STEPS = {
    "read": "reading the file",
    "hash": "hashing it (SHA-256)",
    "decode": "decoding it at a smaller size",
    "resize": "resizing it to the network's input",
    "network": "the network",
}
HUFFMAN = "(at 1/8 of its size, which is mostly its Huffman code)"


def features_section(found: dict[str, Any] | None, kinds: dict[str, dict[str, Any]]) -> str:
    """Photographs per second, and where the time of large ones goes."""
    if found is None:  # not measured yet
        return ""
    lines = []
    for kind, title in (("small", "small JPEGs"), ("large", "JPEGs of 12 megapixels")):
        row = found[kind]
        for name, times in row["seconds"].items():
            ours = name == "extract"
            cpu = float(np.median(row["cpu_seconds"][name])) / row["photographs"]
            lines.append(
                [
                    f"**`{name}`**" if ours else name,
                    f"{row['photographs']} {title}, {row['mean_bytes'] / 1024:,.0f} KiB each",
                    f"{row['photographs'] / float(np.median(times)):.1f}",
                    f"**{100 * row['of_upper_bound']:.0f} %**" if ours else "",
                    f"{1000 * cpu:.0f} ms",
                ]
            )
    header = ["", "photographs", "per second", "of the upper bound", "CPU per photograph"]
    rates = table(header, lines)
    again = found["small"]["photographs"] / found["small"]["second_run_seconds"]
    return f"""## Photographs to features

{found["backbone"]} on {found["cores"]} cores. `extract` reads, hashes, decodes and resizes the
files and runs the network. onnxruntime alone runs the same network on prepared pixels; its better
mode is the upper bound. Medians over alternating repeats.

{rates}

{_of_both(found["large"])}{_steps(kinds)}A second run takes the features from the cache without
reading the files: {again:,.0f} photographs per second."""


def _of_both(row: dict[str, Any]) -> str:
    """What decoding leaves of the upper bound, where it was measured."""
    if "of_network_and_decoding" not in row:
        return ""
    scales = row.get("by_scale", {})
    parts = ", ".join(f"{scales[n]:.0f} ms at 1/{n}" for n in ("2", "4", "8") if n in scales)
    profile = f" (one takes {scales['1']:.0f} ms whole, {parts} of its size)" if scales else ""
    return f"""Most of the time for a large JPEG goes into its Huffman code, which decoding at a
smaller size does not avoid{profile}. With JPEGs of 12 megapixels, `extract` reaches
{100 * row["of_network_and_decoding"]:.0f} % of the rate of the network and libjpeg-turbo's decoding
together.

"""


def _steps(kinds: dict[str, dict[str, Any]]) -> str:
    """What each step costs on each kind of processor, and what would do without the others."""
    found = {
        kind: sections["features"]["features"]["large"]
        for kind, sections in sorted(kinds.items())
        if "by_step" in sections.get("features", {}).get("features", {}).get("large", {})
    }
    if not found:
        return ""
    columns = [f"CPU, {kind}" for kind in found]
    rows = [
        [title, *(f"{row['by_step'][name]:.1f} ms" for row in found.values())]
        for name, title in STEPS.items()
    ]
    rows.insert(3, [HUFFMAN, *(f"{row['by_scale']['8']:.1f} ms" for row in found.values())])
    rows.append(
        [
            "**limit**",
            *(f"**{100 * bound(row):.0f} %**" for row in found.values()),
        ]
    )
    return f"""{table(["for one JPEG of 12 megapixels, on one thread", *columns], rows)}

*Limit* is the share of the upper bound that `extract` could reach if only decoding and the network
took time; the target is {100 * TARGET:.0f} %. The limit is the Huffman code of a large JPEG, which
must be decoded completely at any size, as the time at 1/8 shows. Pillow, OpenCV, libvips and
simplejpeg all use libjpeg-turbo.

"""


def bound(row: dict[str, Any]) -> float:
    """The share of the network's own rate that decoding leaves, on the same cores."""
    return row["of_upper_bound"] / row["of_network_and_decoding"]
