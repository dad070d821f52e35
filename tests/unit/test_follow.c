/* SPDX-License-Identifier: Apache-2.0 */

/* The logs of an attempt where nothing tells of changes, as on a network file system: what happened
 * between two looks has to be found out, and each look happens when the test says so. */

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "reader/attempt.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct catalog *catalog;
static struct matcher *matcher;

struct world {
    unsigned nowhere, left;
    char left_path[128];
    char dir[64], log[96], old[96];
    struct attempt *attempt;
    usec_t now;
    unsigned n, anew, gaps, drained, files;
    int numbers[256]; /* of the errors, in the order told */
    char gap[256], trouble[128];
};

static void on_signal(void *ctx, const struct signal *s)
{
    struct world *w = ctx;
    const char *number = strrchr(s->text, '(');

    if (s->role == ROLE_ROOT && number && w->n < ARRAY_SIZE(w->numbers))
        assert_int_equal(sscanf(number, "(%d)", &w->numbers[w->n++]), 1);
}

static void on_file(void *ctx, uint32_t file, const char *path, const char *trouble, bool local)
{
    struct world *w = ctx;

    w->files++;
    STR_COPY(w->trouble, trouble ? trouble : "");
}

static void on_gap(void *ctx, const char *path, const char *text)
{
    struct world *w = ctx;

    w->gaps++;
    STR_COPY(w->gap, text);
}

static void on_anew(void *ctx, uint32_t file)
{
    ((struct world *)ctx)->anew++;
}

static void on_marks(void *ctx)
{
}

static void on_nowhere(void *ctx, const char *path)
{
    ((struct world *)ctx)->nowhere++;
}

static void on_left(void *ctx, const char *path)
{
    struct world *w = ctx;

    w->left++;
    STR_COPY(w->left_path, path);
}

static void on_drained(void *ctx)
{
    ((struct world *)ctx)->drained++;
}

static void follow(struct world *w, usec_t started_us)
{
    static const struct attempt_handlers handlers = {.signal = on_signal,
                                                     .file = on_file,
                                                     .gap = on_gap,
                                                     .anew = on_anew,
                                                     .marks = on_marks,
                                                     .drained = on_drained,
                                                     .nowhere = on_nowhere,
                                                     .left = on_left};
    struct attempt_options o = {.matcher = matcher, .started_us = started_us, .owner = geteuid()};

    w->attempt = attempt_new(&o, &handlers, w);
    assert_int_equal(attempt_add_path(w->attempt, w->log, STREAM_MODE_UNKNOWN), 0);
}

static void begin(struct world *w)
{
    *w = (struct world){.dir = "/tmp/reknit-follow-XXXXXX"};
    assert_non_null(mkdtemp(w->dir));
    snprintf(w->log, sizeof(w->log), "%s/log", w->dir);
    snprintf(w->old, sizeof(w->old), "%s/log.1", w->dir);
    w->now = mono_us();
    follow(w, 0);
}

static void end(struct world *w)
{
    attempt_free(w->attempt);
    unlink(w->log);
    unlink(w->old);
    rmdir(w->dir);
}

/* As if that much time had passed: everything is due. */
static void look(struct world *w)
{
    w->now += USEC_PER_MIN;
    for (int i = 0; i < 3; i++)
        attempt_run(w->attempt, w->now);
}

static void print(const char *path, int from, int to)
{
    FILE *f = fopen(path, "a");

    assert_non_null(f);
    for (int i = from; i < to; i++)
        fprintf(f, "RuntimeError: CUDA error: uncorrectable ECC error encountered (%d)\n", i);
    fclose(f);
}

static void check(const struct world *w, int from, int to)
{
    assert_int_equal(w->n, to - from);
    for (int i = from; i < to; i++)
        assert_int_equal(w->numbers[i - from], i);
}

static void test_grows(void **state)
{
    struct world w;

    begin(&w);
    look(&w);
    assert_int_equal(w.files, 0);
    for (int i = 1; i < 5; i++) {
        print(w.log, 3 * i, 3 * i + 3);
        look(&w);
        check(&w, 3, 3 * i + 3);
    }
    assert_int_equal(w.files, 1);
    end(&w);
}

static void test_cut_and_longer_again(void **state)
{
    struct world w;

    begin(&w);
    print(w.log, 1, 3);
    look(&w);
    assert_int_equal(truncate(w.log, 0), 0);
    print(w.log, 3, 9);
    look(&w);
    check(&w, 1, 9);
    assert_int_equal(w.anew, 1);
    assert_int_equal(w.gaps, 0);
    end(&w);
}

static void test_cut_and_exactly_as_long_again(void **state)
{
    struct world w;

    begin(&w);
    print(w.log, 1, 3);
    look(&w);
    assert_int_equal(truncate(w.log, 0), 0);
    print(w.log, 3, 5);
    look(&w);
    check(&w, 1, 5);
    end(&w);
}

