"""Decisions travel as JSON lines; a tag can be explained; writes can be undone."""

import hashlib
import json

import pytest

from tagkin.catalogue import ACCEPTED, REJECTED, Filters, open_for_scan
from tagkin.catalogue.write_records import ToWrite
from tagkin.collection.sidecars import Written
from tagkin.errors import InvalidInput

from .photographs import check_invariants
from .suggested import content, decisions, offer, open_suggestions


def lines(catalogue):
    return [json.dumps(record) for record in catalogue.export_lines()]


@pytest.fixture
def decided(catalogue, folder):
    """A catalogue in which a person has been at work."""
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.9))
    taken = catalogue.decisions.decide(ACCEPTED, Filters(tags=["beach"])).run
    catalogue.decisions.undo(taken)
    catalogue.decisions.decide(REJECTED, Filters(tags=["dog"]))
    catalogue.tags.change("rename", ["holiday"], "Holiday!")
    catalogue.tags.change("forget", ["sea"])
    with catalogue.database.run("write") as run:
        photograph = catalogue.database.value("SELECT id FROM photographs WHERE path = 'a.jpg'")
        file, added = folder.root / "a.jpg.xmp", (("dc:subject", "Holiday!"),)
        digest = hashlib.sha256(b"new").hexdigest()
        change = Written(file, b"what stood there", digest, added)
        photo = ToWrite(photograph, "a.jpg", ["Holiday!"])
        number = catalogue.writes.plan(run.id, photo, "a.jpg.xmp", change)
        catalogue.writes.update(number, state="done")
    return catalogue


def test_a_catalogue_that_was_lost_comes_back(decided, folder):
    exported, before = lines(decided), decisions(decided)
    assert {json.loads(line)["kind"] for line in exported} == {"tagkin", "tag", "decision"}
    decided.close()
    decided.path.unlink()
    with open_for_scan(folder.root) as fresh:
        fresh.scan()
        assert not decisions(fresh)
        assert fresh.import_lines(exported).decisions == len(before)
        check_invariants(fresh)
        assert decisions(fresh) == before
        assert not fresh.database.rows("SELECT 1 FROM writes")
        twice = fresh.import_lines(exported)
        assert (twice.tags, twice.decisions) == (0, 0)
        offer(fresh)  # and nothing that was decided on or forgotten is suggested
        assert open_suggestions(fresh) == {
            "2024/c.jpg": {"beach": 0.55},
            "b.jpg": {"Holiday!": 0.7},
        }
        check_invariants(fresh)


def test_an_import_is_undone_step_by_step(decided, folder, tmp_path):
    exported = lines(decided)
    with open_for_scan(folder.root, tmp_path / "other.sqlite") as other:
        other.scan()
        offer(other)
        before = decisions(other), open_suggestions(other), other.tags.list_all()
        imported = other.import_lines(exported)
        assert (imported.tags, imported.decisions) == (2, len(decisions(decided)))
        assert other.undo().undoes.what == "import"
        assert decisions(other) == {}
        assert [other.undo().undoes.what for _ in range(2)] == ["tags forget", "tags merge"]
        assert (decisions(other), open_suggestions(other), other.tags.list_all()) == before
        with pytest.raises(InvalidInput, match="Nothing to undo"):
            other.undo()
        check_invariants(other)


def test_a_forgotten_tag_stays_forgotten_after_tags_were_merged_into_it(
    catalogue, folder, tmp_path
):
    catalogue.tags.change("merge", ["sea"], "beach")
    catalogue.tags.change("forget", ["beach"])
    with open_for_scan(folder.root, tmp_path / "other.sqlite") as other:
        other.scan()
        other.import_lines(lines(catalogue))
        assert [tag.name for tag in other.tags.list_all() if tag.is_forgotten] == ["beach"]


