/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers in logs are written by many programs: "1,234", "1.5e-05", "nan", "-inf", "2048.0". All
 * go through one reader that works on a span (lines are not terminated) and in integers. */

#include "extract/facts.h"

#include "base/sig.h"
#include "base/str.h"
#include "extract/clock.h"
#include "extract/prefix.h"
#include "extract/subject.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define INTEGER_DIGITS_MAX 18

static bool same_word(const struct capture *c, const char *word)
{
    return c->len == strlen(word) && strncasecmp(c->s, word, c->len) == 0;
}

/* value = digits * 10^exponent, scaled by 10^scale, saturating. */
static int64_t scale_decimal(int64_t digits, int exponent)
{
    for (; exponent < 0 && digits != 0; exponent++)
        digits /= 10;
    for (; exponent > 0 && digits != 0; exponent--)
        if (__builtin_mul_overflow(digits, (int64_t)10, &digits))
            return INT64_MAX - 1;
    return digits;
}

static int read_exponent(const char *s, const char *end)
{
    bool negative = s < end && *s == '-';
    int v = 0;

    if (s < end && (*s == '-' || *s == '+'))
        s++;
    for (; s < end && isdigit((unsigned char)*s) && v < 1000; s++)
        v = v * 10 + (*s - '0');
    return negative ? -v : v;
}

/* The number in c times 10^scale; NUMBER_NONE when there is none. */
static int64_t read_decimal(const struct capture *c, int scale)
{
    const char *s = c->s, *end = s ? s + c->len : NULL;
    bool negative = false, any = false, behind_point = false;
    int64_t digits = 0;
    int n = 0, exponent = 0;

    if (!s)
        return NUMBER_NONE;
    if (s < end && (*s == '-' || *s == '+'))
        negative = *s++ == '-';
    for (; s < end; s++) {
        if (*s == '.' && !behind_point) {
            behind_point = true;
        } else if (isdigit((unsigned char)*s)) {
            any = true;
            if (n >= INTEGER_DIGITS_MAX) {
                exponent += !behind_point;
                continue;
            }
            digits = digits * 10 + (*s - '0');
            n += digits != 0;
            exponent -= behind_point;
        } else if (*s != ',' || behind_point) {
            break;
        }
    }
    if (!any)
        return NUMBER_NONE;
    if (s < end && (*s == 'e' || *s == 'E'))
        exponent += read_exponent(s + 1, end);
    digits = scale_decimal(digits, exponent + scale);
    return negative ? -digits : digits;
}

/* What is beyond any count or time of a job is rubbish, and core need not compute with it. */
static int64_t within_limit(int64_t v)
{
    return v > NUMBER_MAX || v < -NUMBER_MAX ? NUMBER_NONE : v;
}

static int64_t read_integer(const struct capture *c)
{
    return within_limit(read_decimal(c, 0));
}

static bool compares_alike(const struct line_hit *hit)
{
    int64_t most = within_limit(read_decimal(&hit->fields[FIELD_SLOWEST], 3));
    int64_t least = within_limit(read_decimal(&hit->fields[FIELD_FASTEST], 3));

    return most != NUMBER_NONE && least != NUMBER_NONE && most < least + least / 5 &&
           least < most + most / 5;
}

enum silence hit_silence(const struct line_hit *hit, bool raised)
{
    if (hit->dropped_by)
        return SILENCE_DROPPED;
    if (hit->stance != STANCE_TELLS && !raised)
        return SILENCE_STANCE;
    return compares_alike(hit) ? SILENCE_ALIKE : SILENCE_NONE;
}

static int64_t read_step(const struct capture *c)
{
    int64_t v = read_integer(c);

    return v < 0 ? STEP_NONE : v;
}

/* In 1/METRIC_SCALE, with nan and inf. */
static int64_t read_metric(const struct capture *c)
{
    struct capture rest = *c;

    if (!c->s)
        return NUMBER_NONE;
    if (rest.len > 0 && (*rest.s == '-' || *rest.s == '+')) {
        rest.s++;
        rest.len--;
    }
    if (same_word(&rest, "nan"))
        return METRIC_NAN;
    if (same_word(&rest, "inf") || same_word(&rest, "infinity"))
        return METRIC_INF;
    return read_decimal(c, 6);
}

