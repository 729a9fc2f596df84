/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file branch_frame.h
 * The frame that a peer puts before the payload of every token of a branch:
 *
 *     offset 0   "UCP1"
 *     offset 4   branch index, u64 little endian
 *     offset 12  the branch's payload, unchanged, may be empty
 *
 * Plain functions, any thread.
 */

#ifndef UC_PROXY_BRANCH_FRAME_H
#define UC_PROXY_BRANCH_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>
#include <ucm/token.h>

enum {
    UC_BRANCH_FRAME_BYTES = 12 /* before the payload */
};

/**
 * Make a token with the keys of @p inner and its payload in a frame; the caller owns it.
 *
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_branch_frame_wrap(
        uint64_t branch, const struct uc_token *inner, struct uc_token **framed_out);

/**
 * Read the frame of a token, which is foreign. Data path: no allocation.
 *
 * @param[out] inner_out  the branch's token; borrows from @p framed
 * @retval UC_ERR_INVALID_PARAM  fewer than 12 bytes, another magic, or no such branch
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_branch_frame_parse(const struct uc_token *framed,
        size_t branch_count, size_t *branch_out, struct uc_token *inner_out);

#endif /* UC_PROXY_BRANCH_FRAME_H */
