"""What a model is told by a catalogue: tags, and what a person said no to."""

from dataclasses import replace

import pytest

from tagkin.annotator import Annotator
from tagkin.catalogue import ACCEPTED, REJECTED, Filters, SuggestOptions, open_for_scan
from tagkin.errors import InvalidInput

from .photographs import check_invariants, put_red_and_blue, select
from .suggested import offer, open_suggestions


def training_tags(catalogue, **options):
    return {
        catalogue.relative(photo.file): (set(photo.tags), set(photo.rejected))
        for photo in catalogue.photographs.with_tags(**options)
    }


def test_tags_are_those_found_and_accepted_and_not_rejected(catalogue):
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(tags=["holiday"]))
    catalogue.decisions.decide(REJECTED, Filters(tags=["dog"]))
    catalogue.decisions.decide(REJECTED, Filters(photographs=["a.jpg"], tags=["sea"]))
    assert training_tags(catalogue) == {
        "a.jpg": ({"beach", "holiday"}, {"dog", "sea"}),
        "b.jpg": ({"beach", "holiday"}, set()),
        "2024/c.jpg": ({"dog"}, set()),
        "2024/d.jpg": (set(), {"dog"}),
    }
    assert set(training_tags(catalogue, folder="2024/")) == {"2024/c.jpg", "2024/d.jpg"}
    assert set(training_tags(catalogue, only_untagged=True)) == {"2024/d.jpg"}
    catalogue.tags.change("rename", ["beach"], "strand")
    assert training_tags(catalogue)["b.jpg"][0] == {"strand", "holiday"}


def test_untagged_means_one_thing(catalogue, folder, rescan):
    """For the counts, for the search, and for learning."""

    def untagged() -> set[str]:
        check_invariants(catalogue)
        there = select(catalogue, untagged=True)
        firsts = set(training_tags(catalogue, only_untagged=True))
        assert firsts <= set(there)
        assert catalogue.status().n_untagged == len(firsts)
        assert {path for path, (tags, _) in training_tags(catalogue).items() if not tags} == firsts
        return firsts

    assert untagged() == {"2024/d.jpg"}
    folder.put("bare.jpg", "b")  # a copy of b.jpg, which has a sidecar
    folder.put("copy of d.jpg", "d")
    rescan()
    assert untagged() == {"2024/d.jpg"}
    status = catalogue.status()
    assert (status.n_photographs, status.n_files) == (4, 6)
    run = catalogue.decisions.decide(REJECTED, Filters(photographs=["b.jpg"], tags=["beach"])).run
    assert untagged() == {"2024/d.jpg", "b.jpg"}
    catalogue.decisions.undo(run)
    catalogue.tags.change("forget", ["dog"])
    assert untagged() == {"2024/d.jpg", "2024/c.jpg"}
    catalogue.tags.change("restore", ["dog"])
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=["2024/d.jpg"], tags=["mine"]))
    assert untagged() == set()
    folder.put("a.jpg", "edited", [])
    (folder.root / "b.jpg").unlink()
    (folder.root / "b.jpg.xmp").unlink()
    rescan()
    assert untagged() == {"a.jpg", "bare.jpg"}


def test_what_was_accepted_is_told_where_it_had_been_suggested(catalogue):
    """An idea of one's own says nothing of how good suggestions are."""
    offer(catalogue)
    both = ["a.jpg", "b.jpg"]
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=both, tags=["holiday"]))
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=["b.jpg"], tags=["quite new"]))
    by_path = {catalogue.relative(photo.file): photo for photo in catalogue.photographs.with_tags()}
    assert "quite new" in by_path["b.jpg"].tags
    assert {path: list(photo.accepted) for path, photo in by_path.items()} == {
        "a.jpg": ["holiday"],
        "b.jpg": ["holiday"],
        "2024/c.jpg": [],
        "2024/d.jpg": [],
    }


def known(catalogue):
    return {
        catalogue.relative(content.file): (content.is_complete, set(content.known_tags))
        for content in catalogue.photographs.with_tags()
    }


