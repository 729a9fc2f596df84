/* SPDX-License-Identifier: Apache-2.0 */

/** @file text.h Texts that may hold bytes of a peer, on their way to people. Pure functions; any thread. */

#ifndef UC_BASE_TEXT_H
#define UC_BASE_TEXT_H

#include <stddef.h>

/** @return bytes of the UTF-8 sequence at @p text (terminated), 0 if it is none. */
size_t uc_text_utf8_length(const char *text);

/** Replace control characters and what is no UTF-8 by '?', in place: a text stays one printable line. */
void uc_text_sanitize(char *text);

#endif /* UC_BASE_TEXT_H */
