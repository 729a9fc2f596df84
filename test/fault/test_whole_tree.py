# SPDX-License-Identifier: Apache-2.0
"""
A whole tree, peer(ttl) -> [remote | cache over remote | cache over posix], in a scheduler and a worker process on a real
server: what lies below is lifted by one round, and whatever becomes of the server meanwhile, a round ends, the next lookup
answers concretely, and no tier holds anything afterwards.
"""

import itertools
import json
import os
import random
import signal
import time

import harness
from harness import FABRIC, PATIENCE, NodeError

BLOCK = 65536
COUNT = 24
CACHE_BLOCKS = 64
MOMENTS = 4 if PATIENCE == 1 else harness.small(2, 1)
HOUR_MS = 3600 * 1000
# Lifetimes of requests that go to branch 0, 1 and 2.
REMOTE, OVER_REMOTE, OVER_POSIX = 5 * HOUR_MS, 2 * HOUR_MS, 0
# How work ends whose server is away.
AWAY = ("NotFound", "Timeout", "Unhealthy", "Retry")
LEASE = "3s" if PATIENCE == 1 else "8s"  # long enough for the pings of busy machines
NAMES = itertools.count()


def topology(folder, server, domain, block, write):
    """Both remote stores use one namespace: what the first one puts is there for the second to lift."""
    wait_ms = int(2000 * PATIENCE)
    remote = (f"store: remote, config: {{servers: ['{server.address}'], fabric: {FABRIC}, "
              f"block_bytes: {block}, rpc_timeout: {wait_ms // 4}ms, timeout_ms: {wait_ms}}}")
    posix = f"store: posix, config: {{root: {folder}/blocks, block_bytes: {block}}}"

    def pipe(name, below, mode):
        return (f"{{type: pipe, stores: [{{store: cache, config: {{block_bytes: {block}, "
                f"capacity_blocks: {CACHE_BLOCKS}, write: {mode}, domain: {domain}-{name}, "
                f"timeout_ms: {2 * wait_ms}}}}}, {{{below}}}]}}")

    return ["type: peer",
            f"routing: {{strategy: ttl, config: {{thresholds: [{4 * HOUR_MS}, {HOUR_MS}]}}}}",
            f"branches: [{{type: store, {remote}}}, {pipe('r', remote, write)}, {pipe('p', posix, 'none')}]"]