def test_tags_in_files_make_a_photograph_complete(catalogue, folder, rescan):
    """Not tags that were accepted or typed here, even once they are written to its file."""
    offer(catalogue)
    assert known(catalogue)["2024/c.jpg"] == (True, {"dog"})
    assert known(catalogue)["2024/d.jpg"] == (False, set())
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=["2024/d.jpg"], tags=["dog"]))
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=["2024/d.jpg"], tags=["mine"]))
    assert known(catalogue)["2024/d.jpg"] == (False, {"dog", "mine"})
    folder.put("2024/d.jpg", "d", ["dog", "mine"])
    rescan()
    assert known(catalogue)["2024/d.jpg"] == (False, {"dog", "mine"})
    folder.put("2024/d.jpg", "d", ["dog", "mine", "garden"])
    rescan()
    assert known(catalogue)["2024/d.jpg"] == (True, {"dog", "mine", "garden"})


def test_what_is_accepted_in_bulk_is_no_answer(catalogue):
    offer(catalogue)
    run = catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.0)).run
    assert known(catalogue)["2024/d.jpg"] == (False, set())
    assert "dog" in training_tags(catalogue)["2024/d.jpg"][0]
    learned = {c.file: c.known_tags for c in catalogue.model.to_learn_from()[0]}
    assert any("d.jpg" in file for file in learned)  # without six others it counts
    catalogue.decisions.undo(run)
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=["2024/d.jpg"], at_least=0.0))
    assert known(catalogue)["2024/d.jpg"] == (False, training_tags(catalogue)["2024/d.jpg"][0])


def test_bulk_teaches_nothing_beside_other_tags(catalogue, folder, rescan):
    """Even with few complete photographs: a model would feed on its own errors."""
    for number in range(6):
        folder.put(f"more/{number}.jpg", f"more {number}", ["dog"])
    rescan()
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.0))
    learned = [content.file for content in catalogue.model.to_learn_from()[0]]
    assert not any(file.endswith("d.jpg") for file in learned)


def test_a_copy_is_learned_once(catalogue, folder, rescan):
    folder.put("copy.jpg", "a", ["another"])
    rescan()
    learned = training_tags(catalogue)
    assert learned["a.jpg"][0] == {"beach", "sea", "another"}
    assert "copy.jpg" not in learned


def test_nothing_to_learn_from(catalogue, folder, rescan):
    for sidecar in folder.root.rglob("*.xmp"):
        sidecar.unlink()
    rescan()
    with pytest.raises(InvalidInput, match="None of the 4 photographs"):
        catalogue.model.train(Annotator())
    check_invariants(catalogue)


def test_a_refit_keeps_what_was_offered(tmp_path):
    with open_for_scan(put_red_and_blue(tmp_path / "photos")) as catalogue:
        catalogue.scan()
        annotator = Annotator(names=False)
        catalogue.model.refit(annotator)
        before = open_suggestions(catalogue)
        assert before
        contents = catalogue.photographs.with_tags()
        wanted = SuggestOptions(n=1, threshold=0.999)
        fitted, fingerprint = catalogue.model.load()
        options = {"contents": contents, "fingerprint": fingerprint}
        suggested = catalogue.model.suggest(fitted, replace(wanted, keeps_open=True), **options)
        after = open_suggestions(catalogue)
        assert {(p, t) for p, tags in before.items() for t in tags} <= {
            (p, t) for p, tags in after.items() for t in tags
        }
        runs = catalogue.database.rows("SELECT DISTINCT run FROM suggestions")
        assert runs == [(suggested.run,)]  # with the confidences of the new model
        catalogue.model.suggest(fitted, wanted, **options)
        assert open_suggestions(catalogue) != after  # as `tagkin suggest` asks
        check_invariants(catalogue)


def test_the_most_doubtful_tags_are_kept_however_certain(tmp_path):
    """A clean collection has doubts to look at, which say that they are probably none."""
    with open_for_scan(put_red_and_blue(tmp_path / "photos")) as catalogue:
        catalogue.scan()
        catalogue.model.refit(Annotator(names=False))
        doubts = catalogue.doubts.list_open(n=500)
    assert doubts
    confidences = [doubt.confidence for doubt in doubts]
    assert max(confidences) < 0.5
    assert confidences == sorted(confidences, reverse=True)
