/* SPDX-License-Identifier: Apache-2.0 */

/* Anybody can have the kernel log "python3[77]: segfault at 0 ... in NVRM: Xid (PCI:0000:9b:00):
 * 79", by a program of that name. So a match counts only where nobody else's text can be: at the
 * beginning of the record, or behind the names of subsystems and devices ("pcieport 0000:00:01.0:
 * AER: "); not where the record is about a process, which it begins with; and only if it is longer
 * than what a process can call itself, for some records begin with that. */

#include "extract/kernel_line.h"

#include <ctype.h>
#include <string.h>

#define LABELS_MAX    4 /* "LustreError: 167-0: scr-OST0009-osc: " */
#define WORDS_MAX     3 /* of one: "sd 0:0:0:0: [sda] tag#12 " */
#define LEAD_MAX      96
#define LEAD_PUNCTUAL "_.:/@#*+-()[]{}"

/* Names of subsystems and devices, and nothing else: no sentence, no quotes, no assignment. */
static bool is_lead(const char *text, size_t len)
{
    size_t labels = 0, words = 0;

    if (len > LEAD_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        bool begins = text[i] != ' ' && (i == 0 || text[i - 1] == ' ');

        if (text[i] != ' ' && !isalnum((unsigned char)text[i]) && !strchr(LEAD_PUNCTUAL, text[i]))
            return false;
        words += begins;
        if (words > WORDS_MAX)
            return false;
        if (text[i] == ' ' && i > 0 && text[i - 1] == ':') {
            words = 0;
            labels++;
        }
    }
    return labels <= LABELS_MAX;
}

/* "[1234]" or "(1234)", as behind "python3" or "python3 ". */
static bool is_pid(const char *s, size_t len)
{
    size_t n = 1;

    while (n < len && isdigit((unsigned char)s[n]))
        n++;
    return n > 1 && n < len && s[n] == (s[0] == '[' ? ']' : ')');
}

static bool names_process(const char *text, size_t len)
{
    static const char stalls[] = ": page allocation ";

    for (size_t i = 0; i < len; i++)
        if ((text[i] == '[' || (text[i] == '(' && i > 0 && text[i - 1] == ' ')) &&
            is_pid(text + i, len - i))
            return true;
    return memmem(text, len, stalls, strlen(stalls));
}

bool kernel_line_vouches(const char *text, size_t start, size_t end)
{
    return end - start >= KERNEL_WORDS_MIN && is_lead(text, start) && !names_process(text, end);
}