static usec_t read_duration(const struct line_hit *hit)
{
    const struct capture *s = &hit->fields[FIELD_SECONDS], *ms = &hit->fields[FIELD_MILLISECONDS];

    return within_limit(s->s ? read_decimal(s, 6) : read_decimal(ms, 3));
}

static int32_t read_rank(const struct capture *c)
{
    int64_t v = read_integer(c);

    return v >= 0 && v <= INT32_MAX ? (int32_t)v : RANK_NONE;
}

static void read_text(const struct capture *c, char *dst, size_t size)
{
    if (c->s)
        str_sanitize(dst, size, c->s, c->len);
}

bool facts_device(const char *s, size_t len, char ret[DEVICE_NAME_LEN])
{
    unsigned long part[4] = {0};
    char text[48], *at, *next;
    size_t n = 0;

    ret[0] = '\0';
    if (len >= sizeof(text))
        return false;
    memcpy(text, s, len);
    text[len] = '\0';
    at = strncasecmp(text, "PCI:", 4) == 0 ? text + 4 : text;
    for (; n < 3 && isxdigit((unsigned char)*at); n++) {
        part[n] = strtoul(at, &next, 16);
        at = next;
        if (*at != ':')
            break;
        at++;
    }
    n += n < 3;
    if (n == 2) {
        part[2] = part[1];
        part[1] = part[0];
        part[0] = 0;
    }
    if (n < 2 || part[0] > 0xffffffffUL || part[1] > 0xff || part[2] > 0x1f)
        return false;
    snprintf(ret, DEVICE_NAME_LEN, "%04lx:%02lx:%02lx", part[0], part[1], part[2]);
    return true;
}

/* By name or number; 0: none. */
static int32_t read_signal(const struct capture *c)
{
    int32_t named = c->s ? sig_from_word(c->s, c->len) : 0;

    if (named != 0 || !c->s)
        return named;
    return read_rank(c) > 0 ? read_rank(c) : 0;
}

static void fill_step(const struct line_hit *hit, struct step_fact *f)
{
    f->step = read_step(&hit->fields[FIELD_STEP]);
    f->total = read_integer(&hit->fields[FIELD_TOTAL]);
    f->duration = read_duration(hit);
    f->loss = read_metric(&hit->fields[FIELD_LOSS]);
    f->grad_norm = read_metric(&hit->fields[FIELD_GRAD_NORM]);
    f->rate = read_metric(&hit->fields[FIELD_RATE]);
    f->skipped = hit->entry->skipped;
}

static void fill_collective(const struct line_hit *hit, struct collective_fact *f)
{
    read_text(&hit->fields[FIELD_GROUP], f->group, sizeof(f->group));
    read_text(&hit->fields[FIELD_OP], f->op, sizeof(f->op));
    f->seq = read_integer(&hit->fields[FIELD_SEQ]);
    f->numel = read_integer(&hit->fields[FIELD_NUMEL]);
    f->enqueued = read_integer(&hit->fields[FIELD_ENQUEUED]);
    f->completed = read_integer(&hit->fields[FIELD_COMPLETED]);
    f->waited = read_duration(hit);
}

static int64_t read_pid(const struct line_hit *hit)
{
    int64_t pid = read_integer(&hit->fields[FIELD_PID]);

    return pid > 0 ? pid : 0;
}

/* "exitcode: -9" is Python's way to say: signal 9. */
static void fill_exit(const struct line_hit *hit, struct exit_fact *f)
{
    int64_t code = read_integer(&hit->fields[FIELD_CODE]);

    f->pid = read_pid(hit);
    f->signal = read_signal(&hit->fields[FIELD_SIGNAL]);
    f->code = code >= 0 && code <= 255 ? (int32_t)code : -1;
    if (code < 0 && code > -65)
        f->signal = (int32_t)-code;
    if (f->signal != 0)
        f->code = -1;
}

