"""Which file is the sidecar of a photograph: the one that is there, and never a second one."""

import pytest

from tagkin.collection.sidecars import Convention, Provenance, Sidecar, add_tags, sidecar_for
from tagkin.collection.sidecars import habit_of as habit


def touch(folder, *names):
    for name in names:
        (folder / name).write_bytes(b"")


@pytest.mark.parametrize("convention", list(Convention))
@pytest.mark.parametrize("name", ["img.xmp", "img.jpg.xmp", "img.XMP", "img.jpg.XMP"])
def test_whichever_is_there_is_used(convention, name, tmp_path):
    touch(tmp_path, "img.jpg", name)
    assert sidecar_for(tmp_path / "img.jpg", convention) == Sidecar(tmp_path / name, exists=True)


@pytest.mark.parametrize("convention", list(Convention))
def test_a_second_one_is_never_made(convention, tmp_path):
    touch(tmp_path, "img.jpg")
    for tag in ("sea", "dog"):
        for other in Convention:
            path = sidecar_for(tmp_path / "img.jpg", convention if tag == "sea" else other).path
            add_tags(path, [tag], Provenance("1"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["img.jpg", convention.value]


def test_where_both_are_there_the_convention_says_which(tmp_path):
    touch(tmp_path, "img.jpg", "img.xmp", "img.jpg.xmp")
    for convention in Convention:
        assert sidecar_for(tmp_path / "img.jpg", convention).path.name == convention.value


def test_new_ones(tmp_path):
    touch(tmp_path, "img.jpg", "img.cr2", "two.jpg", "two.PNG")
    for name, convention, expected in (
        ("img.jpg", Convention.FULL, "img.jpg.xmp"),
        ("img.jpg", Convention.STEM, "img.xmp"),  # the raw file is the same photograph
        ("img.cr2", Convention.STEM, "img.xmp"),
        ("two.jpg", Convention.STEM, "two.jpg.xmp"),  # two.xmp would be that of two.PNG as well
        ("two.PNG", Convention.STEM, "two.PNG.xmp"),
        ("gone.jpg", Convention.STEM, "gone.xmp"),
        ("no-suffix", Convention.STEM, "no-suffix.xmp"),
    ):
        found = sidecar_for(tmp_path / name, convention)
        assert found == Sidecar(tmp_path / expected, exists=False)


def test_the_habit_of_a_collection(tmp_path):
    photographs = [tmp_path / f"{i}.jpg" for i in range(5)] + [tmp_path / "gone" / "a.jpg"]
    assert habit(photographs) is habit([]) is Convention.FULL
    touch(tmp_path, "0.xmp", "1.XMP", "2.jpg.xmp")
    assert habit(photographs) is Convention.STEM
    touch(tmp_path, "3.jpg.xmp", "4.jpg.XMP")
    assert habit(photographs) is Convention.FULL
