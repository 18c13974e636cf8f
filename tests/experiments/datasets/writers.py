"""Write small datasets in their published formats."""

import struct

import numpy as np

from experiments.datasets import MIRFLICKR_LABELS


def write(folder, path, content):
    path = folder / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def hvecs(rows):
    """Each vector: its length and its numbers, 16 bits each, little-endian."""
    return b"".join(struct.pack(f"<H{len(row)}H", len(row), *row) for row in rows)


# --- TagProp's archives ---


def tagprop(folder, name="iaprtc12", n_train=4, n_test=2, words=("sky", "man", "tree")):
    """The lists, the dictionary and the labels; the i-th image has the (i mod D)-th label."""
    write(folder, f"{name}_dictionary.txt", "".join(f"{word}\n" for word in words))
    eye = np.eye(len(words), dtype=int)
    for part, numbers in (
        ("train", range(n_train)),
        ("test", range(n_train, n_train + n_test)),
    ):
        write(folder, f"{name}_{part}_list.txt", "".join(f"00/{n}\n" for n in numbers))
        write(folder, f"{name}_{part}_annot.hvecs", hvecs([eye[n % len(words)] for n in numbers]))
    return folder


# --- MIRFlickr ---


def mirflickr(folder, n=4, images=True):
    """Image n has tags "t<n>" and, from 2, "common"; the label "sky" is on all, "dog" on 3."""
    write(folder, "mirflickr/doc/common_tags.txt", "common 3\nt1 1\nt3 1\n")
    for number in range(1, n + 1):
        tags = [f"t{number}\r\n"] + ["common\r\n"] * (number > 1)
        write(folder, f"mirflickr/meta/tags/tags{number}.txt", "".join(tags))
        if images:
            write(folder, f"mirflickr/im{number}.jpg", b"")
    for label in MIRFLICKR_LABELS:
        numbers = range(1, n + 1) if label == "sky" else [3] if label == "dog" else [2]
        write(
            folder,
            f"mirflickr25k_annotations_v080/{label}.txt",
            "".join(f"{number}\r\n" for number in numbers),
        )
    write(folder, "mirflickr25k_annotations_v080/README.txt", "annotations")
    return folder


# --- NUS-WIDE ---

NUS_IMAGES = ("actor/0001_2124494179", "actor/0002_174174086", "zoo/0003_77", "zoo/0004_78")


def nuswide(folder, images=True):
    """Four images: the first two to train on; the third has no label."""
    listed = [name.replace("/", "\\") + ".jpg\r\n" for name in NUS_IMAGES]
    write(folder, "ImageList/Imagelist.txt", "".join(listed))
    write(folder, "ImageList/TrainImagelist.txt", "".join(reversed(listed[:2])))
    write(folder, "ImageList/TestImagelist.txt", "".join(listed[2:]))
    write(folder, "ConceptsList/Concepts81.txt", "animal\nsky\n")
    write(folder, "Groundtruth/AllLabels/Labels_animal.txt", "0\r\n1\r\n0\r\n1\r\n")
    write(folder, "Groundtruth/AllLabels/Labels_sky.txt", "1\n1\n0\n0\n")
    write(folder, "NUS_WID_Tags/Final_Tag_List.txt", "nature\nsky\nblue\n")
    tags = ["2124494179      sky blue unheard ", "174174086 ", "77 nature", "78 blue blue nature"]
    write(folder, "NUS_WID_Tags/All_Tags.txt", "".join(f"{line}\n" for line in tags))
    for name in NUS_IMAGES if images else ():
        write(folder, f"Flickr/{name}.jpg", b"")
    return folder
