"""Edited photographs: a decision belongs to a content, and is kept if both show the same.

A scan cannot tell an edited photograph from another one that was saved under its name. So the
decisions on the former content wait. The next suggestions read the features of the new content; if
they are near those of the former one, the decisions are kept. Otherwise they go on waiting until a
person decides on the new content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tagkin.catalogue.database import Database
from tagkin.catalogue.tag_records import SAME_TAG

if TYPE_CHECKING:
    from tagkin.annotator import Annotator

__all__ = ["carry_decisions", "confirm_edits", "let_decisions_wait", "list_to_confirm"]

# Cosine between the features of two contents that show the same. 1,770 pairs of 60 different
# photographs have at most .65, but near ones of a large collection come to .8. Medians of edits:
# re-encoded .96, brighter .94, darker .97, a crop of a tenth .94, straightened .93, half the size
# .84. Stronger crops, grey and turned photographs mostly have less, and wait for a person.
_SAME = 0.85
_EDITED = "kept: the photograph was edited"
_HOLDS = "EXISTS (SELECT 1 FROM decisions d WHERE d.content = {} AND d.holds)"
_WAITING = (
    "FROM contents c JOIN contents o ON o.id = c.was JOIN photographs p "
    "ON p.content = c.id AND p.gone IS NULL "
    f"WHERE c.was IS NOT NULL AND {_HOLDS.format('o.id')} AND NOT {_HOLDS.format('c.id')} "
    "GROUP BY c.id ORDER BY 1"
)
"""SQL: contents `c` of photographs `p`, for which the decisions on contents `o` wait."""


def list_to_confirm(database: Database) -> list[str]:
    """Return the photographs, from the root, whose decisions wait."""
    return database.column(f"SELECT min(p.path) {_WAITING}")


def confirm_edits(database: Database, annotator: Annotator) -> int:
    """Keep the decisions on photographs that still show the same; return how many do.

    The features of former contents come from the cache; without them, the decisions go on waiting.
    """
    rows = database.rows(f"SELECT min(p.path), c.id, o.id, o.digest {_WAITING}")
    if not rows:
        return 0
    from tagkin.annotator.photograph_reader import PhotographReader

    reader = PhotographReader(annotator.backbone, annotator.cache)
    former = reader.read_cached([digest.hex() for *_, digest in rows])
    waiting = {
        database.absolute(path): (old, new, features)
        for (path, new, old, _), features in zip(rows, former, strict=True)
        if features is not None
    }
    if not waiting:
        return 0
    current = annotator.read_features(list(waiting))
    n_kept = 0
    with database.transaction():
        for file, features in zip(current.files, np.asarray(current.features), strict=True):
            old, new, before = waiting[file]
            if _cosine(features, before) >= _SAME:
                carry_decisions(database, old, new)
                n_kept += 1
    return n_kept


def _cosine(first: np.ndarray, second: np.ndarray) -> float:
    return float(first @ second / max(np.linalg.norm(first) * np.linalg.norm(second), 1e-12))


def carry_decisions(database: Database, old: int, new: int) -> None:
    """Copy the decisions on a content to another one of the same photograph; the later ones win."""
    pair: dict[str, int | str] = {"old": old, "new": new, "note": _EDITED}
    database.execute(
        "UPDATE decisions SET holds = 0 WHERE content = :new AND holds AND EXISTS (SELECT 1 FROM "
        "decisions o WHERE o.content = :old AND o.holds AND o.id > decisions.id "
        f"AND {SAME_TAG.format('o.tag', 'decisions.tag')})",
        pair,
    )
    database.execute(
        "INSERT INTO decisions (run, content, tag, verdict, made_at, suggested_by, confidence, "
        "evidence, note, was_in_files) SELECT run, :new, tag, verdict, made_at, suggested_by, "
        "confidence, evidence, coalesce(note, :note), was_in_files "
        "FROM decisions o WHERE content = :old AND holds "
        "AND NOT EXISTS (SELECT 1 FROM decisions d WHERE d.content = :new "
        f"AND {SAME_TAG.format('d.tag', 'o.tag')} AND d.holds)",
        pair,
    )
    database.execute(
        "DELETE FROM suggestions WHERE content = :new AND EXISTS (SELECT 1 FROM decisions d "
        "WHERE d.content = :new AND d.holds "
        f"AND (d.tag IS NULL OR {SAME_TAG.format('d.tag', 'suggestions.tag')}))",
        pair,
    )
    database.execute("UPDATE contents SET was = NULL WHERE id = :new", pair)


def let_decisions_wait(database: Database, old: int, new: int) -> None:
    """Let the decisions on a file's former content wait until it is known what the file shows."""
    database.execute(
        "UPDATE contents SET was = (SELECT coalesce(was, id) FROM contents WHERE id = ?) "
        "WHERE id = ?",
        (old, new),
    )
