/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/adapter.h"

#include "slurm/words.h"

#include "base/alloc.h"

#include <slurm/slurm_errno.h>
#include <stdlib.h>

struct adapter {
    struct jobs *jobs;
    struct nodes *nodes;
};

struct adapter *adapter_new(void)
{
    struct adapter *a = xnew(struct adapter);

    a->jobs = jobs_new();
    a->nodes = nodes_new();
    return a;
}

struct adapter *adapter_free(struct adapter *a)
{
    if (a) {
        nodes_free(a->nodes);
        jobs_free(a->jobs);
        free(a);
    }
    return NULL;
}

static const struct {
    const char *op;
    void (*answer)(const struct request *r, struct answer *ret);
} ops[] = {
    {"job", job_answer},
    {"node-look", node_answer},
    {"partitions", partitions_answer},
    {"reservations", reservations_answer},
    {"config", config_answer},
    {"ping", ping_answer},
    {"steps", steps_answer},
    {"layout", layout_answer},
    {"requeue", requeue_answer},
    {"update", update_answer},
    {"cancel", cancel_answer},
    {"node", node_set_answer},
    {"reserve", reserve_answer},
    {"unreserve", unreserve_answer},
};

void adapter_answer(struct adapter *a, const struct request *r, struct answer *ret)
{
    if (streq(r->op, "jobs")) {
        jobs_answer(a->jobs, r, ret);
        return;
    }
    if (streq(r->op, "nodes")) {
        nodes_answer(a->nodes, r, ret);
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
        if (streq(ops[i].op, r->op)) {
            ops[i].answer(r, ret);
            return;
        }
    }
    answer_fail(ret, FAULT_INVALID_REQUEST, 0, "there is no op %.64s", r->op);
}

void answer_slurm(struct answer *ret, int slurm_errno, bool acting, const char *what)
{
    answer_fail(ret, words_fault(slurm_errno, acting), slurm_errno, "%s: %s", what,
                slurm_strerror(slurm_errno));
}
