"""Models by name: from a server that speaks the hub's protocol, by the hub's own client."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tagkin
from tagkin.features import get_backbone, model_registry
from tests.features.hub import COMMIT, serving
from tests.features.real_shapes import colours, write_textual, write_tokenizer, write_visual

from .conftest import call

SOURCE = "somebody/tiny-ONNX"
GET = """
import sys
from pathlib import Path
from tagkin.features import model_registry
from tagkin.cli import main

registry, limit, *words = sys.argv[1:]
if int(limit):
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
model_registry.REGISTRY = Path(registry)
sys.argv = ["tagkin", "models", *words]
main()
"""
# as siglip2-base: two outputs, weights of one half in a file of their own, and a tokenizer
SETTINGS = {
    "size": 224,
    "resize": "warp",
    "mean": [0.5] * 3,
    "std": [0.5] * 3,
    "output": "pooler_output",
    "text": {
        "model": "textual.onnx",
        "tokenizer": "tokenizer.json",
        "length": 8,
        "output": "pooler_output",
        "scale": 112.67,
        "bias": -16.772,
    },
}
FILES = {
    "visual.onnx": "onnx/vision_model.onnx",
    "textual.onnx": "onnx/text_model.onnx",
    "text_model.onnx_data": "onnx/text_model.onnx_data",
    "tokenizer.json": "tokenizer.json",
}


@pytest.fixture(scope="module")
def content(tmp_path_factory) -> dict[str, bytes]:
    """The files of a repository."""
    folder = tmp_path_factory.mktemp("repository")
    outputs = ("last_hidden_state", "pooler_output")
    write_visual(folder / "onnx/vision_model.onnx", 768, outputs=outputs, tokens=196)
    write_textual(folder / "onnx/text_model.onnx", 768, external="text_model.onnx_data")
    write_tokenizer(folder / "tokenizer.json")
    return {path: (folder / path).read_bytes() for path in FILES.values()}


@pytest.fixture
def hub(content):
    with serving(content) as server:
        yield server


class Shop:
    """A machine with a registry of one model."""

    def __init__(self, forked, folder: Path, content: dict[str, bytes]):
        self.forked, self.folder = forked, folder
        self.models = folder / "models"
        self.model = self.models / "tiny"
        self.environment = os.environ | {
            "HF_HOME": str(folder / "hub"),
            "HF_HUB_DOWNLOAD_TIMEOUT": "3",
            "HF_TOKEN": "hf_secret",
            "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
            "TAGKIN_MODELS": str(self.models),
        }
        self.limit = 0
        self.entry = {
            "name": "tiny",
            "purpose": "tests",
            "dimension": 768,
            "source": SOURCE,
            "revision": COMMIT,
            "licence": "Apache-2.0",
            "licence_url": "https://example.org",
            "files": {
                name: {
                    "path": path,
                    "bytes": len(content[path]),
                    "sha256": hashlib.sha256(content[path]).hexdigest(),
                }
                for name, path in FILES.items()
            },
            "settings": SETTINGS,
        }

    @property
    def registry(self) -> Path:
        path = self.folder / "registry.json"
        path.write_text(json.dumps({"models": [self.entry]}))
        return path

    def start(self, *words: str, **response: object) -> subprocess.Popen:
        """In a process of its own: the client reads its settings when it is imported."""
        command = ["-c", GET, str(self.registry), str(self.limit), "get", *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return self.forked(command, env=self.environment, **(pipes | response))

    def get(self, *words: str) -> tuple[int, str]:
        process = self.start(*words)
        out, err = process.communicate(timeout=120)
        return process.returncode, out + err

    def run(self, *words: str) -> tuple[int, str]:
        """In this process, without a network."""
        with pytest.MonkeyPatch.context() as here:
            here.setattr(model_registry, "REGISTRY", self.registry)
            here.setenv("TAGKIN_MODELS", str(self.models))
            result = call(self.folder / "cache", "models", *words)
        return result.exit_code, result.stdout + result.stderr

    def left(self) -> list[str]:
        return sorted(path.name for path in self.models.rglob("*") if path.is_file())


@pytest.fixture
def shop(forked, tmp_path, content, hub):
    made = Shop(forked, tmp_path, content)
    made.environment["HF_ENDPOINT"] = hub.address
    return made


def test_a_model_is_installed_used_and_checked(shop, hub, monkeypatch):
    code, result = shop.run("get", "tiny", "--dry-run")
    assert code == 0, result
    assert hub.requests == []
    assert not shop.models.exists()
    code, result = shop.get("tiny")
    assert code == 0, result
    assert "To learn with it: tagkin train --backbone tiny" in result
    assert shop.left() == sorted(FILES)
    # what was sent: the names of files, and nothing of the user
    wanted = {f"/{SOURCE}/resolve/{COMMIT}/{path}" for path in FILES.values()}
    assert {path for _, path, _ in hub.requests if "/cdn/" not in path} == wanted
    assert len([1 for method, _, _ in hub.requests if method == "HEAD"]) == len(FILES)
    for _, _, headers in hub.requests:
        sent = {name.lower(): value for name, value in headers.items()}
        assert sent["user-agent"] == "tagkin"
        known = {"host", "accept", "accept-encoding", "connection", "user-agent"}
        assert set(sent) <= known | {"x-amzn-trace-id", "x-hf-download-counter", "range"}
        assert "hf_secret" not in str(headers)
    assert not (shop.folder / "hub").exists()
    # for the user alone
    if os.name == "posix":
        assert all(path.stat().st_mode & 0o077 == 0 for path in shop.models.rglob("*"))
    monkeypatch.setenv("TAGKIN_MODELS", str(shop.models))
    monkeypatch.setattr(model_registry, "REGISTRY", shop.registry)
    backbone = get_backbone("tiny")
    assert (backbone.name, backbone.dimension) == ("tiny", 768)
    batch = np.full((2, 224, 224, 3), 255, dtype=np.uint8)
    expected = np.ones((2, 3)) @ colours(768)
    np.testing.assert_allclose(backbone(batch), expected, rtol=1e-4, atol=1e-5)
    assert backbone.text_encoder(["red", ""]).shape == (2, 768)
    assert "yes" in shop.run("list")[1].splitlines()[-1]
    known = json.loads(shop.run("list", "--json")[1])
    assert known["installed"]
    assert known["files"]["tokenizer.json"] == shop.entry["files"]["tokenizer.json"]
    # another time it compares every file, and gets what changed
    n_requests = len(hub.requests)
    assert "all files as expected" in shop.get("tiny")[1]
    assert len(hub.requests) == n_requests
    damaged = bytearray((shop.model / "tokenizer.json").read_bytes())
    damaged[5] ^= 1
    (shop.model / "tokenizer.json").write_bytes(damaged)
    assert shop.get("tiny")[0] == 0
    asked = {path.rpartition("/")[2] for _, path, _ in hub.requests[n_requests:]}
    assert asked == {"tokenizer.json"}
    assert (shop.model / "tokenizer.json").read_bytes() != damaged


def wait_for(condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_interrupted_download_continues(shop, hub):
    """Files that are there are not asked for again; the client writes ten megabytes at a time."""
    large = np.random.default_rng(0).bytes(25_000_000)
    hub.files["large"] = hub.sent["large"] = large
    digest = hashlib.sha256(large).hexdigest()
    shop.entry["files"]["large"] = {"path": "large", "bytes": len(large), "sha256": digest}
    hub.cuts["large"] = (12_000_000, "stall")
    shop.environment["HF_HUB_DOWNLOAD_TIMEOUT"] = "60"
    process = shop.start("tiny")
    wait_for(lambda: [p for p in shop.model.rglob("*.incomplete") if p.stat().st_size > 1_000_000])
    process.send_signal(signal.SIGINT)
    assert "The same command continues the download." in process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert set(FILES) <= set(shop.left())
    assert "large" not in shop.left()
    assert "partly" in shop.run("list")[1].splitlines()[-1]
    hub.requests.clear()
    # within a run, a connection that stalls is opened again where it ended
    shop.environment["HF_HUB_DOWNLOAD_TIMEOUT"] = "3"
    hub.cuts["large"] = (11_000_000, "stall")
    code, output = shop.get("tiny")
    assert code == 0, output
    ranges = [headers.get("Range") for _, path, headers in hub.requests if "/cdn/" in path]
    assert ranges == [None, "bytes=10485760-"]
    assert {path.rpartition("/")[2] for _, path, _ in hub.requests} == {"large"}
    assert shop.left() == sorted([*FILES, "large"])


LIES = {
    "other bytes": lambda hub, path: hub.sent.update({path: bytes(len(hub.files[path]))}),
    "more bytes": lambda hub, path: hub.sent.update({path: hub.files[path] + bytes(9)}),
    "fewer bytes": lambda hub, path: hub.sent.update({path: hub.files[path][:-9]}),
    "another size": lambda hub, path: hub.heads.update({path: {"X-Linked-Size": "7"}}),
    "no file": lambda hub, path: hub.files.pop(path),
    "no service": lambda hub, path: setattr(hub, "status", 503),
    "no permission": lambda hub, path: setattr(hub, "status", 401),
}


@pytest.mark.parametrize("lie", LIES)
def test_nothing_is_installed_from_a_server_that_lies(shop, hub, lie):
    LIES[lie](hub, FILES["visual.onnx"])
    code, output = shop.get("tiny")
    assert code == 1, output
    assert output.startswith("Error: ")
    assert "internal error" not in output
    assert "visual.onnx" not in shop.left()
    if lie == "other bytes":
        assert "is not the expected file: its SHA-256 is" in output
        assert shop.left() == []


def test_a_server_that_is_gone_or_not_wanted(shop, hub, content):
    shop.environment["HF_HUB_OFFLINE"] = "1"
    code, output = shop.get("tiny")
    assert code == 1
    assert "offline mode is enabled" in output
    assert hub.requests == []
    assert not shop.model.exists()
    # what the hub's own cache has needs no server
    cached = shop.folder / "hub/hub/models--somebody--tiny-ONNX/snapshots" / COMMIT
    for path, data in content.items():
        (cached / path).parent.mkdir(parents=True, exist_ok=True)
        (cached / path).write_bytes(data)
    code, output = shop.get("tiny")
    assert code == 0, output
    assert hub.requests == []
    assert shop.left() == sorted(FILES)
    del shop.environment["HF_HUB_OFFLINE"]
    shop.environment |= {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(shop.folder / "none")}
    shutil.rmtree(shop.model)
    code, output = shop.get("tiny")
    assert code == 1
    assert "could not be downloaded from somebody/tiny-ONNX" in output


def test_a_damaged_file_in_the_hubs_cache_is_downloaded(shop, hub, content):
    cached = shop.folder / "hub/hub/models--somebody--tiny-ONNX/snapshots" / COMMIT
    for path, data in content.items():
        (cached / path).parent.mkdir(parents=True, exist_ok=True)
        (cached / path).write_bytes(data)
    (cached / FILES["visual.onnx"]).write_bytes(bytes(9))
    code, output = shop.get("tiny")
    assert code == 0, output
    assert {path.rpartition("/")[2] for _, path, _ in hub.requests} == {"vision_model.onnx"}
    assert shop.left() == sorted(FILES)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limits on file sizes")
def test_a_full_disk_is_a_sentence(shop):
    shop.limit = 20_000
    code, output = shop.get("tiny")
    assert code == 1
    assert "is full. The same command continues the download." in output
    assert "text_model.onnx_data" not in shop.left()
    shop.limit = 0
    assert shop.get("tiny")[0] == 0
    shop.entry["name"] = "huge"
    shop.entry["files"]["visual.onnx"]["bytes"] = 10**17
    code, output = shop.get("huge")
    assert code == 1
    assert "MB are needed in " in output


def test_a_licence_that_is_not_open_is_confirmed(shop, hub):
    shop.entry |= {"licence": "Own", "terms": "for research only"}
    code, output = shop.get("tiny")
    assert code == 1
    assert "Read it: https://example.org" in output
    assert "Pass --accept-licence" in output
    assert hub.requests == []
    if hasattr(os, "openpty"):
        for answer, expected in (("n", 1), ("y", 0)):
            keyboard, terminal = os.openpty()
            process = shop.start("tiny", stdin=terminal)
            os.write(keyboard, f"{answer}\n".encode())
            _, err = process.communicate(timeout=60)
            assert process.returncode == expected, err
            assert (shop.model / "visual.onnx").exists() == (answer == "y")
            os.close(keyboard)
            os.close(terminal)
        shutil.rmtree(shop.model)
    assert shop.get("tiny", "--accept-licence")[0] == 0


def test_it_learns_with_a_model_by_its_path(run, world, tmp_path):
    """And a model that is not there is named before anything else is done."""
    catalogue = ("--catalogue", tmp_path / "own.sqlite")
    assert run("scan", world.photos, "--tags", world.tags, *catalogue).exit_code == 0
    result = run("train", *catalogue, "--backbone", "siglip2-base")
    assert result.exit_code == 1
    assert (
        result.stderr
        == "Error: The model 'siglip2-base' is not installed: tagkin models get "
        + ("siglip2-base\n")
    )
    write_visual(tmp_path / "mine.onnx", 64)
    settings = {key: value for key, value in SETTINGS.items() if key != "text"}
    (tmp_path / "mine.json").write_text(json.dumps(settings))
    result = run("train", *catalogue, "--backbone", "mine.onnx")
    assert result.exit_code == 0, result.stderr
    assert tagkin.load(tmp_path / "own.model").backbone == str(tmp_path / "mine.onnx")
    result = run("find", "--like", world.fresh / "red-circle-0.jpg", *catalogue)
    assert result.exit_code == 0, result.stderr
    assert "red" in result.stdout
