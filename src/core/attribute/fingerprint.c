/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/judge.h"

#include "base/hash.h"
#include "base/str.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Equal fingerprints are the same failure again (algorithms b.2.8): class, cause, signature and
 * the words of the decisive line. Every word with a digit in it is left out, and with it ranks,
 * nodes, devices, addresses, times and step numbers; a node's name without digits is dropped by
 * comparison. Who was hit is kept beside it, in the culprits. */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-' || c == '/';
}

static bool has_digit(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isdigit((unsigned char)s[i]))
            return true;
    return false;
}

static bool is_name(const char *s, size_t n, const char *name)
{
    return *name && strlen(name) == n && memcmp(s, name, n) == 0;
}

uint64_t fingerprint_template(uint64_t h, const struct signal *s)
{
    const char *at = s->text + (s->message < sizeof(s->text) ? s->message : 0);

    while (*at) {
        size_t n = 0;

        while (at[n] && is_word(at[n]))
            n++;
        if (n == 0) {
            at++;
            continue;
        }
        if (!has_digit(at, n) && !is_name(at, n, s->who.node) && !is_name(at, n, s->who.peer))
            h = hash_bytes(hash_bytes(h, at, n), " ", 1);
        at += n;
    }
    return h;
}

void fingerprint_make(struct judge *j)
{
    const char *class = incident_class_name(j->in->class), *cause = cause_name(j->in->cause);
    uint64_t h = HASH_INIT;

    h = hash_bytes(h, class, strlen(class) + 1);
    h = hash_bytes(h, cause, strlen(cause) + 1);
    h = hash_bytes(h, j->in->signature, strlen(j->in->signature) + 1);
    if (j->primary && j->in->class == CLASS_CRASH)
        h = fingerprint_template(h, &j->primary->s);
    snprintf(j->in->fingerprint, sizeof(j->in->fingerprint), "%016" PRIx64, h);
}
