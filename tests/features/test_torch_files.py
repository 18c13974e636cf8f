"""Files that torch wrote: read as torch reads them, and nothing in them is ever run."""

import io
import pickle
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

from tagkin.errors import InvalidInput, StorageError
from tagkin.features.torch_files import read_tensors, sha256_of_file

torch = pytest.importorskip("torch", reason="torch is not installed; `make test TORCH=1`")


def saved(path, content, as_zip):
    torch.save(content, path, _use_new_zipfile_serialization=as_zip)
    return path


@pytest.fixture(params=[True, False], ids=["zip", "stream"])
def as_zip(request):
    return request.param


def test_tensors_are_as_torch_reads_them(tmp_path, as_zip):
    grid = torch.arange(60.0).reshape(3, 4, 5)
    content = OrderedDict(
        plain=torch.randn(4, 3),
        turned=grid.permute(2, 0, 1),
        part=grid[1:, ::2, 1:4],  # shares its numbers with the one above
        number=torch.tensor(7),
        empty=torch.zeros(0, 3),
        spread=torch.ones(1, 2).expand(3, 2),
        wide=torch.randn(2, dtype=torch.float64),
        narrow=torch.randn(3).half(),
        bytes=torch.arange(5, dtype=torch.uint8),
        flags=torch.tensor([True, False]),
        learned=torch.nn.Parameter(torch.randn(2, 2)),
    )
    path = saved(tmp_path / "a.pth", content, as_zip)
    tensors = read_tensors(path)
    assert list(tensors) == list(content)
    for name, tensor in torch.load(path, weights_only=True).items():
        expected = tensor.detach().numpy()
        assert tensors[name].dtype == expected.dtype
        assert tensors[name].flags.c_contiguous
        np.testing.assert_array_equal(tensors[name], expected)


def test_the_state_of_a_module(tmp_path, as_zip):
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    tensors = read_tensors(saved(tmp_path / "a.pth", module.state_dict(), as_zip))
    assert set(tensors) == set(module.state_dict())
    np.testing.assert_array_equal(tensors["0.weight"], module[0].weight.detach().numpy())


def test_files_of_the_first_torch(tmp_path):
    """As torchvision's older weights are: parameters with a state, tensors of version one, and
    views of a common storage."""

    class Numbers(tuple):
        """Stands for a storage: what is said of it."""

    class Tensor:
        def __init__(self, *arguments):
            self.arguments = arguments

        def __reduce__(self):
            return torch._utils._rebuild_tensor, self.arguments

    class Parameter(Tensor):
        def __reduce__(self):
            tensor = Tensor(*self.arguments)
            return torch.nn.Parameter, (tensor,), (True, False, OrderedDict())

    class Pickler(pickle.Pickler):
        def persistent_id(self, item):
            return tuple(item) if isinstance(item, Numbers) else None

    def numbers(*view):
        return Numbers(("storage", torch.FloatStorage, "7", "cpu", 12, *view))

    content = OrderedDict(
        a=Parameter(numbers(None), 1, (3, 2), (4, 1)), b=Tensor(numbers(("8", 2, 6)), 1, (5,), (1,))
    )
    path = tmp_path / "old.pth"
    with path.open("wb") as file:
        system = {"little_endian": True, "protocol_version": 1001, "type_sizes": {}}
        for part in (0x1950A86A20F9469CFC6C, 1001, system, content, ["7"]):
            Pickler(file, protocol=2).dump(part)
        file.write((12).to_bytes(8, "little") + np.arange(12, dtype="<f4").tobytes())
    tensors = read_tensors(path)
    np.testing.assert_array_equal(tensors["a"], [[1, 2], [5, 6], [9, 10]])
    np.testing.assert_array_equal(tensors["b"], [3, 4, 5, 6, 7])


class Evil:
    def __reduce__(self):
        return exec, ("raise SystemExit('this was run')",)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"a": Evil()}, r"it names \w+.exec"),
        ({"a": 3}, "'a' is not a tensor"),
        ([torch.ones(1)], "does not contain a dictionary"),
        ({"a": torch.nn.Linear(1, 1)}, "it names torch.nn.modules.linear.Linear"),
        ({"a": torch.ones(1, dtype=torch.bfloat16)}, "it names torch.BFloat16Storage"),
    ],
)
def test_what_is_refused(tmp_path, as_zip, content, why):
    path = saved(tmp_path / "a.pth", content, as_zip)
    with pytest.raises(InvalidInput, match=why):
        read_tensors(path)


def test_a_plain_pickle_is_not_run(tmp_path):
    path = tmp_path / "a.pth"
    path.write_bytes(pickle.dumps(Evil(), protocol=2))
    with pytest.raises(InvalidInput, match=r"it names \w+.exec"):
        read_tensors(path)


def test_a_file_cut_short_anywhere(tmp_path, as_zip):
    path = saved(tmp_path / "a.pth", {"a": torch.randn(6, 5), "b": torch.ones(3)}, as_zip)
    whole = path.read_bytes()
    for end in range(0, len(whole) - 1, 7 if as_zip else 1):
        path.write_bytes(whole[:end])
        with pytest.raises(InvalidInput, match="is not a plain dictionary of tensors"):
            read_tensors(path)


def test_a_tensor_that_claims_more_than_there_is(tmp_path):
    path = saved(tmp_path / "a.pth", {"a": torch.ones(7, 3)}, True)
    changed = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            # the shape (7, 3) becomes (200, 3)
            new.writestr(name, old.read(name).replace(b"K\x07K\x03\x86", b"K\xc8K\x03\x86"))
    path.write_bytes(changed.getvalue())
    with pytest.raises(InvalidInput, match="'a' reaches beyond its numbers"):
        read_tensors(path)


def test_a_missing_file_is_named(tmp_path):
    for read in (read_tensors, sha256_of_file):
        with pytest.raises(StorageError, match=r"none\.pth cannot be read"):
            read(tmp_path / "none.pth")
