/* SPDX-License-Identifier: Apache-2.0 */

#include "core/config/scalar.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool
is_one_of(const char *text, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcmp(text, *words) == 0) {
            return true;
        }
    }

    return false;
}

static size_t
digits_at(const char *text)
{
    size_t count = 0;

    while (isdigit((unsigned char)text[count])) {
        count++;
    }
    return count;
}

/* [-+]? digits, 0o octal, 0x hexadecimal. */
static bool
is_integer(const char *text, int *base_out)
{
    const char *digits = text + (*text == '-' || *text == '+');
    const char *allowed = "0123456789";
    int base = 10;

    if (text[0] == '0' && text[1] == 'o') {
        allowed = "01234567";
        digits = text + 2;
        base = 8;
    } else if (text[0] == '0' && text[1] == 'x') {
        allowed = "0123456789abcdefABCDEF";
        digits = text + 2;
        base = 16;
    }
    if (*digits == '\0' || digits[strspn(digits, allowed)] != '\0') {
        return false;
    }

    *base_out = base;
    return true;
}

static enum uc_status
parse_integer(const char *text, int base, struct uc_dict_value *value_out)
{
    long long number;

    errno = 0;
    number = strtoll(base == 8 ? text + 2 : text, NULL, base);
    if (errno != 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "'%.64s' is more than 64 bits hold", text);
    }

    value_out->type = UC_DICT_INT;
    value_out->as.integer = number;
    return UC_OK;
}

/* [-+]? ( digits [. digits*] | . digits ) [ e [-+]? digits ] */
static bool
is_float(const char *text)
{
    const char *rest = text + (*text == '-' || *text == '+');
    size_t whole = digits_at(rest);
    size_t fraction = 0;

    rest += whole;
    if (*rest == '.') {
        fraction = digits_at(rest + 1);
        rest += 1 + fraction;
    }
    if (whole + fraction == 0) {
        return false;
    }
    if (*rest == 'e' || *rest == 'E') {
        rest++;
        rest += *rest == '-' || *rest == '+';
        if (digits_at(rest) == 0) {
            return false;
        }
        rest += digits_at(rest);
    }
    return *rest == '\0';
}

/* The host's locale must not decide what a point means. */
static enum uc_status
parse_float(const char *text, struct uc_dict_value *value_out)
{
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);

    if (locale == (locale_t)0) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "number '%.64s': out of memory", text);
    }

    value_out->type = UC_DICT_DOUBLE;
    value_out->as.number = strtod_l(text, NULL, locale);
    freelocale(locale);
    return UC_OK;
}

static bool
special_float(const char *text, double *number_out)
{
    static const char *const infinite[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nan_words[] = {".nan", ".NaN", ".NAN", NULL};
    const char *word = text + (*text == '-' || *text == '+');

    if (is_one_of(word, infinite)) {
        *number_out = *text == '-' ? -(double)INFINITY : (double)INFINITY;
        return true;
    }
    if (is_one_of(text, nan_words)) {
        *number_out = (double)NAN;
        return true;
    }
    return false;
}

enum uc_status
uc_config_scalar(const char *text, size_t length, struct uc_dict_value *value_out)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", NULL};
    static const char *const falses[] = {"false", "False", "FALSE", NULL};
    double number = 0;
    int base = 0;

    if (strlen(text) != length) {
        return uc_error(UC_ERR_INVALID_PARAM, "value contains a zero byte");
    }
    if (is_one_of(text, nulls)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "no value; leave the key out for its default, or write \"\" for empty text");
    }
    if (is_one_of(text, trues) || is_one_of(text, falses)) {
        value_out->type = UC_DICT_BOOL;
        value_out->as.boolean = is_one_of(text, trues);
        return UC_OK;
    }
    if (is_integer(text, &base)) {
        return parse_integer(text, base, value_out);
    }
    if (is_float(text)) {
        return parse_float(text, value_out);
    }
    if (special_float(text, &number)) {
        value_out->type = UC_DICT_DOUBLE;
        value_out->as.number = number;
        return UC_OK;
    }
    return uc_dict_value_text(text, length, value_out);
}
