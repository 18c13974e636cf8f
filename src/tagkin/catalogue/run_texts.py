"""What runs did, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tagkin.catalogue.runs import DecisionCounts, PastRun
from tagkin.catalogue.source import FileWrite
from tagkin.catalogue.undo import UndoResult
from tagkin.catalogue.write_run import WriteRun
from tagkin.wording import changes_text, count, quote_tags

__all__ = ["describe_run", "describe_undo", "describe_write", "places_text"]

_NAMED = 3  # tags
_UNDONE = (
    ("to restore", "file", "restore {}"),
    ("to remove", "file", "remove {} that it made"),
    ("restored", "file", "restored {} byte for byte"),
    ("removed", "file", "removed {} that it had made"),
    ("untagged", "file", "undid its changes in {} that somebody changed since"),
    ("tags removed", "photograph", "removed its tags from {}"),
    ("already", "file", "found {} as before"),
)


def describe_run(run: PastRun, decided: DecisionCounts | None) -> str:
    """Describe what a run did, for example ``accepted 3 tags on 2 photographs``.

    Parameters
    ----------
    run : PastRun
        A run that ended.
    decided : DecisionCounts or None
        Its decisions.
    """

    def n(name: str) -> int:
        value = run.outcome.get(name)
        return value if isinstance(value, int) else 0

    value = run.parameters.get("tags")
    tags = quote_tags(value if isinstance(value, list) else [], _NAMED)
    match run.what:
        case "scan":
            changes = changes_text({name: n(name) for name in run.outcome}) or "no change"
            return f"scanned {count(n('photographs'), 'photograph')}: {changes}"
        case "train":
            return f"learned {count(n('tags'), 'tag')} from {count(n('photographs'), 'photograph')}"
        case "suggest":
            photographs = count(n("with_suggestions"), "photograph")
            return f"suggested {count(n('suggestions'), 'tag')} for {photographs}"
        case "accept" | "reject" | "review" if decided is not None:
            verdicts = {"accepted": decided.n_accepted, "rejected": decided.n_rejected}
            done = [f"{verb} {count(n, 'tag')}" for verb, n in verdicts.items() if n]
            return f"{' and '.join(done)} on {count(decided.n_photographs, 'photograph')}"
        case "finish" if "photographs" in run.outcome:
            rejected = count(n("decisions"), "suggestion")
            return f"finished {count(n('photographs'), 'photograph')}, and rejected {rejected}"
        case "finish":
            return f"finished {tags}: rejected on {count(n('decisions'), 'photograph')}"
        case "import":
            return f"imported {count(n('decisions'), 'decision')}"
        case "incomplete":
            folder = run.parameters.get("folder") or "the whole collection"
            return f"declared incomplete: the tags in {folder}"
        case "write":
            failed = f"; {count(n('failures'), 'file')} failed" if n("failures") else ""
            removed = f", removed {count(n('removed'), 'tag')}" if n("removed") else ""
            wrote = f"wrote {count(n('tags'), 'tag')} into {count(n('files'), 'file')}"
            return f"{wrote}{removed}{failed}"
        case "undo":
            return f"undid run {run.undoes}"
        case "tags rename":
            return f"renamed {tags} to {quote_tags([str(run.parameters['into'])])}"
        case "tags merge":
            return f"merged {tags} into {quote_tags([str(run.parameters['into'])])}"
        case "tags forget":
            return f"forgot {tags}"
        case "tags hide":
            return f"hid {tags}"
        case "tags restore":
            return f"restored {tags}"
    return run.what


def describe_write(result: WriteRun) -> str:
    """Count written tags and files, for example ``12 tags into 3 sidecars, 1 of them new``."""
    files = [file for file in result.files if file.tags and file.state != "there"]
    if not files:
        return ""
    n_new = sum(file.is_new for file in files)
    new = f", {'all' if n_new == len(files) else f'{n_new:,}'} of them new" if n_new else ""
    return f"{count(result.n_tags, 'tag')} into {places_text(files)}{new}"


def describe_undo(result: UndoResult) -> str:
    """Count what happened to files, for example ``restored 2 files byte for byte``."""
    n = Counter(file.how for file in result.files)
    parts = [text.format(count(n[how], what)) for how, what, text in _UNDONE if n[how]]
    return " and ".join(parts) or "nothing was left of its changes"


def places_text(files: Sequence[FileWrite]) -> str:
    """Count files, for example ``2 photographs and 1 sidecar``."""
    n_embedded = sum(file.is_embedded for file in files)
    counts = {"photograph": n_embedded, "sidecar": len(files) - n_embedded}
    return " and ".join(count(n, kind) for kind, n in counts.items() if n)
