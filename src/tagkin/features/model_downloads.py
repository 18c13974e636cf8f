"""Download models with huggingface_hub; no other module of tagkin connects to another machine."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from tagkin.errors import MissingExtra, StorageError, TagkinError
from tagkin.features.model_files import sha256_of_file
from tagkin.features.model_registry import ModelEntry
from tagkin.features.onnx_sessions import first_line
from tagkin.filesystem import folder_lock, make_private_folder, replace_file
from tagkin.installing import install_command
from tagkin.progress import Progress, silent

__all__ = ["download_model"]

_HEADERS = {"user-agent": "tagkin", "accept-encoding": "identity"}
_SCRATCH = ".download"  # in the model's folder
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_MB = 10**6
_CONTINUES = "The same command continues the download."


def download_model(entry: ModelEntry, progress: Progress = silent) -> None:
    """Download the files of a model that are not there, or not as the registry knows them.

    Every file is compared with the registry's SHA-256 before it gets its name. Files that are in
    the cache of huggingface_hub are copied from there. Tokens of the user are not sent.
    """
    hub = _import_hub()
    folder, scratch = entry.folder, entry.folder / _SCRATCH
    with _explain_errors(entry), _lock(folder):
        wanted = [name for name in entry.files if not _is_right(entry, name)]
        _check_room(folder, sum(entry.files[name].bytes for name in wanted))
        for name in wanted:
            file = entry.files[name]
            cached = hub.try_to_load_from_cache(entry.source, file.path, revision=entry.revision)
            if isinstance(cached, str) and sha256_of_file(Path(cached)) == file.sha256:
                scratch.mkdir(exist_ok=True)
                path = Path(shutil.copyfile(cached, scratch / name))
            else:
                bar = _make_bar(progress, f"Downloading {name} (MB)", file.bytes)
                path = Path(
                    hub.hf_hub_download(
                        entry.source,
                        file.path,
                        revision=entry.revision,
                        local_dir=scratch,
                        cache_dir=scratch,  # a damaged file in the hub's own would be copied
                        token=False,
                        headers=_HEADERS,
                        tqdm_class=bar,
                    )
                )
            if (digest := sha256_of_file(path)) != file.sha256:
                raise StorageError(
                    f"{file.path} of {entry.source} is not the expected file: its SHA-256 is "
                    f"{digest}, expected {file.sha256}. It was deleted, and the model is not "
                    "installed."
                )
            path.chmod(0o600)
            replace_file(path, folder / name)


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Work alone in a model's folder; at the end, only whole files are left there."""
    make_private_folder(folder)
    try:
        with folder_lock(folder, ".lock", patience=1.0):
            try:
                yield
            finally:
                shutil.rmtree(folder / _SCRATCH, ignore_errors=True)
    finally:
        with suppress(OSError):
            folder.rmdir()  # if nothing came


def _is_right(entry: ModelEntry, name: str) -> bool:
    """Whether a file is there, as the registry knows it."""
    if name in entry.missing_files():
        return False
    return sha256_of_file(entry.folder / name) == entry.files[name].sha256


def _check_room(folder: Path, n_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise StorageError(
            f"{n_bytes // _MB:,} MB are needed in {folder}, and {free // _MB:,} MB are free. Free "
            "some space, or name another folder with TAGKIN_MODELS."
        )


def _make_bar(step: Progress, what: str, size: int) -> type:
    """Return a progress bar class for the hub; it fails if the server sends too many bytes."""

    class Bar:
        def __init__(self, *_: object, initial: int = 0, **__: object):
            self.done = initial

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def update(self, n: int) -> None:
            self.done += n
            if self.done > size:
                raise StorageError(f"The server sends more than the {size:,} bytes of the file.")
            step(what, self.done // _MB, size // _MB)

    return Bar


def _import_hub() -> ModuleType:
    """Return the module huggingface_hub, without its telemetry."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_XET", "1")  # plain HTTP, from the address that was given
    try:
        import huggingface_hub
        from huggingface_hub.utils import logging
    except ImportError as error:
        raise MissingExtra(
            f"Models are downloaded with huggingface_hub: {install_command('models')}"
        ) from error
    logging.set_verbosity_error()
    return huggingface_hub


@contextmanager
def _explain_errors(entry: ModelEntry) -> Iterator[None]:
    """Turn every error of the network and the disk into a sentence."""
    try:
        yield
    except TagkinError:
        raise
    except Exception as error:  # the client's errors have no common ancestor
        if isinstance(error, OSError) and error.errno in _FULL:
            raise StorageError(f"The disk of {entry.folder} is full. {_CONTINUES}") from error
        if isinstance(error, TimeoutError) and error.filename:
            raise StorageError(f"Another process is at work in {entry.folder}.") from error
        reason = first_line(error.__cause__ or error).rstrip(".")  # the client says less
        raise StorageError(
            f"{entry.name} could not be downloaded from {entry.source}: {reason}. {_CONTINUES}"
        ) from error
