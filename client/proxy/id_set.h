/* SPDX-License-Identifier: Apache-2.0 */

/** @file id_set.h Finds a block id that a list names twice. Pure function; any thread. */

#ifndef UC_PROXY_ID_SET_H
#define UC_PROXY_ID_SET_H

#include <stddef.h>

#include <ucm/block.h>
#include <ucm/status.h>

/**
 * Expected time linear in @p count; allocates for the call when the list is long.
 *
 * @retval UC_ERR_INVALID_PARAM  an id occurs twice; the text names both positions
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_id_set_check_distinct(const struct uc_block_id *ids, size_t count);

#endif /* UC_PROXY_ID_SET_H */
