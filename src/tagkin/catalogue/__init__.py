"""What is known of a folder of photographs, what was suggested, and what a person decided.

A catalogue is one SQLite file for one folder. It is never the only copy of a person's tags: these
are in files. It can be deleted and made again; decisions and history are lost with it unless they
were exported.
"""

from tagkin.catalogue.batches import (
    Batch,
    accepted_together,
    decide_batch,
    last_batch,
    last_undone,
    redo_batch,
    undo_batch,
    verdicts_of,
)
from tagkin.catalogue.catalogue import Catalogue, Run, open_catalogue, open_for_scan
from tagkin.catalogue.decisions import (
    ACCEPTED,
    REJECTED,
    Decided,
    OnTag,
    decide,
    decided_tags,
    take_back,
)
from tagkin.catalogue.duplicates import Duplicates, near_duplicates
from tagkin.catalogue.exchange import Imported, export_lines, import_lines
from tagkin.catalogue.filters import Filters, content_of, tag_numbers
from tagkin.catalogue.learning import (
    Carrying,
    SuggestRun,
    carried_tags,
    load_model,
    suggest,
    teach,
    to_learn_from,
    train,
)
from tagkin.catalogue.locations import (
    default_data_folder,
    find_catalogue,
    known_catalogues,
    other_catalogues,
)
from tagkin.catalogue.lookup import (
    Pictured,
    complete_tag,
    pictured,
    pictured_photographs,
    tag_name,
    tags_of,
)
from tagkin.catalogue.preparing import (
    SUGGESTED,
    Needs,
    model_of,
    needs_of,
    refit,
    suggest_by_name,
)
from tagkin.catalogue.provenance import Explained, Said, TagProvenance, explain_photograph
from tagkin.catalogue.review import (
    Doubt,
    Kin,
    OnPhotograph,
    Open,
    Progress,
    doubted_acceptances,
    doubtful,
    open_for_tag,
    progress,
    search,
    suggestions_for,
    to_review,
)
from tagkin.catalogue.runs import PastRun, history, last_undoable, past_run
from tagkin.catalogue.scanning import Scan, scan
from tagkin.catalogue.status import Status, count_photographs, status_of
from tagkin.catalogue.stored import stored_suggestions
from tagkin.catalogue.suggestions import Suggested, put_suggestions
from tagkin.catalogue.tags import TagCounts, TagsChanged, change_tags, list_tags, restore_tag
from tagkin.catalogue.undoing import FileUndone, Undone, undo_run
from tagkin.catalogue.writes import (
    PastWrite,
    ToWrite,
    end_write,
    plan_write,
    tags_to_write,
    undone_write,
    unfinished_writes,
    writes_of,
)
from tagkin.catalogue.writing import FileWrite, WriteRun, finish_writes, write_accepted

__all__ = [
    "ACCEPTED",
    "REJECTED",
    "SUGGESTED",
    "Batch",
    "Carrying",
    "Catalogue",
    "Decided",
    "Doubt",
    "Duplicates",
    "Explained",
    "FileUndone",
    "FileWrite",
    "Filters",
    "Imported",
    "Kin",
    "Needs",
    "OnPhotograph",
    "OnTag",
    "Open",
    "PastRun",
    "PastWrite",
    "Pictured",
    "Progress",
    "Run",
    "Said",
    "Scan",
    "Status",
    "SuggestRun",
    "Suggested",
    "TagCounts",
    "TagProvenance",
    "TagsChanged",
    "ToWrite",
    "Undone",
    "WriteRun",
    "accepted_together",
    "carried_tags",
    "change_tags",
    "complete_tag",
    "content_of",
    "count_photographs",
    "decide",
    "decide_batch",
    "decided_tags",
    "default_data_folder",
    "doubted_acceptances",
    "doubtful",
    "end_write",
    "explain_photograph",
    "export_lines",
    "find_catalogue",
    "finish_writes",
    "history",
    "import_lines",
    "known_catalogues",
    "last_batch",
    "last_undoable",
    "last_undone",
    "list_tags",
    "load_model",
    "model_of",
    "near_duplicates",
    "needs_of",
    "open_catalogue",
    "open_for_scan",
    "open_for_tag",
    "other_catalogues",
    "past_run",
    "pictured",
    "pictured_photographs",
    "plan_write",
    "progress",
    "put_suggestions",
    "redo_batch",
    "refit",
    "restore_tag",
    "scan",
    "search",
    "status_of",
    "stored_suggestions",
    "suggest",
    "suggest_by_name",
    "suggestions_for",
    "tag_name",
    "tag_numbers",
    "tags_of",
    "tags_to_write",
    "take_back",
    "teach",
    "to_learn_from",
    "to_review",
    "train",
    "undo_batch",
    "undo_run",
    "undone_write",
    "unfinished_writes",
    "verdicts_of",
    "write_accepted",
    "writes_of",
]
