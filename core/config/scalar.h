/* SPDX-License-Identifier: Apache-2.0 */

/** @file scalar.h Type plain text by YAML's core rules; shared by the file reader and the command line. */

#ifndef UC_CONFIG_SCALAR_H
#define UC_CONFIG_SCALAR_H

#include <stddef.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/config/dict_value.h"

/**
 * Bool, int64, double, else text.
 *
 * @param[in] text  @p length bytes and a terminator
 * @retval UC_ERR_INVALID_PARAM  null or empty, an integer beyond 64 bits, or a zero byte inside
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_config_scalar(
        const char *text, size_t length, struct uc_dict_value *value_out);

#endif /* UC_CONFIG_SCALAR_H */
