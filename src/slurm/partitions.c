/* SPDX-License-Identifier: Apache-2.0 */

#include "slurm/adapter.h"
#include "slurm/hosts.h"
#include "slurm/text.h"

static const char *up_word(uint16_t state)
{
    switch (state) {
    case PARTITION_UP:
        return "up";
    case PARTITION_DRAIN:
        return "drain";
    case PARTITION_INACTIVE:
        return "inactive";
    default:
        return "down";
    }
}

static json_int_t number(uint32_t n)
{
    return n == INFINITE || n == NO_VAL ? 0 : n;
}

static json_t *partition_json(const partition_info_t *p)
{
    json_t *o = json_pack("{s:o, s:s, s:b, s:b, s:o, s:o, s:I, s:I, s:i}", "name",
                          text_json(p->name, TEXT_MAX), "up", up_word(p->state_up), "default",
                          p->flags & PART_FLAG_DEFAULT, "hidden", p->flags & PART_FLAG_HIDDEN,
                          "nodes", hosts_json(p->nodes), "nodes_text", text_hosts_json(p->nodes),
                          "time_limit", 60 * number(p->max_time), "max_nodes", number(p->max_nodes),
                          "priority_tier", (int)p->priority_tier);

    json_object_set_new(o, "allow_accounts", text_json(p->allow_accounts, TEXT_LONG_MAX));
    json_object_set_new(o, "allow_qos", text_json(p->allow_qos, TEXT_LONG_MAX));
    return o;
}

void partitions_answer(const struct request *r, struct answer *ret)
{
    partition_info_msg_t *list = NULL;
    json_t *all;

    if (slurm_load_partitions(0, &list, SHOW_ALL | SHOW_LOCAL) != SLURM_SUCCESS) {
        answer_slurm(ret, slurm_get_errno(), false, "the list of partitions");
        return;
    }
    all = json_array();
    for (uint32_t i = 0; i < list->record_count; i++)
        json_array_append_new(all, partition_json(&list->partition_array[i]));
    answer_set(ret, "partitions", all);
    slurm_free_partition_info_msg(list);
}
