/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/deadline.h"

#include "slurm/protocol.h"

#include <assert.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 256
/* Not SIGALRM: Slurm gives that its default action for as long as it waits for munged. */
#define SIGNAL (SIGRTMIN + 1)

/* Both answers are made before the clock runs: a handler can do no more than write one. */
static struct {
    char line[LINE_MAX_BYTES];
    size_t len;
} idle_answer, acting_answer;
static volatile sig_atomic_t is_acting;
static int out;
static timer_t timer;

static void on_time(int sig)
{
    ssize_t n = is_acting ? write(out, acting_answer.line, acting_answer.len)
                          : write(out, idle_answer.line, idle_answer.len);

    (void)n; /* the client sees the end in any case */
    _exit(DEADLINE_EXIT_STATUS);
}

void deadline_init(int out_fd)
{
    struct sigaction sa = {.sa_handler = on_time};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGNAL};
    sigset_t set;
    int r;

    out = out_fd;
    sigaction(SIGNAL, &sa, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGNAL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    r = timer_create(CLOCK_MONOTONIC, &event, &timer);
    assert(r == 0);
    (void)r;
}

static void prepare(int64_t id, enum fault fault, const char *text, char *line, size_t *ret_len)
{
    _cleanup_answer_ struct answer a = {0};
    _cleanup_strbuf_ struct strbuf b = {0};

    answer_fail(&a, fault, 0, "%s", text);
    answer_write(&a, id, &b);
    assert(b.len < LINE_MAX_BYTES);
    memcpy(line, b.s, b.len);
    *ret_len = b.len;
}

static void set_timer(int ms)
{
    struct itimerspec t = {
        .it_value = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000},
    };

    timer_settime(timer, 0, &t, NULL);
}

void deadline_start(int64_t id, int ms)
{
    prepare(id, FAULT_UNREACHABLE,
            "no answer from slurmctld by the deadline; nothing was asked of it", idle_answer.line,
            &idle_answer.len);
    prepare(id, FAULT_UNKNOWN, "no answer from slurmctld by the deadline; it may yet be done",
            acting_answer.line, &acting_answer.len);
    is_acting = 0;
    set_timer(ms);
}

void deadline_acting(void)
{
    is_acting = 1;
}

void deadline_stop(void)
{
    set_timer(0);
}
