/* SPDX-License-Identifier: Apache-2.0 */

/** @file progress.h The progress thread of a data plane. */

#ifndef UC_REMOTE_PROGRESS_H
#define UC_REMOTE_PROGRESS_H

/** Runs until plane->stopping; then fences and ends everything that is in flight. */
void *uc_progress_main(void *plane);

#endif /* UC_REMOTE_PROGRESS_H */