static bool has_any(const struct line_hit *hit, const enum field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (hit->fields[fields[i]].s)
            return true;
    return false;
}

static enum signal_kind kind_of(const struct line_hit *hit)
{
    static const enum field of_collective[] = {FIELD_SEQ, FIELD_ENQUEUED, FIELD_COMPLETED,
                                               FIELD_NUMEL};
    static const enum field of_exit[] = {FIELD_CODE, FIELD_SIGNAL};

    switch (hit->entry->role) {
    case ROLE_PROGRESS:
        return SIGNAL_STEP;
    case ROLE_CHECKPOINT:
        return SIGNAL_CHECKPOINT;
    case ROLE_PHASE:
        return SIGNAL_PHASE;
    default:
        if (has_any(hit, of_collective, ARRAY_SIZE(of_collective)))
            return SIGNAL_COLLECTIVE;
        return has_any(hit, of_exit, ARRAY_SIZE(of_exit)) ? SIGNAL_EXIT : SIGNAL_HIT;
    }
}

static void fill_facts(const struct line_hit *hit, struct signal *s)
{
    switch (s->kind) {
    case SIGNAL_STEP:
        fill_step(hit, &s->step);
        break;
    case SIGNAL_CHECKPOINT:
        s->checkpoint.edge = hit->entry->edge;
        s->checkpoint.step = read_step(&hit->fields[FIELD_STEP]);
        break;
    case SIGNAL_PHASE:
        s->phase = (struct phase_fact){hit->entry->phase, hit->entry->edge};
        break;
    case SIGNAL_COLLECTIVE:
        fill_collective(hit, &s->collective);
        break;
    case SIGNAL_EXIT:
        fill_exit(hit, &s->exit);
        break;
    default:
        break;
    }
}

/* Linux drivers begin their messages with their name and the device's: "mlx5_core 0000:9a:00.0: ".
 */
static void read_driver(const struct line *line, char ret[DEVICE_NAME_LEN])
{
    const char *s = line->text, *end = s + line->len, *name = s;

    while (s < end && (isalnum((unsigned char)*s) || *s == '_' || *s == '-'))
        s++;
    if (s == name || s == end || *s != ' ')
        return;
    for (name = ++s; s < end && (isxdigit((unsigned char)*s) || *s == ':'); s++)
        ;
    if (s - name == 10 && end - s > 2 && *s == '.' && isdigit((unsigned char)s[1]) &&
        strchr(": ", s[2]))
        facts_device(name, (size_t)(s - name), ret);
}

/* A word, as in "--standalone", means one. */
static int32_t read_nodes(const struct capture *c)
{
    if (!c->s)
        return 0;
    return read_rank(c) != RANK_NONE ? read_rank(c) : 1;
}

/* Kernels know of no node, and a check of hardware tells of another one than it runs on. */
static bool is_report(const struct entry *e)
{
    return e->role <= ROLE_CONFIRM && (e->layer == LAYER_KERNEL || e->blame == BLAME_NODE);
}

static void fill_entity(const struct line_hit *hit, const struct line *line, struct entity *who)
{
    const struct capture *device = &hit->fields[FIELD_DEVICE];

    int32_t inline_rank = prefix_rank_before(line->text, hit->start);

    who->rank = inline_rank != RANK_NONE ? inline_rank : line->rank;
    who->local_rank = line->local_rank;
    who->label = line_label(line);
    STR_COPY(who->node, line->node);
    if (hit->fields[FIELD_RANK].s)
        who->rank = read_rank(&hit->fields[FIELD_RANK]);
    if (hit->fields[FIELD_LOCAL_RANK].s)
        who->local_rank = read_rank(&hit->fields[FIELD_LOCAL_RANK]);
    read_text(&hit->fields[FIELD_NODE], who->node, sizeof(who->node));
    if (!*who->node && is_report(hit->entry))
        subject_node(line->text, line->len, who->node);
    read_text(&hit->fields[FIELD_PEER], who->peer, sizeof(who->peer));
    read_text(&hit->fields[FIELD_ADDRESS], who->address, sizeof(who->address));
    read_text(&hit->fields[FIELD_TASKS], who->tasks, sizeof(who->tasks));
    who->pid = read_pid(hit);
    if (who->pid == 0)
        who->pid = line->pid;
    if (device->s)
        facts_device(device->s, device->len, who->device);
    else if (hit->entry->layer == LAYER_KERNEL)
        read_driver(line, who->device);
}

