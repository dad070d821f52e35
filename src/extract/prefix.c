/* SPDX-License-Identifier: Apache-2.0 */

/* What stands in front of a message. Each take_*() looks for one form at the beginning of the text
 * and yields how many bytes it is long, 0 = it is not there; facts are stored only when it is. They
 * are tried again until none fits, for prefixes stack: srun -l in front of torchrun's in front of
 * the rank's own.
 *
 * Only what no program writes as part of its message is taken. A time in the middle of a logger's
 * own prefix ("[titan] 2024-11-13 23:25:56,139 - root - INFO - ") is read, but stays. */

#include "extract/prefix.h"

#include "base/hash.h"
#include "base/str.h"
#include "extract/speaker.h"

#include <ctype.h>
#include <string.h>

#define PREFIXES_MAX   10 /* of one line */
#define HOST_BYTES_MAX 64
#define HOST_LABEL_MAX 9999 /* more are process ids */
#define COLUMNS_MAX    5

enum found {
    FOUND_CLOCK = 1,
    FOUND_HOST = 2,
    FOUND_LABEL = 4,
};

struct prefix {
    struct log_clock *clock;
    struct line *line;
    unsigned found;
    bool syslog; /* the clock is of the form that syslog writes */
};

/* A reading position; the readers move it and say whether what they look for was there. */
struct cursor {
    const char *s, *end;
};

static bool skip_text(struct cursor *c, const char *text)
{
    size_t n = strlen(text);

    if ((size_t)(c->end - c->s) < n || memcmp(c->s, text, n) != 0)
        return false;
    c->s += n;
    return true;
}

static bool skip_number(struct cursor *c, int64_t *ret)
{
    const char *from = c->s;
    int64_t v = 0;

    for (; c->s < c->end && isdigit((unsigned char)*c->s) && c->s - from < 10; c->s++)
        v = v * 10 + (*c->s - '0');
    if (c->s == from || (c->s < c->end && isdigit((unsigned char)*c->s)))
        return false;
    *ret = v;
    return true;
}

static bool is_host_char(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_';
}

static bool skip_host(struct cursor *c, struct cursor *ret)
{
    const char *from = c->s;

    while (c->s < c->end && is_host_char(*c->s))
        c->s++;
    *ret = (struct cursor){from, c->s};
    return c->s > from && c->s - from <= HOST_BYTES_MAX;
}

static void skip_blank(struct cursor *c)
{
    c->s += c->s < c->end && *c->s == ' ';
}

static void set_node(struct line *l, const struct cursor *name)
{
    str_copy_n(l->node, sizeof(l->node), name->s, (size_t)(name->end - name->s));
}

static void mix_stream(struct line *l, const char *kind, int64_t n)
{
    uint64_t h = l->stream ? l->stream : HASH_INIT;

    h = hash_bytes(h, kind, strlen(kind));
    l->stream = hash_bytes(h, &n, sizeof(n));
}

/* "[rank=7] ", "rank 7: " of programs that name themselves. */
static size_t take_speaker(struct line *l, struct cursor c)
{
    int32_t rank;
    size_t n = l->rank == RANK_NONE ? speaker_take(c.s, (size_t)(c.end - c.s), &rank) : 0;

    if (n == 0)
        return 0;
    l->rank = rank;
    mix_stream(l, "[rank", rank);
    return n;
}

/* "[rank7]:", "[default3]:" */
static size_t take_bracketed(struct line *l, struct cursor c, const char *word, int32_t *rank)
{
    const char *from = c.s;
    int64_t n;

    if (!skip_text(&c, word) || !skip_number(&c, &n) || !skip_text(&c, "]:") || n > INT32_MAX)
        return 0;
    *rank = (int32_t)n;
    mix_stream(l, word, n);
    skip_blank(&c);
    return (size_t)(c.s - from);
}

/* "29: " of srun -l: the task. Whether that is the rank, the log as a whole must say. */
static size_t take_label(struct prefix *p, struct cursor c)
{
    const char *from = c.s;
    int64_t n;

    if (p->found & FOUND_LABEL || p->line->rank != RANK_NONE)
        return 0;
    while (c.s < c.end && *c.s == ' ' && c.s - from < 6)
        c.s++;
    if (!skip_number(&c, &n) || n > 999999 || !skip_text(&c, ":") || (c.s < c.end && *c.s != ' '))
        return 0;
    p->found |= FOUND_LABEL;
    p->line->label = (int32_t)n;
    mix_stream(p->line, "label", n);
    skip_blank(&c);
    return (size_t)(c.s - from);
}

