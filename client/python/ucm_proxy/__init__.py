# SPDX-License-Identifier: Apache-2.0
"""Store and reload KV cache blocks through ucm: the binding of its two interfaces.

An engine builds the same topology in each of its processes: the scheduler's control plane decides
what is where, the workers' data plane moves bytes, and tokens travel between them as bytes.

    config = {"type": "store", "store": "remote", "config": {"servers": ["host:7470"]}}
    scheduler = StoreAssembler(config, role="scheduler").get_scheduler()
    worker = StoreAssembler(config, role="worker").get_worker()

A KV cache is a tensor, or anything with a buffer, with a block every block_bytes; keys are 16 bytes per block,
one behind the other. Two blocks are stored:

    address, length, kind = memory_of(kv_cache)
    region = worker.register_memory(address, length, kind)  # once
    payloads = [BlockPayload([address + n * block_bytes], [block_bytes], [region]) for n in (0, 1)]
    scheduler.on_new_request(RequestContext("request 1"))
    token = scheduler.prepare_put("request 1", keys)
    token = AddressedToken.from_bytes(token.to_bytes())  # to the worker's process
    worker.submit_put(1, payloads, token)
    (event,) = worker.wait([1])  # or get_finished(), and event_fd() for a loop
    scheduler.complete_put("request 1", event.success)  # they can be found now

And what is there of them from the first one on is loaded:

    last = scheduler.lookup_on_prefix("request 1", keys)  # -1: nothing
    if last is None:  # blocks wait in a lower tier: lift them, then look again
        worker.submit_prefetch(2, scheduler.prepare_prefetch("request 1"))
        scheduler.complete_prefetch("request 1", worker.wait([2])[0].success)
        last = scheduler.lookup_on_prefix("request 1", keys)
    token = scheduler.prepare_get("request 1", keys[:16 * (last + 1)])
    worker.submit_get(3, payloads[:last + 1], token, IoContext(timeout_ms=5000))
    (event,) = worker.wait([3])  # success, or which blocks: event.blocks
    scheduler.complete_get("request 1")
    scheduler.on_request_finished("request 1")

A cache in the memory of a GPU works alike; its kind is MEMORY_CUDA. IoContext(prerequisite_handle=event.cuda_event)
lets a job wait for a torch.cuda.Event that was recorded, provided that CUDA was initialised before the topology
was built. Without one, what a stream still computes is not waited for.
"""

import os

from ucm_proxy import _native
from ucm_proxy._native import *  # noqa: F401,F403
from ucm_proxy._memory import memory_of
from ucm_proxy.client import Client

# A library inside an engine speaks when something is wrong.
_native.set_log_level(os.environ.get("UCM_LOG_LEVEL", "warn"))

__all__ = ["Client", "memory_of", *(name for name in dir(_native) if not name.startswith("_"))]
