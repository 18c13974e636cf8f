"""A catalogue that was lost is made again: no tag is missing, an export brings back the rest."""

import json

import pytest

from tagkin.catalogue import ACCEPTED, REJECTED, Filters, open_for_scan

from .photographs import check_invariants, found_tags
from .suggested import decisions, offer


@pytest.fixture
def lost(catalogue, folder):
    """A folder as tagkin wrote to it, the run, and what was exported."""
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.7))
    catalogue.decisions.decide(REJECTED, Filters(tags=["dog"]))
    run = catalogue.write().run
    exported = [json.dumps(line) for line in catalogue.export_lines()]
    catalogue.close()
    for path in catalogue.path.parent.glob(f"{catalogue.path.name}*"):
        path.unlink()
    return folder.root, run, exported


def explained(catalogue, path):
    return {
        tag.tag: (tag.state, [source.text for source in tag.said])
        for tag in catalogue.explain(path).tags
    }


def test_every_tag_is_there_and_says_who_wrote_it(lost):
    root, run, _ = lost
    with open_for_scan(root) as again:
        again.scan()
        tags = {path: set(of_photo) for path, of_photo in found_tags(again).items()}
        assert tags == {
            "a.jpg": {"beach", "sea", "holiday"},
            "b.jpg": {"beach", "sea", "holiday"},
            "2024/c.jpg": {"dog"},
            "2024/d.jpg": {"beach"},
        }
        by_tagkin = f"written to a.jpg.xmp by run {run} of an earlier catalogue, as the file says"
        assert explained(again, "a.jpg") == {
            "beach": ("found", ["is in a.jpg.xmp"]),
            "holiday": ("found", ["is in a.jpg.xmp", f"{by_tagkin}, 95 % confidence"]),
            "sea": ("found", ["is in a.jpg.xmp"]),
        }
        check_invariants(again)


def test_an_export_brings_back_decisions(lost):
    root, _, exported = lost
    with open_for_scan(root) as again:
        again.scan()
        again.import_lines(exported)
        assert decisions(again)["a.jpg", "dog"] == -1
        assert explained(again, "a.jpg")["holiday"][0] == "accepted"
        assert again.write().run is None  # the files have these tags
        check_invariants(again)


def test_a_sidecar_that_cannot_be_read_any_more_says_nothing(lost):
    root, *_ = lost
    with open_for_scan(root) as again:
        again.scan()
        (root / "a.jpg.xmp").write_text("<broken")
        assert explained(again, "a.jpg")["holiday"] == ("found", ["is in a.jpg.xmp"])
        (root / "a.jpg.xmp").unlink()
        assert explained(again, "a.jpg")["holiday"] == ("found", ["is in a.jpg.xmp"])
