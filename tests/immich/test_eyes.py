"""The network of a machine learning service as a backbone, with a stand-in for the service."""

import json
import stat

import numpy as np
import pytest
from PIL import Image

from tagkin.catalogue.known_catalogues import default_data_folder
from tagkin.errors import InvalidInput, ServerError, TagkinError
from tagkin.features import FeatureCache, extract, get_backbone
from tagkin.features.eyes import choose_eyes, store_eyes
from tests.cli.conftest import call
from tests.features.joint import write_joint_encoder

from .hostile import HostileServer, drip, head
from .seeing import MODEL, Service
from .serving import KEY

COLORS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}


@pytest.fixture
def service(tmp_path):
    with Service(write_joint_encoder(tmp_path / "network")) as started:
        yield started


@pytest.fixture
def eyes(service):
    store_eyes(choose_eyes(service.address))
    return get_backbone("immich")


@pytest.fixture
def photographs(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    files = []
    for name, color in COLORS.items():
        for i in range(4):
            pixels = np.full((50, 60 + i, 3), color, dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"{name}-{i}.png")
            files.append(folder / f"{name}-{i}.png")
    return files


def test_features_and_words_are_those_of_the_network(service, eyes, photographs, tmp_path):
    found = extract(photographs, eyes).features
    np.testing.assert_allclose(found, extract(photographs, service.encoder).features, atol=1e-3)
    assert service.models == {MODEL}
    words = eyes.text_encoder
    scores = words.embed_images(found) @ words(list(COLORS)).T
    assert scores.argmax(axis=1).tolist() == np.repeat(range(3), 4).tolist()
    assert service.texts[-1] == "a photo of a blue."


def test_every_photograph_is_sent_once_and_a_broken_run_goes_on(
    service, eyes, photographs, tmp_path, monkeypatch
):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0}, raising=False)
    service.n_images = 0
    service.spoil = lambda answer: answer if service.n_images <= 8 else (503, b"")
    with FeatureCache(tmp_path / "kept") as cache:
        with pytest.raises(ServerError, match="is busy or fails"):
            extract(photographs, eyes, cache=cache)
        service.spoil, service.n_images = (lambda answer: answer), 0
        done = extract(photographs, eyes, cache=cache)
        assert (done.n_cached, done.n_computed, service.n_images) == (8, 4, 4)
        again = extract(photographs, get_backbone("immich"), cache=cache)
    assert (again.n_cached, service.n_images) == (12, 4)


def test_another_model_has_another_fingerprint(service, eyes):
    store_eyes(choose_eyes(f"{service.address}#nllb-clip-base-siglip__v1"))
    other = get_backbone("immich")
    assert other.fingerprint != eyes.fingerprint
    assert service.models == {MODEL, "nllb-clip-base-siglip__v1"}


def test_without_eyes_there_is_no_request(tmp_path):
    with pytest.raises(InvalidInput, match="No eyes are connected"):
        get_backbone("immich")


def test_an_address_on_the_internet_needs_encryption():
    with pytest.raises(InvalidInput, match="unencrypted"):
        choose_eyes("http://134744072:3003")


NONSENSE = [b"<html>", b"[" * 100_000, b'{"clip": "[1, 2"}', b'{"clip": []}', b'{"clip": null}']
NONSENSE += [b'{"clip": [[1, 2], [3, 4]]}', b'{"clip": "1e999"}', b"{}"]
NONSENSE += [b'{"clip": ["a", "b"]}', b'{"clip": [%s0]}' % (b"0," * 20_000)]
NOT_FINITE = [b'{"clip": [1, NaN, 2]}', b'{"clip": "[1, 1e300, 2]"}', b'{"clip": [null, null, 1]}']


@pytest.mark.parametrize("data", NONSENSE, ids=lambda data: repr(data)[:20])
def test_nonsense_is_a_sentence(service, eyes, data):
    service.spoil = lambda answer: (200, data)
    with pytest.raises(ServerError, match="does not answer as Immich's machine learning does"):
        choose_eyes(service.address)
    with pytest.raises(ServerError):
        eyes.text_encoder(["red"])


@pytest.mark.parametrize("data", NOT_FINITE)
def test_numbers_that_are_not_finite_are_a_sentence_for_words_and_for_grey(service, eyes, data):
    service.spoil = lambda answer: (200, data)
    with pytest.raises(ServerError, match="answers with numbers that are not finite"):
        choose_eyes(service.address)
    with pytest.raises(ServerError, match="answers with numbers that are not finite"):
        eyes.text_encoder(["red"])


