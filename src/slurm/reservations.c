/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes are kept free for a job by a reservation that nobody may use, made while their old jobs may
 * still be on them. Slurm ends it by itself when its time is over, so one that is forgotten does no
 * lasting harm. What does not have a name of ours is never touched. */

#include "slurm/adapter.h"
#include "slurm/deadline.h"
#include "slurm/hosts.h"
#include "slurm/text.h"

#include "base/cleanup.h"

#include <slurm/slurm_errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAME_PREFIX "reknit-"
#define NAME_LEN    64
#define SECONDS_MAX 3600

static json_t *reservation_flags(uint64_t bits)
{
    static const struct {
        uint64_t bit;
        const char *word;
    } flags[] = {
        {RESERVE_FLAG_MAINT, "maint"},
        {RESERVE_FLAG_MAGNETIC, "magnetic"},
        {RESERVE_FLAG_IGN_JOBS, "ignore-jobs"},
        {RESERVE_FLAG_FLEX, "flex"},
    };
    json_t *words = json_array();

    for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
        if (bits & flags[i].bit)
            json_array_append_new(words, json_string(flags[i].word));
    return words;
}

static json_t *reservation_json(const reserve_info_t *v, time_t now)
{
    return json_pack(
        "{s:o, s:b, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "name", text_json(v->name, TEXT_MAX),
        "active", v->start_time <= now && now < v->end_time, "start", (json_int_t)v->start_time,
        "end", (json_int_t)v->end_time, "nodes", hosts_json(v->node_list), "partition",
        text_json(v->partition, TEXT_MAX), "users", text_json(v->users, TEXT_LONG_MAX), "accounts",
        text_json(v->accounts, TEXT_LONG_MAX), "flags", reservation_flags(v->flags));
}

void reservations_answer(const struct request *r, struct answer *ret)
{
    reserve_info_msg_t *list = NULL;
    time_t now = time(NULL);
    json_t *all;

    if (slurm_load_reservations(0, &list) != SLURM_SUCCESS) {
        answer_slurm(ret, slurm_get_errno(), false, "the list of reservations");
        return;
    }
    all = json_array();
    for (uint32_t i = 0; i < list->record_count; i++)
        json_array_append_new(all, reservation_json(&list->reservation_array[i], now));
    answer_set(ret, "reservations", all);
    slurm_free_reservation_info_msg(list);
}

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
