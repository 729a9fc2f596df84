/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file progress.h
 * What moves jobs on: rounds, and the sleep between them. The progress thread does nothing else; without it
 * (`progress: caller`) get_finished and wait do the same on the data thread, see caller.c.
 *
 * Threads: the progress thread; in caller mode the data thread takes its place everywhere.
 */

#ifndef UC_REMOTE_PROGRESS_H
#define UC_REMOTE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

struct uc_data_plane;

/** Start the progress thread, on the CPU that the configuration names. */
UC_MUST_CHECK enum uc_status uc_progress_start(struct uc_data_plane *plane);

/**
 * Do once all there is to do.
 *
 * @param[out] busy_out  whether there was something, so that there may be more
 * @return monotonic ms at which there is something to do at the latest
 */
uint64_t uc_progress_round(struct uc_data_plane *plane, bool *busy_out);

/** Poll for what comes within microseconds, cheaper to wait for than to sleep for. @return whether it came */
bool uc_progress_spin(struct uc_data_plane *plane);

/** Note events, and wait for them unless @p busy: until @p next_ms or for @p limit_ms (−1 = no limit). */
void uc_progress_sleep(struct uc_data_plane *plane, uint64_t next_ms, bool busy, int64_t limit_ms);

/** Before sleeping. @return false if a transport has work already; next_ms is lowered to what they want */
bool uc_progress_arm(struct uc_data_plane *plane, uint64_t *next_ms);

/** @return ms until then, less where something has to be polled */
int uc_progress_timeout(const struct uc_data_plane *plane, uint64_t next_ms);

/** End everything: nothing touches the engine's memory afterwards. */
void uc_progress_shut_down(struct uc_data_plane *plane);

/** Caller mode: a round, then up to @p left_ms of sleep if it ended nothing (uc_completion_queue_set_driver). */
void uc_caller_drive(void *context, int64_t left_ms);

/**
 * Caller mode: the descriptor that is readable while there is something to collect or to do. Made by the first
 * call. @return -1 if the system has none left (logged)
 */
int uc_caller_event_fd(struct uc_data_plane *plane);

/** Close what uc_caller_event_fd() opened. */
void uc_caller_close(struct uc_data_plane *plane);

#endif /* UC_REMOTE_PROGRESS_H */
