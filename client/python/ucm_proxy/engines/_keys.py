# SPDX-License-Identifier: Apache-2.0
"""Names of blocks: an engine's hash, the layout of its cache, and the rank that wrote the part.

Two deployments that would not understand each other's bytes never have a name in common, since
everything that decides about the bytes goes into it.
"""

import dataclasses
import hashlib
import json

KEY_BYTES = 16


@dataclasses.dataclass(frozen=True)
class Layout:
    """What decides how the bytes of a block look. Texts are taken as they are, so spell them alike."""

    model: str
    revision: str
    dtype: str
    layout: str  # of the dimensions, in the engine's own word
    page_tokens: int
    block_bytes: int  # that one rank stores per block
    ranks: int = 1  # that store a part of each block
    extra: tuple = ()  # (name, value) pairs of what else matters to an engine

    def __post_init__(self):
        for field in ("model", "dtype", "layout"):
            if not getattr(self, field):
                raise ValueError(f"{field} is empty: blocks of different deployments could be mixed up")
        for field in ("page_tokens", "block_bytes", "ranks"):
            if getattr(self, field) < 1:
                raise ValueError(f"{field} must be at least 1, not {getattr(self, field)}")

    def fingerprint(self):
        """32 bytes that are equal exactly for equal layouts."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=32).digest()


class Keys:
    """Keys of one layout."""

    def __init__(self, layout):
        self._ranks = layout.ranks
        self._fingerprint = layout.fingerprint()

    def part(self, name, rank):
        """The key of the part that a rank writes of a block; name is bytes or str of the engine."""
        if not 0 <= rank < self._ranks:
            raise ValueError(f"rank {rank} of {self._ranks}")
        name = name.encode() if isinstance(name, str) else bytes(name)
        return hashlib.blake2b(name, key=self._fingerprint, salt=rank.to_bytes(8, "little"),
                               digest_size=KEY_BYTES).digest()

    def parts(self, name):
        """The keys of all ranks' parts."""
        return [self.part(name, rank) for rank in range(self._ranks)]

    def whole(self, names, present):
        """Which blocks are complete, from a flag per part in the order of parts(): all ranks see the same."""
        return [all(present[idx * self._ranks:(idx + 1) * self._ranks]) for idx in range(len(names))]
