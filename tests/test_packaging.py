"""What a package index shows: the README with its pictures, and addresses beside it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
ADDRESS = "https://example.org/you/tagkin"


def metadata(address: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "metadata"],
        cwd=ROOT,
        env=os.environ | {"TAGKIN_ADDRESS": address},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def test_pictures_and_links_of_the_readme_have_whole_addresses():
    fields = metadata(ADDRESS + "/")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r'\]\(([^)]+)|\bsrc(?:set)?="([^"]+)', fields["readme"]["text"])
    files = [address or other for address, other in targets]
    assert len(files) == text.count("](") + text.count('src="') + text.count('srcset="') > 10
    for target in files:
        kind = "raw" if Path(target).suffix in (".png", ".webp", ".svg") else "blob"
        prefix = f"{ADDRESS}/{kind}/main/"
        assert target.startswith(prefix), target
        assert (ROOT / target.removeprefix(prefix)).exists(), target
    assert fields["urls"]["Homepage"] == ADDRESS
    assert (ROOT / fields["urls"]["Documentation"].removeprefix(f"{ADDRESS}/blob/main/")).exists()
    # nothing else is changed
    assert re.sub(rf"{ADDRESS}/(raw|blob)/main/", "", fields["readme"]["text"]) == text


def test_a_checkout_needs_no_address():
    fields = metadata("")
    assert fields["readme"]["text"] == (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(fields["urls"]) == {"Paper"}
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert fields["urls"]["Paper"].removeprefix("https://doi.org/") in citation
