"""Models by name: from a server that speaks the hub's protocol, by the hub's own client."""

import hashlib
import json
import os
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
    "preprocessing": {"size": 224, "resize": "warp", "mean": [0.5] * 3, "std": [0.5] * 3},
    "output": "pooler_output",
    "text": {"tokenizer": "tokenizer.json", "length": 8, "output": "pooler_output"},
    "scale": 112.67,
    "bias": -16.772,
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

    def start(self, *words: str, **how: object) -> subprocess.Popen:
        """In a process of its own: the client reads its settings when it is imported."""
        command = ["-c", GET, str(self.registry), str(self.limit), "get", *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return self.forked(command, env=self.environment, **(pipes | how))

    def get(self, *words: str) -> tuple[int, str]:
        process = self.start(*words)
        out, err = process.communicate(timeout=120)
        return process.returncode, out + err

    def run(self, *words: str) -> tuple[int, str]:
        """In this process, without a network."""
        with pytest.MonkeyPatch.context() as here:
            here.setattr(model_registry, "REGISTRY", self.registry)
            here.setenv("TAGKIN_MODELS", str(self.models))
            said = call(self.folder / "cache", "models", *words)
        return said.exit_code, said.stdout + said.stderr

    def left(self) -> list[str]:
        return sorted(path.name for path in self.models.rglob("*") if path.is_file())


@pytest.fixture
def shop(forked, tmp_path, content, hub):
    made = Shop(forked, tmp_path, content)
    made.environment["HF_ENDPOINT"] = hub.address
    return made


def test_a_model_is_installed_checked_used_and_removed(shop, hub, monkeypatch):
    code, said = shop.run("get", "tiny", "--dry-run")
    assert code == 0, said
    assert hub.requests == []
    assert not shop.models.exists()
    code, said = shop.get("tiny")
    assert code == 0, said
    assert "To learn with it: tagkin train --backbone tiny" in said
    assert shop.left() == ["model.json", *sorted(FILES)]
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
    backbone = get_backbone("tiny")
    assert (backbone.name, backbone.dimension) == ("tiny", 768)
    batch = np.full((2, 224, 224, 3), 255, dtype=np.uint8)
    expected = np.ones((2, 3)) @ colours(768)
    np.testing.assert_allclose(backbone(batch), expected, rtol=1e-4, atol=1e-5)
    assert backbone.text_encoder(["red", ""]).shape == (2, 768)
    n_requests = len(hub.requests)
    assert "installed already" in shop.run("get", "tiny")[1]
    assert shop.run("verify") == (0, "1 model is as installed.\n")
    assert "yes" in shop.run("list")[1].splitlines()[-1]
    known = json.loads(shop.run("info", "tiny", "--json")[1])
    assert known["files"]["tokenizer.json"]["sha256"] in str(shop.entry)
    assert len(hub.requests) == n_requests
    assert shop.run("remove", "tiny")[0] == 0
    assert shop.left() == []
    assert shop.run("remove", "tiny")[0] == 1


def test_what_is_not_known_is_shown_and_kept(shop, content):
    shop.entry["revision"] = None
    for name in ("textual.onnx", "tokenizer.json"):
        shop.entry["files"][name] |= {"bytes": None, "sha256": None}
    code, said = shop.get("tiny")
    assert code == 0, said
    assert f"from now on it is {COMMIT}." in said
    for name in ("textual.onnx", "tokenizer.json"):
        digest = hashlib.sha256(content[FILES[name]]).hexdigest()
        assert f"The SHA-256 of {name} was not known; from now on it is {digest}." in said
    kept = json.loads((shop.model / "model.json").read_text())
    assert kept["revision"] == COMMIT
    damaged = bytearray(content["tokenizer.json"])
    damaged[5] ^= 1
    (shop.model / "tokenizer.json").write_bytes(damaged)
    code, said = shop.run("verify", "tiny")
    assert code == 1
    assert "tiny: tokenizer.json" in said
    (shop.model / "visual.onnx").unlink()
    code, said = shop.run("verify", "--json")
    assert code == 1
    assert "visual.onnx is missing" in json.loads(said.splitlines()[0])["damaged"][0]
    assert "damaged" in shop.run("list")[1].splitlines()[-1]


def wait_for(condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_interrupted_download_continues(shop, hub):
    """The client writes ten megabytes at a time."""
    large = np.random.default_rng(0).bytes(25_000_000)
    hub.files["large"] = hub.sent["large"] = large
    digest = hashlib.sha256(large).hexdigest()
    shop.entry["files"]["large"] = {"path": "large", "bytes": len(large), "sha256": digest}
    part = shop.model / "large.part"
    hub.cuts["large"] = (12_000_000, "stall")
    shop.environment["HF_HUB_DOWNLOAD_TIMEOUT"] = "60"
    process = shop.start("tiny")
    wait_for(lambda: part.exists() and part.stat().st_size)
    process.send_signal(signal.SIGINT)
    assert "The same command continues the download." in process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "model.json" not in shop.left()
    assert "partly" in shop.run("list")[1].splitlines()[-1]
    n_bytes = part.stat().st_size
    hub.requests.clear()
    # within a run, a connection that stalls is opened again
    shop.environment["HF_HUB_DOWNLOAD_TIMEOUT"] = "3"
    hub.cuts["large"] = (11_000_000, "stall")
    code, said = shop.get("tiny")
    assert code == 0, said
    ranges = [headers["Range"] for _, path, headers in hub.requests if "/cdn/" in path]
    assert len(ranges) == 2
    assert ranges[0] == f"bytes={n_bytes}-"
    assert {path.rpartition("/")[2] for _, path, _ in hub.requests} == {"large"}
    assert shop.run("verify")[0] == 0


LIES = {
    "other bytes": lambda hub, path: hub.sent.update({path: bytes(len(hub.files[path]))}),
    "more bytes": lambda hub, path: hub.sent.update({path: hub.files[path] + bytes(9)}),
    "fewer bytes": lambda hub, path: hub.sent.update({path: hub.files[path][:-9]}),
    "another size": lambda hub, path: hub.heads.update({path: {"X-Linked-Size": "7"}}),
    "another commit": lambda hub, path: hub.heads.update({path: {"X-Repo-Commit": "f" * 40}}),
    "no file": lambda hub, path: hub.files.pop(path),
    "no service": lambda hub, path: setattr(hub, "status", 503),
    "no permission": lambda hub, path: setattr(hub, "status", 401),
}


@pytest.mark.parametrize("lie", LIES)
def test_nothing_is_installed_from_a_server_that_lies(shop, hub, lie):
    LIES[lie](hub, FILES["visual.onnx"])
    code, said = shop.get("tiny")
    assert code == 1, said
    assert said.startswith("Error: ")
    assert "internal error" not in said
    assert "model.json" not in shop.left()
    assert "visual.onnx" not in shop.left()
    if lie == "other bytes":
        assert "is not the expected file: its SHA-256 is" in said
        assert shop.left() == []


def test_a_server_that_is_gone_or_not_wanted(shop, hub, content):
    shop.environment["HF_HUB_OFFLINE"] = "1"
    code, said = shop.get("tiny")
    assert code == 1
    assert "offline mode is enabled" in said
    assert hub.requests == []
    assert not shop.model.exists()
    # what the hub's own cache has needs no server
    cached = shop.folder / "hub/hub/models--somebody--tiny-ONNX/snapshots" / COMMIT
    for path, data in content.items():
        (cached / path).parent.mkdir(parents=True, exist_ok=True)
        (cached / path).write_bytes(data)
    code, said = shop.get("tiny")
    assert code == 0, said
    assert hub.requests == []
    assert shop.run("verify")[0] == 0
    del shop.environment["HF_HUB_OFFLINE"]
    shop.environment |= {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(shop.folder / "none")}
    shop.run("remove", "tiny")
    code, said = shop.get("tiny")
    assert code == 1
    assert "could not be downloaded from somebody/tiny-ONNX" in said


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limits on file sizes")
def test_a_full_disk_is_a_sentence(shop):
    shop.limit = 20_000
    code, said = shop.get("tiny")
    assert code == 1
    assert "is full. The same command continues the download." in said
    assert "model.json" not in shop.left()
    shop.limit = 0
    assert shop.get("tiny")[0] == 0
    shop.entry["name"] = "huge"
    shop.entry["files"]["visual.onnx"]["bytes"] = 10**17
    code, said = shop.get("huge")
    assert code == 1
    assert "MB are needed in " in said


def test_a_licence_that_is_not_open_is_confirmed(shop, hub):
    shop.entry |= {"licence": "Own", "terms": "for research only"}
    code, said = shop.get("tiny")
    assert code == 1
    assert "Read it: https://example.org" in said
    assert "Pass --accept-licence" in said
    assert hub.requests == []
    if hasattr(os, "openpty"):
        for answer, expected in (("n", 1), ("y", 0)):
            keyboard, terminal = os.openpty()
            process = shop.start("tiny", stdin=terminal)
            os.write(keyboard, f"{answer}\n".encode())
            _, err = process.communicate(timeout=60)
            assert process.returncode == expected, err
            assert (shop.model / "model.json").exists() == (answer == "y")
            os.close(keyboard)
            os.close(terminal)
        shop.run("remove", "tiny")
    assert shop.get("tiny", "--accept-licence")[0] == 0


def test_it_learns_with_an_imported_model(run, world, tmp_path):
    """And a model that is not there is named before anything else is done."""
    catalogue = ("--catalogue", tmp_path / "own.sqlite")
    assert run("scan", world.photos, "--tags", world.tags, *catalogue).exit_code == 0
    said = run("train", *catalogue, "--backbone", "siglip2-base")
    assert said.exit_code == 1
    assert said.stderr == "Error: The model 'siglip2-base' is not installed: tagkin models get " + (
        "siglip2-base\n"
    )
    write_visual(tmp_path / "mine.onnx", 64)
    settings = SETTINGS["preprocessing"] | {"output": "pooler_output"}
    (tmp_path / "mine.json").write_text(json.dumps(settings))
    assert run("models", "import", tmp_path / "mine.onnx").exit_code == 0
    said = run("train", *catalogue, "--backbone", "mine")
    assert said.exit_code == 0, said.stderr
    assert tagkin.load(tmp_path / "own.model").backbone == "mine"
    said = run("similar", world.fresh / "red-circle-0.jpg", *catalogue)
    assert said.exit_code == 0, said.stderr
    assert "red" in said.stdout
