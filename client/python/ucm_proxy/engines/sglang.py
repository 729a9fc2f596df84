# SPDX-License-Identifier: Apache-2.0
"""SGLang: a dynamic storage backend of HiCache, with the zero-copy calls.

Interface read: python/sglang/srt/mem_cache/hicache_storage.py at commit 001067ff and
storage/backend_factory.py at aaf8ab0e. SGLang loads the class itself:

    --enable-hierarchical-cache --hicache-mem-layout page_first --hicache-storage-backend dynamic
    --hicache-storage-backend-extra-config '{"backend_name": "ucm",
      "module_path": "ucm_proxy.engines.sglang", "class_name": "UcmHiCache", "interface_v1": 1,
      "store": ["memory-node-1:7470"], "revision": "main", "dtype": "bfloat16"}'

Every rank has a backend and stores its own part of a page (with MLA all ranks' parts are equal and rank 0's
serves all). A page exists when all parts do: each rank asks for all and gets the same answer. SGLang calls
from threads made for it, which may wait; `timeout` (seconds) bounds each transfer.
"""

from ucm_proxy._memory import memory_of
from ucm_proxy._native import MEMORY_HOST
from ucm_proxy._topology import topology
from ucm_proxy.engines._background import Background
from ucm_proxy.engines._keys import Keys, Layout

_OPTIONS = ("namespace", "credential", "fabric")


class HiCache:
    """What the backend does; a HiCacheStorage of SGLang is made of it below."""

    def __init__(self, storage_config, options=None):
        options = {**(getattr(storage_config, "extra_config", None) or {}), **(options or {})}
        if "store" not in options:
            raise ValueError("extra config: `store` is missing: HOST:PORT, a list of these, or a topology")
        self._config = storage_config
        self._options = options
        self._timeout = float(options.get("timeout", 30.0))
        self._background = None
        self._keys = None
        self._pool = None
        self._rank = 0
        self._pieces = 0  # of a page

    # Memory

    def register_mem_pool_host(self, mem_pool_host):
        """Learn where pages lie and how they look; nothing can be moved before."""
        if self._background is not None:
            self._background.close()
        self._pool = mem_pool_host
        buffer = mem_pool_host.kv_buffer
        buffers = buffer if isinstance(buffer, (list, tuple)) else [buffer]
        memory = [memory_of(one) for one in buffers]
        page_bytes = mem_pool_host.get_ksize_per_token() * mem_pool_host.page_size \
            if hasattr(mem_pool_host, "get_ksize_per_token") else 0
        layout, self._rank = layout_of(self._config, mem_pool_host, self._options, page_bytes)
        self._keys = Keys(layout)
        options = {name: self._options.get(name) for name in _OPTIONS}
        self._background = Background(topology(self._options["store"], **options), memory=memory,
                                      timeout_ms=int(self._timeout * 1000), listed=False, name="ucm-sglang")

    # Pages

    def batch_exists(self, keys, extra_info=None):
        """How many pages from the first one on are whole, without a gap."""
        self._ready()
        parts = [part for key in keys for part in self._keys.parts(key)]
        present = self._run("lookup", parts) if parts else []
        whole = self._keys.whole(keys, present)
        return whole.index(False) if False in whole else len(whole)

    def exists(self, key):
        """Whether a page is whole."""
        return self.batch_exists([key]) == 1

    def batch_get_v1(self, keys, host_indices, extra_info=None):
        """Load this rank's parts of pages to where the host pool has them. A bool per page."""
        return self._move("get", keys, host_indices)

    def batch_set_v1(self, keys, host_indices, extra_info=None):
        """Store this rank's parts of pages. A bool per page."""
        return self._move("put", keys, host_indices)

    def _move(self, kind, keys, host_indices):
        if not keys:
            return []
        self._ready()
        pointers, sizes = self._pool.get_page_buffer_meta(host_indices)
        count, rest = divmod(len(pointers), len(keys))
        if rest != 0 or len(sizes) != len(pointers):
            raise ValueError(f"{len(pointers)} pieces for {len(keys)} pages")
        pieces = [list(zip(pointers[idx * count:(idx + 1) * count], sizes[idx * count:(idx + 1) * count]))
                  for idx in range(len(keys))]
        if sum(size for _, size in pieces[0]) > self._background.block_bytes:
            raise ValueError(f"a page has {sum(size for _, size in pieces[0])} bytes, the store's blocks "
                             f"{self._background.block_bytes}: raise block_bytes of the namespace")
        return self._run(kind, [self._keys.part(key, self._rank) for key in keys], pieces)

    def _ready(self):
        if self._background is None:
            raise RuntimeError("register_mem_pool_host() comes before the first transfer or lookup")

    def _run(self, kind, keys, pieces=None):
        """A ticket, waited for. What fails or takes too long is a miss."""
        call = getattr(self._background, kind)
        ticket = call(keys) if pieces is None else call(keys, pieces)
        # Jobs end by their deadline and control calls by theirs. Going away earlier would hand memory back
        # that bytes may still arrive in.
        self._background.wait(ticket)
        return ticket.hits

    # The older calls copy: SGLang falls back to them where interface_v1 is not set.

    def get(self, key, target_location=None, target_sizes=None):
        """One page into a tensor; the tensor, or None."""
        return self.batch_get([key], [target_location])[0]

    def batch_get(self, keys, target_locations=None, target_sizes=None):
        """Pages into tensors; a tensor or None per key."""
        self._ready()
        targets = list(target_locations or [])
        if len(targets) != len(keys) or any(target is None for target in targets):
            raise ValueError("ucm needs a tensor per key to read into (set interface_v1)")
        hits = self._run("get", [self._keys.part(key, self._rank) for key in keys], _tensors(targets))
        return [target if hit else None for target, hit in zip(targets, hits)]

    def set(self, key, value=None, target_location=None, target_sizes=None):
        """One page from a tensor."""
        return self.batch_set([key], [value if value is not None else target_location])

    def batch_set(self, keys, values=None, target_locations=None, target_sizes=None):
        """Pages from tensors; whether all were stored."""
        self._ready()
        values = list(values if values is not None else target_locations)
        return all(self._run("put", [self._keys.part(key, self._rank) for key in keys], _tensors(values)))

    def get_stats(self):
        """Counts since the start."""
        return dict(self._background.counters) if self._background else None

    def close(self):
        """End what is under way (deadlines bound it), then give everything back."""
        if self._background is not None:
            self._background.close()  # and stays, so that calls which come later are misses


