"""Two processes at once, with every pair of commands that write."""

import itertools
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tagkin.catalogue import ACCEPTED, REJECTED, Catalogue, Filters, open_catalogue, open_for_scan
from tagkin.errors import InvalidInput
from tests.forking import in_child, needs_fork

from .photographs import check_invariants
from .suggested import offer

pytestmark = needs_fork
FORMER = Path(__file__).parent / "former" / "version-6.tar.gz"
B = Filters(photographs=["b.jpg"])
OWN = Filters(photographs=["b.jpg"], tags=["own"])
BEACH = Filters(photographs=["a.jpg"], tags=["beach"])
DONE = ("Nothing to undo", "already", "no tag")  # what came first left nothing to do


def scan(catalogue: Catalogue) -> None:
    photograph = (catalogue.root / "a.jpg").read_bytes()
    (catalogue.root / "new.jpg").write_bytes(photograph + b"new")
    catalogue.scan()


def import_again(catalogue: Catalogue) -> None:
    catalogue.import_lines([json.dumps(line) for line in catalogue.export_lines()])


COMMANDS: dict[str, Callable[[Catalogue], object]] = {
    "scan": scan,
    "suggest": lambda c: offer(c, {"a.jpg": {"new": 0.9, "dog": 0.8}, "b.jpg": {"new": 0.9}}),
    "accept": lambda c: c.decisions.decide(ACCEPTED, Filters(at_least=0.1)),
    "accept by hand": lambda c: c.decisions.decide(ACCEPTED, OWN),
    "reject": lambda c: c.decisions.decide(REJECTED, BEACH),
    "write": lambda c: c.write(remove=True, align=True),
    "undo": lambda c: c.undo(),
    "undo the write": lambda c: c.undo(4),
    "finish": lambda c: c.completeness.finish(B),
    "incomplete": lambda c: c.completeness.declare_incomplete("2024"),
    "rename": lambda c: c.tags.change("rename", ["sea"], "ocean"),
    "merge": lambda c: c.tags.change("merge", ["dog"], "sea"),
    "forget": lambda c: c.tags.change("forget", ["dog"]),
    "import": import_again,
}
PAIRS = list(itertools.combinations_with_replacement(COMMANDS, 2))
IN_BACKGROUND = ("scan", "suggest")
BESIDE_A_REVIEW = list(itertools.product(sorted(COMMANDS.keys() - IN_BACKGROUND), IN_BACKGROUND))


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photographs and their catalogue, which expects them in the folder `work` beside it."""
    home = tmp_path_factory.mktemp("pairs")
    with tarfile.open(FORMER) as archive:
        archive.extractall(home / "work", filter="data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAGKIN_CATALOGUES", str(home / "data"))
        with open_for_scan(home / "work/photos", home / "work/catalogue.sqlite") as catalogue:
            catalogue.scan()
    shutil.copytree(home / "work", home / "stock")
    return home


def run_at_once(home: Path, names: tuple[str, str], *, is_lent: bool) -> None:
    work = home / "work"
    shutil.rmtree(work)
    shutil.copytree(home / "stock", work)

    def run(name: str, is_lent: bool) -> None:
        path = work / "catalogue.sqlite"
        try:
            with open_catalogue(path, write=True, command=name, is_lent=is_lent) as catalogue:
                COMMANDS[name](catalogue)
        except InvalidInput as error:
            if not any(said in str(error) for said in DONE):
                raise

    first, second = names
    children = [in_child(partial(run, first, False)), in_child(partial(run, second, is_lent))]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0], names
    with open_for_scan(work / "photos", work / "catalogue.sqlite") as catalogue:
        catalogue.scan()
        check_invariants(catalogue)
        while catalogue.runs.last_undoable() is not None and catalogue.undo().run is not None:
            pass
        catalogue.scan()
        check_invariants(catalogue)


def test_writing_and_scanning_at_once(stock: Path) -> None:
    run_at_once(stock, ("scan", "write"), is_lent=False)
    run_at_once(stock, ("write", "scan"), is_lent=True)


@pytest.mark.parametrize("names", PAIRS, ids=" and ".join)
def test_every_pair(stock: Path, names: tuple[str, str]) -> None:
    run_at_once(stock, names, is_lent=False)


@pytest.mark.parametrize("names", BESIDE_A_REVIEW, ids=" and ".join)
def test_every_pair_beside_a_review(stock: Path, names: tuple[str, str]) -> None:
    """The second process may write at the same time; it alone scans and suggests."""
    run_at_once(stock, names, is_lent=True)
