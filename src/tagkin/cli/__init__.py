"""The command line: one file per command; data to standard output, messages to standard error."""

from tagkin.cli.app import app, main

__all__ = ["app", "main"]
