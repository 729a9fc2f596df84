# SPDX-License-Identifier: Apache-2.0
"""Store and reload KV cache blocks through ucm: the binding of its two interfaces.

An engine builds the same topology in each of its processes: the scheduler's control plane decides
what is where, the workers' data plane moves bytes, and tokens travel between them as bytes.

    config = {"type": "store", "store": "remote", "config": {"servers": ["host:7470"]}}
    scheduler = StoreAssembler(config, role="scheduler").get_scheduler()
    worker = StoreAssembler(config, role="worker").get_worker()
"""

import os

from ucm_proxy import _native
from ucm_proxy._native import *  # noqa: F401,F403
from ucm_proxy._memory import memory_of
from ucm_proxy.client import Client

# A library inside an engine speaks when something is wrong.
_native.set_log_level(os.environ.get("UCM_LOG_LEVEL", "warn"))

__all__ = ["Client", "memory_of", *(name for name in dir(_native) if not name.startswith("_"))]
