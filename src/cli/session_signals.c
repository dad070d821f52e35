/* SPDX-License-Identifier: Apache-2.0 */

/* SIGINT, SIGTERM, SIGHUP and SIGQUIT ask for the end: the first is passed on, the second ends
 * everything. The others are the terminal's business, or the job's. */

#include "base/str.h"
#include "cli/session_parts.h"

#include <signal.h>
#include <string.h>

static void first_interrupt(struct session *s, int sig)
{
    s->interrupt_signal = sig;
    if (local_is_idle(s->local)) {
        say(s->say, "%s: no attempt runs, so this is the end", strsignal(sig));
    } else {
        say(s->say, "%s: passed on to the job; once more ends everything at once", strsignal(sig));
        local_signal(s->local, LOCAL_GROUP, sig);
    }
    session_ask_for_end(s, sig, "the user");
}

static int on_end_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
    struct session *s = userdata;

    if (s->interrupts++ == 0) {
        first_interrupt(s, (int)si->ssi_signo);
    } else {
        say(s->say, "%s again: ending everything", strsignal((int)si->ssi_signo));
        local_kill(s->local, LOCAL_ALL, SIGKILL, 0);
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

int session_add_signals(struct session *s)
{
    static const struct {
        int sig;
        sd_event_signal_handler_t handler;
    } signals[] = {
        {SIGINT, on_end_signal},  {SIGTERM, on_end_signal},  {SIGHUP, on_end_signal},
        {SIGQUIT, on_end_signal}, {SIGUSR1, on_pass_signal}, {SIGUSR2, on_pass_signal},
        {SIGWINCH, on_resize},    {SIGTSTP, on_suspend},
    };

    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        struct sigaction now;
        int r;

        sigaction(signals[i].sig, NULL, &now);
        if (now.sa_handler == SIG_IGN) /* nohup, a background job of a script: stays ignored */
            continue;
        r = sd_event_add_signal(s->event, NULL, signals[i].sig | SD_EVENT_SIGNAL_PROCMASK,
                                signals[i].handler, s);
        if (r < 0)
            return r;
    }
    return 0;
}
