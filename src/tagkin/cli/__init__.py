"""The command line: data to standard output, messages to standard error.

Every module in `commands` enters its commands in `registry`; `app` puts them together.
"""

from tagkin.cli.app import app, main

__all__ = ["app", "main"]
