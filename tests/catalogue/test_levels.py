"""Tags with levels: a tag that is shown twice is one, and parents follow."""

from tagkin.catalogue import ACCEPTED, REJECTED, Catalogue, Filters
from tagkin.collection.sidecars import tags_of

from .conftest import Folder
from .photographs import check_invariants
from .suggested import content, decisions, offer, open_suggestions


def known(catalogue: Catalogue) -> dict[str, tuple[list[str], list[str]]]:
    """Tags to learn from, and rejected tags, by the name of the photograph."""
    contents = catalogue.photographs.with_tags()
    return {c.file.rsplit("/", 1)[-1]: (c.known_tags, c.rejected) for c in contents}


def test_a_tag_and_its_last_level_are_one(catalogue: Catalogue, folder: Folder, rescan) -> None:
    folder.tag("a.jpg", ["beach", "sea", "Verkehr|Auto"])
    folder.tag("b.jpg", ["auto", "beach"])
    rescan()
    catalogue.decisions.decide(REJECTED, Filters(photographs=["2024/d.jpg"], tags=["auto"]))
    assert known(catalogue) == {
        "a.jpg": (["Verkehr|Auto", "beach", "sea"], []),
        "b.jpg": (["Verkehr|Auto", "beach"], []),
        "c.jpg": (["dog"], []),
        "d.jpg": ([], ["Verkehr|Auto"]),
    }
    folder.tag("2024/c.jpg", ["dog", "Spielzeug|Auto"])  # now nobody knows which of both is meant
    rescan()
    assert known(catalogue)["b.jpg"] == (["auto", "beach"], [])


def test_a_short_name_that_was_rejected_for_the_long_one(
    catalogue: Catalogue, folder: Folder, rescan
) -> None:
    folder.tag("a.jpg", ["beach", "sea", "Verkehr|Auto"])
    folder.tag("b.jpg", ["beach", "Auto"])
    rescan()
    catalogue.decisions.decide(REJECTED, Filters(photographs=["a.jpg"], tags=["Auto"]))
    assert known(catalogue)["a.jpg"] == (["Verkehr|Auto", "beach", "sea"], [])


def test_parents_follow_and_only_the_child_is_written(catalogue: Catalogue, folder: Folder) -> None:
    tags = {"Verkehr": 0.9, "Verkehr|Auto": 0.8, "Auto": 0.7, "Autobahn": 0.6}
    offer(catalogue, {"2024/d.jpg": tags})
    number = content(catalogue, "2024/d.jpg")
    for accept in (
        lambda tag: catalogue.decisions.decide_pairs([(number, tag)]).run,
        lambda tag: (
            catalogue.decisions.decide(
                ACCEPTED, Filters(photographs=["2024/d.jpg"], tags=[tag])
            ).run
        ),
        lambda tag: catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.65)).run,
    ):
        run = accept("Verkehr|Auto")
        assert {tag for _, tag in decisions(catalogue)} == {"Verkehr", "Verkehr|Auto", "Auto"}
        assert open_suggestions(catalogue) == {"2024/d.jpg": {"Autobahn": 0.6}}
        check_invariants(catalogue)
        catalogue.undo(run)
        assert open_suggestions(catalogue) == {"2024/d.jpg": tags}
        check_invariants(catalogue)
    accept("Verkehr|Auto")
    assert catalogue.write().n_tags == 1
    assert tags_of((folder.root / "2024/d.jpg.xmp").read_bytes()) == ["Verkehr|Auto"]
    assert catalogue.writes.count_pending() == 0
    assert catalogue.write().files == []


def test_a_parent_alone_is_written(catalogue: Catalogue, folder: Folder) -> None:
    offer(catalogue, {"2024/d.jpg": {"Verkehr": 0.9, "Verkehr|Auto": 0.8}})
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=["2024/d.jpg"], tags=["Verkehr"]))
    assert open_suggestions(catalogue) == {"2024/d.jpg": {"Verkehr|Auto": 0.8}}
    catalogue.write()
    assert tags_of((folder.root / "2024/d.jpg.xmp").read_bytes()) == ["Verkehr"]
