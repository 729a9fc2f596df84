# SPDX-License-Identifier: Apache-2.0
"""SGLang's HiCache of June 2026: the storage's base class, its configuration, and a host pool."""

import abc
import dataclasses
import types

import numpy


@dataclasses.dataclass
class HiCacheStorageConfig:
    """What a rank tells its storage."""

    tp_rank: int = 0
    tp_size: int = 1
    pp_rank: int = 0
    pp_size: int = 1
    attn_cp_rank: int = 0
    attn_cp_size: int = 1
    is_mla_model: bool = False
    enable_storage_metrics: bool = False
    is_page_first_layout: bool = True
    model_name: str = "double/model"
    extra_config: dict = None


class HiCacheStorage(abc.ABC):
    """Base class; its other calls fall back to these."""

    def register_mem_pool_host(self, mem_pool_host):
        self.mem_pool_host = mem_pool_host

    @abc.abstractmethod
    def get(self, key, target_location=None, target_sizes=None): ...

    @abc.abstractmethod
    def batch_get(self, keys, target_locations=None, target_sizes=None): ...

    @abc.abstractmethod
    def set(self, key, value=None, target_location=None, target_sizes=None): ...

    @abc.abstractmethod
    def batch_set(self, keys, values=None, target_locations=None, target_sizes=None): ...

    @abc.abstractmethod
    def exists(self, key): ...


class Buffer(numpy.ndarray):
    """numpy memory that answers like a tensor."""

    device = types.SimpleNamespace(type="cpu")

    def is_contiguous(self):
        """Whether its elements lie one after the other."""
        return self.flags.c_contiguous

    def data_ptr(self):
        """Address of the first byte."""
        return self.ctypes.data

    def numel(self):
        """Elements."""
        return self.size

    def element_size(self):
        """Bytes of one."""
        return self.itemsize


class HostPool:
    """Pages in host memory, page first: keys and values apart, or with MLA in one."""

    layout = "page_first"
    page_size = 16
    dtype = "float16"

    def __init__(self, pages, page_bytes, mla=False):
        self.parts = 1 if mla else 2
        self.part_bytes = page_bytes // self.parts
        self.kv_buffer = numpy.zeros((self.parts, pages, self.part_bytes), numpy.uint8).view(Buffer)

    def indices(self, pages):
        """Token indices of pages, as the engine hands them over."""
        return numpy.array([page * self.page_size + n for page in pages for n in range(self.page_size)])

    def get_page_buffer_meta(self, indices):
        """Addresses and sizes: keys, then values, page after page."""
        pointers = [self.kv_buffer[part, index // self.page_size].ctypes.data
                    for index in indices.tolist()[::self.page_size] for part in range(self.parts)]
        return pointers, [self.part_bytes] * len(pointers)

    def page(self, number):
        """Bytes of a page."""
        return b"".join(self.kv_buffer[part, number].tobytes() for part in range(self.parts))

    def fill(self, number, data):
        """Set the bytes of a page."""
        for part in range(self.parts):
            self.kv_buffer[part, number] = numpy.frombuffer(
                data[part * self.part_bytes:(part + 1) * self.part_bytes], numpy.uint8)
