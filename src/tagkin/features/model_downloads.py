"""Download models: the only module of tagkin that connects to another machine.

It asks the hub, or the mirror in ``HF_ENDPOINT``, for the files of one model: once for the head of
each file and once for its content. A request says which file it asks for, and that tagkin asks.
Tokens of the user are not sent.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tagkin.errors import MissingExtra, StorageError, TagkinError, pip_install
from tagkin.features.installed_models import (
    FileRecord,
    InstalledModel,
    check_room,
    make_model_folder,
    write_installed_model,
)
from tagkin.features.model_registry import ModelEntry, RemoteFile
from tagkin.features.onnx_sessions import first_line
from tagkin.features.torch_files import sha256_of_file
from tagkin.filesystem import folder_lock, open_private, replace_file
from tagkin.progress import Progress, silent

__all__ = ["download_model"]

_HEADERS = {"user-agent": "tagkin", "accept-encoding": "identity"}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_MB = 10**6
_CONTINUES = "The same command continues the download."


def download_model(entry: ModelEntry, progress: Progress = silent) -> InstalledModel:
    """Download the files of a model that are not there yet, and install it.

    Every file is compared with the registry's SHA-256. An interrupted download continues where it
    stopped.
    """
    hub = _import_hub()
    folder = make_model_folder(entry.name)
    with _explain_errors(entry, folder), folder_lock(folder, ".lock", patience=1.0):
        (folder / "model.json").unlink(missing_ok=True)
        missing = sum(_missing_bytes(folder / name, file) for name, file in entry.files.items())
        check_room(folder, missing)
        download = _Download(hub, entry, folder, progress)
        files = {name: asdict(download.fetch(name)) for name in entry.files}
        origin = {"source": entry.source, "revision": download.revision, "licence": entry.licence}
        return write_installed_model(entry.name, {**origin, **entry.settings, "files": files})


class _Download:
    """The download of one model; `revision` is known after the first file."""

    def __init__(self, hub: Any, entry: ModelEntry, folder: Path, progress: Progress):
        self.revision = entry.revision
        self._hub, self._entry, self._folder, self._progress = hub, entry, folder, progress

    def fetch(self, name: str) -> FileRecord:
        """Put a file into the folder, and return its size and SHA-256."""
        file, target = self._entry.files[name], self._folder / name
        if target.is_file() and file.sha256 and sha256_of_file(target) == file.sha256:
            return FileRecord(target.stat().st_size, file.sha256)
        part = target.with_name(f"{name}.part")
        expected = self._copy_cached(file, part) or self._receive(name, file, part)
        digest = sha256_of_file(part)
        if digest != (expected or digest):
            part.unlink()
            raise StorageError(
                f"{file.path} of {self._entry.source} is not the expected file: its SHA-256 is "
                f"{digest}, expected {expected}. It was deleted, and the model is not installed."
            )
        n_bytes = part.stat().st_size
        replace_file(part, target)
        return FileRecord(n_bytes, digest)

    def _copy_cached(self, file: RemoteFile, part: Path) -> str | None:
        """Copy a file with a known SHA-256 from the hub's own cache, if it is there."""
        if self.revision is None or file.sha256 is None:
            return None
        source = self._entry.source
        cached = self._hub.try_to_load_from_cache(source, file.path, revision=self.revision)
        if not isinstance(cached, str) or sha256_of_file(cached) != file.sha256:
            return None
        with open(cached, "rb") as original, open(part, "wb", opener=open_private) as copy:
            shutil.copyfileobj(original, copy)
        return file.sha256

    def _receive(self, name: str, file: RemoteFile, part: Path) -> str:
        """Download the missing part of a file; return the SHA-256 that the file should have."""
        from huggingface_hub.file_download import http_get

        source = self._entry.source
        url = self._hub.hf_hub_url(source, file.path, revision=self.revision or "main")
        head = self._hub.get_hf_file_metadata(url, token=False, headers=_HEADERS)
        size = file.bytes or head.size
        self.revision = self.revision or head.commit_hash
        is_other = head.commit_hash not in (None, self.revision)  # a mirror may not say it
        if size is None or head.size != size or self.revision is None or is_other:
            raise StorageError(
                f"The server has another version of {file.path} of {source}: {head.size} bytes of "
                f"revision {head.commit_hash}, expected {size} bytes of revision {self.revision}. "
                "Nothing was downloaded."
            )
        if part.exists() and part.stat().st_size > size:
            part.unlink()
        with open(part, "ab", opener=open_private) as output:
            bar = _make_bar(self._progress, f"Downloading {name} (MB)", size)
            how = {"expected_size": size, "tqdm_class": bar, "headers": _HEADERS}
            http_get(url, output, resume_size=output.tell(), **how)
        is_digest = re.fullmatch("[0-9a-f]{64}", head.etag or "")
        return file.sha256 or (head.etag if is_digest else "")


def _make_bar(step: Progress, what: str, size: int) -> type:
    """Return a progress bar class for http_get; it fails if the server sends too many bytes."""

    class Bar:
        def __init__(self, *_: Any, initial: int = 0, **__: Any):
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


def _missing_bytes(target: Path, file: RemoteFile) -> int:
    there = next((p for p in (target, target.with_name(f"{target.name}.part")) if p.exists()), None)
    return max((file.bytes or 0) - (there.stat().st_size if there else 0), 0)


def _import_hub() -> Any:
    """Return the module huggingface_hub, without its telemetry."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    try:
        import huggingface_hub
        from huggingface_hub.utils import logging
    except ImportError as error:
        raise MissingExtra(
            f"Models are downloaded with huggingface_hub: {pip_install('models')}"
        ) from error
    logging.set_verbosity_error()
    return huggingface_hub


@contextmanager
def _explain_errors(entry: ModelEntry, folder: Path) -> Iterator[None]:
    """Turn every error of the network and the disk into a sentence."""
    try:
        yield
    except TagkinError:
        raise
    except Exception as error:  # the client's errors have no common ancestor
        if isinstance(error, OSError) and error.errno in _FULL:
            raise StorageError(f"The disk of {folder} is full. {_CONTINUES}") from error
        if isinstance(error, TimeoutError) and error.filename:
            raise StorageError(f"Another process is at work in {folder}.") from error
        raise StorageError(
            f"{entry.name} could not be downloaded from {entry.source}: "
            f"{first_line(error).rstrip('.')}. {_CONTINUES}"
        ) from error
    finally:
        with suppress(OSError):
            folder.rmdir()  # if nothing came
