#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the Python layer costs: microseconds per call, and per block of batches of 256.

A submit that the library refuses after it has looked at every payload is nearly all conversion; a call
that has nothing to do is all binding. Prints one JSON object.
"""

import json
import time

import ucm_proxy as ucm

BLOCKS = 256
BLOCK = 4096
ROUNDS = 7


def best_us(call, repeat):
    """Fastest of some rounds, in microseconds per call."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(repeat):
            call()
        best = min(best, (time.perf_counter() - start) / repeat * 1e6)
    return best


def main():
    """Measure and print."""
    config = {"type": "store", "store": "cache", "config": {"block_bytes": BLOCK, "capacity_blocks": 1024}}
    with ucm.StoreAssembler(config) as assembler:
        scheduler, worker = assembler.get_scheduler(), assembler.get_worker()
        scheduler.on_new_request(ucm.RequestContext("r"))
        keys = b"".join(n.to_bytes(16, "little") for n in range(BLOCKS))
        memory = ucm.Memory(BLOCK * BLOCKS)
        region = worker.register_memory(memory)
        payloads = [ucm.BlockPayload([memory.address + n * BLOCK], [BLOCK], [region]) for n in range(BLOCKS)]
        token = scheduler.prepare_put("r", keys)
        beyond = ucm.IoContext(first_key=BLOCKS + 1)

        def submit(batch):
            try:
                worker.submit_put(1, batch, token, beyond)
            except ucm.InvalidParamError:
                pass

        one = best_us(lambda: submit(payloads[:1]), 5000)
        many = best_us(lambda: submit(payloads), 500)
        result = {
            "lookup_1_key_us": best_us(lambda: scheduler.lookup("r", keys[:16]), 20000),
            "lookup_256_keys_us": best_us(lambda: scheduler.lookup("r", keys), 5000),
            "get_finished_us": best_us(worker.get_finished, 20000),
            "submit_1_block_us": one,
            "submit_256_blocks_us": many,
            "per_block_us": (many - one) / (BLOCKS - 1),
        }
        scheduler.complete_put("r", False)
    print(json.dumps({key: round(value, 3) for key, value in result.items()}))


if __name__ == "__main__":
    main()
