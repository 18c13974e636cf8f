"""The section of the report with a column for each kind of processor."""

import statistics
from typing import Any

from benchmarks.report_features import TARGET, bound
from benchmarks.tables import table

LIMITS = {(20_000, 1280, 1024): 2.0, (100_000, 256, 2048): 1.5, (20_000, 1280, 4096): 1.8}
"""Images, features and landmarks of a fit, and how many times its products' time it may take."""

KEPT = ("space", "search", "features")
_PEERS = {"mvlearn": "mvlearn KMCCA", "cca-zoo": "cca-zoo KCCA"}
_AT_LEAST = 100  # times as fast as other kernel CCA, where every image is a landmark


def note(results: dict[str, Any], kind: str, section: str, found: dict[str, Any]) -> None:
    """Keep what was measured on one kind of processor beside what others measured."""
    if section in KEPT:
        results.setdefault("kinds", {}).setdefault(kind, {})[section] = found


def note_part(results: dict[str, Any], kind: str, section: str, found: dict[str, Any]) -> None:
    """Keep what was measured for the columns alone; the tables of the section stay."""
    results.setdefault("kinds", {}).setdefault(kind, {}).setdefault(section, {}).update(found)


def kinds_section(kinds: dict[str, dict[str, Any]]) -> str:
    """Ratios to reach, and those reached on each kind of processor."""
    if not kinds:
        return ""
    reached = {kind: _ratios(found) for kind, found in sorted(kinds.items())}
    targets = {name: target for ratios in reached.values() for name, (_, target) in ratios.items()}
    rows = [
        [name, target, *(ratios.get(name, ("–", ""))[0] for ratios in reached.values())]
        for name, target in targets.items()
    ]
    return f"""## Ratios by processor

What we aim at, and what was reached on each kind of processor. To update your processor's column,
run `python -m benchmarks limits peers search jpegs`. The sections above show the latest run.

{table(["ratio", "target", *reached], rows)}"""


def _ratios(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Name of each ratio -> what was reached, and what should be."""
    ratios: dict[str, tuple[str, str]] = {}
    space, search = found.get("space", {}), found.get("search", {}).get("search", {})
    for row in space.get("limit", []):
        case = row["images"], row["features"], row["landmarks"]
        name = f"fit over products, {case[0]:,} × {case[1]:,}, {case[2]:,} landmarks"
        ratios[name] = f"{row['ratio']:.2f}", f"≤ {LIMITS[case]}"
    peers = {(row["program"], row["images"]): row["cpu_seconds"] for row in space.get("peers", [])}
    largest = max((images for _, images in peers), default=0)
    for program, title in _PEERS.items():
        for ours, of in (("tagkin", ""), ("tagkin-float64", " of float64 features")):
            if (program, largest) in peers and (ours, largest) in peers:
                times = peers[program, largest] / peers[ours, largest]
                name = f"{title} over the exact space{of}, {largest:,} images"
                ratios[name] = f"{times:.0f}", f"≥ {_AT_LEAST}"
    seconds = {name: statistics.median(all_) for name, all_ in search.get("seconds", {}).items()}
    for name in seconds:
        if name != "tagkin":
            times = seconds[name] / seconds["tagkin"]
            ratios[f"{name} over exact neighbours"] = f"{times:.2f}", "≥ 1"
    large = found.get("features", {}).get("features", {}).get("large")
    if large is not None:
        name = "`extract` over the network alone, JPEGs of 12 megapixels"
        ratios[name] = f"{large['of_upper_bound']:.2f}", f"≥ {TARGET:.2f}"
        if "of_network_and_decoding" in large:
            most = f"{bound(large):.2f}"
            ratios["limit of `extract`, if only network and decoding took time"] = most, ""
    return ratios
