"""The section of docs/benchmarks.md on the catalogue."""

from typing import Any

from benchmarks.tables import timings


def catalogue_section(found: dict[str, Any] | None) -> str:
    """What a catalogue of many photographs costs; nothing where it was not measured."""
    if not found:
        return ""
    again = min(wall for wall, _ in found["unchanged_scans"])
    cpu = min(cpu for _, cpu in found["unchanged_scans"])
    queries = timings("query", found["queries"], 1)
    first = found["first_scan"]
    full = found.get("full")
    most = (
        f" With {full['suggestions']:,} suggestions, at most twenty per photograph as in a review, "
        f"the file has {full['bytes'] / 1e6:.0f} MB (target: at most 400 MB)."
        if full
        else ""
    )
    return f"""## The catalogue

The catalogue has {found["photographs"]:,} tiny photographs, a third of them with a sidecar,
{found["suggestions"]:,} suggestions with 5 kin each and {found["decisions"]:,} decisions, in a file
of {found["bytes"] / 1e6:.0f} MB.{most} The first scan took {first[0]:.0f} s ({first[1]:.0f} s of
CPU). A scan without changes takes {again:.1f} s ({cpu:.1f} s of CPU) and reads no file. Each query
runs a hundred times, for different tags or photographs. The target is 50 ms.

{queries}"""
