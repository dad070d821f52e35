/* SPDX-License-Identifier: Apache-2.0 */

/* Checks of many nodes, and kernel lines that were collected from them, name the node in front of
 * what they say, in whatever form their collector has:
 *
 *   [preflight] gx231   GPU 6: row remapping failed
 *   ERROR healthcheck: n12: Xid 79
 *   row remapping failed on node n12
 *
 * What stands in front is read word by word: tags in brackets, levels, the name of a program before
 * a colon and clocks are passed over, the first word that can only be a host is the name, and
 * anything else ends the search there. Further on a name counts only behind a word that announces
 * one. Devices, models and numbers of anything look like hosts, and are none. */

#include "extract/subject.h"

#include "base/str.h"

#include <ctype.h>
#include <string.h>

#define WORDS_MAX  6   /* that are passed over */
#define REPORT_MAX 400 /* bytes in which a name is sought */
#define NAME_MIN   3

struct word {
    const char *s;
    size_t len;
};

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_';
}

static struct word word_at(const char *s, const char *end)
{
    const char *from = s;

    while (s < end && is_name_char(*s))
        s++;
    while (s > from && s[-1] == '.')
        s--;
    return (struct word){from, (size_t)(s - from)};
}

static bool word_is(const struct word *w, const char *text)
{
    return strlen(text) == w->len && memcmp(w->s, text, w->len) == 0;
}

/* What is numbered on a node, or in a program, by the letters before the number. */
static bool is_numbered(const struct word *w)
{
    static const char *const kinds[] = {
        "attempt", "bf",   "bnxt",   "bond",   "br",     "core",    "cpu",  "cuda",     "cxi",
        "dev",     "dimm", "disk",   "dm",     "drbd",   "driver",  "ecc",  "efa",      "en",
        "enp",     "ens",  "epoch",  "eth",    "fp",     "gpu",     "hfi",  "ib",       "ibp",
        "int",     "irq",  "iter",   "layer",  "lib",    "link",    "loop", "md",       "mlx",
        "mmcblk",  "nbd",  "numa",   "nv",     "nvidia", "nvlink",  "nvme", "nvswitch", "pci",
        "pcie",    "pid",  "port",   "python", "rank",   "rbd",     "row",  "sd",       "sda",
        "sdb",     "sm",   "socket", "stage",  "step",   "sxm",     "task", "test",     "thread",
        "tid",     "tty",  "v",      "vd",     "vda",    "version", "xid",  "zram"};
    size_t n = 0;

    while (n < w->len && isalpha((unsigned char)w->s[n]))
        n++;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (strlen(kinds[i]) == n && memcmp(kinds[i], w->s, n) == 0)
            return true;
    return false;
}

/* "a100", "gb200", "mi300x", "h100-sxm5": few letters, a round number. */
static bool is_model(const struct word *w)
{
    size_t letters = 0, digits;

    while (letters < w->len && isalpha((unsigned char)w->s[letters]))
        letters++;
    for (digits = letters; digits < w->len && isdigit((unsigned char)w->s[digits]);)
        digits++;
    return letters <= 2 && digits - letters == 3 && w->s[digits - 1] == '0' &&
           (digits == w->len || digits + 1 == w->len ||
            (w->len - digits > 4 && memcmp(w->s + digits, "-sxm", 4) == 0));
}

static bool is_file(const struct word *w)
{
    static const char *const endings[] = {".py", ".cc", ".cpp", ".cu",  ".c",
                                          ".h",  ".so", ".sh",  ".log", ".yaml"};

    for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
        size_t n = strlen(endings[i]);

        if (w->len > n && memcmp(w->s + w->len - n, endings[i], n) == 0)
            return true;
    }
    return false;
}

static bool is_host(const struct word *w)
{
    size_t digits = 0, underscores = 0;

    if (w->len < NAME_MIN || w->len >= NODE_NAME_LEN || !islower((unsigned char)w->s[0]))
        return false;
    for (size_t i = 0; i < w->len; i++) {
        digits += isdigit((unsigned char)w->s[i]) != 0;
        underscores += w->s[i] == '_';
    }
    return digits > 0 && underscores == 0 && isalnum((unsigned char)w->s[w->len - 1]) &&
           !is_numbered(w) && !is_model(w) && !is_file(w);
}

static bool announces(const struct word *w)
{
    static const char *const words[] = {"node", "Node", "host", "Host", "hostname", "on"};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (word_is(w, words[i]))
            return true;
    return false;
}

static bool is_level(const struct word *w)
{
    for (size_t i = 0; i < w->len; i++)
        if (!isupper((unsigned char)w->s[i]))
            return false;
    return w->len >= 4;
}

static const char *skip_separators(const char *s, const char *end)
{
    while (s < end && strchr(" \t:|-[](){}<>=,'\"", *s))
        s++;
    return s;
}

/* The name in front of the report. One in brackets may be a tag of the collector. */
static bool leading_name(const char *s, const char *end, struct word *ret)
{
    bool found = false;

    for (int i = 0; i < WORDS_MAX; i++) {
        struct word w;
        bool bracket;

        s = skip_separators(s, end);
        w = word_at(s, end);
        s += w.len;
        bracket = s < end && *s == ']';
        if (is_host(&w) && (s == end || strchr(" :|],)", *s))) {
            *ret = w;
            found = true;
            if (!bracket)
                break;
        } else if (w.len == 0 || (!bracket && !is_level(&w) && !announces(&w) && s < end &&
                                  *s != ':' && !isdigit((unsigned char)*w.s))) {
            break;
        }
    }
    return found;
}

/* "... on node n12", "host=n12" anywhere in s[0..end). */
static bool announced_name(const char *s, const char *end, struct word *ret)
{
    while (s < end) {
        struct word w = word_at(s, end);

        if (w.len == 0) {
            s++;
            continue;
        }
        s += w.len;
        if (!announces(&w))
            continue;
        *ret = word_at(skip_separators(s, end), end);
        if (is_host(ret))
            return true;
    }
    return false;
}

bool subject_node(const char *s, size_t len, char ret[NODE_NAME_LEN])
{
    struct word w;

    len = len < REPORT_MAX ? len : REPORT_MAX;
    if (!leading_name(s, s + len, &w) && !announced_name(s, s + len, &w))
        return false;
    str_copy_n(ret, NODE_NAME_LEN, w.s, w.len);
    return true;
}
