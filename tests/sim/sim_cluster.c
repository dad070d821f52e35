/* SPDX-License-Identifier: Apache-2.0 */

/* usage: sim_cluster [--trace] [FIRST [COUNT]]
 *
 * As sim, of clusters: the same seed makes the same run, and the first run in which something did
 * not hold ends it all, and says how to see it again. */

#include "cluster.h"

#include "base/str.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define SEEDS 2000

static volatile uint64_t running;

/* An assert in core: say in which run. */
static void on_abort(int sig)
{
    char text[96];
    int n = snprintf(text, sizeof(text),
                     "seed %llu: a bug was met. Replay it: sim_cluster --trace %llu\n",
                     (unsigned long long)running, (unsigned long long)running);

    if (write(STDERR_FILENO, text, (size_t)n) != n)
        _exit(3);
    _exit(2);
}

struct tally {
    size_t events;
    unsigned attempts, requeues, cancels, deaths, guards, fences, copies, reader_deaths, unread,
        silences, let_go;
};

static void run(uint64_t seed, bool trace, struct tally *t)
{
    struct cluster c;

    running = seed;
    cluster_init(&c, seed, trace);
    cluster_run(&c);
    t->events += c.journal.events.n;
    t->attempts += c.attempts;
    t->requeues += c.requeues;
    t->cancels += c.cancels;
    t->deaths += c.deaths;
    t->guards += c.guards;
    t->fences += c.fences;
    t->copies += c.copies;
    t->reader_deaths += c.reader_deaths;
    t->unread += c.unread;
    t->silences += c.silences;
    t->let_go += c.let_go;
    cluster_done(&c);
}

int main(int argc, char **argv)
{
    bool trace = argc > 1 && streq(argv[1], "--trace");
    long long first = 1, count = argc - trace > 1 ? 1 : SEEDS;
    struct tally t = {0};

    if (argc - trace > 1 && str_to_i64(argv[1 + trace], &first) < 0)
        return 64;
    if (argc - trace > 2 && str_to_i64(argv[2 + trace], &count) < 0)
        return 64;
    signal(SIGABRT, on_abort);
    for (long long i = 0; i < count; i++)
        run((uint64_t)(first + i), trace, &t);
    printf("%lld runs: %u attempts, %u requeues and %u cancels asked for, %u guards, %u fences, %u "
           "copies that nobody could prevent, %u deaths of reknitd, %u of readers, %u verdicts "
           "without one, %u interruptions for silence, %u jobs let go, %zu events\n",
           count, t.attempts, t.requeues, t.cancels, t.guards, t.fences, t.copies, t.deaths,
           t.reader_deaths, t.unread, t.silences, t.let_go, t.events);
    return 0;
}
