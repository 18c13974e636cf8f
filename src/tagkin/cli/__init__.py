"""The command line: data to standard output, messages to standard error.

The program:

- `app`: ``tagkin`` itself: its help, its groups, how it finds a command
- `registry`: all commands, and the module in `commands` that has each
- `guard`: how a command ends: exit codes, and a sentence instead of a traceback

Shared by commands:

- `options`: arguments and options that several commands have
- `page`: the server of the start page and of a review, and the browser that opens it
- `dropped`: a folder that was dropped on the program, as the bundle opens it
- `catalogues`: which catalogue a command means, made if needed, and which part of it
- `similar`: photographs like another one

Output:

- `output`: messages, JSON, CSV and files
- `tables`: tables and numbers for people
- `console`: rich's console and progress bar; imported when something is shown
- `streams`: any text on any terminal
"""

from tagkin.cli.app import app, main

__all__ = ["app", "main"]
