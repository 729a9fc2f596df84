/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file policy_spec.h
 * Policies on a command line: NAME, or NAME:KEY=VALUE:KEY=VALUE with parameters of its own; a list of them
 * is separated by commas. One thread.
 */

#ifndef UC_BENCH_POLICY_SPEC_H
#define UC_BENCH_POLICY_SPEC_H

#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/status.h>

enum {
    UC_POLICY_SPEC_BYTES = 192
};

/** One policy. Release with uc_policy_spec_fini(). */
struct uc_policy_spec {
    char text[UC_POLICY_SPEC_BYTES]; /* as given */
    char name[UC_POLICY_SPEC_BYTES];
    struct uc_dict *parameters; /* owned; NULL = none given */
};

/**
 * Take the first one of the list.
 *
 * @param[in,out] list  moved behind it and its comma; NULL when it was the last
 * @retval UC_ERR_INVALID_PARAM  empty, too long, characters that no name has, a parameter without value
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_policy_spec_take(
        const char **list, struct uc_policy_spec *spec_out);
void uc_policy_spec_fini(struct uc_policy_spec *spec);

#endif /* UC_BENCH_POLICY_SPEC_H */
