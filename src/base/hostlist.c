/* SPDX-License-Identifier: Apache-2.0 */

/* The list is never expanded: "n[0-99999999]" costs no more than "n1". A number within brackets is
 * all digits that stand in the name at its place, with as many leading zeros as the list has. */

#include "base/hostlist.h"

#include "base/str.h"

#include <string.h>

#define NUMBER_DIGITS_MAX 18

static size_t count_digits(const char *s)
{
    return strspn(s, "0123456789");
}

static long long number_of(const char *s, size_t n)
{
    long long v = 0;

    for (size_t i = 0; i < n; i++)
        v = v * 10 + (s[i] - '0');
    return v;
}

/* One of "1-4" or "07" at *s, which is moved behind it; false: it is none. */
static bool take_range(const char **s, long long *ret_low, long long *ret_high, size_t *ret_width)
{
    size_t n = count_digits(*s);

    if (n == 0 || n > NUMBER_DIGITS_MAX)
        return false;
    *ret_width = n;
    *ret_low = *ret_high = number_of(*s, n);
    *s += n;
    if (**s != '-')
        return true;
    n = count_digits(++*s);
    if (n == 0 || n > NUMBER_DIGITS_MAX)
        return false;
    *ret_high = number_of(*s, n);
    *s += n;
    return true;
}

/* set stands behind the bracket; *ret_end behind the closing one. */
static bool set_has(const char *set, const char *digits, size_t n, const char **ret_end)
{
    long long low, high, v = n <= NUMBER_DIGITS_MAX ? number_of(digits, n) : -1;
    size_t width;
    bool found = false;

    while (take_range(&set, &low, &high, &width)) {
        bool padded = n == width || (n > width && digits[0] != '0');

        found |= padded && v >= low && v <= high;
        if (*set == ',')
            set++;
    }
    *ret_end = *set == ']' ? set + 1 : NULL;
    return found;
}

/* One element of the list, up to a comma outside of brackets or the end. */
static bool element_is(const char *s, const char *name)
{
    while (*s != '\0' && *s != ',') {
        size_t n;

        if (*s != '[') {
            if (*s++ != *name++)
                return false;
            continue;
        }
        n = count_digits(name);
        if (n == 0 || !set_has(s + 1, name, n, &s) || !s)
            return false;
        name += n;
    }
    return *name == '\0';
}

static const char *next_element(const char *s)
{
    bool inside = false;

    for (; *s != '\0' && (inside || *s != ','); s++)
        inside = *s == '[' || (inside && *s != ']');
    return *s == ',' ? s + 1 : NULL;
}

bool hostlist_has(const char *list, const char *name)
{
    if (name[0] == '\0')
        return false;
    for (const char *s = list; s; s = next_element(s))
        if (element_is(s, name))
            return true;
    return false;
}

#define CUT ",..."

bool hostlist_is_cut(const char *list)
{
    return str_endswith(list, CUT);
}

/* Whether a list that ends within this bracket still names hosts: "r[1" of "r[1-2]n[3]" does not.
 */
static bool ends_the_name(const char *bracket)
{
    const char *end = strchr(bracket, ']');

    return end && (end[1] == ',' || end[1] == '\0');
}

/* The bytes in front of the last comma that a list of at most so many can end at. */
static size_t last_cut(const char *list, size_t room, bool *ret_inside)
{
    const char *bracket = NULL;
    size_t at = 0;

    for (size_t i = 0; i <= room; i++) {
        if (list[i] == '[')
            bracket = list + i;
        else if (list[i] == ']')
            bracket = NULL;
        else if (list[i] == ',' && (!bracket || ends_the_name(bracket))) {
            at = i;
            *ret_inside = bracket;
        }
    }
    return at;
}

void hostlist_copy(char *dst, size_t size, const char *list)
{
    bool inside = false;
    size_t n;

    if (strlen(list) < size) {
        str_copy(dst, size, list);
        return;
    }
    n = last_cut(list, size - sizeof("]" CUT), &inside);
    str_printf(dst, size, "%.*s%s%s", (int)n, list, inside ? "]" : "", CUT);
}
