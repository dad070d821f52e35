/* SPDX-License-Identifier: Apache-2.0 */

/* Names of files, and whose output they promise. */

#include "cli/file_ranks.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NAMES_MAX 8

/* The ranks of all names, as "3 - 0": "-" = not known, "l3" = within the node only. */
static const char *ranks_of(const char *const *names)
{
    static struct strbuf b;
    struct entity who[NAMES_MAX];
    size_t n = 0;

    while (names[n])
        n++;
    file_ranks_read(names, n, who);
    strbuf_reset(&b);
    for (size_t i = 0; i < n; i++) {
        strbuf_adds(&b, i ? " " : "");
        if (who[i].rank != RANK_NONE)
            strbuf_addf(&b, "%d", who[i].rank);
        else if (who[i].local_rank != RANK_NONE)
            strbuf_addf(&b, "l%d", who[i].local_rank);
        else
            strbuf_adds(&b, "-");
        if (*who[i].node)
            strbuf_addf(&b, "@%s", who[i].node);
    }
    return strbuf_str(&b);
}

static void names_tell_ranks(void **state)
{
    static const struct {
        const char *names[NAMES_MAX], *want;
    } rows[] = {
        /* a word and a number */
        {{"rank3.log"}, "3"},
        {{"rank_0003.out"}, "3"},
        {{"logs/Rank-12.err.gz"}, "12"},
        {{"job.rank=7"}, "7"},
        {{"out.mpirank4.txt"}, "4"},
        {{"worker_7.out"}, "7"},
        {{"proc.2", "proc.5.zst"}, "2 5"},
        {{"out/1/rank.3/stdout", "out/1/rank.4/stderr"}, "3 4"},
        {{"local_rank3.log", "localrank2.log"}, "l3 l2"},
        {{"job-worker-0.log", "job-worker-1.log", "job-master-0.log"}, "- - -"},
        {{"node_rank1.log", "frank3.log", "rank.log", "rank3x.log", "rank12345678.log"},
         "- - - - -"},
        /* torchrun */
        {{"t/x_1/attempt_0/0/stdout.log", "t/x_1/attempt_0/0/stderr.log",
          "t/x_1/attempt_0/3/stderr.log"},
         "0 0 3"},
        {{"n1/x/attempt_0/3/stderr.log", "n2/x/attempt_0/3/stderr.log"}, "l3 l3"},
        {{"attempt_0/3/train.log", "attempt_0/x/stderr.log", "3/stderr.log"}, "- - -"},
        /* bare numbers */
        {{"log.0", "log.1", "log.3", "log.2"}, "0 1 3 2"},
        {{"train-0.out", "train-1.out", "train-0.err", "train-1.err"}, "0 1 0 1"},
        {{"out.n5.0", "out.n5.1", "out.n6.2", "out.n6.3"}, "0@n5 1@n5 2@n6 3@n6"},
        {{"out.n5.0", "out.n5.1"}, "0 1"},
        {{"log.3"}, "-"},
        {{"log.0"}, "-"},
        {{"log.1", "log.2"}, "- -"},
        {{"log.0", "log.1", "log.3"}, "- - -"},
        {{"a/log.0", "b/log.0", "b/log.1"}, "- - -"},
        {{"train.log", "train.log.1", "train.log.2"}, "- - -"},
        {{"node_rank-0.log", "node_rank-1.log"}, "- -"},
        {{"slurm-4242_0.out", "slurm-4242_1.out"}, "- -"},
        {{"node-0.log", "node-1.log"}, "- -"},
        {{"attempt_0.log", "attempt_1.log"}, "- -"},
        {{"slurm-4242.out", "", "/", "0", ".0", "-0", "a.0"}, "- - - - - - -"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_string_equal(ranks_of(rows[i].names), rows[i].want);
}

static void no_names_are_no_harm(void **state)
{
    file_ranks_read(NULL, 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_tell_ranks),
        cmocka_unit_test(no_names_are_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
