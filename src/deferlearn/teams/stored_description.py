"""What a stored model says that it is made of, checked before anything is made.

skops makes objects as a description in JSON says: each node of it names a loader, a type, and what the
object holds. skops trusts every public estimator of scikit-learn, and lets a trusted type stand at every
loader, so that a file could call it with arguments of its choice. Here each loader has its own list.
"""

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from deferlearn._utils.archives import check_sizes, most_bytes
from deferlearn.teams.stored_trees import check_tree
from deferlearn.teams.stored_types import LOSSES, SPARSE, TREE, TRUSTED, TUPLES

# Files that say they follow an older protocol would choose skops' older loaders.
OLDEST_PROTOCOL = 2
DESCRIPTION = "schema.json"

_SCALARS = frozenset(
    f"numpy.{kind.__name__}" for kind in {*np.sctypeDict.values()} if kind is not np.object_
)
_ABSTRACT = ("numpy.number", "numpy.integer", "numpy.floating")
_PLAIN = frozenset({"builtins.int", "builtins.float", "builtins.str", "builtins.bool"})
# The types that each loader may make. One that is missing here makes only what the owner of the file names.
_ALLOWED: dict[str, frozenset[str]] = {
    "DictNode": frozenset(
        {"builtins.dict", "collections.OrderedDict", "sklearn.utils._bunch.Bunch"}
    ),
    "ListNode": frozenset({"builtins.list"}),
    "SetNode": frozenset({"builtins.set"}),
    "TupleNode": frozenset({"builtins.tuple", *TUPLES}),
    "BytesNode": frozenset({"builtins.bytes"}),
    "SliceNode": frozenset({"builtins.slice"}),
    "JsonNode": frozenset({"builtins.str"}),
    "TypeNode": _PLAIN | _SCALARS | frozenset(_ABSTRACT),
    "NdArrayNode": _SCALARS | {"numpy.ndarray"},
    "MaskedArrayNode": frozenset({"numpy.ma.MaskedArray"}),
    "DTypeNode": frozenset({"numpy.dtype"}),
    "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
    "RandomGeneratorNode": frozenset({"numpy.random._generator.Generator"}),
    "SparseMatrixNode": frozenset(SPARSE),
    "ObjectNode": frozenset(TRUSTED),
    "LossNode": frozenset(LOSSES),
    "TreeNode": frozenset({TREE}),
}
# What skops must be told beyond what it trusts itself.
FOR_SKOPS = tuple(sorted(set().union(*_ALLOWED.values())))


def unknown_types(content: bytes, named: frozenset[str]) -> list[str]:
    """The types in a file that are not on the lists.

    Parameters
    ----------
    content : bytes
        The file.
    named : frozenset of str
        Types that the owner of the file trusts.

    Returns
    -------
    names : list of str

    Raises
    ------
    ValueError
        If the description contradicts itself, or holds a tree that would be read beyond its end.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        description = json.loads(archive.read(DESCRIPTION))
        protocol = description["protocol"]
        if type(protocol) is not int or protocol < OLDEST_PROTOCOL:
            raise ValueError(f"it follows protocol {protocol!r} of skops, which is too old")
        nodes = list(_nodes(description))
        unknown = {name for node in nodes if not _is_known(node, name := _type_of(node), named)}
        if unknown:
            return sorted(unknown)
        _check_identities(nodes)
        _check_files(nodes, archive, len(content))
        for node in nodes:
            if node["__loader__"] == "TreeNode":
                check_tree(
                    _plain(node["__reduce__"]["args"], archive), _plain(node["content"], archive)
                )
    return []


def _nodes(description: Any) -> Iterator[dict[str, Any]]:
    """Every node, wherever it is."""
    waiting = [description]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if isinstance(part.get("__loader__"), str):
                yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _type_of(node: dict[str, Any]) -> str:
    return f"{node['__module__']}.{node['__class__']}"


def _is_known(node: dict[str, Any], name: str, named: frozenset[str]) -> bool:
    return name in named or name in _ALLOWED.get(node["__loader__"], ())


def _check_identities(nodes: list[dict[str, Any]]) -> None:
    """Refuse two different nodes with one identity, of which one is in a tree.

    skops takes the first of them for both, so a tree would not be made of what was checked.
    """
    in_trees = {
        inner.get("__id__")
        for node in nodes
        if node["__loader__"] == "TreeNode"
        for part in (node["content"], node["__reduce__"])
        for inner in _nodes(part)
    }
    seen: dict[Any, Any] = {}
    for node in nodes:
        identity = node.get("__id__")
        if identity in in_trees:
            shallow = {key: _shallow(value) for key, value in node.items()}
            if seen.setdefault(identity, shallow) != shallow:
                raise ValueError(f"two different parts of it have the identity {identity!r}")


def _shallow(value: Any) -> Any:
    """A value with the identities of nodes in the place of the nodes."""
    if isinstance(value, dict):
        if isinstance(value.get("__loader__"), str):
            return ("node", value.get("__id__"))
        return {key: _shallow(inner) for key, inner in value.items()}
    return [_shallow(inner) for inner in value] if isinstance(value, list) else value


def _check_files(nodes: list[dict[str, Any]], archive: zipfile.ZipFile, size: int) -> None:
    """Refuse parts that become too large when they are read: by their number, or by their headers."""
    read, seen, checked = 0, set(), set()
    for node in nodes:
        name = node.get("file")
        if not isinstance(name, str) or (node.get("__id__"), name) in seen:
            continue
        seen.add((node.get("__id__"), name))
        read += archive.getinfo(name).file_size
        if read > most_bytes(size):
            raise ValueError(f"it reads more than {most_bytes(size):,} bytes from its parts")
        if name in checked:
            continue
        checked.add(name)
        if node["__loader__"] == "SparseMatrixNode":
            _check_sparse(archive.read(name), name)
        elif node["__loader__"] == "NdArrayNode":
            with archive.open(name) as file:
                _check_header(file, archive.getinfo(name).file_size, name)


def _check_sparse(content: bytes, name: str) -> None:
    """Check an archive in the archive."""
    check_sizes(content)
    with zipfile.ZipFile(io.BytesIO(content)) as inner:
        for part in inner.infolist():
            with inner.open(part) as file:
                _check_header(file, part.file_size, f"{name}/{part.filename}")


def _check_header(file: Any, size: int, name: str) -> None:
    """Refuse an array that says it has more numbers than follow: memory would be taken for all of them."""
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, _, dtype = readers[version](file)
    wanted = dtype.itemsize
    for length in shape:
        wanted *= length
    if wanted < 0 or wanted > size:
        raise ValueError(f"{name} says that it has the shape {shape}, but it is smaller")


def _plain(node: dict[str, Any], archive: zipfile.ZipFile) -> Any:
    """Numbers, arrays, tuples, lists and dicts that nodes stand for, made without skops."""
    loader = node["__loader__"]
    if loader == "JsonNode":
        return json.loads(node["content"])
    if loader == "NdArrayNode" and node["type"] == "numpy":
        return np.load(io.BytesIO(archive.read(node["file"])), allow_pickle=False)
    if loader in ("TupleNode", "ListNode"):
        return [_plain(inner, archive) for inner in node["content"]]
    if loader == "DictNode":
        return {key: _plain(inner, archive) for key, inner in node["content"].items()}
    raise ValueError(f"a tree holds a part that {loader} makes")