/* "[p2] ", "[proc 2]: ", "[task2] ", "[r2] ": like the labels of srun. */
static size_t take_process_label(struct prefix *p, struct cursor c)
{
    static const char *const words[] = {"[process", "[proc", "[task", "[p", "[r", "[R"};
    const char *from = c.s;
    size_t i = 0;
    int64_t n;

    while (i < ARRAY_SIZE(words) && !skip_text(&c, words[i]))
        i++;
    if (i == ARRAY_SIZE(words) || p->found & FOUND_LABEL || p->line->rank != RANK_NONE)
        return 0;
    skip_blank(&c);
    if (!skip_number(&c, &n) || n > 99999 || !skip_text(&c, "]"))
        return 0;
    skip_text(&c, ":");
    if (!skip_text(&c, " "))
        return 0;
    p->found |= FOUND_LABEL;
    p->line->label = (int32_t)n;
    mix_stream(p->line, "label", n);
    return (size_t)(c.s - from);
}

/* "[29] ", "[29]: " of Hydra and of many programs: what number it is, the log as a
 * whole must say.
 */
static void note_mark(struct prefix *p)
{
    struct line *l = p->line;
    struct cursor c = {l->text, l->text + l->len};
    int64_t n;

    if (p->found & FOUND_LABEL || l->rank != RANK_NONE || l->local_rank != RANK_NONE ||
        !skip_text(&c, "[") || !skip_number(&c, &n) || n > 99999 || !skip_text(&c, "]"))
        return;
    skip_text(&c, ":");
    if (!skip_text(&c, " "))
        return;
    l->label = (int32_t)n;
    l->mark = (uint32_t)(c.s - l->text);
}

/* "[1,7]<stderr>:" of mpirun, "[1,mpirank:0,algo-1]<stdout>:" of SageMaker, "[prterun-n1-99@1,7]<"
 * of Open MPI 5, "[7]<stderr>:" of Horovod. */
static size_t take_mpirun(struct line *l, struct cursor c)
{
    struct cursor host = {0};
    const char *from = c.s;
    int64_t rank;

    if (!skip_text(&c, "["))
        return 0;
    if (skip_text(&c, "prterun-") && (!skip_host(&c, &host) || !skip_text(&c, "@")))
        return 0;
    host = (struct cursor){0};
    if (!skip_number(&c, &rank))
        return 0;
    if (skip_text(&c, ",")) {
        skip_text(&c, "mpirank:");
        if (!skip_number(&c, &rank))
            return 0;
    }
    if (rank > INT32_MAX || (skip_text(&c, ",") && !skip_host(&c, &host)))
        return 0;
    if (!skip_text(&c, "]<stdout>:") && !skip_text(&c, "]<stderr>:"))
        return 0;
    l->rank = (int32_t)rank;
    if (host.s)
        set_node(l, &host);
    mix_stream(l, "mpi", rank);
    return (size_t)(c.s - from);
}

/* "(TrainWorker pid=4242, ip=10.0.0.3) " and "(raylet, ip=10.0.0.3) " of Ray. */
static size_t take_actor(struct line *l, struct cursor c)
{
    struct cursor ip = {0};
    const char *from = c.s, *close;
    int64_t pid = 0;

    close = memchr(c.s, ')', (size_t)(c.end - c.s) < 160 ? (size_t)(c.end - c.s) : 160);
    if (!close || !skip_text(&c, "("))
        return 0;
    if (!skip_text(&c, "raylet")) {
        while (c.s < close && (isalnum((unsigned char)*c.s) || strchr("_.<>:()[]", *c.s)))
            c.s++;
        if (!skip_text(&c, " pid=") || !skip_number(&c, &pid))
            return 0;
    }
    if (skip_text(&c, ", ip=") && skip_host(&c, &ip))
        set_node(l, &ip);
    if (c.s != close)
        return 0;
    c.s++;
    l->pid = pid;
    mix_stream(l, "actor", pid);
    skip_blank(&c);
    return (size_t)(c.s - from);
}

static bool is_source_file(const struct cursor *name)
{
    static const char *const endings[] = {".py", ".cc", ".cpp", ".cu", ".c", ".h", ".hpp", ".cxx"};

    for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
        size_t n = strlen(endings[i]);

        if ((size_t)(name->end - name->s) > n && memcmp(name->end - n, endings[i], n) == 0)
            return true;
    }
    return false;
}

