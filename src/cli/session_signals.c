/* SPDX-License-Identifier: Apache-2.0 */

/* SIGINT, SIGTERM, SIGHUP and SIGQUIT ask for the end: the first is passed on, the second ends
 * everything. The others are the terminal's business, or the job's. */

#include "base/sig.h"
#include "base/str.h"
#include "base/timer.h"
#include "cli/session_parts.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define READER_PATIENCE (3 * USEC_PER_SEC) /* when only the reader of our output is waited for */
#define KILL_PATIENCE   (5 * USEC_PER_SEC) /* after the second signal */

/* Signals of the same kind that wait to be read from a signalfd are one. While reknit starts the
 * job it reads none for some tenths of a second, and the second one counts. So they are counted by
 * a handler, which wakes the loop. */
static struct {
    volatile sig_atomic_t asked; /* how often */
    volatile sig_atomic_t first, last;
    volatile sig_atomic_t wake; /* eventfd */
} ends = {.wake = -1};

static const int end_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static void on_end_signal(int sig)
{
    static const uint64_t one = 1;
    int kept = errno;

    if (ends.asked++ == 0)
        ends.first = sig;
    ends.last = sig;
    if (write(ends.wake, &one, sizeof(one)) < 0)
        errno = 0; /* it is awake */
    errno = kept;
}

static void first_interrupt(struct session *s, int sig)
{
    char grace[DURATION_TEXT_MAX], sender[SIG_SENDER_LEN];
    bool running = !local_is_idle(s->local);

    if (!running) {
        say(s->say, "%s: no attempt runs, so this is the end", strsignal(sig));
    } else {
        say(s->say,
            "%s: passed on to the job, which has %s to end; once more ends everything at once",
            strsignal(sig), duration_format(s->policy.kill_grace, grace));
    }
    session_ask_for_end(s, sig, sig_sender(sig, sender)); /* first: the grace counts from there */
    if (running)
        local_kill(s->local, LOCAL_GROUP, sig, s->policy.kill_grace);
}

static int on_hurry(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct session *s = userdata;

    s->impatient = true;
    session_maybe_finish(s);
    if (s->interrupts > 1 && !local_is_idle(s->local)) {
        say_loud(s->say, "the job's processes do not end; they are left to its keeper, process %d",
                 (int)local_keeper(s->local));
        sd_event_exit(s->event, 128 + ends.last);
    }
    return 0;
}

void session_hurry(struct session *s)
{
    if (!s->impatient && !timer_is_armed(s->hurry))
        timer_arm(s->hurry, mono_us() + READER_PATIENCE);
}

static void second_interrupt(struct session *s, int sig)
{
    char sender[SIG_SENDER_LEN];

    say(s->say, "%s again: ending everything", strsignal(sig));
    local_kill(s->local, LOCAL_ALL, SIGKILL, 0);
    if (!local_is_idle(s->local))
        session_ask_for_end(s, sig, sig_sender(sig, sender));
    timer_arm(s->hurry, mono_us() + KILL_PATIENCE);
}

static int on_asked(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct session *s = userdata;
    uint64_t count;

    if (read(fd, &count, sizeof(count)) < 0)
        return 0;
    for (; s->interrupts < (unsigned)ends.asked; s->interrupts++) {
        if (s->interrupts == 0)
            first_interrupt(s, ends.first);
        else if (s->interrupts == 1)
            second_interrupt(s, ends.last);
    }
    session_maybe_finish(s);
    return 0;
}

static int on_pass_signal(sd_event_source *source, const struct signalfd_siginfo *si,
                          void *userdata)
{
    struct session *s = userdata;

    local_signal(s->local, LOCAL_FIRST, (int)si->ssi_signo);
    return 0;
}

static int on_resize(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
    struct session *s = userdata;

    if (s->master >= 0)
        terminal_copy_size(&s->terminal, s->master);
    return 0;
}

/* Ctrl-Z: the job is stopped with us, and goes on with us. */
static int on_suspend(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
    struct session *s = userdata;

    local_signal(s->local, LOCAL_ALL, SIGSTOP);
    terminal_leave(&s->terminal);
    raise(SIGSTOP);
    if (!local_is_idle(s->local))
        terminal_enter(&s->terminal);
    say_set_raw(s->say, s->terminal.raw);
    local_signal(s->local, LOCAL_ALL, SIGCONT);
    return 0;
}

/* nohup, a background job of a script: what is ignored stays so. */
static bool is_ignored(int sig)
{
    struct sigaction now;

    return sigaction(sig, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static int add_end_signals(struct session *s)
{
    struct sigaction act = {.sa_handler = on_end_signal, .sa_flags = SA_RESTART};

    ends.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ends.wake < 0)
        return -errno;
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < ARRAY_SIZE(end_signals); i++)
        sigaddset(&act.sa_mask, end_signals[i]); /* they do not interrupt each other */
    for (size_t i = 0; i < ARRAY_SIZE(end_signals); i++)
        if (!is_ignored(end_signals[i]))
            sigaction(end_signals[i], &act, NULL);
    return sd_event_add_io(s->event, NULL, ends.wake, EPOLLIN, on_asked, s);
}

void session_release_signals(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(end_signals); i++)
        if (!is_ignored(end_signals[i]))
            signal(end_signals[i], SIG_DFL);
}

int session_add_signals(struct session *s)
{
    static const struct {
        int sig;
        sd_event_signal_handler_t handler;
    } signals[] = {
        {SIGUSR1, on_pass_signal},
        {SIGUSR2, on_pass_signal},
        {SIGWINCH, on_resize},
        {SIGTSTP, on_suspend},
    };
    int r = add_end_signals(s);

    if (r >= 0)
        r = timer_new(s->event, on_hurry, s, &s->hurry);
    for (size_t i = 0; i < ARRAY_SIZE(signals) && r >= 0; i++)
        if (!is_ignored(signals[i].sig))
            r = sd_event_add_signal(s->event, NULL, signals[i].sig | SD_EVENT_SIGNAL_PROCMASK,
                                    signals[i].handler, s);
    return r;
}
