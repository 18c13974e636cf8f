"""The command line: one file a command; data to standard output, words to standard error."""

from tagkin.cli.app import app, main

__all__ = ["app", "main"]
