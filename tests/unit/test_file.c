/* SPDX-License-Identifier: Apache-2.0 */

/* Files that a person named, and what else may lie under such a name. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int set_up(void **state)
{
    *state = strdup("/tmp/reknit-file-XXXXXX");
    return mkdtemp(*state) ? 0 : -1;
}

static int tear_down(void **state)
{
    int r = rmdir(*state);

    free(*state);
    return r;
}

static void path_of(char ret[64], void *const *state, const char *name)
{
    str_printf(ret, 64, "%s/%s", (const char *)*state, name);
}

static void what_would_be_waited_for_is_refused_at_once(void **state)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    struct err e = {0};
    char path[64], why[128];

    path_of(path, state, "fifo");
    assert_return_code(mkfifo(path, 0600), errno);
    assert_int_equal(file_open(path, &e), -EINVAL);
    STR_PRINTF(why, "%s: is no regular file", path);
    assert_string_equal(e.text, why);
    assert_int_equal(file_read(path, 1024, &b, NULL), -EINVAL);
    assert_int_equal(file_read("/dev/zero", 1024, &b, NULL), -EINVAL);
    assert_int_equal(b.len, 0);
    unlink(path);
}

static void what_is_not_there_is_named(void **state)
{
    struct err e = {0};

    assert_int_equal(file_open("/nowhere/at/all", &e), -ENOENT);
    assert_string_equal(e.text, "/nowhere/at/all: No such file or directory");
    assert_int_equal(file_open("/", &e), -EISDIR);
}

static void whether_a_file_still_has_its_name_is_seen(void **state)
{
    char path[64], other[64];
    int fd;

    path_of(path, state, "held");
    path_of(other, state, "other");
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && file_has_name(fd, path));
    assert_int_equal(rename(path, other), 0);
    assert_false(file_has_name(fd, path));
    assert_int_equal(close(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)), 0);
    assert_false(file_has_name(fd, path));
    assert_int_equal(rename(other, path), 0);
    assert_true(file_has_name(fd, path));
    assert_int_equal(symlink(path, other), 0);
    assert_false(file_has_name(fd, other)); /* whoever locks by name follows no link */
    close(fd);
    unlink(path);
    unlink(other);
}

static void a_file_is_read_as_far_as_it_may_be(void **state)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    char path[64];
    FILE *f;

    path_of(path, state, "file");
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fputs("sixteen letters.", f) < 0, 0);
    fclose(f);
    assert_int_equal(file_read(path, 16, &b, NULL), 0);
    assert_string_equal(strbuf_str(&b), "sixteen letters.");
    assert_int_equal(file_read(path, 15, &b, NULL), -EFBIG);
    unlink(path);
    strbuf_reset(&b);
    assert_int_equal(file_read("/dev/null", 16, &b, NULL), 0);
    assert_int_equal(b.len, 0);
}

static void replace(const char *folder, int fd, const char *text)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    char path[64];

    STR_PRINTF(path, "%s/state", folder);
    assert_int_equal(file_replace(fd, "state", text, strlen(text)), 0);
    assert_int_equal(file_read(path, 64, &b, NULL), 0);
    assert_string_equal(strbuf_str(&b), text);
}

static void a_file_is_replaced_as_a_whole_or_not_at_all(void **state)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    _cleanup_(closep) int folder = open(*state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char path[64], fresh[64], moved[64], none[1] = "";

    path_of(path, state, "state");
    path_of(fresh, state, "state.new");
    replace(*state, folder, "longer than the next");
    replace(*state, folder, "short");
    replace(*state, folder, none);
    assert_int_equal(access(fresh, F_OK), -1);
    replace(*state, folder, "kept");
    assert_return_code(mkdir(fresh, 0700), errno); /* in the way: there is no writing it */
    assert_int_equal(file_replace(AT_FDCWD, path, "lost", 4), -EISDIR);
    assert_int_equal(file_read(path, 64, &b, NULL), 0);
    assert_string_equal(strbuf_str(&b), "kept");
    rmdir(fresh);
    unlink(path);

    /* Whatever stands in the folder's place by now. */
    STR_PRINTF(moved, "%s-moved", (const char *)*state);
    assert_return_code(rename(*state, moved), errno);
    assert_return_code(mkdir(*state, 0700), errno);
    assert_int_equal(file_replace(folder, "state", "ours", 4), 0);
    assert_int_equal(access(path, F_OK), -1);
    STR_PRINTF(path, "%s/state", moved);
    assert_return_code(unlink(path), errno);
    assert_return_code(rmdir(moved), errno);
}

/* As a full disk is, which some file systems tell only when the file is closed. */
static void what_cannot_be_written_leaves_what_there_was(void **state)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    struct rlimit limit, before;
    char path[64], fresh[64];

    path_of(path, state, "state");
    path_of(fresh, state, "state.new");
    assert_int_equal(file_replace(AT_FDCWD, path, "kept", 4), 0);
    assert_return_code(getrlimit(RLIMIT_FSIZE, &before), errno);
    limit = (struct rlimit){.rlim_cur = 8, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_return_code(setrlimit(RLIMIT_FSIZE, &limit), errno);
    assert_int_equal(file_replace(AT_FDCWD, path, "more than it takes", 18), -EFBIG);
    assert_return_code(setrlimit(RLIMIT_FSIZE, &before), errno);
    assert_int_equal(access(fresh, F_OK), -1);
    assert_int_equal(file_read(path, 64, &b, NULL), 0);
    assert_string_equal(strbuf_str(&b), "kept");
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_would_be_waited_for_is_refused_at_once, set_up,
                                        tear_down),
        cmocka_unit_test(what_is_not_there_is_named),
        cmocka_unit_test_setup_teardown(whether_a_file_still_has_its_name_is_seen, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_file_is_read_as_far_as_it_may_be, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_is_replaced_as_a_whole_or_not_at_all, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_written_leaves_what_there_was, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
