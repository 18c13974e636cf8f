"""Pictures with sidecars, and what a catalogue says of tags."""

import json
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tagkin.catalogue import Catalogue, open_catalogue
from tagkin.catalogue.edits import carry_decisions
from tagkin.catalogue.selection import PhotographIndex, Selection


def dry_copy(catalogue: Catalogue) -> Catalogue:
    """A copy in memory, for a dry run."""
    return open_catalogue(catalogue.path, write=True, dry_run=True)


def select(catalogue: Catalogue, **filters: Any) -> list[str]:
    """The paths of the photographs that filters leave."""
    index = PhotographIndex(catalogue.database)
    numbers = index.select(catalogue.database, Selection(**filters)).numbers.tolist()
    return [path for _, path, _ in catalogue.photographs.search(among=numbers)]


def sidecar_text(tags: list[str]) -> str:
    items = "".join(f"<rdf:li>{escape(tag)}</rdf:li>" for tag in tags)
    return (
        '<x:xmpmeta xmlns:x="adobe:ns:meta/">'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        '<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:subject><rdf:Bag>{items}</rdf:Bag></dc:subject>"
        "</rdf:Description></rdf:RDF></x:xmpmeta>"
    )


WORDS = ("red", "blue")


def put_red_and_blue(folder: Path) -> Path:
    """Sixteen red and sixteen blue pictures, of which ten each are tagged."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    for i in range(32):
        pixels = rng.integers(0, 120, (48, 48, 3)).astype(np.uint8)
        pixels[..., 2 * (i % 2)] = 255
        path = folder / f"{i:02}.png"
        Image.fromarray(pixels).save(path)
        if i < 20:
            path.with_name(f"{path.name}.xmp").write_text(sidecar_text([WORDS[i % 2]]))
    return folder


def found_tags(catalogue: Catalogue) -> dict[str, dict[str, list[list[str]]]]:
    """Tags that were found, by photograph, with where each stands."""
    tags: dict[str, dict[str, list[list[str]]]] = {}
    for path, name, places in catalogue.database.rows(
        "SELECT p.path, t.name, f.places FROM found f JOIN photographs p ON p.id = f.photograph "
        "JOIN tags t ON t.id = f.tag ORDER BY p.path, t.name"
    ):
        tags.setdefault(path, {})[name] = json.loads(places)
    return tags


def check_invariants(catalogue: Catalogue) -> None:
    """What must hold whatever happened: SQLite's own checks, and every count counted again."""
    assert catalogue.database.rows("PRAGMA integrity_check") == [("ok",)]
    assert catalogue.database.rows("PRAGMA foreign_key_check") == []
    wrong = {
        "suggestions for finished photographs": "SELECT 1 FROM suggestions s JOIN decisions d "
        "ON d.content = s.content WHERE d.tag IS NULL AND d.holds",
        "tags.n_found": "SELECT id FROM tags t WHERE n_found <> "
        "(SELECT count(*) FROM found WHERE tag = t.id)",
        "tags.n_suggested": "SELECT id FROM tags t WHERE n_suggested <> "
        "(SELECT count(*) FROM suggestions WHERE tag = t.id)",
        "tags.expected": "SELECT id FROM tags t WHERE abs(expected - "
        "(SELECT total(confidence) FROM suggestions WHERE tag = t.id)) > 1e-6",
        "tags.n_accepted": "SELECT id FROM tags t WHERE n_accepted <> (SELECT count(*) FROM "
        "decisions WHERE tag = t.id AND holds AND verdict = 1)",
        "tags.n_rejected": "SELECT id FROM tags t WHERE n_rejected <> (SELECT count(*) FROM "
        "decisions WHERE tag = t.id AND holds AND verdict = -1)",
        "contents.n_suggested": "SELECT id FROM contents c WHERE n_suggested <> "
        "(SELECT count(*) FROM suggestions WHERE content = c.id)",
        "contents.n_tags": "SELECT id FROM contents c WHERE n_tags <> (SELECT count(DISTINCT key) "
        "FROM tags t WHERE NOT forgotten AND (EXISTS (SELECT 1 FROM decisions JOIN tags s "
        "ON s.id = tag WHERE content = c.id AND s.key = t.key AND holds AND verdict = 1) "
        "OR NOT EXISTS (SELECT 1 FROM decisions JOIN tags s ON s.id = tag WHERE content = c.id "
        "AND s.key = t.key AND holds AND verdict = -1)) AND (EXISTS (SELECT 1 FROM decisions WHERE "
        "content = c.id AND tag = t.id AND holds AND verdict = 1) OR EXISTS (SELECT 1 FROM found f "
        "JOIN photographs p ON p.id = f.photograph WHERE p.content = c.id AND f.tag = t.id)))",
        "decided suggestions": "SELECT 1 FROM suggestions s JOIN decisions d USING (content, tag) "
        "WHERE d.holds AND d.verdict <> 0",
        "tags of what is gone": "SELECT 1 FROM found f JOIN photographs p ON p.id = f.photograph "
        "WHERE p.gone IS NOT NULL",
        "merged tags in use": "SELECT 1 FROM tags t WHERE same_as IS NOT NULL AND "
        "(n_found OR n_suggested OR n_accepted OR n_rejected)",
    }
    assert not {
        name: rows for name, query in wrong.items() if (rows := catalogue.database.rows(query))
    }


def files(root: Path) -> dict[str, bytes]:
    """Every file of a folder, with what is in it."""
    paths = [path for path in root.rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def keep_decisions(catalogue: Catalogue) -> None:
    """Keep the decisions on edited photographs, as if their features were the same."""
    with catalogue.database.transaction():
        for old, new in catalogue.database.rows(
            "SELECT was, id FROM contents WHERE was IS NOT NULL"
        ):
            carry_decisions(catalogue.database, old, new)
