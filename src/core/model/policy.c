/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/policy.h"

#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LONGEST    (365 * USEC_PER_DAY)
#define MOST       1000000
#define FACTOR_MAX 1000

void policy_default(struct policy *ret)
{
    static const struct policy defaults = {
        .name = "default",
        .max_restarts = 20,
        .max_restarts_per_day = 10,
        .max_without_progress = 3,
        .max_without_step = 2,
        .same_step_retries = 2,
        .max_waste = 50,
        .waste_floor = 6 * USEC_PER_HOUR,
        .max_node_restarts_per_day = 640,
        .large_job = 1024,
        .max_unexplained = 2,
        .exclude_devices = false,
        .min_devices = 1,
        .verdict_wait = 2 * USEC_PER_SEC,
        .kill_grace = 10 * USEC_PER_SEC,
        .hang =
            {
                .enabled = true,
                .timeout_min = 2 * USEC_PER_MIN,
                .timeout_max = USEC_PER_HOUR,
                .factor = 5,
                .first_step = 30 * USEC_PER_MIN,
                .checkpoint = 10 * USEC_PER_MIN,
                .evaluation = 10 * USEC_PER_MIN,
                .compilation = 15 * USEC_PER_MIN,
                .shutdown = 10 * USEC_PER_MIN,
            },
    };
    static const struct cause_policy usual = {3, 10 * USEC_PER_SEC, 15 * USEC_PER_MIN, 0};
    static const struct cause_policy once = {1, 10 * USEC_PER_SEC, 15 * USEC_PER_MIN, 0};

    *ret = defaults;
    for (int c = 0; c < CAUSE_MAX; c++)
        ret->cause[c] = usual;
    ret->cause[CAUSE_GPU_OOM] = ret->cause[CAUSE_HOST_OOM] = once;
    ret->cause[CAUSE_USER_CODE] = ret->cause[CAUSE_USER_CONFIG] = once;
    ret->cause[CAUSE_NUMERICAL].retries = 2;
    ret->cause[CAUSE_NETWORK].backoff = 30 * USEC_PER_SEC;
    ret->cause[CAUSE_STORAGE].backoff = 30 * USEC_PER_SEC;
    ret->cause[CAUSE_EXTERNAL_SERVICE] =
        (struct cause_policy){3, 30 * USEC_PER_SEC, 30 * USEC_PER_MIN, 6 * USEC_PER_HOUR};
    ret->cause[CAUSE_CANCELLED] = (struct cause_policy){0, 0, 0, 0};
    ret->cause[CAUSE_NONE] = (struct cause_policy){0, 0, 0, 0};
}

static int check_time(usec_t value, usec_t least, const char *name, struct err *e)
{
    char text[DURATION_TEXT_MAX];

    if (value >= least && value <= LONGEST)
        return 0;
    return err_set(e, -EINVAL, "%s must lie between %s and 365d", name,
                   duration_format(least, text));
}

static int check_number(uint32_t value, uint32_t least, uint32_t most, const char *name,
                        struct err *e)
{
    if (value >= least && value <= most)
        return 0;
    return err_set(e, -EINVAL, "%s must lie between %u and %u", name, least, most);
}

static int check_hang(const struct hang_policy *p, struct err *e)
{
    const struct {
        usec_t value;
        const char *name;
    } times[] = {
        {p->timeout_min, "hang.timeout_min"}, {p->timeout_max, "hang.timeout_max"},
        {p->first_step, "hang.first_step"},   {p->checkpoint, "hang.checkpoint"},
        {p->evaluation, "hang.evaluation"},   {p->compilation, "hang.compilation"},
        {p->shutdown, "hang.shutdown"},
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof(times) / sizeof(times[0]); i++)
        r = check_time(times[i].value, USEC_PER_SEC, times[i].name, e);
    if (r == 0 && p->timeout_min > p->timeout_max)
        r = err_set(e, -EINVAL, "hang.timeout_min must not be above hang.timeout_max");
    return r == 0 ? check_number(p->factor, 1, FACTOR_MAX, "hang.factor", e) : r;
}

static int check_cause(const struct cause_policy *p, const char *cause, struct err *e)
{
    int r = check_number(p->retries, 0, MOST, "retries", e);

    r = r == 0 ? check_time(p->backoff, 0, "backoff", e) : r;
    r = r == 0 ? check_time(p->backoff_max, 0, "backoff_max", e) : r;
    r = r == 0 ? check_time(p->patience, 0, "patience", e) : r;
    if (r == 0 && p->backoff > p->backoff_max)
        r = err_set(e, -EINVAL, "backoff must not be above backoff_max");
    return r == 0 ? 0 : err_prefix(e, r, "causes.%s", cause);
}