def test_an_edit_is_of_the_spelling_that_it_names(catalogue, folder, tmp_path):
    catalogue.tags.change("rename", ["beach"], "strand")
    catalogue.tags.change("rename", ["strand"], "Strand")
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=["a.jpg"], tags=["Palm"]))
    catalogue.tags.change("forget", ["Palm"])
    known = [(tag.name, tag.is_forgotten, tag.n_found) for tag in catalogue.tags.list_all()]
    with open_for_scan(folder.root, tmp_path / "fresh.sqlite") as fresh:
        fresh.scan()
        fresh.import_lines(lines(catalogue))
        assert [(t.name, t.is_forgotten, t.n_found) for t in fresh.tags.list_all()] == known
        fresh.decisions.decide(ACCEPTED, Filters(photographs=["b.jpg"], tags=["tree"]))
        record = {"kind": "tag", "tag": "Tree", "same_as": None, "forgotten": True}
        fresh.import_lines([lines(catalogue)[0], json.dumps(record)])
        assert not fresh.tags.count(fresh.tags.find(["tree"])[0]).is_forgotten


def test_how_decisions_were_made_is_carried(catalogue, folder, tmp_path):
    """What a filter or the rest of a page accepted, nobody looked at one by one."""
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(tags=["beach"]))
    where = (content(catalogue, "a.jpg"),)
    pairs = catalogue.database.rows("SELECT content, tag FROM suggestions WHERE content = ?", where)
    catalogue.decisions.decide_pairs(accepted=pairs, together=True)
    exported = lines(catalogue)
    with open_for_scan(folder.root, tmp_path / "other.sqlite") as other:
        other.scan()
        other.import_lines(exported)

        for opened in (catalogue, other):
            doubts = opened.doubts.among_accepted()
            assert {(doubt.path, doubt.tag) for doubt in doubts} == {
                ("a.jpg", "holiday"),
                ("a.jpg", "dog"),
            }
            in_bulk = {photo.file: list(photo.bulk) for photo in opened.photographs.with_tags()}
            assert in_bulk[str(folder.root / "2024/d.jpg")] == ["beach"]


def test_the_later_decision_holds(catalogue, folder):
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=["a.jpg"], tags=["holiday"]))
    exported = lines(catalogue)
    catalogue.decisions.decide(REJECTED, Filters(photographs=["a.jpg"], tags=["holiday"]))
    later = lines(catalogue)
    catalogue.import_lines(exported)
    assert decisions(catalogue) == {("a.jpg", "holiday"): -1}
    catalogue.close()
    catalogue.path.unlink()
    with open_for_scan(folder.root) as fresh:
        fresh.scan()
        fresh.import_lines(later)
        assert decisions(fresh) == {("a.jpg", "holiday"): -1}


@pytest.mark.parametrize(
    "text", ["", "nonsense", '{"kind": "other"}', '{"kind": "tagkin", "format": "x"}']
)
def test_other_files_are_refused(catalogue, text):
    with pytest.raises(InvalidInput):
        catalogue.import_lines(text.splitlines())


def test_what_is_there_already_stays_also_after_a_tag_was_renamed(decided):
    before = lines(decided)
    came = decided.import_lines(before)
    assert (came.tags, came.decisions) == (0, 0)
    assert lines(decided) == before
    check_invariants(decided)


def test_a_damaged_line_changes_nothing(decided, catalogue):
    exported = lines(decided)
    n = len(catalogue.runs.history())
    with pytest.raises(InvalidInput, match=f"Line {len(exported) + 1} "):
        catalogue.import_lines([*exported, '{"kind": "decision"}'])
    assert len(catalogue.runs.history()) == n


# --- explanations ------------------------------------------------------------------------


