"""Columns of the Gram matrix within a memory limit; definiteness; sparse products; sums in two doubles."""

from deferlearn.kernels.gram import (
    WHOLE_GRAM_LIMIT,
    Gram,
    KernelGram,
    LinearGram,
    kernel_function,
    make_gram,
)

__all__ = [
    "WHOLE_GRAM_LIMIT",
    "Gram",
    "KernelGram",
    "LinearGram",
    "kernel_function",
    "make_gram",
]
