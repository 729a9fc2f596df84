/* SPDX-License-Identifier: Apache-2.0 */

/* Configuration text. */

#include <ucm/dict.h>

#include "core/config/fields.h"
#include "test/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct uc_dict *dict;

    if (uc_yaml_read_text((const char *)bytes, length, "fuzz", &dict) == UC_OK) {
        uc_dict_destroy(dict);
    }
    return 0;
}