def test_every_tag_has_someone_who_says_so(decided):
    explanation = decided.explain("a.jpg")
    sources = {
        tag.tag: [(source.who, source.text) for source in tag.said] for tag in explanation.tags
    }
    states = {tag.tag: tag.state for tag in explanation.tags}
    assert states == {
        "Holiday!": "accepted",
        "beach": "found",
        "dog": "rejected",
        "sea": "found",
    }
    assert sources["beach"] == [("file", "is in a.jpg.xmp")]
    who = [kind for kind, _ in sources["Holiday!"]]
    assert (who[0], who[-1], "person" in who) == ("run", "write", True)
    assert "with model ffffffffffff, 95 % confidence" in sources["Holiday!"][0][1]
    assert sources["Holiday!"][-1][1].startswith("written to a.jpg.xmp by run")
    holiday = next(tag for tag in explanation.tags if tag.tag == "Holiday!")
    assert holiday.shares == pytest.approx({"name": 0.1, "readout": 0.3}, abs=1e-4)
    assert [(neighbor.path, round(neighbor.share, 2)) for neighbor in holiday.kin] == [
        ("a.jpg", 0.45),  # of the score, of which the kin carry 60 %
        ("b.jpg", 0.15),
    ]
    assert explanation.digest == hashlib.sha256(b"\xff\xd8a\xff\xd9").hexdigest()


def test_a_decision_taken_back_is_told(decided):
    explanation = decided.explain("2024/c.jpg")
    beach = next(tag for tag in explanation.tags if tag.tag == "beach")
    assert beach.state == "suggested"
    assert any("undone by run" in source.text for source in beach.said)


# --- writes ------------------------------------------------------------------------------


def test_accepted_tags_that_files_lack_are_to_be_written(catalogue, folder, rescan):
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.9))
    expected = {"2024/d.jpg": ["beach"], "a.jpg": ["holiday"], "b.jpg": ["sea"]}
    assert {write.path: list(write.tags) for write in catalogue.writes.pending()} == expected
    only = catalogue.writes.pending(Filters(folder="2024"))
    assert [write.path for write in only] == ["2024/d.jpg"]
    folder.tag("b.jpg", ["beach", "Sea"])  # another program wrote it
    rescan()
    assert {write.path for write in catalogue.writes.pending()} == {"2024/d.jpg", "a.jpg"}
    assert catalogue.status().n_to_write == 2


def test_a_copy_is_written_to_where_it_is_meant(catalogue, folder, rescan):
    folder.put("copies/a.jpg", "a")
    rescan()
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=["a.jpg"], tags=["holiday"]))

    def to_write(**filters):
        return [write.path for write in catalogue.writes.pending(Filters(**filters))]

    assert to_write() == ["a.jpg", "copies/a.jpg"]
    assert to_write(photographs=["copies/a.jpg"]) == to_write(folder="copies/") == ["copies/a.jpg"]
    assert to_write(photographs=["a.jpg"]) == ["a.jpg"]
    assert to_write(folder=".") == ["a.jpg", "copies/a.jpg"]


def test_a_write_is_kept_with_what_stood_there(catalogue):
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.95))
    (todo,) = catalogue.writes.pending()
    with catalogue.database.run("write") as run:
        before = "alt \u00e4\u00f6\u00fc".encode() * 1000
        file, added = catalogue.root / "a.jpg.xmp", (("dc:subject", "holiday"),)
        change = Written(file, before, "ab" * 32, added)
        number = catalogue.writes.plan(run.id, todo, "a.jpg.xmp", change)
        assert [unfinished.id for unfinished in catalogue.writes.unfinished()] == [number]
        catalogue.writes.update(number, state="done")
    (write,) = catalogue.writes.of_run(run.id)
    assert write.before == before
    assert (write.after, write.added, write.state) == (
        "ab" * 32,
        [("dc:subject", "holiday")],
        "done",
    )
    assert not catalogue.writes.pending()
    with catalogue.database.run("undo", undoes=run.id) as undo:
        catalogue.writes.update(number, state="undone", note="as it was")
    assert catalogue.writes.pending() == [todo]
    assert catalogue.runs.history()[1].undone_by == undo.id
    assert content(catalogue, "a.jpg")
