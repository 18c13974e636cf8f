"""The tables of a catalogue, and how each version of them came from the one before.

A migration that was released is never edited: another one is added.
"""

from __future__ import annotations

import sqlite3

__all__ = ["MIGRATIONS", "applied", "statements"]

# A suggestion lies in `suggestions` as long as nobody has decided on it; a decision keeps what is
# needed to put it back. So what is left to review is one range of one index.
#
# Counts stand in columns that triggers keep: a page asks for them at every step.
_FIRST = """
CREATE TABLE collection (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    root TEXT NOT NULL,               -- where the folder is on this machine
    settings TEXT NOT NULL            -- JSON: where tags are read from
);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    what TEXT NOT NULL,               -- the command
    started_at TEXT NOT NULL,         -- UTC, ISO 8601
    ended_at TEXT,                    -- NULL: it goes on, or was killed
    model TEXT,                       -- fingerprint of the model that it made or used
    parameters TEXT NOT NULL,         -- JSON
    outcome TEXT NOT NULL DEFAULT '{}',
    undoes INTEGER REFERENCES runs (id)
);
CREATE INDEX runs_that_undo ON runs (undoes) WHERE undoes IS NOT NULL;
CREATE TABLE contents (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,      -- SHA-256 of the file
    n_suggested INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX contents_to_review ON contents (id) WHERE n_suggested > 0;
CREATE TABLE photographs (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,        -- from the root, / between folders
    content INTEGER REFERENCES contents (id),  -- NULL: it cannot be read
    size INTEGER NOT NULL,
    mtime INTEGER NOT NULL,           -- nanoseconds
    inode INTEGER NOT NULL,
    beside BLOB,                      -- hash of the state of sidecars and RAW files; NULL: none
    problem TEXT,                     -- why it, or what it says of itself, cannot be read
    added INTEGER NOT NULL REFERENCES runs (id),
    gone INTEGER REFERENCES runs (id),         -- the scan that did not find it any more
    n_tags INTEGER NOT NULL DEFAULT 0          -- found and accepted
);
CREATE INDEX photographs_of_content ON photographs (content);
CREATE INDEX photographs_untagged ON photographs (id) WHERE gone IS NULL AND n_tags = 0;
CREATE INDEX photographs_gone ON photographs (gone) WHERE gone IS NOT NULL;
CREATE INDEX photographs_with_problem ON photographs (id)
    WHERE gone IS NULL AND problem IS NOT NULL;
CREATE TABLE tags (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    key TEXT NOT NULL,                -- normalised: equal where the spelling alone differs
    same_as INTEGER REFERENCES tags (id),      -- the tag that it was renamed to or merged into
    forgotten INTEGER NOT NULL DEFAULT 0,      -- never learned, never suggested
    quality REAL,                     -- average precision on held-out photographs
    n_found INTEGER NOT NULL DEFAULT 0,        -- photographs in whose files it is
    n_accepted INTEGER NOT NULL DEFAULT 0,
    n_rejected INTEGER NOT NULL DEFAULT 0,
    n_suggested INTEGER NOT NULL DEFAULT 0,
    expected REAL NOT NULL DEFAULT 0           -- right ones among the suggested: Σ confidence
);
CREATE INDEX tags_by_key ON tags (key);
CREATE INDEX tags_same ON tags (same_as) WHERE same_as IS NOT NULL;
CREATE TABLE found (
    photograph INTEGER NOT NULL REFERENCES photographs (id),
    tag INTEGER NOT NULL REFERENCES tags (id),
    places TEXT NOT NULL,             -- JSON: [[spelling, file], ...]; file "": the photograph
    PRIMARY KEY (photograph, tag)
) WITHOUT ROWID;
CREATE INDEX found_by_tag ON found (tag, photograph);
CREATE TABLE suggestions (
    content INTEGER NOT NULL REFERENCES contents (id),
    tag INTEGER NOT NULL REFERENCES tags (id),
    run INTEGER NOT NULL REFERENCES runs (id),
    confidence REAL NOT NULL,
    kin BLOB NOT NULL,                -- see `tagkin.catalogue.evidence`
    PRIMARY KEY (content, tag)
) WITHOUT ROWID;
CREATE INDEX suggestions_by_tag ON suggestions (tag, confidence DESC, content);
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (id),
    content INTEGER NOT NULL REFERENCES contents (id),
    tag INTEGER NOT NULL REFERENCES tags (id),
    verdict INTEGER NOT NULL CHECK (verdict IN (-1, 1)),  -- rejected, accepted
    made_at TEXT NOT NULL,
    suggested_by INTEGER REFERENCES runs (id),  -- NULL: nobody suggested it
    confidence REAL,
    kin BLOB,
    note TEXT,
    taken_back_by INTEGER REFERENCES runs (id),
    holds INTEGER NOT NULL DEFAULT 1  -- 0: taken back, or a later one took its place
);
CREATE UNIQUE INDEX decisions_that_hold ON decisions (content, tag) WHERE holds;
CREATE INDEX decisions_by_tag ON decisions (tag, verdict, content) WHERE holds;
CREATE INDEX decisions_of_content ON decisions (content, tag, id);
CREATE INDEX decisions_of_run ON decisions (run);
CREATE TABLE writes (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (id),
    photograph INTEGER NOT NULL REFERENCES photographs (id),
    file TEXT NOT NULL,               -- from the root
    tags TEXT NOT NULL,               -- JSON: the tags that were added
    added TEXT NOT NULL,              -- JSON: what was put in for them, [[property, value], ...]
    before BLOB,                      -- what stood there, compressed; NULL: there was no file
    after BLOB NOT NULL,              -- SHA-256 of what was written
    backup TEXT,                      -- a copy of what stood there that another program keeps
    state TEXT NOT NULL CHECK (state IN ('planned', 'done', 'failed', 'undone')),
    undone_by INTEGER REFERENCES runs (id),
    note TEXT
);
CREATE INDEX writes_of_run ON writes (run);
CREATE INDEX writes_of_photograph ON writes (photograph);
CREATE INDEX writes_unfinished ON writes (id) WHERE state = 'planned';

CREATE TRIGGER found_added AFTER INSERT ON found BEGIN
    UPDATE tags SET n_found = n_found + 1 WHERE id = NEW.tag;
    UPDATE photographs SET n_tags = n_tags + 1 WHERE id = NEW.photograph;
END;
CREATE TRIGGER found_removed AFTER DELETE ON found BEGIN
    UPDATE tags SET n_found = n_found - 1 WHERE id = OLD.tag;
    UPDATE photographs SET n_tags = n_tags - 1 WHERE id = OLD.photograph;
END;
CREATE TRIGGER suggestion_added AFTER INSERT ON suggestions BEGIN
    UPDATE tags SET n_suggested = n_suggested + 1, expected = expected + NEW.confidence
        WHERE id = NEW.tag;
    UPDATE contents SET n_suggested = n_suggested + 1 WHERE id = NEW.content;
END;
CREATE TRIGGER suggestion_removed AFTER DELETE ON suggestions BEGIN
    UPDATE tags SET n_suggested = n_suggested - 1, expected = expected - OLD.confidence
        WHERE id = OLD.tag;
    UPDATE contents SET n_suggested = n_suggested - 1 WHERE id = OLD.content;
END;
CREATE TRIGGER decision_added AFTER INSERT ON decisions WHEN NEW.holds BEGIN
    UPDATE tags SET n_accepted = n_accepted + (NEW.verdict = 1),
        n_rejected = n_rejected + (NEW.verdict = -1) WHERE id = NEW.tag;
    UPDATE photographs SET n_tags = n_tags + 1
        WHERE content = NEW.content AND gone IS NULL AND NEW.verdict = 1;
END;
CREATE TRIGGER decision_ended AFTER UPDATE OF holds ON decisions
WHEN OLD.holds AND NOT NEW.holds BEGIN
    UPDATE tags SET n_accepted = n_accepted - (OLD.verdict = 1),
        n_rejected = n_rejected - (OLD.verdict = -1) WHERE id = OLD.tag;
    UPDATE photographs SET n_tags = n_tags - 1
        WHERE content = OLD.content AND gone IS NULL AND OLD.verdict = 1;
END;
CREATE TRIGGER decision_holds_again AFTER UPDATE OF holds ON decisions
WHEN NEW.holds AND NOT OLD.holds BEGIN
    UPDATE tags SET n_accepted = n_accepted + (NEW.verdict = 1),
        n_rejected = n_rejected + (NEW.verdict = -1) WHERE id = NEW.tag;
    UPDATE photographs SET n_tags = n_tags + 1
        WHERE content = NEW.content AND gone IS NULL AND NEW.verdict = 1;
END;
CREATE TRIGGER photograph_added AFTER INSERT ON photographs WHEN NEW.content IS NOT NULL BEGIN
    UPDATE photographs SET n_tags = n_tags + (
        SELECT count(*) FROM decisions
        WHERE content = NEW.content AND holds AND verdict = 1
    ) WHERE id = NEW.id AND NEW.gone IS NULL;
END;
CREATE TRIGGER photograph_changed AFTER UPDATE OF content, gone ON photographs BEGIN
    UPDATE photographs SET n_tags = (
        SELECT count(*) FROM found WHERE photograph = NEW.id
    ) + (
        SELECT count(*) FROM decisions
        WHERE content = NEW.content AND holds AND verdict = 1 AND NEW.gone IS NULL
    ) WHERE id = NEW.id;
END;
"""

