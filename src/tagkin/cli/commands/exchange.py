"""tagkin export and tagkin import: carry decisions as JSON lines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from tagkin.cli import options
from tagkin.cli.catalogues import open_for_command
from tagkin.cli.output import (
    check_target,
    json_line,
    relative,
    say,
    send,
    send_json,
    write_file,
)
from tagkin.cli.registry import command
from tagkin.errors import InvalidInput, StorageError
from tagkin.wording import count

File = Annotated[Path, options.argument("FILE")]


@command("export")
def export_decisions(
    file: File, overwrite: options.Overwrite = False, catalogue: options.Catalogue = None
) -> None:
    """Write decisions as JSON lines.

    FILE is a .jsonl file, or - for standard output. It gets decisions, finished photographs and
    edits of tags. Only the catalogue holds decisions; tags and photographs are in your files.
    tagkin import reads FILE again, here or on another machine. Photographs are identified by
    content.

    Examples
    --------
    tagkin export backup.jsonl
    tagkin export - > backup.jsonl
    """
    to_file = str(file) != "-"
    if to_file:
        check_target(file, overwrite, (".jsonl",))
    with open_for_command(catalogue) as opened:
        lines = map(json_line, opened.export_lines())
        if not to_file:
            for line in lines:
                send(line)
            return
        text = "".join(lines)
    write_file(file, text)
    say(f"{count(text.count(chr(10)), 'line')} written to {relative(file)}.")


@command("import")
def import_decisions(
    file: File,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Import decisions.

    FILE is what tagkin export wrote, or - for standard input. Existing decisions stay, so
    importing twice changes nothing; if two decisions on a tag conflict, the later one wins.
    tagkin undo undoes the imported decisions, and then each imported edit of tags.

    Examples
    --------
    tagkin import decisions.jsonl
    tagkin import decisions.jsonl --dry-run
    """
    with open_for_command(catalogue, "import", write=True, dry_run=dry_run) as opened:
        imported = opened.import_lines(_read_lines(file))
    if as_json:
        send_json(vars(imported) | {"dry_run": dry_run})
        return
    what = f"{count(imported.decisions, 'decision')}, {count(imported.tags, 'edit')} of tags"
    if not any(vars(imported).values()):
        what = "nothing: the catalogue has all of it, or later decisions"
    say(f"{'Would import' if dry_run else 'Imported'} {what}.")


def _read_lines(file: Path) -> list[str]:
    if str(file) == "-":
        return sys.stdin.read().split("\n")
    if file.is_char_device() or file.is_block_device():  # it may have no end
        raise InvalidInput(f"{relative(file)} is not a file.")
    try:
        return file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise StorageError(f"{relative(file)} cannot be read: {why}.") from error