@pytest.mark.parametrize(
    "answer",
    [*((200, data) for data in NOT_FINITE), (500, b"no"), (400, b"no"), (413, b"no")],
    ids=repr,
)
def test_a_bad_answer_for_one_photograph_is_its_failure(
    service, eyes, photographs, monkeypatch, answer
):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0}, raising=False)
    service.n_images = 0
    service.spoil = lambda right: answer if service.n_images == 6 else right
    found = extract(photographs, eyes)
    assert found.files == [str(file) for i, file in enumerate(photographs) if i != 5]
    (failure,) = found.failures
    assert failure.file == str(photographs[5])
    assert "not finite" in failure.reason
    assert service.n_images == len(photographs) + (answer[0] != 200)  # and a grey square


@pytest.mark.parametrize("status", [500, 404])
def test_a_service_that_fails_at_grey_too_ends_the_run_at_once(service, eyes, photographs, status):
    service.spoil = lambda answer: (status, b"no")
    service.n_images = 0
    with pytest.raises(ServerError, match=f"answers {status} for the model"):
        eyes(np.zeros((1, 448, 448, 3), dtype=np.uint8))
    assert service.n_images == 2


def test_a_vector_of_another_length_is_refused(service, eyes, photographs):
    service.spoil = lambda answer: {"clip": [1.0, 2.0, 3.0, 4.0]}
    with pytest.raises(ServerError, match=r"answers with 4 numbers; ViT-B-32__openai had 3"):
        extract(photographs, eyes)


def test_the_message_of_the_service_is_shown(service, eyes):
    service.spoil = lambda answer: (422, b'{"detail":"Invalid\x1b request format."}')
    with pytest.raises(ServerError, match=r"answers 422 for the model .*Invalid. ?request format"):
        eyes.text_encoder(["red"])


def test_a_dripping_service_has_a_deadline(monkeypatch):
    monkeypatch.setattr("tagkin.immich.http.DEADLINE", 1.0)
    answer = lambda: drip(head() + b'{"clip": [1, 2]}' + b" " * 9_000)  # noqa: E731
    with (
        HostileServer(answer) as hostile,
        pytest.raises(ServerError, match="did not finish an answer"),
    ):
        choose_eyes(hostile.address)


def test_the_commands_learn_with_it(service, immich, photographs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TAGKIN_IMMICH_KEY", KEY)
    cache = tmp_path / "cache"
    result = call(cache, "connect", "immich", immich.address, "--eyes", service.address, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["model"] == MODEL
    result = call(cache, "connect", "immich", immich.address, "--eyes", service.address)
    assert "tagkin train immich --backbone immich" in result.stderr
    file = default_data_folder() / "eyes.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    rows = "".join(f"{path.name},{path.name.split('-')[0]}\n" for path in photographs[::2])
    (tmp_path / "photos" / "metadata.csv").write_text(f"file_name,tags\n{rows}")
    for command in (
        ("scan", "photos"),
        ("train", "photos", "--backbone", "immich", "--min-count", "2"),
        ("suggest", "photos"),
        ("find", "red", "photos"),
    ):
        result = call(cache, *command)
        assert result.exit_code == 0, (command, result.stderr, result.stdout)
    assert service.n_images >= len(photographs)
    assert call(cache, "connect", "immich", immich.address).exit_code == 0
    assert not file.exists()
    with pytest.raises(TagkinError):
        get_backbone("immich")


def test_no_photograph_goes_to_other_eyes_than_those_that_the_model_learned_with(
    service, eyes, photographs, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{path.name},{path.name.split('-')[0]}\n" for path in photographs[::2])
    (tmp_path / "photos" / "metadata.csv").write_text(f"file_name,tags\n{rows}")
    learn = ("train", "photos", "--backbone", "immich", "--min-count", "2")
    assert call(tmp_path / "cache", *learn).exit_code == 0
    store_eyes(choose_eyes(f"{service.address}#nllb-clip-base-siglip__v1"))
    service.n_images = 0
    result = call(tmp_path / "cache", "suggest", "photos")
    assert result.exit_code == 1
    assert "was learned with another version" in result.stderr
    assert service.n_images == 0
