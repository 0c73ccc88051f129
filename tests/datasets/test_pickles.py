"""Reading a pickle must run nothing of it, whatever it says."""

import builtins
import os
import pickle
import struct

import numpy as np
import pytest

from deferlearn.datasets._pickles import _ALLOWED, read_arrays, read_tree

RECONSTRUCT = b"cnumpy.core.multiarray\n_reconstruct\n"
NDARRAY = b"cnumpy\nndarray\n"
DTYPE = b"cnumpy\ndtype\n"


def short_string(text):
    return b"U" + bytes([len(text)]) + text


def python2_dtype(code=b"f8", order=b"<", structure=b"NNN"):
    return (
        DTYPE + b"(" + short_string(code) + b"K\x00K\x01tR"
        b"(K\x03" + short_string(order) + structure + b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    )


def python2_array(raw, shape=b"K\x02\x85", dtype=None, fortran=b"\x89"):
    """What Python 2 wrote for an array: text and bytes were the same to it."""
    dtype = python2_dtype() if dtype is None else dtype
    empty = RECONSTRUCT + NDARRAY + b"K\x00\x85" + short_string(b"b") + b"\x87R"
    data = b"T" + struct.pack("<i", len(raw)) + raw
    return empty + b"(K\x01" + shape + dtype + fortran + data + b"tb"


def record(value):
    return b"\x80\x02}" + short_string(b"X") + value + b"s."


PAIR = np.array([1.5, -2.0])


def test_python2_array():
    read = read_arrays(record(python2_array(PAIR.tobytes())))
    assert list(read) == ["X"]
    np.testing.assert_array_equal(read["X"], PAIR)
    assert read["X"].flags.writeable


def test_fortran_order_and_foreign_bytes():
    matrix = np.array([[1, 2, 3], [4, 5, 6]], dtype=">i4")
    value = python2_array(
        matrix.tobytes(order="F"),
        shape=b"K\x02K\x03\x86",
        dtype=python2_dtype(b"i4", b">"),
        fortran=b"\x88",
    )
    read = read_arrays(record(value))["X"]
    np.testing.assert_array_equal(read, matrix)
    assert read.dtype.isnative


# Not protocol 2: there Python 3 writes bytes as a call of a codec, which is a callable too many.
@pytest.mark.parametrize("protocol", [3, 4])
def test_what_numpy_writes_today(protocol):
    content = {
        "X": np.arange(6.0).reshape(2, 3),
        "c": {"1": np.array([True, False]), "names": np.array(["a", "bc"])},
    }
    read = read_arrays(pickle.dumps(content, protocol=protocol))
    np.testing.assert_array_equal(read["X"], content["X"])
    np.testing.assert_array_equal(read["c"]["1"], content["c"]["1"])
    np.testing.assert_array_equal(read["c"]["names"], content["c"]["names"])


class Evil:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "function", [os.mkdir, builtins.exec, builtins.eval, builtins.getattr, np.load, np.array]
)
def test_callables_are_refused_and_do_not_run(tmp_path, function, protocol):
    trap = tmp_path / "trap"
    argument = str(trap) if function is os.mkdir else f"__import__('os').mkdir({str(trap)!r})"
    hostile = pickle.dumps({"X": Evil(function, argument)}, protocol=protocol)
    with pytest.raises(ValueError, match="is not allowed"):
        read_arrays(hostile)
    assert not trap.exists()


def test_other_names_of_numpy_and_dotted_ones_are_refused():
    for name in [
        b"cnumpy\nload\n",
        b"cnumpy\nmatrix\n",
        b"cnumpy\ndtype.__class__\n",
        b"cnumpy.core.multiarray\nfrombuffer\n",
        b"cdeferlearn.datasets._pickles\nos\n",
        b"\x8c\x05numpy\x8c\x16ndarray.__subclasses__\x93",
    ]:
        with pytest.raises(ValueError, match="is not allowed"):
            read_arrays(b"\x80\x04" + name + b".")


@pytest.mark.parametrize(
    "code", [b"O", b"O8", b"V8", b"O,f8", b"M8", b"f8\n", b"(2,)f8", b"S0", b""]
)
def test_types_that_are_not_plain_are_refused(code):
    with pytest.raises(ValueError, match="are not allowed"):
        read_arrays(record(python2_array(PAIR.tobytes(), dtype=python2_dtype(code))))


def test_object_arrays_of_numpy_are_refused():
    with pytest.raises(ValueError, match="type 'O8' are not allowed"):
        read_arrays(pickle.dumps({"X": np.array([{}, []], dtype=object)}))


def test_records_are_refused():
    with pytest.raises(ValueError, match="are not allowed"):
        read_arrays(pickle.dumps({"X": np.zeros(2, dtype=[("a", "f8")])}))


