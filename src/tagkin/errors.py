"""Every error that tagkin raises on purpose.

::

    TagkinError
    ├── InvalidInput      (also ValueError)   data or parameters that cannot be used
    │   └── UnreadableImage                   a photograph cannot be read; the message says why
    ├── MissingExtra      (also ImportError)  an optional package is not installed
    └── StorageError      (also OSError)      a file or a model folder cannot be written or read
        └── DamagedModel                      the folder is there, but not as it was saved

A message says what was found, where, and what to do about it.
"""


class TagkinError(Exception):
    """Base of all errors that tagkin raises on purpose."""


class InvalidInput(TagkinError, ValueError):
    """The data or the parameters cannot be used as they are."""


class UnreadableImage(InvalidInput):
    """A photograph cannot be read. The message is the reason alone: the caller knows the file."""


class MissingExtra(TagkinError, ImportError):
    """An optional package is needed; the message names the install command."""


class StorageError(TagkinError, OSError):
    """A file or a model folder cannot be written or read."""


class DamagedModel(StorageError):
    """A model folder is incomplete, was edited, or was made by something else."""
