/* SPDX-License-Identifier: Apache-2.0 */

/* What a client must know about this Slurm, and whether it is there. */

#include "slurm/adapter.h"
#include "slurm/text.h"
#include "slurm/users.h"
#include "slurm/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CREDENTIAL_DEFAULT_S 120 /* slurm.conf(5), AuthInfo cred_expire */

/* A requeue sets BeginTime to just behind the life of the credentials of the attempt before. */
static long requeue_delay(const char *auth_info)
{
    const char *at = auth_info ? strstr(auth_info, "cred_expire=") : NULL;
    long s = at ? strtol(at + strlen("cred_expire="), NULL, 10) : 0;

    return (s > 0 && s < 86400 ? s : CREDENTIAL_DEFAULT_S) + 1;
}

/* Accounting may make an operator of anybody, which only slurmdbd knows. */
static json_t *operator_json(const slurm_conf_t *c)
{
    return geteuid() == 0 || geteuid() == c->slurm_user_id ? json_true() : json_null();
}

/* As the controller itself has it, so that all of its clients say the same. */
static json_t *controller_text(const slurm_conf_t *c)
{
    const char *host = c->control_cnt > 0 ? c->control_addr[0] : "";
    char text[TEXT_MAX];

    snprintf(text, sizeof(text), "%s:%u", host ? host : "", (unsigned)c->slurmctld_port);
    return text_json(text, TEXT_MAX);
}

static json_t *config_json(const slurm_conf_t *c)
{
    json_t *o = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:i, s:I, s:b, s:b, s:i, s:i, s:o, s:b}",
        "cluster", text_json(c->cluster_name, TEXT_MAX), "controller", controller_text(c),
        "version", text_json(c->version, TEXT_MAX), "user",
        text_json(users_name(geteuid()), TEXT_MAX), "operator", operator_json(c), "scheduler_user",
        text_json(c->slurm_user_name, TEXT_MAX), "scheduler_uid", (json_int_t)c->slurm_user_id,
        "forget_s", (json_int_t)c->min_job_age, "node_timeout_s", (int)c->slurmd_timeout,
        "requeue_delay_s", (json_int_t)requeue_delay(c->authinfo), "requeue_default",
        c->job_requeue == 1, "kill_on_bad_exit", c->kill_on_bad_exit == 1, "message_timeout_s",
        (int)c->msg_timeout, "kill_wait_s", (int)c->kill_wait, "parameters",
        text_json(c->sched_params, TEXT_LONG_MAX), "file_append", c->job_file_append == 1);

    return o;
}

void config_answer(const struct request *r, struct answer *ret)
{
    slurm_conf_t *c = NULL;

    if (slurm_load_ctl_conf(0, &c) != SLURM_SUCCESS) {
        answer_slurm(ret, slurm_get_errno(), false, "the configuration");
        return;
    }
    answer_set(ret, "config", config_json(c));
    slurm_free_ctl_conf(c);
}

static json_t *controller_json(const char *host, uint32_t i, bool up)
{
    return json_pack("{s:o, s:s, s:b}", "host", text_json(host, TEXT_MAX), "role",
                     i == 0 ? "primary" : "backup", "up", up);
}

/* Only sdiag's own header has it. */
extern void slurm_free_stats_response_msg(stats_info_response_msg_t *msg) __attribute__((weak));

static json_int_t controller_clock(void)
{
    stats_info_request_msg_t ask = {.command_id = STAT_COMMAND_GET};
    stats_info_response_msg_t *stats = NULL;
    json_int_t clock;

    if (slurm_get_statistics(&stats, &ask) != SLURM_SUCCESS || !stats)
        return 0;
    clock = stats->req_time;
    if (slurm_free_stats_response_msg)
        slurm_free_stats_response_msg(stats);
    return clock;
}

/* Who could answer is known from who did. */
void ping_answer(const struct request *r, struct answer *ret)
{
    json_t *all = json_array();
    slurm_conf_t *c = NULL;
    bool up = slurm_load_ctl_conf(0, &c) == SLURM_SUCCESS;

    if (!up)
        json_array_append_new(all, controller_json("", 0, false));
    for (uint32_t i = 0; up && i < c->control_cnt; i++)
        json_array_append_new(
            all, controller_json(c->control_machine[i], i, slurm_ping((int)i) == SLURM_SUCCESS));
    answer_set(ret, "controllers", all);
    answer_set(ret, "clock", json_integer(up ? controller_clock() : 0));
    if (c)
        slurm_free_ctl_conf(c);
}
