"""The command line: data to standard output, messages to standard error.

The program:

- `app`: ``tagkin`` itself: its help, its groups, how it finds a command
- `registry`: what is true of each command; every module in `commands` enters its own
- `guard`: how a command ends: exit codes, and a sentence instead of a traceback

Commands that tag photographs:

- `commands.review`: decide on suggestions in the browser
- `commands.scan`: bring the catalogue of a folder up to date
- `commands.train`: learn from the tags in a collection
- `commands.suggest`: suggest tags for the photographs of a collection
- `commands.decide`: accept and reject suggestions
- `commands.finish`: say what is complete, and what is not
- `commands.write`: put accepted tags into files
- `commands.undo`: undo a run
- `commands.watch`: suggest tags for new photographs by itself

Commands that answer questions about a collection:

- `commands.status`: what is tagged, suggested, decided and still to do
- `commands.history`: the runs
- `commands.explain`: where the tags of a photograph come from
- `commands.similar`: the tagged photographs most similar to another
- `commands.find`: photographs that words describe
- `commands.audit`: tags that seem wrong or missing
- `commands.evaluate`: how good suggestions are, by cross-validation
- `commands.map_`: a picture of the collection

Commands that keep order:

- `commands.tags`: list, rename, merge and forget tags
- `commands.transfer`: export and import decisions
- `commands.cache`: show, shrink and empty the feature cache
- `commands.models`: get, check and remove other networks

Commands on a model in a folder, without a catalogue:

- `commands.model_train`: learn from photographs and their tags
- `commands.model_suggest`: suggest tags for any photographs
- `commands.model`: explain, similar, evaluate, relocate, info

Shared by commands:

- `options`: arguments and options that several commands have
- `catalogues`: which catalogue a command means, made if needed, and which part of it
- `models`: models in folders, photographs with tags in files, and files that cannot be read
- `training`: reports on training
- `suggestions`: suggestions and similar photographs as tables, CSV and JSON
- `quality`: the quality of suggestions as tables, JSON and a page

Output:

- `output`: messages, JSON, CSV and files
- `tables`: tables and numbers for people
- `console`: rich's console and progress bar; imported when something is shown
- `streams`: any text on any terminal
"""

from tagkin.cli.app import app, main

__all__ = ["app", "main"]
