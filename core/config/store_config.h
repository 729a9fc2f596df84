/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file store_config.h
 * What the setups of all stores read in the same way: a table of keys that only warns of unknown ones, switches,
 * and what the assembler adds (ucm/setup.h). Threads: any, on a dictionary that nobody changes meanwhile.
 */

#ifndef UC_CONFIG_STORE_CONFIG_H
#define UC_CONFIG_STORE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include <ucm/assembler.h>
#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/setup.h>
#include <ucm/status.h>
#include <ucm/store.h>

#include "core/config/fields.h"

/**
 * As uc_field_apply(), but a key that is unknown is ignored with a warning that names the nearest known one
 * (R-14.6).
 *
 * @param[in] where       the store in texts, e.g. "posix store"
 * @param[in] other_keys  NULL-terminated: keys that the store reads itself; those of ucm/setup.h are known
 * @retval UC_ERR_INVALID_PARAM  wrong type, out of range, missing
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_config_apply_store_fields(
        const struct uc_field *fields, size_t field_count, const struct uc_dict *dict,
        const char *where, const char *const *other_keys, void *target);

/**
 * Read a key that is a boolean or the text "on" or "off": readers of YAML differ in what these words are.
 *
 * @param[out] value_out  stays as it is where the key is absent
 * @retval UC_ERR_INVALID_PARAM
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_config_read_switch(
        const struct uc_dict *dict, const char *where, const char *key, bool *value_out);

/** What an assembler says of a store's place. A plain value; the pointers are borrowed. */
struct uc_store_place {
    enum uc_role role; /* both, if nothing is said */
    char node_path[UC_FIELD_STRING_BYTES];
    const struct uc_prerequisite *prerequisite; /* NULL = no hook */
    struct uc_store *lower;                     /* NULL at the bottom */
    size_t tiers_below;
};

/** @retval UC_ERR_INVALID_PARAM  a role that does not exist */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_config_read_place(
        const struct uc_dict *dict, const char *where, struct uc_store_place *place_out);

/** @retval UC_ERR_UNSUPPORTED  there is a store below one that uses none */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_config_refuse_lower(
        const struct uc_store_place *place, const char *where);

#endif /* UC_CONFIG_STORE_CONFIG_H */