static void test_replaced_twice(void **state)
{
    struct world w;

    begin(&w);
    print(w.log, 1, 3);
    look(&w);
    print(w.log, 3, 4);
    assert_int_equal(rename(w.log, w.old), 0);
    print(w.log, 4, 6);
    look(&w);
    check(&w, 1, 6);
    assert_int_equal(unlink(w.log), 0);
    look(&w);
    print(w.log, 6, 7);
    look(&w);
    check(&w, 1, 7);
    assert_int_equal(w.anew, 2);
    end(&w);
}

static void test_trouble_comes_and_goes(void **state)
{
    struct world w;

    begin(&w);
    assert_int_equal(mkfifo(w.log, 0600), 0);
    look(&w);
    look(&w);
    assert_int_equal(w.files, 1); /* it is told once */
    assert_string_equal(w.trouble, "it is no regular file");
    unlink(w.log);
    print(w.log, 1, 2);
    look(&w);
    assert_int_equal(w.files, 2);
    assert_string_equal(w.trouble, "");
    check(&w, 1, 2);
    end(&w);
}

static void test_drain_and_what_comes_later(void **state)
{
    struct world w;

    begin(&w);
    print(w.log, 1, 3);
    attempt_drain(w.attempt);
    look(&w);
    assert_int_equal(w.drained, 1);
    print(w.log, 3, 4); /* the file system was late */
    look(&w);
    check(&w, 1, 4);
    assert_int_equal(truncate(w.log, 0), 0); /* the next attempt's */
    print(w.log, 50, 60);
    look(&w);
    check(&w, 1, 4);
    assert_int_equal(w.anew, 0);
    attempt_drain(w.attempt);
    assert_int_equal(w.drained, 2);
    end(&w);
}

static int load(void **state)
{
    struct err e;

    return catalog_load(NULL, 0, &catalog, &e) < 0 || matcher_new(catalog, &matcher, &e) < 0;
}

static int unload(void **state)
{
    matcher_free(matcher);
    catalog_free(catalog);
    return 0;
}

/* A log that is late is in a folder that is there; one whose folder is missing may be elsewhere. */
static void test_a_missing_folder_is_told_of_once(void **state)
{
    struct world w;
    char folder[96], log[128];

    begin(&w);
    look(&w);
    assert_int_equal(w.nowhere, 0);
    STR_PRINTF(folder, "%s/sub", w.dir);
    STR_PRINTF(log, "%s/log", folder);
    assert_int_equal(attempt_add_path(w.attempt, log, STREAM_MODE_UNKNOWN), 0);
    attempt_run(w.attempt, w.now);
    assert_int_equal(w.nowhere, 0); /* it may be on its way */
    look(&w);
    look(&w);
    assert_int_equal(w.nowhere, 1);
    assert_int_equal(mkdir(folder, 0700), 0);
    print(log, 0, 2);
    look(&w);
    check(&w, 0, 2);
    assert_int_equal(w.nowhere, 1);
    unlink(log);
    rmdir(folder);
    end(&w);
}

static void test_a_missing_folder_is_told_of_before_the_drain_is(void **state)
{
    struct world w;
    char log[128];

    begin(&w);
    STR_PRINTF(log, "%s/sub/x", w.dir);
    assert_int_equal(attempt_add_path(w.attempt, log, STREAM_MODE_UNKNOWN), 0);
    attempt_drain(w.attempt);
    attempt_run(w.attempt, w.now);
    assert_int_equal(w.nowhere, 1);
    assert_int_equal(w.drained, 1);
    end(&w);
}

/* Of the files that somebody told of, not of the patterns: those may be late. */
static void test_files_that_are_not_there_are_left(void **state)
{
    struct world w;
    char there[128], absent[128];

    begin(&w);
    STR_PRINTF(there, "%s/there", w.dir);
    STR_PRINTF(absent, "%s/absent", w.dir);
    print(there, 0, 1);
    attempt_add_file(w.attempt, there);
    attempt_add_file(w.attempt, absent);
    look(&w);
    look(&w);
    assert_int_equal(w.left, 0); /* nobody else would read them */
    attempt_leave(w.attempt, true);
    attempt_run(w.attempt, w.now);
    assert_int_equal(w.left, 1);
    assert_string_equal(w.left_path, absent);
    print(absent, 5, 7);
    look(&w);
    check(&w, 0, 1);
    attempt_add_file(w.attempt, absent); /* told of again */
    look(&w);
    assert_int_equal(w.n, 3);
    unlink(there);
    unlink(absent);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows),
        cmocka_unit_test(test_a_missing_folder_is_told_of_once),
        cmocka_unit_test(test_a_missing_folder_is_told_of_before_the_drain_is),
        cmocka_unit_test(test_files_that_are_not_there_are_left),
        cmocka_unit_test(test_cut_and_longer_again),
        cmocka_unit_test(test_cut_and_exactly_as_long_again),
        cmocka_unit_test(test_replaced_twice),
        cmocka_unit_test(test_trouble_comes_and_goes),
        cmocka_unit_test(test_drain_and_what_comes_later),
    };

    return cmocka_run_group_tests_name("follow", tests, load, unload);
}
