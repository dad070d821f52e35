/* SPDX-License-Identifier: Apache-2.0 */

/* In which file the lines stand that a verdict rests on. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched_world.h"

#include "base/str.h"

static void name_log(struct world *w, uint32_t file, const char *path)
{
    struct event e = of_job(w, EVENT_LOG_NAMED);

    e.attempt = w->attempt;
    e.log.file = file;
    STR_COPY(e.log.path, path);
    world_feed(w, e);
}

static void refuse_log(struct world *w, uint32_t file, const char *path)
{
    struct event e = of_job(w, EVENT_LOG_NAMED);

    e.attempt = w->attempt;
    e.log = (struct log_facts){.file = file, .trouble = "it is no regular file"};
    STR_COPY(e.log.path, path);
    world_feed(w, e);
}

/* What is told without being news would fill a journal. */
static bool is_news(const struct world *w, uint32_t file, const char *path)
{
    struct log_facts f = {.file = file};

    STR_COPY(f.path, path);
    return log_names_lack(&world_job(w)->attempt.logs, &f);
}

static void read_line(struct world *w, uint32_t file, uint64_t line)
{
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_JOB_TEXT);

    s.role = ROLE_ROOT;
    s.cause = CAUSE_GPU_HARDWARE;
    s.advice = ADVICE_RESTART;
    s.file = file;
    s.line = line;
    STR_COPY(s.signature, "cuda.ecc");
    world_signal(w, s);
}

static void check_path(const struct world *w, const char *path)
{
    const struct incident *in = &world_last(w, EVENT_VERDICT)->incident;

    assert_int_equal(in->n_evidence, 1);
    assert_string_equal(incident_path(in, &in->evidence[0]), path);
}

static void the_evidence_says_in_which_file_it_stands(void **state)
{
    struct world *w = *state;

    name_log(w, 0, "/home/a/slurm-1.out");
    name_log(w, 3, "/home/a/train-1.log");
    assert_false(is_news(w, 3, "/home/a/train-1.log"));
    assert_true(is_news(w, 4, "/home/a/train-1.log"));
    name_log(w, 3, "/home/a/train-1.log"); /* another daemon's word */
    refuse_log(w, 3, "/home/b/train-1.log");
    read_line(w, 3, 7);
    end_attempt(w, SCHED_FAILED, 1);
    check_path(w, "/home/a/train-1.log");
}

/* A journal of an older release; and what is no line of a file. */
static void a_file_without_a_name_has_none(void **state)
{
    struct world *w = *state;

    name_log(w, 0, "/home/a/slurm-1.out");
    read_line(w, 1, 7);
    end_attempt(w, SCHED_FAILED, 1);
    check_path(w, "");
    grant_requeue(w, w->now / S * S + 120 * S);
    world_wait(w, 3 * MIN);
    begin_attempt(w);
    name_log(w, 0, "/home/a/slurm-1.out");
    read_line(w, 0, 0);
    end_attempt(w, SCHED_FAILED, 1);
    check_path(w, "");
}

static void a_number_of_two_files_names_neither(void **state)
{
    struct world *w = *state;

    name_log(w, 3, "/home/a/train-1.log");
    assert_true(is_news(w, 3, "/home/a/train-2.log"));
    name_log(w, 3, "/home/a/train-2.log");
    assert_false(is_news(w, 3, "/home/a/train-1.log"));
    name_log(w, 3, "/home/a/train-1.log");
    read_line(w, 3, 7);
    end_attempt(w, SCHED_FAILED, 1);
    check_path(w, "");
}

static void so_many_files_have_names(void **state)
{
    struct world *w = *state;

    for (uint32_t i = 0; i <= LOG_NAMES_MAX; i++) {
        char path[64];

        STR_PRINTF(path, "/home/a/train-%u.log", (unsigned)i);
        name_log(w, i, path);
    }
    assert_int_equal(world_job(w)->attempt.logs.n, LOG_NAMES_MAX);
    read_line(w, LOG_NAMES_MAX, 7);
    end_attempt(w, SCHED_FAILED, 1);
    check_path(w, "");
}

/* What it wrote before it seemed to hang is void then, but not the names of its files. */
static void names_outlast_a_recovery(void **state)
{
    struct world *w = *state;

    name_log(w, 3, "/home/a/train-1.log");
    world_step(w, 1);
    one_task_dies(w);
    world_wait(w, 20 * S);
    assert_int_equal(world_job(w)->state, JOB_DECIDED);
    world_step(w, 2);
    assert_int_equal(world_job(w)->state, JOB_RUNNING);
    read_line(w, 3, 7);
    end_attempt(w, SCHED_FAILED, 1);
    check_path(w, "/home/a/train-1.log");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN(act, the_evidence_says_in_which_file_it_stands),
        IN(act, a_file_without_a_name_has_none),
        IN(act, a_number_of_two_files_names_neither),
        IN(act, so_many_files_have_names),
        IN(propose, names_outlast_a_recovery),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
