"""The C library's allocator, as the command lines set it."""

import ctypes
import multiprocessing
import platform

import pytest

from spen_plugins.cli import MMAP_THRESHOLD, return_large_blocks


class Mallinfo(ctypes.Structure):
    _fields_ = [(f"_{number}", ctypes.c_size_t) for number in range(10)]


@pytest.mark.parametrize("name", ["MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"])
def test_what_the_user_has_settled_stays(name):
    assert not return_large_blocks({name: "1"})


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="a matter of glibc 2.33"
)
def test_a_freed_large_block_goes_back_to_the_system():
    """In a process of its own, whose heap has no hole that is large enough."""
    process = multiprocessing.get_context("spawn").Process(target=check_large_blocks)
    process.start()
    process.join()
    assert process.exitcode == 0


def check_large_blocks():
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype, libc.malloc.restype, libc.free.argtypes = Mallinfo, ctypes.c_void_p, [ctypes.c_void_p]
    assert return_large_blocks({})
    for _ in range(3):  # by itself, glibc keeps the second block of a size it has seen freed
        before = libc.mallinfo2()._4  # bytes in blocks of their own
        block = libc.malloc(ctypes.c_size_t(2 * MMAP_THRESHOLD))
        assert libc.mallinfo2()._4 - before >= 2 * MMAP_THRESHOLD
        libc.free(block)
        assert libc.mallinfo2()._4 == before
