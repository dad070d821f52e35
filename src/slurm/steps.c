/* SPDX-License-Identifier: Apache-2.0 */

/* Steps and where their tasks are. Slurm forgets both when a step ends. */

#include "slurm/adapter.h"
#include "slurm/hosts.h"
#include "slurm/text.h"
#include "slurm/words.h"

#include "base/intset.h"

#include <slurm/slurm_errno.h>

static const struct {
    uint32_t id;
    const char *word;
} named_steps[] = {
    {SLURM_BATCH_SCRIPT, "batch"},
    {SLURM_EXTERN_CONT, "extern"},
    {SLURM_INTERACTIVE_STEP, "interactive"},
    {SLURM_PENDING_STEP, "pending"},
};

static json_t *step_word(uint32_t id)
{
    for (size_t i = 0; i < ARRAY_SIZE(named_steps); i++)
        if (named_steps[i].id == id)
            return json_string(named_steps[i].word);
    return json_sprintf("%u", id);
}

static bool step_of(const struct request *r, uint32_t *ret_id, struct answer *ret)
{
    const json_t *v = json_object_get(r->body, "step");
    const char *word = json_string_value(v);
    long long n = -1;

    for (size_t i = 0; word && i < ARRAY_SIZE(named_steps); i++) {
        if (streq(named_steps[i].word, word)) {
            *ret_id = named_steps[i].id;
            return true;
        }
    }
    if (json_is_integer(v))
        n = json_integer_value(v);
    else if (word && str_to_i64(word, &n) < 0)
        n = -1;
    if (n < 0 || n >= SLURM_PENDING_STEP) {
        answer_fail(ret, FAULT_INVALID_REQUEST, 0, "step is no step, such as \"0\" or \"batch\"");
        return false;
    }
    *ret_id = (uint32_t)n;
    return true;
}

static json_t *step_json(const job_step_info_t *s)
{
    return json_pack("{s:o, s:o, s:o, s:s, s:o, s:I, s:I}", "job",
                     json_sprintf("%u", s->step_id.job_id), "step", step_word(s->step_id.step_id),
                     "name", text_json(s->name, TEXT_MAX), "state",
                     slurm_state_name(words_job_state(s->state)), "nodes", hosts_json(s->nodes),
                     "n_tasks", (json_int_t)s->num_tasks, "start", (json_int_t)s->start_time);
}

void steps_answer(const struct request *r, struct answer *ret)
{
    job_step_info_response_msg_t *list = NULL;
    json_t *all;
    uint32_t id = NO_VAL; /* of all jobs */

    if (json_object_get(r->body, "job") && !job_id_of(r, &id, ret))
        return;
    if (slurm_get_job_steps(0, id, NO_VAL, &list, SHOW_ALL) != SLURM_SUCCESS) {
        answer_slurm(ret, slurm_get_errno(), false, "the steps");
        return;
    }
    all = json_array();
    for (uint32_t i = 0; i < list->job_step_count; i++) {
        const job_step_info_t *s = &list->job_steps[i];

        /* An array's id brings the steps of all its tasks. */
        if ((id == NO_VAL || s->step_id.job_id == id) && s->step_id.step_id != SLURM_PENDING_STEP)
            json_array_append_new(all, step_json(s));
    }
    answer_set(ret, "steps", all);
    slurm_free_job_step_info_response_msg(list);
}

static json_t *tasks_text(const uint32_t *tasks, uint16_t n)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    struct intset set = {0};
    json_t *j;

    for (uint16_t i = 0; i < n; i++)
        intset_add(&set, (int32_t)tasks[i]);
    intset_format(&set, &text);
    intset_done(&set);
    j = json_string(strbuf_str(&text));
    return j;
}

void layout_answer(const struct request *r, struct answer *ret)
{
    slurm_step_id_t step = {.step_het_comp = NO_VAL};
    slurm_step_layout_t *layout;
    json_t *order, *nodes;
    const json_t *name;
    size_t i;

    if (!job_id_of(r, &step.job_id, ret) || !step_of(r, &step.step_id, ret))
        return;
    layout = slurm_job_step_layout_get(&step);
    if (!layout) {
        answer_slurm(ret, slurm_get_errno(), false, "the step's layout");
        return;
    }
    order = hosts_json(layout->node_list);
    nodes = json_object();
    json_array_foreach (order, i, name) {
        if (i < layout->node_cnt)
            json_object_set_new(nodes, json_string_value(name),
                                tasks_text(layout->tids[i], layout->tasks[i]));
    }
    answer_set(ret, "n_tasks", json_integer(layout->task_cnt));
    answer_set(ret, "order", order);
    answer_set(ret, "nodes", nodes);
    slurm_job_step_layout_free(layout);
}
