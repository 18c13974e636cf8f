"""The catalogue of a folder of photographs: tags, suggestions, decisions and history.

A catalogue is one SQLite file. It is never the only copy of your tags, which are in files. You can
delete it and scan again; then only decisions and history are lost, unless you exported them.

The modules, in the order in which a collection needs them:

| module | content |
|---|---|
| **open** | |
| `catalogue` | `Catalogue`, with a method for each command; opening one |
| `known_catalogues` | which catalogue belongs to which folder; folders of servers |
| `files_read` | which files were read, and which could not be |
| `database` | the SQLite file: connection, transactions, runs |
| `writer_lock` | one writer at a time |
| `schema` | tables and triggers |
| `migrations` | changes of the tables of existing catalogues |
| `columns` | values as columns store them, and damaged values |
| `source` | where photographs live: the interface |
| `listing` | photographs as a source lists and reads them |
| `sources.folder` | a folder; beside it what lists, reads, writes and restores files |
| `sources.immich` | an Immich server; `sources.server_source` has what servers share |
| **scan** | |
| `scanner` | compares the folder with the catalogue |
| `edits` | decisions on edited photographs |
| `seen_lists` | the lists of tags in files, as last seen |
| `tag_file` | the tag file of the collection |
| `tag_records` | tags in the database: names, files, merging |
| `photographs` | photographs by path, content or tag |
| `selection` | filters of photographs, and counts of their choices |
| `moment_index` | when, where and in which folder photographs were taken, in memory |
| **learn and suggest** | |
| `collection_model` | the model: training, and suggesting with it |
| `catching_up` | scanning, learning and suggesting until all is done |
| `suggest_run` | a run that suggests tags |
| `bursts` | bursts, which the page shows as stacks |
| `events` | times; events, which the page shows as groups and one by one |
| `suggestions` | open suggestions, by tag or photograph |
| `open_index` | open suggestions in memory, for filters |
| `doubts` | tags that seem wrong or missing |
| `word_search` | photographs by words |
| **decide** | |
| `filters` | which suggestions a decision is about |
| `decisions` | accepting, rejecting, a step on the review page, undoing |
| `completeness` | finished photographs and tags, incomplete folders |
| `decision_records` | decisions in the database, and conditions on them |
| `tags` | counts and likely duplicates of tags; renaming, merging, forgetting |
| `tag_edits` | undo of these edits |
| `status` | the collection in a few numbers |
| `explanation` | where each tag of a photograph comes from |
| **write and undo** | |
| `write_run` | a run that writes accepted tags |
| `write_records` | every write, with the former content; tags that are not written yet |
| `target_paths` | the only files that tagkin changes |
| `undo` | writes taken back, decisions reopened |
| `runs` | the history, also in words, and how fast a person answers |
| **exchange** | |
| `exchange` | export and import |
"""

from tagkin.catalogue.catalogue import Catalogue, open_catalogue, open_for_scan
from tagkin.catalogue.collection_model import Needs
from tagkin.catalogue.decision_records import ACCEPTED, REJECTED
from tagkin.catalogue.decisions import Batch, Decided, Pair, Shown
from tagkin.catalogue.explanation import Explained, TagProvenance
from tagkin.catalogue.filters import Filters
from tagkin.catalogue.known_catalogues import forget_catalogue, is_catalogued
from tagkin.catalogue.photographs import ContentFile, TaggedContent
from tagkin.catalogue.runs import DecisionCounts, PastRun
from tagkin.catalogue.scanner import Scan
from tagkin.catalogue.status import Status
from tagkin.catalogue.suggest_run import SuggestOptions, SuggestRun
from tagkin.catalogue.suggestions import OpenSuggestion, StoredKin
from tagkin.catalogue.tags import Duplicates, TagCounts, TagsChanged
from tagkin.catalogue.undo import UndoResult
from tagkin.catalogue.write_run import WriteRun

__all__ = [
    "ACCEPTED",
    "REJECTED",
    "Batch",
    "Catalogue",
    "ContentFile",
    "Decided",
    "DecisionCounts",
    "Duplicates",
    "Explained",
    "Filters",
    "Needs",
    "OpenSuggestion",
    "Pair",
    "PastRun",
    "Scan",
    "Shown",
    "Status",
    "StoredKin",
    "SuggestOptions",
    "SuggestRun",
    "TagCounts",
    "TagProvenance",
    "TaggedContent",
    "TagsChanged",
    "UndoResult",
    "WriteRun",
    "forget_catalogue",
    "is_catalogued",
    "open_catalogue",
    "open_for_scan",
]
