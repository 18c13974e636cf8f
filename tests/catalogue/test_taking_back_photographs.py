"""Writes into photographs taken back in any order; photographs that took each other's names."""

import itertools

import pytest

from tagkin.catalogue import ACCEPTED, Filters
from tagkin.collection import read_keywords
from tagkin.collection.sidecars import tags_of
from tests.catalogue.photographs import check_invariants, files
from tests.catalogue.suggested import offer
from tests.collection.sidecars.wrapped_exiftool import needs_exiftool
from tests.images.synthetic import picture, saved


@pytest.fixture
def photograph(catalogue, folder, rescan):
    """One that can be written into, with three tags accepted."""
    path = folder.root / "2024/d.jpg"
    path.write_bytes(saved(picture(), "JPEG"))
    rescan()
    offer(catalogue, {"2024/d.jpg": {"sea": 0.9, "beach": 0.9, "dog": 0.9}})
    catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.9))
    return path


def embed(catalogue, *tags):
    return [catalogue.write(Filters(tags=[tag]), embed=True).run for tag in tags]


SOME_ORDERS = [(2, 1, 0), (0, 1, 2)]
OTHER_ORDERS = [order for order in itertools.permutations(range(3)) if order not in SOME_ORDERS]


@needs_exiftool
@pytest.mark.parametrize("order", SOME_ORDERS)
def test_runs_that_wrote_into_one_photograph_are_taken_back_to_the_byte_in_any_order(
    photograph, catalogue, folder, order
):
    check_order(photograph, catalogue, folder, order)


@needs_exiftool
@pytest.mark.parametrize("order", OTHER_ORDERS)
def test_every_other_order_of_undoes(photograph, catalogue, folder, order):
    check_order(photograph, catalogue, folder, order)


def check_order(photograph, catalogue, folder, order):
    """Write three tags in three runs, and undo the runs in an order."""
    before, times = files(folder.root), photograph.stat().st_mtime_ns
    words = ["sea", "beach", "dog"]
    runs = embed(catalogue, *words)
    assert sorted(read_keywords(photograph)) == sorted(words)
    for n, i in enumerate(order):
        undone = catalogue.undo(runs[i])
        assert not undone.failures
        assert not any("somebody" in file.said for file in undone.files)
        left = {words[j] for j in order[n + 1 :]}
        assert set(read_keywords(photograph)) == left
    assert files(folder.root) == before
    assert photograph.stat().st_mtime_ns == times
    check_invariants(catalogue)


@needs_exiftool
def test_a_person_s_own_copy_of_a_photograph_stays(photograph, catalogue, folder):
    own = photograph.with_name("d.jpg_original")
    own.write_bytes(photograph.read_bytes())
    before = files(folder.root)
    embed(catalogue, "sea")
    assert [file.how for file in catalogue.undo().files] == ["restored"]
    assert files(folder.root) == before


class _Killed(BaseException):
    """Nothing after it is done."""


@needs_exiftool
def test_what_a_killed_write_kept_is_not_left_beside(photograph, catalogue, folder, monkeypatch):
    before = files(folder.root)

    def kill(*_, **__):
        raise _Killed

    with monkeypatch.context() as patch:
        patch.setattr("tagkin.collection.sidecars.embedding.replace_file", kill)
        with pytest.raises(_Killed):
            embed(catalogue, "sea")
    assert files(folder.root).keys() - before.keys() == {"2024/d.jpg_original"}
    (run,) = embed(catalogue, "sea")
    assert files(folder.root).keys() - before.keys() == {"2024/d.jpg_original"}
    catalogue.undo(run)
    assert files(folder.root) == before


# --- names that were swapped -------------------------------------------------------------


def swap(root, *names):
    """Each gets the name of the next, the last one that of the first."""
    for name in names:
        (root / name).rename(root / f"{name}.away")
    for name, new in zip(names, [*names[1:], names[0]], strict=True):
        (root / f"{name}.away").rename(root / new)


@pytest.mark.parametrize("with_sidecars", [True, False])
def test_photographs_that_swapped_names_are_taken_back_each(
    catalogue, folder, rescan, with_sidecars
):
    """a.jpg has a tag of its own that b.jpg got."""
    before = files(folder.root)
    offer(catalogue, {"b.jpg": {"sea": 0.9}})
    catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.9))
    catalogue.write()
    swap(folder.root, "a.jpg", "b.jpg")
    if with_sidecars:
        swap(folder.root, "a.jpg.xmp", "b.jpg.xmp")
    undone = catalogue.undo()
    if with_sidecars:
        assert ["Scan" in failure.reason for failure in undone.failures] == [True]
        assert set(tags_of((folder.root / "b.jpg.xmp").read_bytes())) == {"beach", "sea"}
        rescan()
        assert [file.how for file in catalogue.undo().files] == ["restored"]
        swap(folder.root, "a.jpg.xmp", "b.jpg.xmp")
    swap(folder.root, "a.jpg", "b.jpg")
    assert files(folder.root) == before


@needs_exiftool
def test_photographs_with_tags_inside_that_swapped_names_are_taken_back_each(
    photograph, catalogue, folder, rescan
):
    other = folder.put("2024/e.jpg", "")
    other.write_bytes(saved(picture(), "PNG"))
    rescan()
    before = files(folder.root)
    embed(catalogue, "sea")
    swap(folder.root, "2024/d.jpg", "2024/e.jpg")
    assert ["Scan" in failure.reason for failure in catalogue.undo().failures] == [True]
    rescan()
    assert [file.how for file in catalogue.undo().files] == ["restored"]
    swap(folder.root, "2024/d.jpg", "2024/e.jpg")
    assert files(folder.root) == before


def test_photographs_that_were_numbered_anew_are_taken_back_each(catalogue, folder, rescan):
    """1, 2 become 2, 3: the name of one is that of another now."""
    for n in (1, 2):
        folder.put(f"{n}.jpg", f"{n}", ["own", "sea"] if n == 1 else ["own"])
    rescan()
    before = files(folder.root)
    offer(catalogue, {"1.jpg": {"dog": 0.9}, "2.jpg": {"sea": 0.9}})
    catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.9))
    run = catalogue.write().run
    for n in (2, 1):
        for end in ("jpg", "jpg.xmp"):
            (folder.root / f"{n}.{end}").rename(folder.root / f"{n + 1}.{end}")
    rescan()
    undone = catalogue.undo(run)
    assert {file.how for file in undone.files} == {"restored"}
    for n in (1, 2):
        for end in ("jpg", "jpg.xmp"):
            (folder.root / f"{n + 1}.{end}").rename(folder.root / f"{n}.{end}")
    assert files(folder.root) == before
    check_invariants(catalogue)
