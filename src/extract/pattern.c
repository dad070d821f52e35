/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes, not UTF: logs are cut in the middle of characters. An expression is compiled to machine
 * code when it is first used, for most of the catalogue never is. */

#include "extract/pattern.h"

#include "base/alloc.h"
#include "base/vec.h"

#include <errno.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* How much backtracking one search may cost. */
#define MATCH_LIMIT     200000
#define GROUPS_MAX      48
#define JIT_STACK_BYTES ((size_t)256 << 10)

static const char *const field_names[FIELD_MAX] = {
    [FIELD_RANK] = "rank",
    [FIELD_LOCAL_RANK] = "local_rank",
    [FIELD_NODE] = "node",
    [FIELD_DEVICE] = "device",
    [FIELD_PEER] = "peer",
    [FIELD_ADDRESS] = "address",
    [FIELD_TASKS] = "tasks",
    [FIELD_NODES] = "nodes",
    [FIELD_XID] = "xid",
    [FIELD_SXID] = "sxid",
    [FIELD_STEP] = "step",
    [FIELD_TOTAL] = "total",
    [FIELD_SECONDS] = "seconds",
    [FIELD_MILLISECONDS] = "milliseconds",
    [FIELD_LOSS] = "loss",
    [FIELD_GRAD_NORM] = "grad_norm",
    [FIELD_RATE] = "rate",
    [FIELD_SLOWEST] = "slowest",
    [FIELD_FASTEST] = "fastest",
    [FIELD_SEQ] = "seq",
    [FIELD_OP] = "op",
    [FIELD_NUMEL] = "numel",
    [FIELD_GROUP] = "group",
    [FIELD_ENQUEUED] = "enqueued",
    [FIELD_COMPLETED] = "completed",
    [FIELD_PID] = "pid",
    [FIELD_CODE] = "code",
    [FIELD_SIGNAL] = "signal",
    [FIELD_TIME] = "time",
};
DEFINE_NAMES(field, enum field, field_names);

struct group {
    enum field field;
    uint32_t number;
};

struct pattern {
    pcre2_code *code;
    bool jit_tried;
    VEC(struct group) groups;
};

struct pattern_space {
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

struct pattern_space *pattern_space_new(void)
{
    struct pattern_space *space = xnew(struct pattern_space);

    space->match = pcre2_match_data_create(GROUPS_MAX, NULL);
    space->context = pcre2_match_context_create(NULL);
    space->stack = pcre2_jit_stack_create((size_t)32 << 10, JIT_STACK_BYTES, NULL);
    if (!space->match || !space->context || !space->stack)
        abort(); /* out of memory, as in base/alloc.h */
    pcre2_set_match_limit(space->context, MATCH_LIMIT);
    pcre2_jit_stack_assign(space->context, NULL, space->stack);
    return space;
}

struct pattern_space *pattern_space_free(struct pattern_space *space)
{
    if (!space)
        return NULL;
    pcre2_jit_stack_free(space->stack);
    pcre2_match_context_free(space->context);
    pcre2_match_data_free(space->match);
    free(space);
    return NULL;
}

/* Finds what the named groups are; several groups may have one name. */
static int read_groups(struct pattern *p, struct err *e)
{
    uint32_t n = 0, size = 0;
    PCRE2_SPTR row = NULL;

    pcre2_pattern_info(p->code, PCRE2_INFO_NAMECOUNT, &n);
    pcre2_pattern_info(p->code, PCRE2_INFO_NAMEENTRYSIZE, &size);
    pcre2_pattern_info(p->code, PCRE2_INFO_NAMETABLE, &row);
    for (uint32_t i = 0; i < n; i++, row += size) {
        const char *name = (const char *)row + 2;
        enum field field = field_from_name(name);

        if (field == FIELD_INVALID)
            return err_set(e, -EINVAL, "'%s' is not the name of a field", name);
        *VEC_PUSH(&p->groups) = (struct group){field, (uint32_t)row[0] << 8 | row[1]};
    }
    return 0;
}

int pattern_new(const char *text, struct pattern **ret, struct err *e)
{
    _cleanup_(pattern_freep) struct pattern *p = xnew(struct pattern);
    PCRE2_UCHAR message[160];
    PCRE2_SIZE at;
    int code, r;

    p->code =
        pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                      PCRE2_DUPNAMES | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_UTF, &code, &at, NULL);
    if (!p->code) {
        pcre2_get_error_message(code, message, sizeof(message));
        return err_set(e, -EINVAL, "at character %zu: %s", at, (const char *)message);
    }
    r = read_groups(p, e);
    if (r < 0)
        return r;
    *ret = TAKE(p);
    return 0;
}

struct pattern *pattern_free(struct pattern *p)
{
    if (!p)
        return NULL;
    pcre2_code_free(p->code);
    VEC_DONE(&p->groups);
    free(p);
    return NULL;
}

bool pattern_match(struct pattern *p, struct pattern_space *space, const char *s, size_t len,
                   size_t from, bool whole, size_t *ret_start, size_t *ret_end)
{
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(space->match);
    uint32_t options = whole ? 0 : PCRE2_NOTBOL | PCRE2_NOTEOL;

    if (!p->jit_tried) {
        /* Without JIT (a kernel that forbids writable code) PCRE2 interprets. */
        pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE);
        p->jit_tried = true;
    }
    if (pcre2_match(p->code, (PCRE2_SPTR)s, len, from, options, space->match, space->context) < 0)
        return false;
    *ret_start = at[0];
    *ret_end = at[1];
    return true;
}

void pattern_captures(const struct pattern *p, const struct pattern_space *space, const char *s,
                      struct capture fields[FIELD_MAX])
{
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(space->match);
    uint32_t n = pcre2_get_ovector_count(space->match);

    VEC_FOREACH (&p->groups, g) {
        struct capture *c = &fields[g->field];

        if (c->s || g->number >= n || at[2 * g->number] == PCRE2_UNSET)
            continue;
        c->s = s + at[2 * g->number];
        c->len = at[2 * g->number + 1] - at[2 * g->number];
    }
}
