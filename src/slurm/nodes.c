/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes as JSON. As with jobs, what changes without meaning anything (load, free memory, when it
 * was last busy) stays out of a record. Which partitions a node is in slurmctld does not say: the
 * library puts it together from the list of partitions. */

#include "slurm/adapter.h"
#include "slurm/diff.h"
#include "slurm/people.h"
#include "slurm/text.h"
#include "slurm/words.h"

#include "base/alloc.h"

#include <slurm/slurm_errno.h>
#include <stdlib.h>

/* LOCAL: otherwise each look would first ask whether there is a federation of clusters. */
#define LOAD_FLAGS (SHOW_ALL | SHOW_MIXED | SHOW_LOCAL)

struct nodes {
    struct diff *told;
    node_info_msg_t *list; /* the last one; NULL = none yet */
    partition_info_msg_t *partitions;
    bool is_told; /* told knows this very list */
};

struct nodes *nodes_new(void)
{
    struct nodes *n = xnew(struct nodes);

    n->told = diff_new();
    return n;
}

struct nodes *nodes_free(struct nodes *n)
{
    if (n) {
        diff_free(n->told);
        if (n->list)
            slurm_free_node_info_msg(n->list);
        if (n->partitions)
            slurm_free_partition_info_msg(n->partitions);
        free(n);
    }
    return NULL;
}

json_t *node_json(const node_info_t *n)
{
    const char *features = n->features_act ? n->features_act : n->features;
    const char *who = n->reason && n->reason_uid != NO_VAL ? people_name(n->reason_uid) : "";
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
    if (n->list) {
        slurm_free_node_info_msg(n->list);
        n->list = NULL;
    }
    return 0;
}

/* Makes n->list current. 0, or Slurm's errno. */
static int refresh(struct nodes *n)
{
    node_info_msg_t *list = NULL;
    int r = refresh_partitions(n);

    if (r)
        return r;
    if (slurm_load_node(n->list ? n->list->last_update : 0, &list, LOAD_FLAGS) != SLURM_SUCCESS)
        return slurm_get_errno() == SLURM_NO_CHANGE_IN_DATA ? 0 : slurm_get_errno();
    slurm_populate_node_partitions(list, n->partitions);
    if (n->list)
        slurm_free_node_info_msg(n->list);
    n->list = list;
    n->is_told = false;
    return 0;
}

static void write_list(const node_info_msg_t *list, struct diff *told, struct answer *ret)
{
    bool news;

    diff_begin(told, "nodes", &ret->list);
    for (uint32_t i = 0; i < list->record_count; i++) {
        const node_info_t *node = &list->node_array[i];
        json_t *record;

        if (!node->name) /* a hole in Slurm's table */
            continue;
        record = node_json(node);
        diff_add(told, node->name, record, &ret->list);
        json_decref(record);
    }
    news = diff_end(told, &ret->list);
    if (!news) {
        strbuf_reset(&ret->list);
        answer_set(ret, "unchanged", json_true());
    }
}

void nodes_answer(struct nodes *n, const struct request *r, struct answer *ret)
{
    bool diff = false, fresh = false;
    struct err e = {0};
    int error;

    if (request_flag(r, "diff", &diff, &e) == -EINVAL ||
        request_flag(r, "fresh", &fresh, &e) == -EINVAL) {
        answer_fail(ret, FAULT_INVALID_REQUEST, 0, "%s", e.text);
        return;
    }
    error = refresh(n);
    if (error) {
        answer_slurm(ret, error, false, "the list of nodes");
        return;
    }
    answer_set(ret, "time", json_integer(n->list->last_update));
    if (fresh)
        diff_forget(n->told);
    if (diff && n->is_told && !fresh) {
        answer_set(ret, "unchanged", json_true());
        return;
    }
    write_list(n->list, diff ? n->told : NULL, ret);
    n->is_told = diff || (n->is_told && !fresh);
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
