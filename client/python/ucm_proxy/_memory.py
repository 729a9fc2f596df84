# SPDX-License-Identifier: Apache-2.0
"""Where blocks lie: buffers of this process, and tensors in its memory or in that of a device."""

from ucm_proxy._native import MEMORY_CUDA, MEMORY_HOST, address_of

_KINDS = {"cpu": MEMORY_HOST, "cuda": MEMORY_CUDA}  # by torch's name of a type of device


def is_tensor(memory):
    """Whether memory is a tensor of torch, or answers like one."""
    return hasattr(memory, "data_ptr")


def memory_of(memory):
    """(address, bytes, kind) of a contiguous buffer or tensor, as StoreWorker.register_memory takes them.

    A tensor is what has data_ptr(), numel(), element_size(), is_contiguous() and device, as torch's do. The
    caller keeps the memory for as long as a region or a job uses it.
    """
    if not is_tensor(memory):
        return *address_of(memory), MEMORY_HOST
    kind = _KINDS.get(memory.device.type)
    if kind is None:
        raise ValueError(f"a tensor on {memory.device.type}; blocks lie on cpu or cuda")
    if not memory.is_contiguous():
        raise ValueError("the tensor is not contiguous: describe its pieces by a BlockPayload")
    return memory.data_ptr(), memory.numel() * memory.element_size(), kind


def handle_of(event):
    """What IoContext.prerequisite_handle is for an event: the number of a torch.cuda.Event, or an int."""
    if event is None:
        return 0
    handle = event if isinstance(event, int) else event.cuda_event
    if handle == 0:
        raise ValueError("the event was never recorded: nothing would be waited for")
    return handle
