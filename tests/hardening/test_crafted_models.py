"""Models that somebody wrote to do harm: refused with a sentence, or good for use; nothing else.

Everything a model holds is changed here in some way, with all checksums redone. The work is done
in a process of its own: native code that believes an index ends it by a signal.
"""

import copy
import faulthandler
import os
import random
import tempfile
import traceback

import numpy as np
import pytest
import safetensors.numpy

from tagkin import load, save
from tagkin.errors import StorageError
from tagkin.records.forms import is_storable
from tests.conftest import package_modules
from tests.forking import in_child, needs_fork
from tests.hardening.crafting import Crafted, sha256_of
from tests.hardening.fuzzers.models import check_folder
from tests.hardening.model_mutations import (
    ARRAY_CHANGES,
    BYTE_CHANGES,
    VALUES,
    changed_array,
    changed_settings,
    deep,
    places,
    put,
    remove,
    rename,
)
from tests.hardening.model_samples import KINDS, saved

MEMORY = 4 << 30  # bytes of addresses more than before; each thread takes some, used or not
N_CASES = 60  # of each kind of model, of the thousands that there are; the fuzzer takes all
SWEPT = (
    "annotator",
    "extended",
    "named",
    "space-chi2",
    "two-pass",
    "unknown",
    "vocabulary",
)


def in_a_process(work):
    """Do work in a child with a limit on its memory; how it ended, and its output if not well."""
    from tests.hardening.limits import addresses_in_use, resource

    limit = addresses_in_use() + MEMORY
    with tempfile.NamedTemporaryFile("w+") as output:

        def watched():
            faulthandler.enable(output)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            try:
                work()
            except BaseException:
                output.write(traceback.format_exc())
                output.flush()
                raise

        _, status = os.waitpid(in_child(watched), 0)
        output.seek(0)
        return os.waitstatus_to_exitcode(status), output.read()


def some_changes(original: Crafted, rng: random.Random):
    """Models with one thing wrong: an array, or a value of the settings."""
    paths = list(places(original.settings))[1:]
    changes = [*map(put, VALUES), remove, rename, deep]
    for i in range(N_CASES):
        if i % 2 and original.arrays:
            name, change = rng.choice(sorted(original.arrays)), rng.choice(sorted(ARRAY_CHANGES))
            yield f"{name}: {change}", changed_array(original, name, change)
        else:
            path, edit = rng.choice(paths), rng.choice(changes)
            crafted = copy.deepcopy(original)
            changed_settings(crafted, path, edit)
            yield f"{path}: {edit}", crafted


def outcomes(cases, folder):
    """What became of each model; the first that ends in any other way is told by its name."""
    by_change = {}
    for name, crafted in cases:
        try:
            by_change[name] = check_folder(crafted.write(folder))
        except Exception as error:
            raise AssertionError(f"{name} ends in {type(error).__name__}") from error
    return by_change


@needs_fork
@pytest.mark.parametrize("kind", SWEPT)
def test_whatever_is_wrong_is_told(kind, tmp_path):
    original = saved(kind)

    def sweep():
        by_change = outcomes(some_changes(original, random.Random(kind)), tmp_path / "model")
        n_refused = sum(outcome in ("refused", "of no use") for outcome in by_change.values())
        assert n_refused > len(by_change) / 2

    status, output = in_a_process(sweep)
    assert status == 0, output


@needs_fork
@pytest.mark.parametrize("kind", KINDS)
def test_every_array_that_is_wrong_is_told(kind, tmp_path):
    original = saved(kind)
    cases = (
        (f"{name}: {change}", changed_array(original, name, change))
        for name in original.arrays
        for change in sorted(ARRAY_CHANGES)
    )
    status, output = in_a_process(lambda: outcomes(cases, tmp_path / "model"))
    assert status == 0, output


@pytest.mark.parametrize("kind", KINDS)
def test_models_as_they_were_saved_are_of_use(kind, tmp_path):
    assert check_folder(copy.deepcopy(saved(kind)).write(tmp_path / "model")) == "used"


# --- what once ended by a signal, or in a traceback ---


def sparse_arrays(*ends):
    """Those of sparse matrices whose names end so: kinds of models, and names."""
    return [
        (kind, name)
        for kind in ("annotator", "extended", "tag-relevance", "two-pass", "denoiser")
        for name in saved(kind).arrays
        if name.endswith(tuple(f".csr.{end}" for end in ends))
    ]


