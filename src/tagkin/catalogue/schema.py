"""The tables of a new catalogue.

Whoever changes them adds to `tagkin.catalogue.migrations`, which changes existing catalogues. A new
column is the last one of its table.
"""

from __future__ import annotations

from tagkin.collection.facts import stored_facts

__all__ = ["SCHEMA"]

# `suggestions` has the suggestions that nobody has decided on; a decision keeps the data to reopen
# its suggestion. So the suggestions left to review are one range of one index.
#
# Triggers keep counts in columns, because every page asks for them.
_TABLES = """
CREATE TABLE collection (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    root TEXT NOT NULL,               -- the folder on this machine
    settings TEXT NOT NULL            -- JSON: where tags are read from
);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    what TEXT NOT NULL,               -- the command
    started_at TEXT NOT NULL,         -- UTC, ISO 8601
    ended_at TEXT,                    -- NULL: it is running, failed or was killed
    model TEXT,                       -- fingerprint of the model that it made or used
    parameters TEXT NOT NULL,         -- JSON
    outcome TEXT NOT NULL DEFAULT '{}',
    undoes INTEGER REFERENCES runs (id)
);
CREATE INDEX runs_that_undo ON runs (undoes) WHERE undoes IS NOT NULL;
CREATE TABLE contents (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,      -- SHA-256 of the file
    n_suggested INTEGER NOT NULL DEFAULT 0,
    n_tags INTEGER NOT NULL DEFAULT 0, -- in files of it or a copy, or accepted; see `_RECOUNT`
    suggested INTEGER REFERENCES runs (id), -- the last run that looked for suggestions for it
    burst INTEGER,                    -- the first content of its burst; NULL: alone
    was INTEGER REFERENCES contents (id) -- the former content of its file, if nobody knows whether
                                      -- both show the same; its decisions wait for that
);
CREATE INDEX contents_in_burst ON contents (burst) WHERE burst IS NOT NULL;
CREATE INDEX contents_to_confirm ON contents (id) WHERE was IS NOT NULL;
CREATE INDEX contents_to_review ON contents (id) WHERE n_suggested > 0;
CREATE INDEX contents_untagged ON contents (id) WHERE n_tags = 0;
CREATE TABLE photographs (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL,               -- from the root, / between folders
    content INTEGER REFERENCES contents (id),  -- NULL: it cannot be read
    size INTEGER NOT NULL,
    mtime INTEGER NOT NULL,           -- nanoseconds
    inode INTEGER NOT NULL,
    beside BLOB,                      -- hash of the state of sidecars and RAW files; NULL: none
    problem TEXT,                     -- why it, or its metadata, cannot be read
    added INTEGER NOT NULL REFERENCES runs (id),
    gone INTEGER REFERENCES runs (id), -- the scan that missed it; another may have its path now
    FACTS                             -- see `tagkin.collection.facts`
);
CREATE UNIQUE INDEX photographs_by_path ON photographs (path) WHERE gone IS NULL;
-- the index alone tells which contents have an existing file
CREATE INDEX photographs_of_content ON photographs (content, gone);
CREATE INDEX photographs_gone ON photographs (gone) WHERE gone IS NOT NULL;
CREATE INDEX photographs_with_problem ON photographs (id)
    WHERE gone IS NULL AND problem IS NOT NULL;
CREATE TABLE tags (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    key TEXT NOT NULL,                -- normalised: equal if only the spelling differs
    same_as INTEGER REFERENCES tags (id),      -- the tag that it was renamed to or merged into
    forgotten INTEGER NOT NULL DEFAULT 0,      -- never learned, never suggested
    quality REAL,                     -- average precision on held-out photographs
    n_found INTEGER NOT NULL DEFAULT 0,        -- photographs whose files have it
    n_accepted INTEGER NOT NULL DEFAULT 0,
    n_rejected INTEGER NOT NULL DEFAULT 0,
    n_suggested INTEGER NOT NULL DEFAULT 0,
    expected REAL NOT NULL DEFAULT 0           -- correct suggestions to expect: Σ confidence
);
CREATE INDEX tags_by_key ON tags (key);
CREATE INDEX tags_same ON tags (same_as) WHERE same_as IS NOT NULL;
CREATE TABLE found (                  -- tags in files
    photograph INTEGER NOT NULL REFERENCES photographs (id),
    tag INTEGER NOT NULL REFERENCES tags (id),
    places TEXT NOT NULL,             -- JSON: [[spelling, file], ...]; file "": the photograph
    PRIMARY KEY (photograph, tag)
) WITHOUT ROWID;
CREATE INDEX found_by_tag ON found (tag, photograph);
CREATE TABLE seen_lists (             -- the lists of tags in files, as last seen
    photograph INTEGER PRIMARY KEY REFERENCES photographs (id),
    lists TEXT NOT NULL,              -- JSON: {file: {list: [word, ...]}}; file: the end of its
                                      -- name after the photograph's stem; "": the photograph
    stale TEXT NOT NULL,              -- JSON: tags in lists that were removed in another list
    in_step INTEGER NOT NULL,         -- whether all lists in sidecars have the same tags
    in_step_inside INTEGER NOT NULL   -- the same of the photograph
);
CREATE TABLE suggestions (
    content INTEGER NOT NULL REFERENCES contents (id),
    tag INTEGER NOT NULL REFERENCES tags (id),
    run INTEGER NOT NULL REFERENCES runs (id),
    confidence REAL NOT NULL,
    evidence BLOB NOT NULL,           -- see `columns.pack_evidence`
    PRIMARY KEY (content, tag)
) WITHOUT ROWID;
CREATE INDEX suggestions_by_tag ON suggestions (tag, confidence DESC, content);
CREATE TABLE doubts (                 -- tags that seem wrong or missing to held-out models
    content INTEGER NOT NULL REFERENCES contents (id),
    tag INTEGER NOT NULL REFERENCES tags (id),
    run INTEGER NOT NULL REFERENCES runs (id),
    kind TEXT NOT NULL CHECK (kind IN ('wrong', 'missing')),
    confidence REAL NOT NULL,
    evidence BLOB NOT NULL,
    PRIMARY KEY (content, tag)
) WITHOUT ROWID;
CREATE INDEX doubts_by_kind ON doubts (kind, confidence DESC, content);
CREATE INDEX doubts_by_confidence ON doubts (confidence DESC, content);
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (id),
    content INTEGER NOT NULL REFERENCES contents (id),
    tag INTEGER REFERENCES tags (id), -- NULL: all other tags, so the photograph is finished
    verdict INTEGER NOT NULL CHECK (verdict IN (-1, 1)),  -- rejected, accepted
    made_at TEXT NOT NULL,
    suggested_by INTEGER REFERENCES runs (id),  -- NULL: it was not suggested
    confidence REAL,
    evidence BLOB,
    note TEXT,
    was_in_files INTEGER NOT NULL DEFAULT 0, -- whether files had the tag when it was decided
    taken_back_by INTEGER REFERENCES runs (id),
    holds INTEGER NOT NULL DEFAULT 1, -- 0: undone, or replaced by a later decision
    CHECK (tag IS NOT NULL OR verdict = -1)
);
CREATE UNIQUE INDEX decisions_that_hold ON decisions (content, tag) WHERE holds;
CREATE UNIQUE INDEX decisions_that_finish ON decisions (content) WHERE holds AND tag IS NULL;
CREATE INDEX decisions_by_tag ON decisions (tag, verdict, content) WHERE holds;
CREATE INDEX decisions_of_content ON decisions (content, tag, id);
CREATE INDEX decisions_of_run ON decisions (run);
CREATE TABLE writes (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (id),
    photograph INTEGER NOT NULL REFERENCES photographs (id),
    file TEXT NOT NULL,               -- from the root
    tags TEXT NOT NULL,               -- JSON: the tags that were added
    added TEXT NOT NULL,              -- JSON: the values added for them, [[property, value], ...]
    removed_tags TEXT NOT NULL,       -- JSON, as `tags`
    removed TEXT NOT NULL,            -- JSON, as `added`
    mark TEXT NOT NULL,               -- the name of this write in `tagkin:Written` of the file
    before BLOB,                      -- the former content, compressed; NULL: there was no file
    after BLOB NOT NULL,              -- SHA-256 of the new content
    backup TEXT,                      -- name of the backup that exiftool keeps of a photograph
    state TEXT NOT NULL CHECK (state IN ('planned', 'done', 'failed', 'undone')),
    is_undoing INTEGER NOT NULL DEFAULT 0,     -- an undo has begun to change the file
    was_missed INTEGER NOT NULL DEFAULT 0,     -- an undo did not find the file
    note TEXT,
    modified INTEGER                  -- the former modification time, in nanoseconds
        CHECK (modified IS NULL OR typeof(modified) = 'integer')
);
CREATE INDEX writes_of_run ON writes (run);
CREATE INDEX writes_of_photograph ON writes (photograph);
CREATE INDEX writes_unfinished ON writes (id) WHERE state = 'planned';
CREATE TABLE migrations (             -- changes of the tables that this catalogue has
    name TEXT PRIMARY KEY,
    applied_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE tag_changes (            -- what an edit of tags changed, for undo
    run INTEGER PRIMARY KEY REFERENCES runs (id),
    changes BLOB NOT NULL             -- compressed JSON: [[table, key, before, after], ...]
);
"""

