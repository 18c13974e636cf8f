"""Write tag files: JSON Lines, or CSV with a row for each image or for each tag."""

import csv
import io
import json
from pathlib import Path

from tagkin.collection import TagTable
from tagkin.collection.tag_files import guarded_cell

SEPARATORS = (";", "|", ",")


def write_tag_file(path: Path, table: TagTable) -> Path:
    """Write a table so that `read_tags` reads the same."""
    rows = list(zip(table.file_names, table.tags, strict=True))
    if path.suffix == ".jsonl":
        lines = [json.dumps({"file_name": name, "tags": list(tags)}) for name, tags in rows]
        path.write_bytes("".join(f"{line}\n" for line in lines).encode())
        return path
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    if any(s in tag for _, tags in rows for tag in tags for s in SEPARATORS):
        writer.writerow(["file_name", "tag"])
        cells = [[name, tag] for name, tags in rows for tag in tags or [""]]
    else:
        writer.writerow(["file_name", "tags"])
        cells = [[name, ";".join(tags)] for name, tags in rows]
    writer.writerows([*map(guarded_cell, row)] for row in cells)
    path.write_bytes(out.getvalue().encode())
    return path
