/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/remote/verify.h"

#include <string.h>

/* @return NULL if the footer belongs to the wanted block, or what it shows instead */
static const char *
compare_identity(const struct uc_verify_want *want, const struct uc_slot_footer *footer)
{
    if (memcmp(&footer->key, want->key, sizeof(footer->key)) != 0) {
        return "the footer names another key";
    }
    if (footer->generation != want->generation || want->generation == 0) {
        return "the footer shows another generation";
    }
    if (footer->checksum_kind != UC_CHECKSUM_NONE && footer->checksum_kind != UC_CHECKSUM_XXH3_64) {
        return footer->checksum_kind == UC_CHECKSUM_UNWRITTEN ? "the footer was never written"
                                                              : "the checksum kind is unknown";
    }
    if (footer->length_bytes != want->length_bytes) {
        return "the footer shows another length";
    }

    return NULL;
}

static bool
checksum_matches(const struct uc_verify_want *want, const struct uc_slot_footer *footer)
{
    bool whole = want->offset_bytes == 0 && want->size_bytes == footer->length_bytes;

    if (!want->check_checksum || !whole || footer->checksum_kind != UC_CHECKSUM_XXH3_64) {
        return true;
    }

    if (want->checksum != NULL) {
        return *want->checksum == footer->checksum;
    }
    return uc_slot_checksum(want->key, want->generation, want->pieces, want->piece_count) ==
           footer->checksum;
}

enum uc_status
uc_verify_block(
        const struct uc_verify_want *want, const uint8_t *footer, const char **complaint_out)
{
    struct uc_slot_footer parsed;

    *complaint_out = NULL;
    if (uc_slot_footer_get(footer, &parsed) != UC_OK) {
        *complaint_out = "no footer where one belongs";
        return UC_ERR_NOT_FOUND;
    }
    if (parsed.state == UC_FOOTER_RESERVED || parsed.state == UC_FOOTER_FREE) {
        /* Released or rewritten since the token was minted: nothing the server does not know. */
        return UC_ERR_NOT_FOUND;
    }
    if (parsed.state != UC_FOOTER_COMMITTED) {
        *complaint_out = "the footer shows an unknown state";
        return UC_ERR_NOT_FOUND;
    }

    *complaint_out = compare_identity(want, &parsed);
    if (*complaint_out != NULL) {
        return UC_ERR_NOT_FOUND;
    }
    if (want->offset_bytes > parsed.length_bytes ||
            want->size_bytes > parsed.length_bytes - want->offset_bytes) {
        return UC_ERR_INVALID_PARAM;
    }
    if (!checksum_matches(want, &parsed)) {
        *complaint_out = "the checksum does not fit the bytes";
        return UC_ERR_NOT_FOUND;
    }

    return UC_OK;
}
