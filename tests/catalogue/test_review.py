"""What a page asks: every list comes in parts, and says the same as a plain loop."""

import pytest

from tagkin.annotator import Finding
from tagkin.catalogue import ACCEPTED, REJECTED, Filters
from tagkin.catalogue.columns import pack_evidence, unpack_evidence

from .photographs import select
from .suggested import OFFERED, content, new_suggestion, offer, store


def number(catalogue, tag):
    return catalogue.tags.find([tag])[0]


@pytest.mark.parametrize("n", [1, 2, 10])
def test_by_tag_the_surest_first_in_parts(catalogue, n):
    offer(catalogue, OFFERED | {"2024/c.jpg": {"holiday": 0.7}})
    after, suggestions = None, []
    while part := catalogue.suggestions.for_tag(number(catalogue, "holiday"), n, after):
        suggestions += part
        after = part[-1]
    assert [(suggestion.path, suggestion.confidence) for suggestion in suggestions] == [
        ("a.jpg", 0.95),
        *sorted([("2024/c.jpg", 0.7), ("b.jpg", 0.7)], key=lambda p: content(catalogue, p[0])),
    ]


def test_by_photograph_with_kin(catalogue, folder, rescan):
    offer(catalogue)
    first, second = catalogue.suggestions.for_photograph(content(catalogue, "b.jpg"))
    assert (first.tag, first.confidence, second.tag) == ("sea", 0.9, "holiday")
    assert [(kin.path, round(kin.share, 2)) for kin in first.kin] == [
        ("a.jpg", 0.45),
        ("b.jpg", 0.15),
    ]
    assert first.shares == pytest.approx({"name": 0.1, "readout": 0.3}, abs=1e-4)
    (folder.root / "a.jpg").unlink()
    rescan()
    assert catalogue.suggestions.for_photograph(content(catalogue, "b.jpg"))[0].kin[0].path is None


def test_what_is_left_to_review(catalogue):
    offer(catalogue)
    contents = sorted(content(catalogue, path) for path in OFFERED)
    by_tag = catalogue.suggestions.of_contents(contents)
    assert sorted({s.content for some in by_tag.values() for s in some}) == contents
    catalogue.decisions.decide(REJECTED, Filters(photographs=["a.jpg"]))
    assert catalogue.suggestions.of_contents([content(catalogue, "a.jpg")]) == {}
    now = catalogue.suggestions.progress()
    assert (now.n_photographs, now.n_to_review, now.n_suggestions, now.n_rejected) == (4, 3, 6, 2)
    assert now.expected == pytest.approx(0.7 + 0.9 + 0.55 + 0.92 + 0.6 + 0.2)


def test_search(catalogue):
    def paths(**filters):
        return sorted(select(catalogue, **filters))

    assert paths() == ["2024/c.jpg", "2024/d.jpg", "a.jpg", "b.jpg"]
    beach, sea = number(catalogue, "beach"), number(catalogue, "sea")
    assert paths(tags=(beach,)) == ["a.jpg", "b.jpg"]
    assert paths(tags=(beach, sea)) == ["a.jpg"]
    assert paths(untagged=True) == ["2024/d.jpg"]
    assert paths(untagged=True, folder="2024") == ["2024/d.jpg"]
    assert paths(folder="2024/") == ["2024/c.jpg", "2024/d.jpg"]
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.9))
    assert paths(tags=(beach,)) == ["2024/d.jpg", "a.jpg", "b.jpg"]
    assert paths(tags=(sea, beach)) == ["a.jpg", "b.jpg"]
    assert paths(tags=(beach,), folder="2024") == ["2024/d.jpg"]
    assert paths(untagged=True) == []
    (first,) = catalogue.photographs.search(n=1)
    assert len(catalogue.photographs.search(after=first[0])) == 3