# Tags on photographs that seem wrong or missing, as held-out models say.
_DOUBTS = """
CREATE TABLE doubts (
    content INTEGER NOT NULL REFERENCES contents (id),
    tag INTEGER NOT NULL REFERENCES tags (id),
    run INTEGER NOT NULL REFERENCES runs (id),
    kind TEXT NOT NULL CHECK (kind IN ('wrong', 'missing')),
    confidence REAL NOT NULL,
    kin BLOB NOT NULL,
    PRIMARY KEY (content, tag)
) WITHOUT ROWID;
CREATE INDEX doubts_by_kind ON doubts (kind, confidence DESC, content);
CREATE INDEX doubts_by_confidence ON doubts (confidence DESC, content);
"""

# Beside kin, the shares of the tag's name and of the photograph itself; where they were not noted,
# kin alone stay what they are.
_EVIDENCE = """
ALTER TABLE suggestions RENAME COLUMN kin TO evidence;
ALTER TABLE decisions RENAME COLUMN kin TO evidence;
ALTER TABLE doubts RENAME COLUMN kin TO evidence;
"""

# The modification time comes back with the bytes.
_MODIFIED = """
ALTER TABLE writes ADD COLUMN modified INTEGER  -- when what stood there was, in nanoseconds
    CHECK (modified IS NULL OR typeof(modified) = 'integer');
"""

