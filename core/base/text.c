/* SPDX-License-Identifier: Apache-2.0 */

#include "core/base/text.h"

size_t
uc_text_utf8_length(const char *text)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length = bytes[0] < 0x80                       ? 1
                    : bytes[0] >= 0xc2 && bytes[0] < 0xe0 ? 2
                    : (bytes[0] & 0xf0) == 0xe0           ? 3
                    : bytes[0] >= 0xf0 && bytes[0] < 0xf5 ? 4
                                                          : 0;

    /* The text ends with a zero, which continues no sequence: no read passes it. */
    for (size_t idx = 1; idx < length; idx++) {
        if ((bytes[idx] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return length;
}

void
uc_text_sanitize(char *text)
{
    while (*text != '\0') {
        size_t length = uc_text_utf8_length(text);

        if (length == 0 || (unsigned char)*text < 0x20 || *text == 0x7f) {
            *text = '?';
            length = 1;
        }
        text += length;
    }
}
