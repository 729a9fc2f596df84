/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file warn_gate.h
 * Lets a warning through once in a while, for what a peer could cause again and again: nobody may fill
 * the disk from outside. A gate belongs to one thread.
 */

#ifndef UC_BASE_WARN_GATE_H
#define UC_BASE_WARN_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include <ucm/clock.h>

enum {
    UC_WARN_PAUSE_MS = 1000, /* for those who have no reason to take another */
};

/** All zero: open. */
struct uc_warn_gate {
    uint64_t shut_until_ms;
};

/** @return whether a warning may be logged now; then the gate is shut for @p pause_ms. */
static inline bool
uc_warn_gate_pass(struct uc_warn_gate *gate, uint64_t now_ms, uint64_t pause_ms)
{
    if (now_ms < gate->shut_until_ms) {
        return false;
    }

    gate->shut_until_ms = uc_time_add_ms(now_ms, pause_ms);
    return true;
}

#endif /* UC_BASE_WARN_GATE_H */
