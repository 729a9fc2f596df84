/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file protocol_document.h
 * Byte-level examples out of net/PROTOCOL.md: a fenced block that begins with "```hex NAME"; what follows
 * a '#' on a line is a comment. One thread.
 */

#ifndef UC_TEST_PROTOCOL_DOCUMENT_H
#define UC_TEST_PROTOCOL_DOCUMENT_H

#include <stddef.h>
#include <stdint.h>

/** @return bytes written to @p bytes; fails the test where the example is missing or malformed. */
size_t uc_protocol_example(const char *name, uint8_t *bytes, size_t room);

/** @return how many examples the document has whose names begin with none of @p except, which ends with NULL. */
size_t uc_protocol_example_count(const char *const *except);

/** Fail the test, with the bytes printed as the document wants them, unless they are the example. */
void uc_protocol_compare(const char *name, const uint8_t *bytes, size_t length);

#endif /* UC_TEST_PROTOCOL_DOCUMENT_H */