# A photograph is untagged if no file of it or of a copy has a tag, and no tag was accepted.
# Rejected and forgotten tags do not count. All spellings of a tag are one tag.
_RECOUNT = """
    UPDATE contents SET n_tags = (
        SELECT count(DISTINCT t.key) FROM (
            SELECT f.tag FROM photographs p JOIN found f ON f.photograph = p.id
                WHERE p.content = contents.id
            UNION SELECT tag FROM decisions
                WHERE content = contents.id AND holds AND verdict = 1
        ) o JOIN tags t ON t.id = o.tag WHERE NOT t.forgotten AND coalesce((
            SELECT max(d.verdict) FROM decisions d JOIN tags s ON s.id = d.tag
                WHERE d.content = contents.id AND d.holds AND s.key = t.key
        ), 1) = 1
    ) WHERE id IN ({});
"""
_COUNT_DECISION = """
    UPDATE tags SET n_accepted = n_accepted {sign} ({row}.verdict = 1),
        n_rejected = n_rejected {sign} ({row}.verdict = -1) WHERE id = {row}.tag;
"""


def _recount(contents: str) -> str:
    return _RECOUNT.format(contents)


def _count_decision(sign: str, row: str) -> str:
    return _COUNT_DECISION.format(sign=sign, row=row) + _recount(f"{row}.content")


