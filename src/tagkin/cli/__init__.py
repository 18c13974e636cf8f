"""The command line: data to standard output, messages to standard error.

The program:

- `app`: ``tagkin`` itself: its help, its groups, how a command is found
- `registry`: what is true of each command; every module in `commands` enters its own
- `guard`: how a command ends: exit codes, and a sentence instead of a traceback

Commands on a collection, in `commands`:

- `review`, `scan`, `train`, `suggest`, `decide` (accept, reject), `write`, `undo`: tag photographs
- `status`, `history`, `explain`, `similar`, `audit`, `evaluate`, `map_`: ask questions
- `tags`, `transfer` (export, import), `cache`: keep order

Commands on a model in a folder, in `commands`:

- `model_train`, `model_suggest`, `model` (explain, similar, evaluate, relocate, info)

Shared by commands:

- `options`: arguments and options that several commands have
- `catalogues`: which catalogue a command means, and which part of it
- `models`: models in folders, photographs with tags in files, and files that cannot be read
- `training`, `suggestions`, `quality`: reports on each of them

Output:

- `output`: messages, JSON, CSV and files
- `tables`: tables and numbers for people
- `console`: rich's console and progress bar; imported when something is shown
- `streams`: any text on any terminal
"""

from tagkin.cli.app import app, main

__all__ = ["app", "main"]