/* "host:pid:tid [0] " of NCCL and RCCL. */
static size_t take_nccl(struct line *l, struct cursor c)
{
    struct cursor host;
    const char *from = c.s;
    int64_t pid, tid, device;

    if (!skip_host(&c, &host) || is_source_file(&host) || !skip_text(&c, ":") ||
        !skip_number(&c, &pid) || !skip_text(&c, ":") || !skip_number(&c, &tid) ||
        !skip_text(&c, " [") || !skip_number(&c, &device) || !skip_text(&c, "] "))
        return 0;
    set_node(l, &host);
    if (l->local_rank == RANK_NONE && device < 1024)
        l->local_rank = (int32_t)device;
    l->pid = pid;
    mix_stream(l, "pid", pid);
    return (size_t)(c.s - from);
}

/* Behind a time: "stdout F " of the Kubernetes log format (CRI). */
static void skip_cri(struct cursor *c)
{
    struct cursor d = *c;

    if ((skip_text(&d, "stdout ") || skip_text(&d, "stderr ")) &&
        (skip_text(&d, "F ") || skip_text(&d, "P ")))
        *c = d;
}

/* Behind a time: "host kernel: ", "host slurmd[991]: " of syslog and journalctl. */
static size_t take_syslog_host(struct prefix *p, struct cursor c)
{
    struct cursor host, program;
    const char *from = c.s;
    int64_t pid;
    bool sure = p->syslog;

    if (!(p->found & FOUND_CLOCK) || p->found & FOUND_HOST || !skip_host(&c, &host) ||
        !skip_text(&c, " ") || !skip_host(&c, &program))
        return 0;
    sure |= program.end - program.s == 6 && memcmp(program.s, "kernel", 6) == 0;
    if (skip_text(&c, "[")) {
        if (!skip_number(&c, &pid) || !skip_text(&c, "]"))
            return 0;
        sure = true;
    }
    if (!sure || !skip_text(&c, ":") || (c.s < c.end && *c.s != ' '))
        return 0;
    p->found |= FOUND_HOST;
    p->line->of_system = true;
    set_node(p->line, &host);
    skip_blank(&c);
    return (size_t)(c.s - from);
}

/* Whether a time is told and not read from a clock: "was submitted at Sat Mar 25 07:30:11 2023". */
static bool is_told(const char *s, size_t begin)
{
    static const char *const words[] = {" at ",     " from ", " since ",  " until ",
                                        " by ",     " till ", " after ",  " to ",
                                        " before ", " for ",  " starts ", " ended "};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        size_t n = strlen(words[i]);

        if (begin > n && memcmp(s + begin - n, words[i], n) == 0)
            return true;
    }
    return false;
}

/* A time at the beginning, bare or in brackets, with what separates it from the message. */
static size_t take_clock(struct prefix *p, struct cursor c)
{
    size_t n = (size_t)(c.end - c.s), lead = 0;
    struct clock_reading r;
    const char *from = c.s;
    bool bracket;

    if (!clock_read(p->clock, c.s, n, &r) || is_told(c.s, r.begin))
        return 0;
    if (p->line->time_us == USEC_UNKNOWN)
        p->line->time_us = r.time_us;
    while (lead < n && c.s[lead] == ' ')
        lead++;
    bracket = lead < n && (c.s[lead] == '[' || c.s[lead] == '(');
    if (bracket)
        for (lead++; lead < r.begin && islower((unsigned char)c.s[lead]); lead++)
            ; /* "[task 2025-...]" */
    if (bracket && lead < r.begin && c.s[lead] == ' ')
        lead++;
    if (r.begin != lead || (bracket && (r.end >= n || !strchr("])", c.s[r.end]))) ||
        (!bracket && r.end < n && !strchr(" :|]", c.s[r.end])))
        return 0;
    p->found |= FOUND_CLOCK;
    p->line->of_system |= bracket && r.begin == 1 && isupper((unsigned char)c.s[1]); /* dmesg -T */
    p->syslog = !bracket && isupper((unsigned char)c.s[r.begin]);
    c.s += r.end + bracket;
    skip_text(&c, ":");
    skip_blank(&c);
    skip_cri(&c);
    return (size_t)(c.s - from);
}

/* A clock that counts from the boot, `message` behind it. When that was is known once the kernel
 * has told it; until then the time means something in its own file only. */
