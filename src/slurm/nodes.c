/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes as JSON. As with jobs, what changes without meaning anything (load, free memory, when it
 * was last busy) stays out of a record. Which partitions a node is in slurmctld does not say: the
 * library puts it together from the list of partitions. */

#include "slurm/adapter.h"
#include "slurm/list.h"
#include "slurm/text.h"
#include "slurm/users.h"
#include "slurm/words.h"

#include "base/alloc.h"

#include <slurm/slurm_errno.h>
#include <stdlib.h>

/* LOCAL: otherwise each look would first ask whether there is a federation of clusters. */
#define LOAD_FLAGS (SHOW_ALL | SHOW_MIXED | SHOW_LOCAL)

struct nodes {
    struct list list;
    node_info_msg_t *msg; /* the last one; NULL = none yet */
    partition_info_msg_t *partitions;
};

struct nodes *nodes_new(void)
{
    struct nodes *n = xnew(struct nodes);

    n->list.told = diff_new();
    return n;
}

struct nodes *nodes_free(struct nodes *n)
{
    if (n) {
        diff_free(n->list.told);
        if (n->msg)
            slurm_free_node_info_msg(n->msg);
        if (n->partitions)
            slurm_free_partition_info_msg(n->partitions);
        free(n);
    }
    return NULL;
}

json_t *node_json(const node_info_t *n)
{
    const char *features = n->features_act ? n->features_act : n->features;
    const char *who = n->reason && n->reason_uid != NO_VAL ? users_name(n->reason_uid) : "";
    json_t *o = json_pack(
        "{s:o, s:o, s:o, s:s, s:o, s:b, s:o, s:o, s:I}", "name", text_json(n->name, TEXT_MAX),
        "address", text_json(n->node_addr, TEXT_MAX), "host", text_json(n->node_hostname, TEXT_MAX),
        "state", words_node_state(n->node_state), "flags", words_node_flags(n->node_state),
        "usable", words_node_is_usable(n->node_state), "reason", text_json(n->reason, TEXT_MAX),
        "reason_user", text_json(who, TEXT_MAX), "reason_time",
        (json_int_t)(n->reason ? n->reason_time : 0));

    json_object_set_new(o, "features", text_words_json(features));
    json_object_set_new(o, "partitions", text_words_json(n->partitions));
    json_object_set_new(o, "gpus", json_integer(text_gres_gpus(n->gres)));
    json_object_set_new(o, "cpus", json_integer(n->cpus));
    json_object_set_new(o, "boot", json_integer(n->boot_time));
    json_object_set_new(o, "daemon_start", json_integer(n->slurmd_start_time));
    return o;
}

/* Makes n->partitions current. 0, or Slurm's errno. */
static int refresh_partitions(struct nodes *n)
{
    partition_info_msg_t *list = NULL;
    time_t since = n->partitions ? n->partitions->last_update : 0;

    if (slurm_load_partitions(since, &list, SHOW_ALL | SHOW_LOCAL) != SLURM_SUCCESS)
        return slurm_get_errno() == SLURM_NO_CHANGE_IN_DATA ? 0 : slurm_get_errno();
    if (n->partitions)
        slurm_free_partition_info_msg(n->partitions);
    n->partitions = list;
    if (n->msg) {
        slurm_free_node_info_msg(n->msg);
        n->msg = NULL;
    }
    return 0;
}

static int refresh(void *ctx, time_t *ret_time)
{
    struct nodes *n = ctx;
    node_info_msg_t *msg = NULL;
    int r = refresh_partitions(n);

    if (r)
        return r;
    if (slurm_load_node(n->msg ? n->msg->last_update : 0, &msg, LOAD_FLAGS) == SLURM_SUCCESS) {
        slurm_populate_node_partitions(msg, n->partitions);
        if (n->msg)
            slurm_free_node_info_msg(n->msg);
        n->msg = msg;
        n->list.is_told = false;
    } else if (slurm_get_errno() != SLURM_NO_CHANGE_IN_DATA) {
        return slurm_get_errno();
    }
    *ret_time = n->msg->last_update;
    return 0;
}

static void add_records(const void *ctx, struct diff *told, struct strbuf *out)
{
    const struct nodes *n = ctx;

    for (uint32_t i = 0; i < n->msg->record_count; i++) {
        const node_info_t *node = &n->msg->node_array[i];
        json_t *record;

        if (!node->name) /* a hole in Slurm's table */
            continue;
        record = node_json(node);
        diff_add(told, node->name, record, out);
        json_decref(record);
    }
}

void nodes_answer(struct nodes *n, const struct request *r, struct answer *ret)
{
    static const struct list_kind kind = {"nodes", refresh, add_records};

    list_answer(&n->list, &kind, n, r, ret);
}

bool node_load(const struct request *r, node_info_msg_t **ret_list, node_info_t **ret_node,
               struct answer *ret)
{
    node_info_msg_t *list = NULL;
    const char *name = NULL;
    int error;

    if (request_text(r, "node", &name, NULL) < 0) {
        answer_fail(ret, FAULT_INVALID_REQUEST, 0, "node is no name");
        return false;
    }
    if (slurm_load_node_single(&list, (char *)name, LOAD_FLAGS) != SLURM_SUCCESS) {
        error = slurm_get_errno();
        if (words_fault(error, false) == FAULT_INVALID_REQUEST)
            answer_fail(ret, FAULT_NO_SUCH_JOB, error, "there is no node %s", name);
        else
            answer_slurm(ret, error, false, "the node");
        return false;
    }
    for (uint32_t i = 0; i < list->record_count; i++) {
        if (list->node_array[i].name && streq(list->node_array[i].name, name)) {
            *ret_node = &list->node_array[i];
            *ret_list = list;
            return true;
        }
    }
    slurm_free_node_info_msg(list);
    answer_fail(ret, FAULT_NO_SUCH_JOB, 0, "there is no node %s", name);
    return false;
}

void node_answer(const struct request *r, struct answer *ret)
{
    partition_info_msg_t *partitions = NULL;
    node_info_msg_t *list;
    node_info_t *node;

    if (!node_load(r, &list, &node, ret))
        return;
    if (slurm_load_partitions(0, &partitions, SHOW_ALL | SHOW_LOCAL) == SLURM_SUCCESS) {
        slurm_populate_node_partitions(list, partitions);
        slurm_free_partition_info_msg(partitions);
    }
    answer_set(ret, "node", node_json(node));
    slurm_free_node_info_msg(list);
}
