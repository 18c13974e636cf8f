"""Every error that tagkin raises on purpose.

    TagkinError
    ├── InvalidInput      (also ValueError)   data or parameters that cannot be used
    │   ├── NotFound                          a tag, photograph or run is not in the catalogue
    │   └── UnreadableImage                   a photograph cannot be read; the message says why
    ├── ClusterLost       (also RuntimeError) the Dask cluster is gone or was never reached
    ├── MissingExtra      (also ImportError)  an optional package is not installed
    └── StorageError      (also OSError)      a file or a model folder cannot be written or read
        ├── DamagedModel                      a model folder was changed or is incomplete
        ├── ServerError                       a server refuses the request, or cannot be reached
        └── WriteError                        tags of a photograph cannot be written or taken back
            └── SidecarError                  a sidecar cannot be used; it is unchanged

A message names the problem, its place and the remedy. A parameter in a message is a
`Parameter`, because the command line uses other names.
"""

from typing import NamedTuple


class Parameter(NamedTuple):
    """A parameter in a message, optionally with the value to pass."""

    name: str
    value: str | int | None = None

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        value = f'"{self.value}"' if isinstance(self.value, str) else self.value
        return f"{self.name}={value}"


class TagkinError(Exception):
    """Base of all errors that tagkin raises on purpose.

    Parameters
    ----------
    *parts : str or Parameter
        The parts of the message, in order.
    """

    def __init__(self, *parts: str | Parameter):
        super().__init__("".join(map(str, parts)))
        self.parts = parts


class InvalidInput(TagkinError, ValueError):
    """The data or the parameters cannot be used."""


class NotFound(InvalidInput):
    """A tag, a photograph or a run that a request names is not in the catalogue."""


class UnreadableImage(InvalidInput):
    """A photograph cannot be read. The message is only the reason, without the file."""


class ClusterLost(TagkinError, RuntimeError):
    """The Dask cluster is gone or was never reached; the message says which results are kept."""


class MissingExtra(TagkinError, ImportError):
    """An optional package is needed; the message names the install command."""


class StorageError(TagkinError, OSError):
    """A file or a model folder cannot be written or read."""


class DamagedModel(StorageError):
    """A model folder is incomplete, was edited, or was made by something else."""


class ServerError(StorageError):
    """A server refuses the request, answers nonsense, or cannot be reached."""


class WriteError(StorageError):
    """The tags of one photograph cannot be written or taken back; others can."""


class SidecarError(WriteError):
    """A sidecar is not XMP, or cannot be read or written. It is unchanged."""
