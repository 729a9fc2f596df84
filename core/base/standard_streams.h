/* SPDX-License-Identifier: Apache-2.0 */

/** @file standard_streams.h What a program does about its standard streams, at its start and at its end. */

#ifndef UC_BASE_STANDARD_STREAMS_H
#define UC_BASE_STANDARD_STREAMS_H

#include <ucm/compiler.h>
#include <ucm/status.h>

/**
 * Occupy the descriptors 0 to 2 that whoever started us has closed, so that no socket or memory file gets their
 * numbers and then the log's lines. Their use fails. First thing in main.
 *
 * @retval UC_ERR_OS_API  /dev/null cannot be opened
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_standard_streams_hold(void);

/**
 * Write out what is left for standard output. Last thing in main.
 *
 * @retval UC_ERR_OS_API  not all that was printed has arrived
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_standard_streams_finish(void);

#endif /* UC_BASE_STANDARD_STREAMS_H */
