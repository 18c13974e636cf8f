"""The sections of docs/benchmarks.md on learning from a collection and on short commands."""

from typing import Any

from benchmarks.tables import MIB, table

COLLECTIONS = {"synthetic": "synthetic", "coco": "COCO's photographs and tags"}

# what is shown of each command, and the seconds that it should take at most
COMMANDS = {
    "help": ("`tagkin --help`", 0.3),
    "info": ("`tagkin model info`", 0.6),
    "suggest": ("`tagkin model suggest` for one photograph, {small} learned from", 1.2),
    "suggest, not looked at before": (
        "the same, for a photograph that is not in the cache",
        None,
    ),
    "suggest, large": ("`tagkin model suggest` for one photograph, {large} learned from", 1.5),
    "suggest, large, not looked at before": (
        "the same, for a photograph that is not in the cache",
        None,
    ),
    "train": ("`tagkin model train` on {small} photographs, features in the cache", 3.0),
}

_OF_TRAINING = """\
Of `tagkin model train` (a profile, other programs running), learning takes 58 %, in many spaces and
read-outs of a few hundred photographs each; imports a quarter; what the names of tags mean a tenth;
series, the photographs' tags and saving the rest. It is Python's work rather than NumPy's, of which
two threads do no more than one. Of `tagkin model suggest`, imports take two thirds."""
_WHERE = """\
Where the processor's time of COCO's 10,000 goes (a profile with one thread, other programs
running): spaces 34 %, most of it sums over kernel columns and factors of 4,096 and, in folds,
3,072 landmarks; read-outs 27 %; neighbours and their votes 11 %; names 8 %; audit and confidences
7 %; denoising 6 %; series and tags 3 %; mixtures 2 %. Products and factors alone are half of it,
and both cores together do 1.6 times as many of them as one (248 and 155 GFLOP/s, float32). Two
threads are at work nearly all the time, but for reading the tags, and the last of the names and of
the audit, when the space and the read-out of all photographs are done. On machines of this kind,
fits of both took 17 to 18 s in a quick hour; in one when the host took 5 to 10 % and products ran
at 135 to 141 GFLOP/s, they took 26 and 30 s."""


def learning_section(found: dict[str, Any] | None) -> str:
    """The results of `benchmarks.learning`."""
    if found is None:  # not measured yet
        return ""
    rows = [
        [
            COLLECTIONS[name],
            f"{row['photographs']:,}",
            f"{row['tags']:,}",
            f"{row['wall_seconds']:.1f} s",
            "≤ 20 s",
            f"{row['cpu_seconds']:.1f} s",
            f"{row['stolen_share']:.0%}" if "stolen_share" in row else "–",
            _gflops(row.get("operations_per_second")),
            f"{row['peak_extra_bytes'] / MIB:,.0f} MiB",
        ]
        for name, row in found["fit"].items()
    ]
    fits = table(
        ["", "photographs", "tags", "time", "target", "CPU", "host", "products", "peak memory"],
        rows,
    )
    tags = [
        [
            f"{row['tags']:,}",
            f"{row['fit_seconds']:.2f} s",
            f"{row['product_seconds']:.2f} s",
            f"**{row['fit_seconds'] / row['product_seconds']:.2f}**",
        ]
        for row in found["many_tags"]
    ]
    return f"""## Learning from a collection

`Annotator.fit`, given features ({found["features"]:,} for each photograph) that were extracted
before: series, denoising, κ, the space, votes and read-out, the names of tags, and confidences
from held-out photographs. Medians of three fits. *Host* is the share of both processors' time that
the virtual machine's host gave to others meanwhile. *Products* is how fast float32 matrices were
multiplied before and after: the same kind of machine differs by half from hour to hour.

{fits}

{_WHERE}

With thousands of tags, the fit of a space ({found["landmarks"]:,} landmarks) grows as plain
products of the same sizes do; the rotation to canonical directions, an eigenproblem of the number
of tags, is left out from 1,024 tags on, unless correlations are asked for.

{table(["tags", "fit", "plain products", "ratio"], tags)}"""


def _gflops(rate: float | None) -> str:
    return "–" if rate is None else f"{rate / 1e9:.0f} GFLOP/s"


def commands_section(found: dict[str, Any] | None) -> str:
    """The results of `benchmarks.commands`."""
    if found is None:  # not measured yet
        return ""
    sizes = {"small": f"{found['photographs']:,}", "large": f"{found['large']:,}"}
    rows = []
    for name, (text, target) in COMMANDS.items():
        row = found["cold"][name]
        wanted = "" if target is None else f"≤ {target:g} s"
        cells = [f"{row['seconds']:.2f} s", wanted, f"{row['cpu_seconds']:.2f} s"]
        rows.append([text.format(**sizes), *cells])
    resident, saved = found["resident"], found["saved"]
    for size in ("small", "large"):
        row = resident[size]
        text = f"`Annotator.suggest`, loaded before, {sizes[size]} learned from"
        cells = [f"{1e3 * row['seconds']:.0f} ms", "≤ 15 ms", f"{1e3 * row['cpu_seconds']:.0f} ms"]
        rows.append([text, *cells])
    large = resident["large"]
    rows.append(
        [
            f"`tagkin.load`, {sizes['large']} learned from",
            f"{large['load_seconds']:.2f} s",
            "≤ 0.5 s",
            f"{large['load_cpu_seconds']:.2f} s",
        ]
    )
    return f"""## Short commands, and one photograph

Each command runs in a process of its own, with its bytecode at hand as after an installation;
medians. A saved annotator of {sizes["large"]} photographs takes {saved["bytes"] / 1e6:.0f} MB (at
most 80 are wanted); the sums that further photographs are added to,
{saved["bytes_apart"] / 1e6:.0f} MB, lie in a file of their own that suggestions never open.

{table(["", "time", "target", "CPU"], rows)}

{_OF_TRAINING}"""
