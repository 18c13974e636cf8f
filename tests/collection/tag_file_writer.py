"""Write tag files: JSON Lines, or CSV with a row for each image."""

import csv
import io
import json
from pathlib import Path

from tagkin.collection import TagTable
from tagkin.collection.tag_files import guarded_cell


def write_tag_file(path: Path, table: TagTable) -> Path:
    """Write a table so that `read_tags` reads the same; in CSV, no tag has a ;."""
    rows = list(zip(table.file_names, table.tags, strict=True))
    if path.suffix == ".jsonl":
        lines = [json.dumps({"file_name": name, "tags": list(tags)}) for name, tags in rows]
        path.write_bytes("".join(f"{line}\n" for line in lines).encode())
        return path
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(["file_name", "tags"])
    end = ";" if any("," in tag for _, tags in rows for tag in tags) else ""
    writer.writerows(
        [guarded_cell(name), guarded_cell(";".join(tags) + end)] for name, tags in rows
    )
    path.write_bytes(out.getvalue().encode())
    return path
