/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes are kept free for a job by a reservation that nobody may use, made while their old jobs may
 * still be on them. Slurm ends it by itself when its time is over, so one that is forgotten does no
 * lasting harm. What does not have a name of ours is never touched. */

#include "slurm/adapter.h"
#include "slurm/deadline.h"
#include "slurm/hosts.h"

#include "base/cleanup.h"

#include <slurm/slurm_errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAME_PREFIX "reknit-"
#define NAME_LEN    64
#define SECONDS_MAX 3600

/* Ours, and of nothing but letters, digits and dashes. */
static const char *name_of(const struct request *r, struct answer *ret)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    const char *name = "";

    request_text(r, "name", &name, NULL);
    if (str_startswith(name, NAME_PREFIX) && strlen(name) < NAME_LEN &&
        strspn(name, allowed) == strlen(name))
        return name;
    answer_fail(ret, FAULT_INVALID_REQUEST, 0, "name is no name that begins with " NAME_PREFIX);
    return NULL;
}

static json_int_t seconds_of(const struct request *r, struct answer *ret)
{
    json_int_t n = json_integer_value(json_object_get(r->body, "seconds"));

    if (n >= 1 && n <= SECONDS_MAX)
        return n;
    answer_fail(ret, FAULT_INVALID_REQUEST, 0, "seconds is no number up to %d", SECONDS_MAX);
    return 0;
}

void reserve_answer(const struct request *r, struct answer *ret)
{
    const char *name = name_of(r, ret);
    json_int_t seconds = name ? seconds_of(r, ret) : 0;
    char *nodes = NULL, *made;
    resv_desc_msg_t m;

    if (seconds == 0)
        return;
    if (hosts_text(json_object_get(r->body, "nodes"), &nodes) < 0 || !*nodes) {
        answer_fail(ret, FAULT_INVALID_REQUEST, 0, "nodes is no list of node names");
        free(nodes);
        return;
    }
    slurm_init_resv_desc_msg(&m);
    m.name = (char *)name;
    m.node_list = nodes;
    m.users = "root"; /* it must be somebody, who runs no jobs */
    m.start_time = time(NULL);
    m.duration = (uint32_t)((seconds + 59) / 60);
    m.flags = RESERVE_FLAG_IGN_JOBS;
    deadline_acting();
    made = slurm_create_reservation(&m);
    if (!made)
        answer_slurm(ret, slurm_get_errno(), true, "the reservation");
    free(made);
    free(nodes);
}

void unreserve_answer(const struct request *r, struct answer *ret)
{
    const char *name = name_of(r, ret);
    reservation_name_msg_t m = {.name = (char *)name};

    if (!name)
        return;
    deadline_acting();
    if (slurm_delete_reservation(&m) == SLURM_SUCCESS)
        return;
    if (slurm_get_errno() == ESLURM_RESERVATION_INVALID)
        answer_fail(ret, FAULT_ALREADY_DONE, 0, "there is no such reservation");
    else
        answer_slurm(ret, slurm_get_errno(), true, "the end of the reservation");
}