_TRIGGERS = f"""
CREATE TRIGGER found_added AFTER INSERT ON found BEGIN
    UPDATE tags SET n_found = n_found + 1 WHERE id = NEW.tag;
    {_recount("SELECT content FROM photographs WHERE id = NEW.photograph")}
END;
CREATE TRIGGER found_removed AFTER DELETE ON found BEGIN
    UPDATE tags SET n_found = n_found - 1 WHERE id = OLD.tag;
    {_recount("SELECT content FROM photographs WHERE id = OLD.photograph")}
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
    {_count_decision("+", "NEW")}
END;
CREATE TRIGGER decision_ended AFTER UPDATE OF holds ON decisions
WHEN OLD.holds AND NOT NEW.holds BEGIN
    {_count_decision("-", "OLD")}
END;
CREATE TRIGGER decision_holds_again AFTER UPDATE OF holds ON decisions
WHEN NEW.holds AND NOT OLD.holds BEGIN
    {_count_decision("+", "NEW")}
END;
CREATE TRIGGER photograph_changed AFTER UPDATE OF content ON photographs BEGIN
    {_recount("OLD.content, NEW.content")}
END;
CREATE TRIGGER tag_forgotten AFTER UPDATE OF forgotten ON tags
WHEN OLD.forgotten IS NOT NEW.forgotten BEGIN
    {
    _recount(
        "SELECT p.content FROM found f JOIN photographs p ON p.id = f.photograph "
        "WHERE f.tag = NEW.id UNION SELECT content FROM decisions WHERE tag = NEW.id AND holds"
    )
}
END;
"""
_FACTS = ", ".join(f"{fact.name} {fact.column}" for fact in stored_facts())
SCHEMA = _TABLES.replace("FACTS ", f"{_FACTS} ") + _TRIGGERS
