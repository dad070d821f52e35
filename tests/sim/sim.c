/* SPDX-License-Identifier: Apache-2.0 */

/* usage: sim [--trace] [FIRST [COUNT]]
 *
 * Runs COUNT seeds from FIRST on (without arguments: 1, 1000; with FIRST alone: that one). The same
 * seed makes the same run. Ends with 1 at the first run in which something did not hold, and says
 * how to see it again. */

#include "machine.h"

#include "base/str.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile uint64_t running;

/* An assert in core: say in which run. */
static void on_abort(int sig)
{
    char text[80];
    int n = snprintf(text, sizeof(text), "seed %llu: a bug was met. Replay it: sim --trace %llu\n",
                     (unsigned long long)running, (unsigned long long)running);

    (void)sig;
    if (write(STDERR_FILENO, text, (size_t)n) != n)
        _exit(3);
    _exit(2);
}

struct tally {
    unsigned complete, stopped, starts;
    size_t events;
};

static void run(uint64_t seed, bool trace, struct tally *t)
{
    struct machine m;

    running = seed;
    machine_init(&m, seed, trace);
    machine_run(&m);
    t->complete += m.end.action == ACTION_COMPLETE;
    t->stopped += m.end.action == ACTION_STOP;
    t->starts += m.starts;
    t->events += m.journal.events.n;
    machine_done(&m);
}

int main(int argc, char **argv)
{
    bool trace = argc > 1 && streq(argv[1], "--trace");
    long long first = 1, count = argc - trace > 1 ? 1 : 1000;
    struct tally t = {0};

    if (argc - trace > 1 && str_to_i64(argv[1 + trace], &first) < 0)
        return 64;
    if (argc - trace > 2 && str_to_i64(argv[2 + trace], &count) < 0)
        return 64;
    signal(SIGABRT, on_abort);
    for (long long i = 0; i < count; i++)
        run((uint64_t)(first + i), trace, &t);
    printf("%lld runs: %u complete, %u stopped, %u attempts, %zu events\n", count, t.complete,
           t.stopped, t.starts, t.events);
    return 0;
}
