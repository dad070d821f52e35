/* SPDX-License-Identifier: Apache-2.0 */

/* DeepSpeed's launcher prints
 *
 *   global_rank_mapping=defaultdict(<class 'list'>, {'n1': [0, 1, 2, 3], 'n2': [4, 5, 6, 7]})
 *
 * What proves that these are ranks of the whole job, and not devices of each node, is the numbers
 * themselves: they begin with 0 and go on from node to node without a gap or a repetition. */

#include "extract/mapping.h"

#include "base/str.h"

#include <ctype.h>
#include <string.h>

#define LINE_LEAST 24
#define RANKS_MOST 1000000

static bool skip(struct mapping *m, const char *text)
{
    size_t n = strlen(text);

    if ((size_t)(m->end - m->at) < n || memcmp(m->at, text, n) != 0)
        return false;
    m->at += n;
    return true;
}

static bool skip_quote(struct mapping *m)
{
    return skip(m, "'") || skip(m, "\"");
}

static bool skip_number(struct mapping *m, int32_t *ret)
{
    const char *from = m->at;

    for (*ret = 0; m->at < m->end && isdigit((unsigned char)*m->at) && *ret < RANKS_MOST; m->at++)
        *ret = *ret * 10 + (*m->at - '0');
    return m->at > from;
}

static bool skip_name(struct mapping *m, struct mapped_node *ret)
{
    const char *from = m->at;

    while (m->at < m->end && (isalnum((unsigned char)*m->at) || strchr("-._", *m->at)))
        m->at++;
    if (m->at == from || (size_t)(m->at - from) >= sizeof(ret->name))
        return false;
    str_copy_n(ret->name, sizeof(ret->name), from, (size_t)(m->at - from));
    return true;
}

/* "'n2': [4, 5, 6, 7]" */
bool mapping_next(struct mapping *m, struct mapped_node *ret)
{
    int32_t rank;

    if (!skip_quote(m) || !skip_name(m, ret) || !skip_quote(m) || !skip(m, ": ["))
        return false;
    ret->first = m->next;
    do {
        if (!skip_number(m, &rank) || rank != m->next)
            return false;
        m->next++;
    } while (skip(m, ", "));
    ret->last = m->next - 1;
    return skip(m, "]") && (skip(m, ", ") || skip(m, "}"));
}

bool mapping_find(const struct line *l, struct mapping *ret)
{
    const char *end = l->text + l->len, *open;
    struct mapped_node node;
    struct mapping m;
    size_t nodes = 0;

    if (l->len < LINE_LEAST || !(end[-1] == '}' || (end[-1] == ')' && end[-2] == '}')))
        return false;
    open = memchr(l->text, '{', l->len);
    if (!open)
        return false;
    *ret = m = (struct mapping){.at = open + 1, .end = end};
    while (mapping_next(&m, &node))
        nodes++;
    return nodes > 1 && nodes <= MAPPING_NODES && m.at[-1] == '}';
}