def _tensors(tensors):
    places = [memory_of(tensor) for tensor in tensors]
    if any(kind != MEMORY_HOST for _, _, kind in places):
        raise ValueError("pages move from and to host memory; these tensors are on a device")
    return [[(address, length)] for address, length, _ in places]


def layout_of(config, pool, options, page_bytes):
    """The layout that SGLang's configuration and host pool describe, and this rank's place in it."""
    mla = bool(config.is_mla_model)
    heads = 1 if mla else config.tp_size
    rank = 0 if mla else config.tp_rank
    ranks = heads * config.pp_size * getattr(config, "attn_cp_size", 1)
    rank = (rank * config.pp_size + config.pp_rank) * getattr(config, "attn_cp_size", 1) + \
        getattr(config, "attn_cp_rank", 0)
    dtype = str(options.get("dtype") or getattr(pool, "dtype", ""))
    extra = tuple((name, str(getattr(config, name, None)))
                  for name in ("tp_size", "pp_size", "attn_cp_size", "is_mla_model", "tp_lcm_size",
                               "should_split_heads"))
    extra += tuple((name, str(getattr(pool, name, None)))
                   for name in ("layer_num", "head_num", "head_dim", "kv_lora_rank", "qk_rope_head_dim"))
    layout = Layout(model=str(config.model_name or ""), revision=str(options.get("revision", "")),
                    dtype=dtype, layout=f"sglang-{pool.layout}", page_tokens=int(pool.page_size),
                    block_bytes=max(1, int(page_bytes)), ranks=ranks, extra=extra)
    return layout, rank


def make_backend(base):
    """The class that SGLang loads, from its own base class."""

    class UcmHiCache(HiCache, base):
        """Pages of HiCache in the memory of ucm's servers."""

    return UcmHiCache


def __getattr__(name):
    if name != "UcmHiCache":
        raise AttributeError(name)
    from sglang.srt.mem_cache.hicache_storage import HiCacheStorage

    made = make_backend(HiCacheStorage)
    globals()[name] = made
    return made