static void set_uptime(struct prefix *p, usec_t uptime, const char *message)
{
    struct line *l = p->line;

    l->of_system = true;
    clock_learn_boot(p->clock, uptime, message, (size_t)(l->text + l->len - message));
    if (l->time_us != USEC_UNKNOWN)
        return;
    l->uptime = p->clock->boot_us == 0;
    l->time_us = p->clock->boot_us + uptime;
}

/* "[ 2207.114806] " and, in front of it, "<4>" or "kern  :err   : ". */
static size_t take_uptime(struct prefix *p, struct cursor c)
{
    const char *from = c.s;
    usec_t uptime;
    int64_t priority;
    size_t n;

    if (skip_text(&c, "<") && (!skip_number(&c, &priority) || !skip_text(&c, ">")))
        return 0;
    n = clock_read_uptime(c.s, (size_t)(c.end - c.s), &uptime);
    if (n == 0)
        return 0;
    c.s += n;
    skip_blank(&c);
    set_uptime(p, uptime, c.s);
    return (size_t)(c.s - from);
}

/* "6,1234,5140900,-;" of /dev/kmsg: priority, sequence, microseconds since boot, flag. */
static size_t take_kmsg(struct prefix *p, struct cursor c)
{
    const char *from = c.s, *close;
    int64_t priority, seq, us = 0;

    if (!skip_number(&c, &priority) || !skip_text(&c, ",") || !skip_number(&c, &seq) ||
        !skip_text(&c, ","))
        return 0;
    for (; c.s < c.end && isdigit((unsigned char)*c.s) && us < INT64_MAX / 100; c.s++)
        us = us * 10 + (*c.s - '0');
    close = memchr(c.s, ';', (size_t)(c.end - c.s) < 40 ? (size_t)(c.end - c.s) : 40);
    if (!close || !skip_text(&c, ","))
        return 0;
    set_uptime(p, us, close + 1);
    return (size_t)(close + 1 - from);
}

/* "kern  :err   : " of dmesg -x. */
static size_t take_facility(struct cursor c)
{
    static const char *const facilities[] = {"kern", "user", "daemon", "syslog"};
    const char *from = c.s;

    for (size_t i = 0; i < ARRAY_SIZE(facilities); i++) {
        c.s = from;
        if (!skip_text(&c, facilities[i]))
            continue;
        while (c.s < c.end && *c.s == ' ')
            c.s++;
        if (!skip_text(&c, ":"))
            return 0;
        while (c.s < c.end && islower((unsigned char)*c.s))
            c.s++;
        while (c.s < c.end && *c.s == ' ')
            c.s++;
        return skip_text(&c, ": ") ? (size_t)(c.s - from) : 0;
    }
    return 0;
}

/* "[pod/trainer-3/pytorch] " of kubectl logs --prefix. What is placed, moved and kept out there is
 * the pod, so it stands for the node. */
static size_t take_pod(struct line *l, struct cursor c)
{
    const char *from = c.s, *close;
    struct cursor pod;

    if (!skip_text(&c, "[pod/") || !skip_host(&c, &pod) || !skip_text(&c, "/"))
        return 0;
    close = memchr(c.s, ']', (size_t)(c.end - c.s) < 200 ? (size_t)(c.end - c.s) : 200);
    if (!close)
        return 0;
    set_node(l, &pod);
    mix_stream(l, "pod", (int64_t)hash_bytes(HASH_INIT, from, (size_t)(close - from)));
    c.s = close + 1;
    skip_blank(&c);
    return (size_t)(c.s - from);
}

/* Whether a time stands right at c, bare or in brackets. */
static bool clock_follows(const struct prefix *p, struct cursor c)
{
    struct log_clock clock = *p->clock;
    struct clock_reading r;
    usec_t uptime;

    if (clock_read_uptime(c.s, (size_t)(c.end - c.s), &uptime) > 0)
        return true;
    return clock_read(&clock, c.s, (size_t)(c.end - c.s), &r) &&
           r.begin == (size_t)(c.s < c.end && *c.s == '[');
}

/* Words that a number follows, in kernel messages and of programs, and that look like a host. */
static bool is_no_host(const struct cursor *host)
{
    static const char *const words[] = {"nvidia-", "dm-",   "md-",    "cuda-", "python-",
                                        "lib",     "step-", "epoch-", "rank-", "stage-"};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if ((size_t)(host->end - host->s) > strlen(words[i]) &&
            strncmp(host->s, words[i], strlen(words[i])) == 0)
            return true;
    return !islower((unsigned char)*host->s) || !isdigit((unsigned char)host->end[-1]) ||
           is_source_file(host);
}