class WholeTree(harness.Case):
    def start(self, *, block=BLOCK, write="none", **keys):
        self.port = harness.free_port()
        self.keys = dict(keys, block_bytes=block, capacity_blocks=10 * COUNT)
        self.block = block
        self.one = self.server(port=self.port, **self.keys)
        self.lines = topology(self.folder, self.one, f"tree-{os.getpid()}-{next(NAMES)}", block, write)
        self.tree = harness.Pair(self.folder, "", topology=self.lines, block_bytes=block)
        self.stack.callback(self.tree.close)

    def restart(self):
        self.one.stop()
        self.one = self.server(port=self.port, **self.keys)

    def request(self, ttl_ms):
        name = f"t{next(NAMES)}"
        self.tree.scheduler.do("request", name, *([ttl_ms] if ttl_ms else []))
        return name

    def finish(self, request):
        self.tree.scheduler.do("finish", request)

    def put(self, ttl_ms, first):
        """Whether all blocks were written and committed; nothing of the window is left."""
        request = self.request(ttl_ms)
        job = self.tree.job()
        try:
            token = self.tree.scheduler.do("prepare_put", request, first, COUNT)
            self.tree.worker.do("put", job, first, COUNT, token)
            is_written = self.tree.worker.wait(job)[:2] == ("Ok", "1" * COUNT)
            self.tree.scheduler.do("complete_put", request, int(is_written))
            return is_written
        except NodeError as error:
            self.assertIn(error.status, AWAY)
            return False
        finally:
            self.tree.finish(request)

    def get(self, ttl_ms, first, count=COUNT):
        request = self.request(ttl_ms)
        job = self.tree.job()
        token = self.tree.scheduler.do("prepare_get", request, first, count)
        self.tree.worker.do("get", job, first, count, token)
        self.assertEqual(self.tree.worker.wait(job), ("Ok", "1" * count, count, 0))
        self.tree.scheduler.do("complete_get", request)
        self.finish(request)

    def prefix(self, request, first=0):
        return self.tree.scheduler.do("prefix", request, first, COUNT)

    def connect(self, first):
        """Wait until both remote stores use the server, by blocks that are lifted."""
        harness.eventually(lambda: self.put(REMOTE, first), "the server is used", 30)
        harness.eventually(lambda: self.lift(OVER_REMOTE, first), "and by the other store", 30)

    def prepare(self, request, first=0):
        """The plan of a round that was signalled."""
        self.assertEqual(self.prefix(request, first), "signal")
        return self.tree.scheduler.do("prepare_prefetch", request)

    def lift(self, ttl_ms, first):
        """Whether one round lifts all blocks; nothing of it is left."""
        request = self.request(ttl_ms)
        job = self.tree.job()
        try:
            if self.prefix(request, first) != "signal":
                return False
            self.tree.worker.do("prefetch", job, self.tree.scheduler.do("prepare_prefetch", request))
            is_lifted = self.tree.worker.wait(job)[0] == "Ok"
            self.tree.scheduler.do("complete_prefetch", request, int(is_lifted))
            self.assertEqual(self.prefix(request, first), str(COUNT - 1) if is_lifted else "-1")
            return is_lifted
        except NodeError as error:
            self.assertIn(error.status, AWAY)
            return False
        finally:
            self.tree.finish(request)

    def caches(self):
        """What the two caches say of themselves."""
        branches = json.loads(self.tree.scheduler.do("describe"))["branches"]
        return [branch["tiers"][0] for branch in branches[1:]]

    def caches_hold_nothing(self):
        for cache in self.caches():
            self.assertEqual([cache[key] for key in ("reserved", "pinned", "draining")], [0] * 3, cache)
            self.assertEqual(cache["free"] + cache["blocks"], CACHE_BLOCKS, cache)

    def nothing_is_held(self):
        """In both caches, and in the server, which learns of it a moment later."""
        self.caches_hold_nothing()
        self.one.quiet()

    # one round, then hits, which take nothing from below.
    def test_remote_blocks_are_lifted_by_one_round(self):
        self.start()
        self.assertTrue(self.put(REMOTE, 0))
        self.assertTrue(self.lift(OVER_REMOTE, 0))
        pinned = self.one.stat()["pinned_keys_total"]
        self.assertEqual(pinned, COUNT)
        self.get(OVER_REMOTE, 0)
        self.assertEqual(self.one.stat()["pinned_keys_total"], pinned)
        request = self.request(OVER_POSIX)  # branches are namespaces
        self.assertEqual(self.prefix(request), "-1")
        self.finish(request)
        self.nothing_is_held()

    def test_posix_blocks_are_lifted_by_one_round(self):
        filler = harness.Node(self.folder, "both", "", topology=[
            "type: store", "store: posix", f"config: {{root: {self.folder}/blocks, block_bytes: {BLOCK}}}"])
        filler.do("request", "r")
        filler.do("put", 1, 0, COUNT, filler.do("prepare_put", "r", 0, COUNT))
        self.assertEqual(filler.wait(1)[0], "Ok")
        filler.do("complete_put", "r", 1)
        filler.close()
        self.start()
        self.assertTrue(self.lift(OVER_POSIX, 0))
        self.get(OVER_POSIX, 0)
        self.one.kill()  # and no server is needed for it
        self.get(OVER_POSIX, 0)
        self.caches_hold_nothing()

    def concludes(self, request, verdict=0):
        """The round ends. R-7.20, R-7.22, R-7.27, G18: no signal for its request, nor for others while the server is away."""
        self.tree.scheduler.do("complete_prefetch", request, verdict)
        self.caches_hold_nothing()
        index = self.prefix(request)
        self.finish(request)
        other = self.request(OVER_REMOTE)
        self.assertEqual(self.prefix(other), index)
        self.finish(other)
        return int(index)

    def works_again(self):
        """New blocks are stored below and lifted as if nothing had been."""
        self.connect(1000)
        self.get(OVER_REMOTE, 1000)
        self.nothing_is_held()

    def lost_before_prefetch(self, take_away, bring_back):
        self.start(lease=LEASE)
        self.assertTrue(self.put(REMOTE, 0))
        request = self.request(OVER_REMOTE)
        plan = self.prepare(request)
        self.assertEqual(self.caches()[0]["reserved"], COUNT)
        self.assertEqual(self.one.stat()["pinned_slots"], COUNT)
        take_away()
        job = self.tree.job()
        try:  # refused, or accepted and failed within the deadlines
            self.tree.worker.do("prefetch", job, plan)
            self.assertIn(self.tree.worker.wait(job)[0], AWAY)
        except NodeError as error:
            self.assertIn(error.status, AWAY)
        self.assertEqual(self.concludes(request), -1)
        self.assertEqual(self.caches()[0]["blocks"], 0)
        bring_back()
        self.works_again()

    def test_server_killed_before_prefetch(self):  # G15
        self.lost_before_prefetch(lambda: self.one.kill(), self.restart)

    def test_server_stopped_before_prefetch(self):  # G15
        self.lost_before_prefetch(lambda: self.one.process.send_signal(signal.SIGSTOP),
                                  lambda: self.one.process.send_signal(signal.SIGCONT))

    def lost_in_prefetch(self, number, take_away, bring_back):
        """At several moments; what was committed of the round is whole, and a verdict of false commits nothing."""
        self.start(block=1 << 20, lease=LEASE)
        source = random.Random(number)
        for moment in range(MOMENTS):
            first = 2 * moment * COUNT
            self.connect(first + COUNT)
            self.assertTrue(self.put(REMOTE, first))
            request = self.request(OVER_REMOTE)
            plan = self.prepare(request, first)
            job = self.tree.job()
            self.tree.worker.send("prefetch", job, plan)
            time.sleep(source.random() * 0.02 * PATIENCE)  # the moment is what varies
            take_away()
            try:
                self.tree.worker.answer()
                status = self.tree.worker.wait(job)[0]
            except NodeError as error:
                status = error.status
            self.assertIn(status, AWAY + ("Ok",))
            verdict = moment % 2
            self.tree.scheduler.do("complete_prefetch", request, verdict)
            self.caches_hold_nothing()
            index = int(self.prefix(request, first))  # a number, no signal
            self.assertTrue(verdict == 1 or index == -1)
            self.assertTrue(verdict == 0 or status != "Ok" or index == COUNT - 1)
            self.finish(request)
            if index >= 0:
                self.get(OVER_REMOTE, first, index + 1)
            bring_back()
        self.works_again()

    def test_server_killed_in_prefetch(self):  # G15, G17
        self.lost_in_prefetch(1, lambda: self.one.kill(), self.restart)

    def test_server_stopped_in_prefetch(self):  # G15, G17
        self.lost_in_prefetch(2, lambda: self.one.process.send_signal(signal.SIGSTOP),
                              lambda: self.one.process.send_signal(signal.SIGCONT))

    def test_worker_killed_in_prefetch(self):
        self.start(block=1 << 20)
        self.assertTrue(self.put(REMOTE, 0))
        source = random.Random(3)
        for _ in range(MOMENTS):
            request = self.request(OVER_REMOTE)
            self.tree.worker.send("prefetch", self.tree.job(), self.prepare(request))
            time.sleep(source.random() * 0.02 * PATIENCE)  # the moment is what varies
            self.tree.worker.kill()
            self.tree.scheduler.do("complete_prefetch", request, 0)
            self.assertEqual(self.prefix(request), "-1")
            self.finish(request)
            self.tree.worker.close()
            self.tree.worker = harness.Node(self.folder, "worker", "", topology=self.lines, block_bytes=self.block)
        self.works_again()

    def test_request_that_ends_under_a_lost_round_leaves_nothing(self):
        self.start()
        self.assertTrue(self.put(REMOTE, 0))
        request = self.request(OVER_REMOTE)
        self.prepare(request)
        self.one.kill()
        self.tree.finish(request)
        self.caches_hold_nothing()
        self.restart()
        self.works_again()

    # G19: memory is registered before there is a server; what needs none works, the rest follows by itself.
    def test_engine_starts_before_its_server(self):
        self.start()
        self.one.kill()
        self.tree.close()
        self.tree = harness.Pair(self.folder, "", topology=self.lines, block_bytes=BLOCK)
        self.stack.callback(self.tree.close)
        for ttl_ms in (OVER_REMOTE, OVER_POSIX):
            self.assertTrue(self.put(ttl_ms, 0))
            self.get(ttl_ms, 0)
        self.assertFalse(self.put(REMOTE, 0))
        self.restart()
        self.works_again()

    def test_blocks_wait_for_no_server_that_is_away(self):  # write: through
        self.start(write="through")
        self.one.kill()
        self.assertTrue(self.put(OVER_REMOTE, 0))
        harness.eventually(lambda: self.caches()[0]["write_queued"] == 0, "written or given up")
        harness.eventually(lambda: self.caches()[0]["pinned"] == 0, "pins of the writes end")
        self.caches_hold_nothing()
        self.get(OVER_REMOTE, 0)
        self.restart()
        self.works_again()


if __name__ == "__main__":
    harness.main()