static void judge_xid(const struct catalog *c, const struct line_hit *hit, struct signal *s)
{
    int64_t code = read_integer(&hit->fields[FIELD_XID]);
    const struct xid_entry *x = catalog_xid(c, code);

    if (code == NUMBER_NONE)
        return;
    snprintf(s->signature, sizeof(s->signature), "gpu.xid.%lld", (long long)code);
    s->role = x ? x->role : ROLE_SYMPTOM;
    s->cause = x ? x->cause : CAUSE_GPU_HARDWARE;
    s->blame = x ? x->blame : BLAME_DEVICE;
    s->advice = x ? x->advice : ADVICE_NONE;
    s->confidence = x ? x->confidence : 50;
}

static int32_t read_code(const struct capture *c)
{
    int64_t v = read_integer(c);

    return v > 0 && v <= INT32_MAX ? (int32_t)v : 0;
}

enum isolation facts_isolation(const struct catalog *c, const struct line_hit *hit,
                               int32_t *ret_code)
{
    int32_t xid = read_code(&hit->fields[FIELD_XID]);
    const struct xid_entry *x = catalog_xid(c, xid);

    *ret_code = xid > 0 ? xid : read_code(&hit->fields[FIELD_SXID]);
    return xid > 0 && x ? x->isolation : hit->entry->isolation;
}

/* The end of a UTF-8 sequence that is cut at s[from]. */
static size_t skip_continuation(const char *s, size_t from, size_t len)
{
    while (from > 0 && from < len && ((unsigned char)s[from] & 0xc0) == 0x80)
        from++;
    return from;
}

/* The message, or the part around the match when it is too long to keep. */
void facts_text(struct signal *s, const struct line *line, size_t match, size_t keep)
{
    size_t prefix = (size_t)(line->text - line->whole), from = 0;

    match += prefix;
    if (line->whole_len > keep && match > keep / 2)
        from = skip_continuation(line->whole, match - keep / 4, line->whole_len);
    s->message = 0;
    if (from < prefix)
        s->message = (uint32_t)str_sanitize(s->text, keep + 1, line->whole + from, prefix - from);
    else
        prefix = from;
    str_sanitize(s->text + s->message, keep + 1 - s->message, line->whole + prefix,
                 line->whole_len - prefix);
}

/* A date and time of day inside the message. */
static usec_t read_time(const struct line_hit *hit)
{
    const struct capture *c = &hit->fields[FIELD_TIME];
    struct log_clock clock = {.now_us = USEC_UNKNOWN, .last_us = USEC_UNKNOWN};
    struct clock_reading r;

    return c->s && clock_read(&clock, c->s, c->len, &r) ? r.time_us : USEC_UNKNOWN;
}

struct signal facts_from_hit(const struct catalog *c, const struct line_hit *hit,
                             const struct line *line, enum provenance provenance)
{
    struct signal s = signal_make(kind_of(hit), provenance);

    s.time_us = line->time_us != USEC_UNKNOWN ? line->time_us : read_time(hit);
    s.uptime = line->uptime;
    STR_COPY(s.signature, hit->entry->id);
    s.layer = hit->entry->layer;
    s.role = hit->entry->role;
    s.cause = hit->entry->cause;
    s.blame = hit->entry->blame;
    s.advice = hit->entry->advice;
    s.confidence = hit->entry->confidence;
    s.hang = hit->entry->hang;
    s.straggler = hit->entry->straggler;
    STR_COPY(s.clears, hit->entry->clears);
    s.nodes = read_nodes(&hit->fields[FIELD_NODES]);
    fill_entity(hit, line, &s.who);
    judge_xid(c, hit, &s);
    fill_facts(hit, &s);
    facts_text(&s, line, hit->start, sizeof(s.text) - 1);
    return s;
}