def test_doubts_that_were_decided_on_are_left_out(catalogue):
    run = offer(catalogue)
    rows = [("a.jpg", "sea", "wrong", 0.9), ("2024/d.jpg", "beach", "missing", 0.8)]
    with catalogue.database.transaction():
        for path, tag, kind, confidence in rows:
            catalogue.database.execute(
                "INSERT INTO doubts VALUES (?, ?, ?, ?, ?, ?)",
                (content(catalogue, path), number(catalogue, tag), run, kind, confidence, b""),
            )
    assert [doubt[1:5] for doubt in catalogue.doubts.list_open()] == rows
    assert [doubt.tag for doubt in catalogue.doubts.list_open("missing")] == ["beach"]
    catalogue.decisions.decide(REJECTED, Filters(photographs=["a.jpg"], tags=["sea"]))
    catalogue.decisions.decide(ACCEPTED, Filters(tags=["beach"]))
    assert catalogue.doubts.list_open() == []
    catalogue.undo()
    catalogue.undo()
    assert [doubt[1:5] for doubt in catalogue.doubts.list_open()] == rows


def test_doubts_are_stored_together_or_not_at_all(catalogue):
    def findings():
        yield Finding("a.jpg", "new", "missing", 0.5, ())
        raise RuntimeError

    contents = {"a.jpg": content(catalogue, "a.jpg")}
    with pytest.raises(RuntimeError):
        catalogue.doubts.replace(1, findings(), contents)
    assert catalogue.tags.numbers_of(["new"]) == {}


def test_kin_that_add_little_are_no_proof(catalogue):
    def kin(part: float) -> list[tuple[int, float]]:
        first, second = content(catalogue, "a.jpg"), content(catalogue, "b.jpg")
        return [(first, 0.75 * part), (second, 0.25 * part)]

    target = content(catalogue, "2024/d.jpg")
    offered = {
        "half": new_suggestion("half", 0.9, kin(0.5), 0.1, 0.4),
        "one of them": new_suggestion("one of them", 0.8, kin(0.0293), 0.9, 0.0707),
        "by name": new_suggestion("by name", 0.7, kin(0.01), 0.99, 0.0),
    }
    with catalogue.database.run("suggest") as run:
        store(catalogue, run.id, [(target, list(offered.values()))])
    explained = {tag.tag: tag for tag in catalogue.explain("2024/d.jpg").tags}
    shares = {
        name: [round(neighbor.share, 3) for neighbor in explained[name].kin] for name in offered
    }
    assert shares == {"half": [0.375, 0.125], "one of them": [0.022], "by name": []}
    (stored,) = (
        suggestion
        for suggestion in catalogue.suggestions.for_photograph(target)
        if suggestion.tag == "by name"
    )
    assert len(stored.kin) == 2  # they are there, to look at
    inputs = {
        name: catalogue.suggestions.main_inputs(number(catalogue, name), [target, 0])
        for name in offered
    }
    expected = {"half": "picture", "one of them": "name", "by name": "name"}
    assert inputs == {name: {target: main} for name, main in expected.items()}


@pytest.mark.parametrize(
    ("shares", "n_bytes"),
    [
        ({}, 0),
        ({"name": 0.2, "readout": 0.7}, 4),
        ({"name": 1.0}, 4),
        ({"name": 0.1, "readout": 0.2, "time": 0.4, "place": 0.0, "folder": 0.3}, 11),
        ({"time": 1.0}, 11),
    ],
)
@pytest.mark.parametrize("kin", [[], [(1, 0.5)], [(1, 0.5), (2**31, 0.25), (7, 0.0)]])
def test_evidence_is_packed_small(kin, shares, n_bytes):
    data = pack_evidence(kin, shares)
    assert len(data) == 6 * len(kin) + n_bytes
    evidence = unpack_evidence(data)
    assert [content for content, _ in evidence.kin] == [content for content, _ in kin]
    near = {"abs": 1 / 65535}
    assert [share for _, share in evidence.kin] == pytest.approx([s for _, s in kin], **near)
    expected = dict.fromkeys(evidence.shares, 0.0) | shares
    assert evidence.shares == pytest.approx(expected, **near)
    assert bool(evidence.shares) == bool(shares)


def test_no_evidence_is_none():
    assert unpack_evidence(None) == ([], {})
    for length in (1, 2, 3, 5, 7):  # as nobody packs it
        evidence = unpack_evidence(b"\0" * length)
        assert (len(evidence.kin), evidence.shares) == (length // 6, {})