@pytest.mark.parametrize(
    "value",
    [
        # A subarray, names or fields smuggled in by the state of a plain type.
        python2_array(PAIR.tobytes(), dtype=python2_dtype(structure=b")NN")),
        python2_array(PAIR.tobytes(), dtype=python2_dtype(structure=b"N)N")),
        python2_array(PAIR.tobytes(), dtype=python2_dtype(structure=b"NN}")),
        python2_array(PAIR.tobytes(), dtype=python2_dtype(order=b"O")),
        # A type that is text, and one that skipped its constructor (NEWOBJ with no arguments).
        python2_array(PAIR.tobytes(), dtype=short_string(b"O")),
        python2_array(PAIR.tobytes(), dtype=DTYPE + b")\x81"),
        # More or fewer numbers than the shape says; a negative, huge or textual shape.
        python2_array(PAIR.tobytes(), shape=b"K\x03\x85"),
        python2_array(PAIR.tobytes(), shape=b"J\xfe\xff\xff\xff\x85"),
        python2_array(PAIR.tobytes(), shape=b"J\xff\xff\xff\x7f\x85"),
        python2_array(PAIR.tobytes(), shape=short_string(b"ab")),
        python2_array(PAIR.tobytes()[:-1]),
        # Not an array of numpy's own class; never given its content; the bare names.
        RECONSTRUCT + DTYPE + b"K\x00\x85" + short_string(b"b") + b"\x87R",
        RECONSTRUCT + NDARRAY + b"K\x00\x85" + short_string(b"b") + b"\x87R",
        RECONSTRUCT + b")\x81",
        RECONSTRUCT,
        NDARRAY,
        NDARRAY + b"K\x02\x85R",
        # Plain Python in the place of arrays.
        b"K\x01",
        b"]",
        b"N",
        b"}"
        + short_string(b"a")
        + b"}"
        + short_string(b"b")
        + python2_array(PAIR.tobytes())
        + b"ss",
        b"}K\x01" + python2_array(PAIR.tobytes()) + b"s",
    ],
)
def test_anything_but_arrays_is_refused(value):
    with pytest.raises(ValueError, match="not a pickle of plain numpy arrays"):
        read_arrays(record(value))


@pytest.mark.parametrize("target", [RECONSTRUCT, NDARRAY, DTYPE])
@pytest.mark.parametrize(
    "state",
    [
        b"}" + short_string(b"__init__") + b"Ns",
        b"N}" + short_string(b"__init__") + b"Ns\x86",
        b"N}" + short_string(b"__setstate__") + b"Ns\x86",
    ],
)
def test_names_cannot_be_rewired_for_the_next_file(target, state):
    before = {key: dict(vars(value)) for key, value in _ALLOWED.items() if isinstance(value, type)}
    with pytest.raises(ValueError, match="not a pickle of plain numpy arrays"):
        read_arrays(b"\x80\x02" + target + state + b"b.")
    after = {key: dict(vars(value)) for key, value in _ALLOWED.items() if isinstance(value, type)}
    assert after == before
    np.testing.assert_array_equal(read_arrays(record(python2_array(PAIR.tobytes())))["X"], PAIR)


def test_a_dict_inside_itself_is_refused():
    loop = {}
    loop["X"] = loop
    with pytest.raises(ValueError, match="expected an array, found dict"):
        read_arrays(pickle.dumps(loop))


def test_truncation_anywhere_is_an_error():
    content = record(python2_array(PAIR.tobytes()))
    for length in range(len(content)):
        with pytest.raises(ValueError, match="not a pickle of plain numpy arrays"):
            read_arrays(content[:length])


def test_persistent_names_are_refused():
    with pytest.raises(ValueError, match="persistent"):
        read_arrays(b"Psomething\n.")


SCALAR = b"cnumpy.core.multiarray\nscalar\n"
QUARTER = struct.pack("<d", 0.25)


def python2_number(raw=QUARTER, dtype=None):
    """What Python 2 wrote for a number of numpy."""
    dtype = python2_dtype() if dtype is None else dtype
    return SCALAR + dtype + b"U" + bytes([len(raw)]) + raw + b"\x86R"


def test_a_tree_of_arrays_and_numbers():
    inner = b"}" + short_string(b"a") + python2_number() + b"s"
    found = read_tree(record(inner))
    assert found == {"X": {"a": 0.25}}
    assert type(found["X"]["a"]) is float
    assert read_tree(record(b"K\x07")) == {"X": 7}
    array = read_tree(record(python2_array(PAIR.tobytes())))["X"]
    np.testing.assert_array_equal(array, PAIR)
    # Where arrays are expected, a number is none.
    with pytest.raises(ValueError, match="expected an array, found _Number"):
        read_arrays(record(python2_number()))


@pytest.mark.parametrize(
    "value",
    [
        python2_number(b"1234567"),  # too short
        python2_number(b"1" * 16),  # two numbers
        python2_number(dtype=python2_dtype(code=b"O8")),
        SCALAR + b"K\x01K\x02\x86R",
        SCALAR,  # the name itself, never called
        RECONSTRUCT + NDARRAY + b"K\x00\x85" + short_string(b"b") + b"\x87R",  # without content
        b"N",
        short_string(b"text"),
        b"cos\nsystem\n",
    ],
)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match="not a pickle of plain arrays and numbers"):
        read_tree(record(value))


def test_a_tree_within_itself_is_refused():
    loop = {}
    loop["X"] = loop
    with pytest.raises(ValueError, match="not a pickle of plain arrays and numbers"):
        read_tree(pickle.dumps(loop))