INDEX_CHANGES = {
    "beyond the last": lambda a: np.where(np.arange(len(a)) == len(a) // 2, 10**6, a),
    "below 0": lambda a: np.where(np.arange(len(a)) == len(a) // 2, -(10**6), a),
    "the largest": lambda a: np.full_like(a, np.iinfo(a.dtype).max),
    "the same": np.zeros_like,
    "descending": lambda a: a[::-1].copy(),
    "fewer": lambda a: a[: len(a) // 2],
}


@needs_fork
def test_indices_that_point_elsewhere_are_refused(tmp_path):
    """Memory was read and written there: `info`, `suggest` and `audit` ended by a signal."""

    changed = sparse_arrays("indices", "indptr")

    def sweep():
        for kind, name in changed:
            for message, change in INDEX_CHANGES.items():
                crafted = copy.deepcopy(saved(kind))
                before = crafted.arrays[name]
                crafted.arrays[name] = change(before).astype(before.dtype)
                if np.array_equal(crafted.arrays[name], before):
                    continue
                outcome = check_folder(crafted.write(tmp_path / "model"))
                if message in ("beyond the last", "below 0", "the largest"):
                    assert outcome == "refused", (name, message)

    status, output = in_a_process(sweep)
    assert status == 0, output


def test_sparse_matrices_of_half_precision_are_refused(tmp_path):
    """SciPy knows none: they ended in its error, when something was asked of the model."""
    for kind, name in sparse_arrays("data"):
        crafted = changed_array(saved(kind), name, "float16")
        assert check_folder(crafted.write(tmp_path / "model")) == "refused", (kind, name)


@pytest.mark.parametrize("change", sorted(BYTE_CHANGES))
def test_files_that_are_not_what_they_claim_are_refused(change, tmp_path):
    crafted = copy.deepcopy(saved("kin-readout"))
    crafted.change = BYTE_CHANGES[change]
    folder = crafted.write(tmp_path / "model")
    with pytest.raises(StorageError):
        load(folder)


WRONG = {
    "_solution.coefficients": ("nan", r"model\._solution\.coefficients has numbers that are"),
    "landmarks_.points": ("one row less", r"has 10 entries where .*points has 9|points has"),
    "text_view_.map_.factor_": ("zeros", "is singular"),
    "_moments.cross": ("transposed", r"model\._moments\.cross has \d+ entries where"),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_an_error_says_what_is_wrong_and_where(name, tmp_path):
    change, message = WRONG[name]
    crafted = changed_array(saved("space-chi2"), f"model.{name}", change)
    with pytest.raises(StorageError, match=message):
        load(crafted.write(tmp_path / "model"))


# --- the folder itself ---


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("format", "other", "not a model of tagkin"),
        ("format_version", "5", r"model format '5', written by tagkin"),
        ("format_version", "", r"model format ''"),
    ],
)
def test_a_file_says_what_it_is(name, value, message, tmp_path):
    crafted = copy.deepcopy(saved("vocabulary"))
    crafted.about[name] = value
    with pytest.raises(StorageError, match=message):
        load(crafted.write(tmp_path / "model"))


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 10**6,
        b"9" * 10**5,
        b'{"$record": ' + b"[" * 50_000,
        b'{"$record": "\xff"}',
        b"\0" * 1000,
        b"",
        b"null",
    ],
)
def test_settings_that_are_none_are_refused(text, tmp_path):
    crafted = copy.deepcopy(saved("vocabulary"))
    arrays = {**crafted.arrays, "settings": np.frombuffer(text, np.uint8)}
    about = {**crafted.about, "sha256": sha256_of(arrays)}
    folder = crafted.write(tmp_path / "model")
    (folder / "model.safetensors").write_bytes(safetensors.numpy.save(arrays, about))
    with pytest.raises(StorageError):
        load(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes in folders")
def test_what_is_no_file_is_not_opened(tmp_path):
    """A pipe that nobody writes to would never end, /dev/zero neither."""
    folder = copy.deepcopy(saved("vocabulary")).write(tmp_path / "model")
    path = folder / "model.safetensors"
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(StorageError, match="not a regular file"):
        load(folder)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StorageError, match="not a regular file"):
        load(folder)


def test_links_are_neither_read_nor_written_through(tmp_path):
    """The files of a model are in its folder; what a link leads to stays."""
    folder = copy.deepcopy(saved("vocabulary")).write(tmp_path / "model")
    model = load(folder)
    for path in list(folder.iterdir()):
        path.rename(tmp_path / path.name)
        path.symlink_to(tmp_path / path.name)
        with pytest.raises(StorageError, match="not a regular file"):
            load(folder)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.*")}
    (folder / ".saving").symlink_to(tmp_path / "made.txt")  # of the file that a save locks
    with pytest.raises(StorageError, match=r"Could not save"):
        save(model.fit([["new"]]), folder, overwrite=True)
    (folder / ".saving").unlink()
    save(model.fit([["new"]]), folder, overwrite=True)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.*")} == before
    assert load(folder)


def test_names_that_lead_elsewhere_are_refused(tmp_path):
    crafted = copy.deepcopy(saved("annotator"))
    crafted.settings["files_"] = {"$texts": ["../" * 9 + "etc/passwd"] * 120}
    with pytest.raises(StorageError, match=r"model\.files_ names '\.\./\.\./"):
        load(crafted.write(tmp_path / "model"))


# --- what is written is what others read ---


@pytest.mark.parametrize("kind", ["annotator", "space-chi2"])
def test_the_file_is_safetensors(kind, tmp_path):
    """By the library of that name, in its own words; and what it writes is read here."""
    original = saved(kind)
    arrays = safetensors.numpy.load(original.data())
    assert arrays
    again = copy.deepcopy(original)
    again.arrays = dict(reversed(original.arrays.items()))
    assert check_folder(again.write(tmp_path / "model")) == "used"


def test_all_that_is_stored_is_declared():
    """A class that learns something new has to say what: else no model of it would load."""
    classes = set()

    def look(value):
        if isinstance(value, dict):
            classes.add(value.get("$record"))
            for item in value.values():
                look(item)
        elif isinstance(value, list):
            for item in value:
                look(item)

    for kind in KINDS:
        look(saved(kind).settings)
    seldom = {"OntologyView", "Setting", "UnannotatedLabels"}
    storable = {
        f"{module.__name__.split('.')[1]}.{name}"
        for module in package_modules()
        for name, cls in vars(module).items()
        if isinstance(cls, type) and cls.__module__ == module.__name__ and is_storable(cls)
    }
    assert len(storable) > 30
    assert {name for name in storable - classes if name.split(".")[1] not in seldom} == set()
