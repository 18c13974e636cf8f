"""Which files are the sidecars of a photograph, and how a new one is named."""

import pytest

from tagkin.collection.sidecars import Convention, Provenance, SidecarNaming, add_tags


def touch(folder, *names):
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"")


def sidecars(naming, path):
    return [(sidecar.path.name, sidecar.exists) for sidecar in naming.sidecars(path)]


@pytest.mark.parametrize("convention", [None, *Convention])
@pytest.mark.parametrize("name", ["img.xmp", "img.jpg.xmp", "img.XMP", "img.jpg.XMP"])
def test_whichever_is_there_is_used(convention, name, tmp_path):
    touch(tmp_path, "img.jpg", name)
    assert sidecars(SidecarNaming((), convention), tmp_path / "img.jpg") == [(name, True)]


@pytest.mark.parametrize("convention", list(Convention))
def test_a_second_one_is_never_made(convention, tmp_path):
    touch(tmp_path, "img.jpg")
    for tag in ("sea", "dog"):
        for other in Convention:
            naming = SidecarNaming((), convention if tag == "sea" else other)
            (sidecar,) = naming.sidecars(tmp_path / "img.jpg")
            add_tags(sidecar.path, [tag], Provenance("1"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["img.jpg", convention.value]


@pytest.mark.parametrize("convention", [None, *Convention])
def test_all_that_are_there_are_used(convention, tmp_path):
    """Some programs read one of them, others the other."""
    touch(tmp_path, "img.jpg", "img.xmp", "img.jpg.xmp", "img.CR2", "img.CR2.xmp")
    assert sidecars(SidecarNaming((), convention), tmp_path / "img.jpg") == [
        ("img.jpg.xmp", True),
        ("img.xmp", True),
        ("img.CR2.xmp", True),
    ]


def test_a_sidecar_of_two_photographs_is_left_alone(tmp_path):
    touch(tmp_path, "img.jpg", "img.png", "img.xmp")
    assert sidecars(SidecarNaming(), tmp_path / "img.jpg") == [("img.jpg.xmp", False)]
    touch(tmp_path, "img.png.xmp")
    assert sidecars(SidecarNaming(), tmp_path / "img.png") == [("img.png.xmp", True)]
    touch(tmp_path, "img.cr2")  # it is that of the RAW file, which is one with img.jpg
    assert sidecars(SidecarNaming(), tmp_path / "img.jpg") == [("img.xmp", True)]
    assert sidecars(SidecarNaming(), tmp_path / "img.png") == [("img.png.xmp", True)]


@pytest.mark.parametrize("convention", [None, *Convention])
def test_raw_files_of_one_stem_do_not_share_a_sidecar(convention, tmp_path):
    names = ["img.cr2", "img.CR3", "img.crw"]
    touch(tmp_path, *names, "img.xmp")  # whose it is cannot be known
    naming = SidecarNaming((), convention)
    for name in names:
        expected = [(f"{name}.xmp", False)]
        assert sidecars(naming, tmp_path / name) == expected
        assert [(s.path.name, s.exists) for s in naming.raw_sidecars(tmp_path / name)] == expected


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
        assert sidecars(SidecarNaming((), convention), tmp_path / name) == [(expected, False)]


def test_the_folder_then_the_collection_decides_for_each_kind(tmp_path):
    jpegs, raws, mixed, empty = (tmp_path / name for name in ("jpegs", "raws", "mixed", "empty"))
    touch(jpegs, "0.jpg", "0.jpg.xmp", "1.jpg", "1.jpg.XMP", "2.jpg", "2.xmp", "3.jpg", "3.arw")
    touch(raws, *(f"{i}.arw" for i in range(9)), *(f"{i}.xmp" for i in range(8)))
    touch(mixed, "0.jpg", "0.xmp", "1.jpg", "2.jpg", "2.arw", "2.arw.xmp", "3.jpg", "3.arw")
    touch(empty, "0.jpg", "1.arw", "2.jpg", "2.png")
    photographs = [*jpegs.glob("*.jpg"), *raws.glob("*.arw"), *mixed.glob("*.jpg")]
    naming = SidecarNaming([*photographs, *empty.iterdir(), tmp_path / "gone" / "a.jpg"])

    def named(path):
        (sidecar,) = naming.sidecars(path)
        return sidecar.path.name, sidecar.why

    assert named(jpegs / "9.jpg") == ("9.jpg.xmp", "named as most non-RAW sidecars in this folder")
    assert named(jpegs / "3.jpg") == ("3.xmp", "named as most RAW sidecars in this collection")
    assert named(raws / "8.arw") == ("8.xmp", "named as most RAW sidecars in this folder")
    assert named(mixed / "1.jpg") == ("1.xmp", "named as most non-RAW sidecars in this folder")
    assert named(mixed / "3.jpg") == ("3.jpg.xmp", "named as most RAW sidecars in this folder")
    # jpegs: two to one; mixed: one; without RAW they are even
    assert named(empty / "0.jpg") == ("0.jpg.xmp", "default name")
    assert named(empty / "1.arw") == ("1.xmp", "named as most RAW sidecars in this collection")
    asked = SidecarNaming(photographs, Convention.STEM)
    assert asked.sidecars(jpegs / "9.jpg")[0].why == "named as you asked"
    assert asked.sidecars(empty / "2.jpg")[0].why == "2.png has the same name"


def test_sidecars_of_raw_files(tmp_path):
    touch(tmp_path, "img.jpg", "img.cr2", "two.cr2", "two.cr2.xmp")
    naming = SidecarNaming()
    assert naming.raw_files(tmp_path / "img.jpg") == [tmp_path / "img.cr2"]
    assert [sidecar.path.name for sidecar in naming.raw_sidecars(tmp_path / "img.cr2")] == [
        "img.xmp"
    ]
    assert [sidecar.path.name for sidecar in naming.raw_sidecars(tmp_path / "two.cr2")] == [
        "two.cr2.xmp"
    ]
