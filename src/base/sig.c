/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sig.h"

#include "base/str.h"

#include <signal.h>
#include <string.h>
#include <strings.h>

#define SHELL_BASE 128

static const struct {
    int number;
    const char *name;  /* without SIG */
    const char *words; /* of a shell, NULL: says nothing else */
} names[] = {
    {SIGHUP, "HUP", "Hangup"},
    {SIGINT, "INT", "Interrupt"},
    {SIGQUIT, "QUIT", "Quit"},
    {SIGILL, "ILL", "Illegal instruction"},
    {SIGTRAP, "TRAP", NULL},
    {SIGABRT, "ABRT", "Aborted"},
    {SIGBUS, "BUS", "Bus error"},
    {SIGFPE, "FPE", "Floating point exception"},
    {SIGKILL, "KILL", "Killed"},
    {SIGUSR1, "USR1", NULL},
    {SIGSEGV, "SEGV", "Segmentation fault"},
    {SIGUSR2, "USR2", NULL},
    {SIGPIPE, "PIPE", "Broken pipe"},
    {SIGALRM, "ALRM", NULL},
    {SIGTERM, "TERM", "Terminated"},
    {SIGXCPU, "XCPU", NULL},
    {SIGXFSZ, "XFSZ", NULL},
    {SIGSYS, "SYS", "Bad system call"},
};

const char *sig_name(int sig, char buf[SIG_NAME_LEN])
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (names[i].number == sig) {
            str_printf(buf, SIG_NAME_LEN, "SIG%s", names[i].name);
            return buf;
        }
    str_printf(buf, SIG_NAME_LEN, "signal %d", sig);
    return buf;
}

bool sig_is_of_key(int sig)
{
    return sig == SIGINT || sig == SIGQUIT;
}

const char *sig_sender(int sig, char buf[SIG_SENDER_LEN])
{
    char name[SIG_NAME_LEN];

    if (sig_is_of_key(sig))
        str_printf(buf, SIG_SENDER_LEN, "the user (Ctrl-%s)", sig == SIGINT ? "C" : "\\");
    else
        str_printf(buf, SIG_SENDER_LEN, "somebody or %s (%s)",
                   sig == SIGHUP ? "the end of the terminal" : "the scheduler",
                   sig_name(sig, name));
    return buf;
}

static bool is_word(const char *s, size_t len, const char *word)
{
    return word && strlen(word) == len && strncasecmp(s, word, len) == 0;
}

int sig_from_word(const char *s, size_t len)
{
    size_t prefix = len > 3 && strncasecmp(s, "SIG", 3) == 0 ? 3 : 0;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (is_word(s + prefix, len - prefix, names[i].name) || is_word(s, len, names[i].words))
            return names[i].number;
    return 0;
}

int sig_status(int code, int sig)
{
    return sig != 0 ? SHELL_BASE + sig : code;
}

bool sig_ended(int code, int sig, int which)
{
    return sig == which || (sig == 0 && code == SHELL_BASE + which);
}
