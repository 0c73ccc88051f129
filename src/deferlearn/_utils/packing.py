"""Plain values and arrays as bytes, without pickle: what is read can only be data."""

import io
import json
from typing import Any

import numpy as np

from deferlearn._utils.archives import check_sizes

# The entry with everything but the arrays, and the key that stands for an array in it.
VALUES, ARRAY = "values", "array:"


def packed(values: dict[str, Any]) -> bytes:
    """Write dicts, lists, text, numbers and arrays of numbers.

    Parameters
    ----------
    values : dict
        Its keys are text, and none is "array:". Tuples come back as lists.

    Returns
    -------
    content : bytes
        A file that `numpy.load` can open.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn._utils.packing import packed, unpacked
    >>> unpacked(packed({"name": "a", "parts": [np.array([0.5, 1.0]), 3]}))
    {'name': 'a', 'parts': [array([0.5, 1. ]), 3]}
    """
    arrays: dict[str, Any] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            name = f"a{len(arrays)}"
            arrays[name] = value
            return {ARRAY: name}
        if isinstance(value, dict):
            return {key: plain(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [plain(inner) for inner in value]
        return value.item() if isinstance(value, np.generic) else value

    text = json.dumps(plain(values))
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        allow_pickle=False,
        **{VALUES: np.frombuffer(text.encode(), dtype=np.uint8)},
        **arrays,
    )
    return buffer.getvalue()


def unpacked(content: bytes) -> dict[str, Any]:
    """Read what `packed` has written.

    Parameters
    ----------
    content : bytes
        The file.

    Returns
    -------
    values : dict
    """
    check_sizes(content)
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays: dict[str, Any] = {}  # each is read once, however often a stranger's file names it

        def restored(value: Any) -> Any:
            if isinstance(value, dict):
                if value.keys() == {ARRAY}:
                    name = value[ARRAY]
                    if name not in arrays:
                        arrays[name] = archive[name]
                    return arrays[name]
                return {key: restored(inner) for key, inner in value.items()}
            return [restored(inner) for inner in value] if isinstance(value, list) else value

        return dict(restored(json.loads(archive[VALUES].tobytes().decode())))
