"""Make a catalogue of the code of today, for the tests of every later version.

Run ``python -m tests.catalogue.former FILE.tar.gz``. ``version-6.tar.gz`` was made so, by commit
76ca398d: the last code without migrations. It is never made again.
"""

import os
import sys
import tarfile
import tempfile
from pathlib import Path

from PIL import Image

from tagkin.catalogue import ACCEPTED, REJECTED, Catalogue, Filters, open_for_scan
from tests.catalogue.photographs import sidecar_text
from tests.catalogue.suggested import content, offer

TAGS = {"a.jpg": ["beach", "sea"], "b.jpg": ["beach"], "2024/c.jpg": ["dog"], "2024/d.jpg": []}
OFFERED = {
    "a.jpg": {"holiday": 0.95, "dog": 0.3},
    "b.jpg": {"holiday": 0.7, "sea": 0.9},
    "2024/c.jpg": {"beach": 0.55},
    "2024/d.jpg": {"beach": 0.92, "sea": 0.6, "dog": 0.2},
}
WHEN = 1_700_000_000  # modification time of every file


def put_photographs(root: Path) -> None:
    for number, (name, tags) in enumerate(TAGS.items()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (60, 40), (60 * number + 20, 90, 200)).save(path)
        if tags:
            path.with_name(f"{path.name}.xmp").write_text(sidecar_text(tags))
    for path in root.rglob("*"):
        os.utime(path, (WHEN, WHEN))


def use(catalogue: Catalogue) -> None:
    """Leave a bit of everything: decisions, written sidecars, undone runs, edits of tags."""
    decide = catalogue.decisions.decide
    catalogue.scan()
    run = offer(catalogue, OFFERED)
    with catalogue.database.transaction():
        sea = catalogue.database.value("SELECT id FROM tags WHERE name = 'sea'")
        doubt = (content(catalogue, "2024/d.jpg"), sea, run)
        statement = "INSERT INTO doubts VALUES (?, ?, ?, 'missing', 0.8, x'')"
        catalogue.database.execute(statement, doubt)
    decide(ACCEPTED, Filters(at_least=0.9))
    catalogue.write()  # sidecars of a.jpg and b.jpg change, that of 2024/d.jpg is new
    catalogue.tags.change("rename", ["holiday"], "vacation")
    decide(REJECTED, Filters(photographs=["a.jpg"], tags=["sea"]))
    decide(ACCEPTED, Filters(photographs=["2024/c.jpg"], tags=["harbour"]))
    catalogue.undo(decide(ACCEPTED, Filters(photographs=["b.jpg"], tags=["harbour"])).run)
    catalogue.tags.change("forget", ["harbour"])
    catalogue.completeness.finish(Filters(photographs=["2024/c.jpg"]))


def make(file: Path) -> None:
    """Write an archive of the photographs as they are then, and of their catalogue."""
    with tempfile.TemporaryDirectory() as folder:
        root, path = Path(folder, "photos"), Path(folder, "catalogue.sqlite")
        os.environ["TAGKIN_CATALOGUES"] = str(Path(folder, "data"))
        put_photographs(root)
        with open_for_scan(root, path) as catalogue:
            use(catalogue)
            catalogue.database.root = Path("/photos")  # the folder is elsewhere at every test
            catalogue.database.row("PRAGMA wal_checkpoint(TRUNCATE)")
        with tarfile.open(file, "w:gz") as archive:
            for each in (root, path):
                archive.add(each, each.name, filter=_of_nobody)


def _of_nobody(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


if __name__ == "__main__":
    make(Path(sys.argv[1]))