static int check_numbers(const struct policy *p, struct err *e)
{
    const struct {
        uint32_t value, least, most;
        const char *name;
    } numbers[] = {
        {p->max_restarts, 0, MOST, "max_restarts"},
        {p->max_restarts_per_day, 0, RESTARTS_PER_DAY_MAX, "max_restarts_per_day"},
        {p->max_without_progress, 1, MOST, "max_without_progress"},
        {p->max_without_step, 1, MOST, "max_without_step"},
        {p->same_step_retries, 0, MOST, "same_step_retries"},
        {p->max_waste, 0, 100, "max_waste"},
        {p->max_node_restarts_per_day, 0, MOST, "max_node_restarts_per_day"},
        {p->large_job, 0, MOST, "large_job"},
        {p->max_unexplained, p->large_job > 0, MOST, "max_unexplained"},
        {p->min_devices, 0, MOST, "min_devices"},
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof(numbers) / sizeof(numbers[0]); i++)
        r = check_number(numbers[i].value, numbers[i].least, numbers[i].most, numbers[i].name, e);
    return r;
}

int policy_check(const struct policy *p, struct err *ret_err)
{
    int r = check_numbers(p, ret_err);

    r = r == 0 ? check_time(p->waste_floor, 0, "waste_floor", ret_err) : r;
    r = r == 0 ? check_time(p->verdict_wait, 0, "verdict_wait", ret_err) : r;
    r = r == 0 ? check_time(p->kill_grace, 0, "kill_grace", ret_err) : r;
    r = r == 0 ? check_hang(&p->hang, ret_err) : r;
    for (int c = 0; r == 0 && c < CAUSE_MAX; c++)
        r = check_cause(&p->cause[c], cause_name((enum cause)c), ret_err);
    return r;
}

/* Doubts are about what somebody wrote: a built-in value may well have no effect beside another. */
struct doubter {
    struct policy built_in;
    void (*fn)(void *ctx, const char *text);
    void *ctx;
};

static void __attribute__((format(printf, 2, 3)))
doubt(const struct doubter *d, const char *format, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    d->fn(d->ctx, text);
}

static void doubt_times(const struct doubter *d, const struct hang_policy *p)
{
    const struct hang_policy *b = &d->built_in.hang;
    const struct {
        usec_t value, built_in;
        const char *name, *effect;
    } times[] = {
        {p->first_step, USEC_NEVER, "first_step", "a start may then take less than a step"},
        {p->checkpoint, b->checkpoint, "checkpoint", "which holds meanwhile too"},
        {p->evaluation, b->evaluation, "evaluation", "which holds meanwhile too"},
    };
    char value[DURATION_TEXT_MAX], least[DURATION_TEXT_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(times); i++)
        if (times[i].value < p->timeout_min && times[i].value != times[i].built_in)
            doubt(d, "hang.%s (%s) is below hang.timeout_min (%s), %s", times[i].name,
                  duration_format(times[i].value, value), duration_format(p->timeout_min, least),
                  times[i].effect);
}

/* The caps come first. */
static void doubt_number(const struct doubter *d, uint32_t value, uint32_t built_in, uint32_t cap,
                         const char *name, const char *cap_name)
{
    if (value > cap && value != built_in)
        doubt(d, "%s (%u) is above %s (%u), which stops before", name, value, cap_name, cap);
}

void policy_doubts(const struct policy *p, void (*fn)(void *ctx, const char *text), void *ctx)
{
    struct doubter d = {.fn = fn, .ctx = ctx};
    const struct policy *b = &d.built_in;
    char name[64];

    policy_default(&d.built_in);
    if (p->hang.enabled)
        doubt_times(&d, &p->hang);
    doubt_number(&d, p->max_restarts_per_day, b->max_restarts_per_day, p->max_restarts,
                 "max_restarts_per_day", "max_restarts");
    doubt_number(&d, p->same_step_retries, b->same_step_retries, p->max_without_progress,
                 "same_step_retries", "max_without_progress");
    for (int c = 0; c < CAUSE_MAX; c++) {
        STR_PRINTF(name, "causes.%s.retries", cause_name((enum cause)c));
        if (p->cause[c].patience == 0)
            doubt_number(&d, p->cause[c].retries, b->cause[c].retries, p->max_without_progress,
                         name, "max_without_progress");
    }
}