# A photograph is untagged if it carries no tag: none in the files of it or of a copy, and none that
# was accepted. Tags that were rejected for it, or forgotten, do not count. `contents.n_tags` is the
# one place that says so.
_RECOUNT = """
    UPDATE contents SET n_tags = (
        SELECT count(*) FROM (
            SELECT f.tag FROM photographs p JOIN found f ON f.photograph = p.id
                WHERE p.content = contents.id
            UNION SELECT tag FROM decisions
                WHERE content = contents.id AND holds AND verdict = 1
        ) o JOIN tags t ON t.id = o.tag WHERE NOT t.forgotten AND NOT EXISTS (
            SELECT 1 FROM decisions
            WHERE content = contents.id AND tag = o.tag AND holds AND verdict = -1
        )
    ) WHERE id IN ({});
"""
_ITS_CONTENT = "SELECT content FROM photographs WHERE id = {}.photograph"
_ON_TAG = (
    "SELECT p.content FROM found f JOIN photographs p ON p.id = f.photograph WHERE f.tag = NEW.id "
    "UNION SELECT content FROM decisions WHERE tag = NEW.id AND holds"
)
_UNTAGGED = f"""
ALTER TABLE contents ADD COLUMN n_tags INTEGER NOT NULL DEFAULT 0;
DROP TRIGGER found_added;
CREATE TRIGGER found_added AFTER INSERT ON found BEGIN
    UPDATE tags SET n_found = n_found + 1 WHERE id = NEW.tag;
    {_RECOUNT.format(_ITS_CONTENT.format("NEW"))}
END;
DROP TRIGGER found_removed;
CREATE TRIGGER found_removed AFTER DELETE ON found BEGIN
    UPDATE tags SET n_found = n_found - 1 WHERE id = OLD.tag;
    {_RECOUNT.format(_ITS_CONTENT.format("OLD"))}
END;
DROP TRIGGER decision_added;
CREATE TRIGGER decision_added AFTER INSERT ON decisions WHEN NEW.holds BEGIN
    UPDATE tags SET n_accepted = n_accepted + (NEW.verdict = 1),
        n_rejected = n_rejected + (NEW.verdict = -1) WHERE id = NEW.tag;
    {_RECOUNT.format("NEW.content")}
END;
DROP TRIGGER decision_ended;
CREATE TRIGGER decision_ended AFTER UPDATE OF holds ON decisions
WHEN OLD.holds AND NOT NEW.holds BEGIN
    UPDATE tags SET n_accepted = n_accepted - (OLD.verdict = 1),
        n_rejected = n_rejected - (OLD.verdict = -1) WHERE id = OLD.tag;
    {_RECOUNT.format("OLD.content")}
END;
DROP TRIGGER decision_holds_again;
CREATE TRIGGER decision_holds_again AFTER UPDATE OF holds ON decisions
WHEN NEW.holds AND NOT OLD.holds BEGIN
    UPDATE tags SET n_accepted = n_accepted + (NEW.verdict = 1),
        n_rejected = n_rejected + (NEW.verdict = -1) WHERE id = NEW.tag;
    {_RECOUNT.format("NEW.content")}
END;
DROP TRIGGER photograph_added;
DROP TRIGGER photograph_changed;
CREATE TRIGGER photograph_changed AFTER UPDATE OF content ON photographs BEGIN
    {_RECOUNT.format("OLD.content, NEW.content")}
END;
CREATE TRIGGER tag_forgotten AFTER UPDATE OF forgotten ON tags
WHEN OLD.forgotten IS NOT NEW.forgotten BEGIN
    {_RECOUNT.format(_ON_TAG)}
END;
DROP INDEX photographs_untagged;
ALTER TABLE photographs DROP COLUMN n_tags;
CREATE INDEX contents_untagged ON contents (id) WHERE n_tags = 0;
{_RECOUNT.format("SELECT id FROM contents")}
"""

MIGRATIONS: tuple[tuple[str, str], ...] = (
    ("0001 photographs, tags, decisions, writes", _FIRST),
    ("0002 doubts", _DOUBTS),
    ("0003 evidence beside kin", _EVIDENCE),
    ("0004 modification times of sidecars", _MODIFIED),
    ("0005 untagged photographs by content", _UNTAGGED),
)


def applied(connection: sqlite3.Connection) -> list[str]:
    """Names of the migrations that a database has been through, in order."""
    there = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migrations'"
    ).fetchone()
    if there is None:
        return []
    return [name for (name,) in connection.execute("SELECT name FROM migrations ORDER BY rowid")]


def statements(script: str) -> list[str]:
    """The statements of a script one by one, so that they run inside a transaction."""
    found, part = [], ""
    for line in script.splitlines(keepends=True):
        part += line
        if sqlite3.complete_statement(part):
            found.append(part)
            part = ""
    return [one for one in found if one.strip()]
