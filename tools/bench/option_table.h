/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file option_table.h
 * Command lines of the commands: one table parses and documents each. `--name value`, `--name=value` and
 * flags; texts are borrowed from the command line. One thread.
 */

#ifndef UC_BENCH_OPTION_TABLE_H
#define UC_BENCH_OPTION_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

enum uc_option_kind {
    UC_OPTION_FLAG,   /* bool, no value */
    UC_OPTION_ON_OFF, /* bool */
    UC_OPTION_TEXT,   /* const char * */
    UC_OPTION_CHOICE, /* const char *, one of `choices` */
    UC_OPTION_COUNT,  /* uint64_t */
    UC_OPTION_BYTES,  /* uint64_t, with a unit */
    UC_OPTION_CUSTOM, /* what `set` makes of it */
};

struct uc_option;

/** Parse @p text into the member at @p target. @retval UC_ERR_INVALID_PARAM the text names the option */
typedef enum uc_status (*uc_option_set_fn)(
        const struct uc_option *option, const char *text, void *target);

/** One row. */
struct uc_option {
    const char *name;
    enum uc_option_kind kind;
    const char *value_text; /* in the help; NULL for flags */
    const char *default_text;
    uint64_t min; /* of numbers */
    uint64_t max;
    const char *const *choices; /* ends with NULL */
    size_t offset;              /* in the struct that is filled */
    const char *help;
    uc_option_set_fn set;
};

/** Put the defaults of the rows into @p target. */
UC_MUST_CHECK enum uc_status uc_options_default(
        const struct uc_option *table, size_t count, void *target);

/**
 * @p argv holds no command name. `-h` is `--help`.
 *
 * @retval UC_ERR_INVALID_PARAM  unknown, malformed or out of range; the text says which
 */
UC_MUST_CHECK enum uc_status uc_options_parse(
        const struct uc_option *table, size_t count, int argc, char *const argv[], void *target);

/** One line per row. */
void uc_options_print(const struct uc_option *table, size_t count, FILE *file);

/* Pieces for a row's own `set`. */

/** Decimal digits alone: no sign, no space. */
UC_MUST_CHECK enum uc_status uc_option_digits(const char *text, uint64_t *value_out);
/** A number within the row's bounds. */
UC_MUST_CHECK enum uc_status uc_option_number(
        const struct uc_option *option, const char *text, uint64_t *value_out);
/** Numbers with commas between them. @param[out] count_out of @p values, at most @p capacity */
UC_MUST_CHECK enum uc_status uc_option_numbers(const struct uc_option *option, const char *text,
        uint64_t *values, size_t capacity, size_t *count_out);

#endif /* UC_BENCH_OPTION_TABLE_H */
