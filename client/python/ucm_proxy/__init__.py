# SPDX-License-Identifier: Apache-2.0
"""Store and reload KV cache blocks through ucm: the binding of its two interfaces.

An engine builds the same topology in each of its processes: the scheduler's control plane decides
what is where, the workers' data plane moves bytes, and tokens travel between them as bytes.

    config = {"type": "store", "store": "remote", "config": {"servers": ["host:7470"]}}
    scheduler = StoreAssembler(config, role="scheduler").get_scheduler()
    worker = StoreAssembler(config, role="worker").get_worker()
"""

from ucm_proxy import _native
from ucm_proxy._native import *  # noqa: F401,F403

__all__ = [name for name in dir(_native) if not name.startswith("_")]
