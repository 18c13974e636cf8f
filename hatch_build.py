"""Metadata of the package that depend on where the project lives.

    make release ADDRESS=https://example.org/you/tagkin

builds what is uploaded to a package index: there, links and pictures of the README need whole
addresses. An installation from a checkout needs none.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

BRANCH = "main"
PAPER = "https://doi.org/10.1016/j.patcog.2017.05.019"
# [text](target), ![text](target), src="target", srcset="target": where the target is a file of ours
_PICTURE = re.compile(r'(!\[[^\]]*\]\(|\bsrc(?:set)?=")(?![a-z]+:|#)([^)"]+)')
_LINK = re.compile(r"((?<!!)\[[^\]]*\]\()(?![a-z]+:|#)([^)]+)")


def with_addresses(text: str, address: str) -> str:
    """A README whose pictures and links to files of the project have whole addresses."""
    text = _PICTURE.sub(rf"\g<1>{address}/raw/{BRANCH}/\g<2>", text)
    return _LINK.sub(rf"\g<1>{address}/blob/{BRANCH}/\g<2>", text)


class Hook(MetadataHookInterface):
    """The README, and the addresses that an index shows beside it."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in what pyproject.toml calls dynamic."""
        address = os.environ.get("TAGKIN_ADDRESS", "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["urls"] = {"Paper": PAPER}
        if address:
            text = with_addresses(text, address)
            metadata["urls"] |= {
                "Homepage": address,
                "Documentation": f"{address}/blob/{BRANCH}/docs/index.md",
                "Changelog": f"{address}/blob/{BRANCH}/CHANGELOG.md",
                "Issues": f"{address}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
