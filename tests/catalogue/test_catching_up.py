"""Catching up with a folder: early suggestions, better ones later, and no step twice."""

import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from tagkin import Annotator
from tagkin.catalogue import Catalogue, open_catalogue, open_for_scan
from tagkin.errors import DamagedModel
from tagkin.features import FeatureCache, get_backbone
from tagkin.images import Failure, content_digest
from tagkin.progress import SCANNING

from .photographs import check_invariants, sidecar_text
from .suggested import offer

N_PHOTOGRAPHS, N_TAGGED = 260, 250
TAGS = ("red", "green", "blue")


@pytest.fixture
def root(tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Photographs of a few bytes, most of them with a tag, and their features in the cache."""
    monkeypatch.setenv("TAGKIN_CACHE", str(shared_cache))
    root = tmp_path / "many"
    root.mkdir()
    backbone, rng = get_backbone(), np.random.default_rng(0)
    centres = rng.random((len(TAGS), backbone.dimension)) * 4
    digests, rows = [], []
    for k in range(N_PHOTOGRAPHS):
        data = b"\xff\xd8catching up %d\xff\xd9" % k
        (root / f"{k:03}.jpg").write_bytes(data)
        if k < N_TAGGED:
            (root / f"{k:03}.jpg.xmp").write_text(sidecar_text([TAGS[k % 3]]))
        digests.append(content_digest(data))
        rows.append(centres[k % 3] + rng.random(backbone.dimension))
    moment = time.time() - 100
    for file in root.iterdir():
        os.utime(file, (moment, moment))
    with FeatureCache(shared_cache) as cache:
        cache.store(backbone, digests, np.array(rows, np.float32))
    return root


@pytest.fixture
def fresh(root: Path) -> Iterator[Catalogue]:
    with open_for_scan(root) as opened:
        yield opened


def runs(catalogue: Catalogue) -> list[tuple[str, bool]]:
    """What was done, in order, and whether it was done with a part of the photographs."""
    return [
        (run.what, bool(run.parameters.get("partial"))) for run in catalogue.runs.history()[::-1]
    ]


def test_the_first_suggestions_do_not_wait_for_all_photographs(fresh: Catalogue) -> None:
    seen: list[int] = []
    steps: list[tuple[str, int, int]] = []

    def count_suggested(_: Sequence[Failure]) -> None:
        seen.append(
            fresh.database.value("SELECT count(*) FROM contents WHERE suggested IS NOT NULL")
        )

    assert fresh.catch_up([], progress=lambda *step: steps.append(step), on_news=count_suggested)
    learning = [("train", True), ("suggest", False), ("train", False), ("suggest", False)]
    assert runs(fresh) == [("scan", False), *learning]
    later, first = (run.outcome for run in fresh.runs.history(2, what="suggest"))
    assert "bursts" not in first  # bursts are found when all features are there
    assert later["bursts"] == 0
    assert 200 <= seen[0] < seen[1] == N_PHOTOGRAPHS
    assert fresh.database.value("SELECT count(*) FROM suggestions") > 0
    scanned = [step for step in steps if step[0] == SCANNING]
    assert scanned[-1] == (SCANNING, 1, 1)
    assert {step[2] for step in scanned} >= {N_PHOTOGRAPHS}
    assert not fresh.catch_up([], progress=lambda *_: None, on_news=lambda _: None)
    assert runs(fresh)[5:] == [("scan", False)]
    check_invariants(fresh)


def test_a_stop_in_the_middle_loses_nothing(fresh: Catalogue) -> None:
    class Killed(Exception):
        pass

    def kill(what: str, done: int, total: int) -> None:
        if what == "Suggesting" and done:
            raise Killed

    with pytest.raises(Killed):
        fresh.catch_up([], progress=kill, on_news=lambda _: None)
    assert fresh.database.value("SELECT count(*) FROM suggestions") > 0
    assert fresh.model.needs().model  # it has learned from a part
    fresh.catch_up([], progress=lambda *_: None, on_news=lambda _: None)
    trained = [run for run in runs(fresh) if run[0] == "train"]
    assert trained == [("train", True), ("train", False)]
    needs = fresh.model.needs()
    assert (needs.model, needs.n_new) == (False, 0)
    check_invariants(fresh)


def test_new_photographs_alone_get_suggestions(fresh: Catalogue, root: Path) -> None:
    fresh.catch_up([], progress=lambda *_: None, on_news=lambda _: None)
    before = fresh.database.value("SELECT max(suggested) FROM contents")
    (root / "new.jpg").write_bytes((root / "000.jpg").read_bytes() + b"\xff\xd9")
    fresh.catch_up([], progress=lambda *_: None, on_news=lambda _: None)
    rows = fresh.database.rows("SELECT suggested, count(*) FROM contents GROUP BY 1 ORDER BY 1")
    assert rows == [(before, N_PHOTOGRAPHS), (before + 2, 1)]  # though it cannot be decoded
    assert [run for run, _ in runs(fresh)][-2:] == ["scan", "suggest"]


def test_a_model_of_another_version_is_learned_anew(fresh: Catalogue, root: Path) -> None:
    """Nobody without a terminal could do it; its settings stay."""
    fresh.scan()
    fresh.model.refit(Annotator(min_count=84))  # red alone is on so many
    path = fresh.model.folder / "model.safetensors"
    for _ in range(2):
        data = path.read_bytes()
        path.write_bytes(data.replace(b'"format_version":"', b'"format_version":"9'))
        with pytest.raises(DamagedModel, match="model format '9"):
            fresh.model.load()
        (root / f"new-{len(runs(fresh))}.jpg").write_bytes(b"\xff\xd8%d\xff\xd9" % len(runs(fresh)))
        fresh.catch_up([], progress=lambda *_: None, on_news=lambda _: None)
        assert [run for run, _ in runs(fresh)][-3:] == ["scan", "train", "suggest"]
        assert fresh.model.load()[0].min_count == 84
    path.write_bytes(path.read_bytes()[:-9])
    fresh.model.refit()
    assert fresh.model.load()[0].vocabulary_.names_ == ["red"]
    check_invariants(fresh)


def test_new_tags_of_enough_photographs_are_learned_soon(fresh: Catalogue, root: Path) -> None:
    def catch_up() -> None:
        fresh.catch_up([], progress=lambda *_: None, on_news=lambda _: None)

    catch_up()
    n_trained = [run for run, _ in runs(fresh)].count("train")
    for n_new, n_more in ((19, 0), (20, 1), (20, 1)):  # a new fit knows them
        for k in range(n_new):
            path = root / f"{k:03}.jpg.xmp"
            path.write_text(sidecar_text([TAGS[k % 3], "puppy"]))
        catch_up()
        assert [run for run, _ in runs(fresh)].count("train") == n_trained + n_more
    assert "puppy" in fresh.model.load()[0].vocabulary_.names_
    assert not fresh.model.needs().is_due
    check_invariants(fresh)


def test_a_folder_without_tags_gets_suggestions_by_name(fresh: Catalogue, root: Path) -> None:
    for sidecar in root.glob("*.xmp"):
        sidecar.unlink()
    fresh.catch_up(["animal", "building"], progress=lambda *_: None, on_news=lambda _: None)
    assert [run for run, _ in runs(fresh)] == ["scan", "suggest"]
    assert fresh.model.needs().n_new == 0
    assert {tag.name for tag in fresh.tags.list_all()} <= {"animal", "building"}


def test_words_of_others_are_suggested_only_if_they_are_given(fresh: Catalogue, root: Path) -> None:
    for sidecar in root.glob("*.xmp"):
        sidecar.unlink()
    assert not fresh.catch_up([], progress=lambda *_: None, on_news=lambda _: None)
    assert [run for run, _ in runs(fresh)] == ["scan"]


class Interrupted(Exception):
    """Somebody stops a scan."""


@pytest.mark.parametrize("source", ["tag file", "sidecars"])
def test_photographs_with_tags_are_read_first(fresh: Catalogue, root: Path, source: str) -> None:
    for sidecar in root.glob("*.xmp"):
        sidecar.unlink()
    tagged = [f"{k:03}.jpg" for k in range(N_PHOTOGRAPHS - 8, N_PHOTOGRAPHS)]
    lines = [json.dumps({"file_name": name, "tags": ["red"]}) for name in tagged]
    if source == "tag file":
        (root / "metadata.jsonl").write_text("\n".join(lines))
    else:
        for name in tagged:
            (root / f"{name}.xmp").write_text(sidecar_text(["red"]))
    n_tagged: list[int] = []

    def stop(what: str, done: int, total: int) -> None:
        if 0 < done < total:
            n_tagged.append(fresh.model.n_tagged())
            raise Interrupted

    with pytest.raises(Interrupted):
        fresh.scan(progress=stop)
    assert n_tagged == [len(tagged)]  # after the first batch, though they are last by name
    fresh.scan()
    assert fresh.model.n_tagged() == len(tagged)


def test_an_interrupted_scan_leaves_no_tags_of_a_file_that_is_gone(
    fresh: Catalogue, root: Path
) -> None:
    for sidecar in root.glob("*.xmp"):
        sidecar.unlink()
    table = root / "metadata.jsonl"
    table.write_text(json.dumps({"file_name": "000.jpg", "tags": ["red"]}))

    def stop(what: str, done: int, total: int) -> None:
        if 0 < done < total:
            raise Interrupted

    with pytest.raises(Interrupted):
        fresh.scan(progress=stop)
    assert fresh.model.n_tagged() == 1
    table.unlink()
    fresh.scan()
    assert fresh.model.n_tagged() == 0
    check_invariants(fresh)


def test_a_person_decides_during_a_scan(fresh: Catalogue) -> None:
    """A tag that a person has typed meanwhile is found in a file by the next batch."""
    with open_catalogue(fresh.path, write=True, is_lent=True) as page:

        def decide(what: str, done: int, total: int) -> None:
            if done and not page.database.rows("SELECT 1 FROM decisions"):
                content = page.database.value("SELECT min(id) FROM contents")
                page.decisions.decide_pairs([(content, "late")])

        (fresh.root / "259.jpg.xmp").write_text(sidecar_text(["late"]))
        fresh.scan(progress=decide)
    (late,) = (tag for tag in fresh.tags.list_all() if tag.name == "late")
    assert (late.n_found, late.n_accepted) == (1, 1)
    check_invariants(fresh)


def test_tags_given_by_hand_are_learned_from_if_nothing_is_suggested(
    root: Path, fresh: Catalogue
) -> None:
    for sidecar in root.glob("*.xmp"):
        sidecar.unlink()
    fresh.scan()
    contents = [
        content for (content,) in fresh.database.rows("SELECT id FROM contents ORDER BY id")
    ]
    fresh.decisions.decide_pairs([(contents[k], TAGS[k % 3]) for k in range(5)])
    assert not fresh.model.needs().is_due
    fresh.decisions.decide_pairs([(contents[k], TAGS[k % 3]) for k in range(5, 9)])
    assert fresh.model.needs().is_due
    assert fresh.catch_up([], progress=lambda *_: None, on_news=lambda _: None)
    assert [what for what, _ in runs(fresh)[-2:]] == ["train", "suggest"]
    assert fresh.database.value("SELECT count(*) FROM suggestions") > 0
    assert not fresh.model.needs().is_due
    check_invariants(fresh)


def test_own_words_do_not_wait_until_suggestions_by_name_are_answered(
    root: Path, fresh: Catalogue
) -> None:
    for sidecar in root.glob("*.xmp"):
        sidecar.unlink()
    fresh.scan()
    contents = fresh.database.column("SELECT id FROM contents ORDER BY id")
    offer(fresh, {f"{k:03}.jpg": {"beach": 0.6} for k in range(N_PHOTOGRAPHS)})
    fresh.decisions.decide_pairs([(contents[k], "beach") for k in range(0, 30, 3)])
    assert not fresh.model.needs().is_due  # answers to suggestions
    fresh.decisions.decide_pairs([(contents[k], "Anna") for k in range(1, 22, 3)])
    assert fresh.model.needs().is_due
    examples = [content for content in fresh.photographs.with_tags() if content.known_tags]
    assert len(fresh.model.others_than(examples)) == N_PHOTOGRAPHS - len(examples)
    assert fresh.catch_up([], progress=lambda *_: None, on_news=lambda _: None)
    likely = fresh.database.column(
        "SELECT s.content FROM suggestions s JOIN tags t ON t.id = s.tag "
        "WHERE t.name = 'Anna' ORDER BY s.confidence DESC LIMIT 20"
    )
    assert {contents.index(content) % 3 for content in likely} == {1}
    check_invariants(fresh)