/* Behind a host: " dmesg", " kernel", " journalctl -k" of whoever collected the lines of kernels.
 */
static void skip_collector(struct cursor *c)
{
    static const char *const words[] = {" dmesg", " kernel", " syslog", " journalctl", " kern.log"};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (skip_text(c, words[i]))
            return;
}

/* "r07", "rank7", "rank-7", "rank_7" */
static bool is_rank_word(const struct cursor *word, int64_t *ret)
{
    struct cursor c = *word;

    if (!skip_text(&c, "rank") && !skip_text(&c, "Rank") && !skip_text(&c, "r"))
        return false;
    if (c.s < c.end && strchr("-_", *c.s))
        c.s++;
    return skip_number(&c, ret) && c.s == c.end;
}

/* Where several slurmd share a host, their programs say which they belong to. */
static void skip_daemon(struct cursor *host)
{
    static const char *const words[] = {"slurmstepd-", "slurmd-"};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (skip_text(host, words[i]))
            return;
}

/* "gpu-n3: " of pdsh and clush, "gpu-n3 " in front of a rank or time. A name with a hyphen and a
 * number, for plain words stand before a colon in many messages; where a kernel's time follows, the
 * number is enough. Where many slurmd share a machine, a slurmstepd names its node so, too. */
static size_t take_host(struct prefix *p, struct cursor c)
{
    struct cursor host;
    const char *from = c.s;
    bool hyphen, bracket;

    if (p->found & FOUND_HOST || p->line->node[0] || !skip_host(&c, &host) || is_no_host(&host))
        return 0;
    hyphen = memchr(host.s, '-', (size_t)(host.end - host.s)) != NULL;
    skip_text(&host, "slurmstepd-");
    skip_collector(&c);
    if (!skip_text(&c, ": ")) {
        if (!hyphen || !skip_text(&c, " ") ||
            !((c.end - c.s > 5 && memcmp(c.s, "[rank", 5) == 0) || clock_follows(p, c)))
            return 0;
    }
    bracket = c.s < c.end && *c.s == '[';
    if (!hyphen && !(bracket && clock_follows(p, c)))
        return 0;
    skip_daemon(&host);
    p->found |= FOUND_HOST;
    set_node(p->line, &host);
    mix_stream(p->line, "host",
               (int64_t)hash_bytes(HASH_INIT, host.s, (size_t)(host.end - host.s)));
    return (size_t)(c.s - from);
}

/* "| gpu-n3 | r07 | INFO | " of loggers that write in columns: where one names the rank, the others
 * may name the host; levels and names of modules are none. */
static size_t take_columns(struct prefix *p, struct cursor c)
{
    const char *from = c.s;
    struct cursor word, host = {0};
    int64_t rank = RANK_NONE;

    if (!skip_text(&c, "| "))
        return 0;
    for (int i = 0; i < COLUMNS_MAX; i++) {
        struct cursor column = c;

        while (column.s < column.end && *column.s == ' ')
            column.s++;
        if (!skip_host(&column, &word))
            break;
        while (column.s < column.end && *column.s == ' ')
            column.s++;
        if (!skip_text(&column, "| "))
            break;
        if (is_rank_word(&word, &rank))
            ;
        else if (!host.s && !is_no_host(&word))
            host = word;
        c = column;
    }
    if (rank == RANK_NONE || rank > INT32_MAX)
        return 0;
    p->line->rank = (int32_t)rank;
    if (host.s && !p->line->node[0])
        set_node(p->line, &host);
    mix_stream(p->line, "column", rank);
    return (size_t)(c.s - from);
}

/* "[gx-05/12] " and "[gx-05:12] " of launchers: the host, and a number that is the rank if the log
 * as a whole agrees. Process ids of mpirun have five digits. */
static size_t take_host_label(struct prefix *p, struct cursor c)
{
    struct line *l = p->line;
    struct cursor host;
    const char *from = c.s;
    int64_t n;

    if (p->found & (FOUND_HOST | FOUND_LABEL) || l->node[0] || !skip_text(&c, "[") ||
        !skip_host(&c, &host) || is_no_host(&host) ||
        (!skip_text(&c, "/") && !skip_text(&c, ":")) || !skip_number(&c, &n) ||
        n > HOST_LABEL_MAX || !skip_text(&c, "] "))
        return 0;
    p->found |= FOUND_HOST | FOUND_LABEL;
    l->label = (int32_t)n;
    set_node(l, &host);
    mix_stream(l, "host", (int64_t)hash_bytes(HASH_INIT, from, (size_t)(c.s - from)));
    return (size_t)(c.s - from);
}

