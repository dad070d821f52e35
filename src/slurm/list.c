/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/list.h"

#include "slurm/adapter.h"

static void write_list(const struct list_kind *kind, const void *ctx, struct diff *told,
                       struct answer *ret)
{
    diff_begin(told, kind->name, &ret->list);
    kind->add(ctx, told, &ret->list);
    if (!diff_end(told, &ret->list)) {
        strbuf_reset(&ret->list);
        answer_set(ret, "unchanged", json_true());
    }
}

void list_answer(struct list *l, const struct list_kind *kind, void *ctx, const struct request *r,
                 struct answer *ret)
{
    bool diff = false, fresh = false;
    struct err e = {0};
    char what[64];
    time_t time;
    int error;

    if (request_flag(r, "diff", &diff, &e) == -EINVAL ||
        request_flag(r, "fresh", &fresh, &e) == -EINVAL) {
        answer_fail(ret, FAULT_INVALID_REQUEST, 0, "%s", e.text);
        return;
    }
    error = kind->refresh(ctx, &time);
    if (error) {
        STR_PRINTF(what, "the list of %s", kind->name);
        answer_slurm(ret, error, false, what);
        return;
    }
    answer_set(ret, "time", json_integer(time));
    if (fresh)
        diff_forget(l->told);
    if (diff && l->is_told && !fresh) {
        answer_set(ret, "unchanged", json_true());
        return;
    }
    write_list(kind, ctx, diff ? l->told : NULL, ret);
    l->is_told = diff || (l->is_told && !fresh);
}
