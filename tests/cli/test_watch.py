"""tagkin watch: new photographs get suggestions by themselves."""

import json
import shutil
import signal
import subprocess
import sys

import pytest

from tagkin.catalogue import open_catalogue
from tests.catalogue.photographs import check_invariants


def next_line(process: subprocess.Popen) -> dict:
    assert process.stdout is not None
    assert process.stderr is not None
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return json.loads(line)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for another process")
def test_a_new_photograph_gets_suggestions(world, start, run, tmp_path):
    folder, catalogue = tmp_path / "fresh", tmp_path / "new.sqlite"
    shutil.copytree(world.fresh, folder)
    n = len([file for file in folder.iterdir() if file.suffix in (".jpg", ".png")])
    process = start("watch", folder, "--catalogue", catalogue, "--json")
    try:
        first = next_line(process)
        assert first["added"] == n
        assert first["suggestions"] > 0
        result = run("suggest", "--catalogue", catalogue)
        assert result.exit_code == 1
        assert "`tagkin watch` (process " in result.stderr  # one writer
        shutil.copy(next(iter(sorted(world.photos.glob("*.*g")))), folder / "new.jpg")
        second = next_line(process)
        assert (second["added"], second["gone"]) == (1, 0)
        (folder / "new.jpg").unlink()
        third = next_line(process)
        assert (third["added"], third["gone"]) == (0, 1)
        process.send_signal(signal.SIGINT)
        _, result = process.communicate(timeout=300)
        assert (process.returncode, result) == (0, "")
    finally:
        process.kill()
        process.communicate()
    with open_catalogue(catalogue) as opened:
        assert opened.model.needs().n_new == 0
        check_invariants(opened)