/* "[syslog gx-05] " of whoever collected the lines of several machines. */
static size_t take_collected(struct prefix *p, struct cursor c)
{
    static const char *const words[] = {"[syslog ", "[dmesg ", "[kernel ", "[journal ",
                                        "[kern.log "};
    struct cursor host;
    const char *from = c.s;
    size_t i = 0;

    while (i < ARRAY_SIZE(words) && !skip_text(&c, words[i]))
        i++;
    if (i == ARRAY_SIZE(words) || p->found & FOUND_HOST || !skip_host(&c, &host) ||
        is_no_host(&host) || !skip_text(&c, "] "))
        return 0;
    p->found |= FOUND_HOST;
    p->line->of_system = true;
    set_node(p->line, &host);
    return (size_t)(c.s - from);
}

static size_t take_in_brackets(struct prefix *p, struct cursor c)
{
    struct line *l = p->line;
    size_t n;

    if ((n = take_bracketed(l, c, "[rank", &l->rank)) > 0 || (n = take_speaker(l, c)) > 0 ||
        (n = take_bracketed(l, c, "[default", &l->local_rank)) > 0 || (n = take_mpirun(l, c)) > 0 ||
        (n = take_pod(l, c)) > 0 || (n = take_host_label(p, c)) > 0 ||
        (n = take_collected(p, c)) > 0 || (n = take_process_label(p, c)) > 0 ||
        (n = take_uptime(p, c)) > 0)
        return n;
    return take_clock(p, c);
}

static size_t take_one(struct prefix *p)
{
    struct line *l = p->line;
    struct cursor c = {l->text, l->text + l->len};
    size_t n = 0;

    if (l->len == 0)
        return 0;
    if (*c.s == '[')
        return take_in_brackets(p, c);
    if (*c.s == '(' && (n = take_actor(l, c)) > 0)
        return n;
    if ((n = take_speaker(l, c)) > 0)
        return n;
    if (*c.s == '<')
        return take_uptime(p, c);
    if (*c.s == '|')
        return take_columns(p, c);
    if ((isdigit((unsigned char)*c.s) || *c.s == ' ') &&
        ((n = take_label(p, c)) > 0 || (n = take_kmsg(p, c)) > 0))
        return n;
    if (is_host_char(*c.s) && ((n = take_nccl(l, c)) > 0 || (n = take_syslog_host(p, c)) > 0 ||
                               (n = take_facility(c)) > 0 || (n = take_host(p, c)) > 0))
        return n;
    return p->found & FOUND_CLOCK ? 0 : take_clock(p, c);
}

void prefix_take_all(struct log_clock *clock, struct line *l)
{
    struct prefix p = {.clock = clock, .line = l};

    for (int i = 0; i < PREFIXES_MAX; i++) {
        size_t n = take_one(&p);

        if (n == 0)
            break;
        l->text += n;
        l->len -= n;
    }
    note_mark(&p);
    if (l->rank == RANK_NONE)
        l->rank = speaker_find(l->text, l->len);
}

size_t prefix_name(const struct line *l)
{
    struct cursor c = {l->text, l->text + l->len}, name;

    return skip_host(&c, &name) && skip_text(&c, ": ") ? (size_t)(name.end - name.s) : 0;
}

void prefix_take_name(struct log_clock *clock, struct line *l, size_t n)
{
    struct cursor name = {l->text, l->text + n};

    set_node(l, &name);
    mix_stream(l, "host", (int64_t)hash_bytes(HASH_INIT, name.s, n));
    l->text += n + 2;
    l->len -= n + 2;
    prefix_take_all(clock, l);
}

int32_t prefix_rank_before(const char *s, size_t len)
{
    static const char word[] = "[rank";

    for (size_t i = len; i >= sizeof(word) - 1; i--) {
        struct cursor c = {s + i - (sizeof(word) - 1), s + len};
        int64_t n;

        if (*c.s == '[' && skip_text(&c, word) && skip_number(&c, &n) && skip_text(&c, "]:") &&
            n <= INT32_MAX)
            return (int32_t)n;
    }
    return RANK_NONE;
}
