/* SPDX-License-Identifier: Apache-2.0 */

/* Every kind of dirt and every prefix that real logs have; one row each. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/str.h"
#include "extract/line.h"
#include "extract/prefix.h"
#include "extract/stacks.h"
#include "extract/subject.h"

#include <string.h>

#define NOW ((usec_t)1781000000 * USEC_PER_SEC) /* 2026-06-09 */

static char buf[4096];

static struct line clean_bytes(const char *raw, size_t len)
{
    struct log_clock clock = {NOW, USEC_UNKNOWN, 0};
    struct line l;

    assert_true(len < sizeof(buf));
    line_clean(&clock, raw, len, buf, &l);
    return l;
}

static struct line clean(const char *raw)
{
    return clean_bytes(raw, strlen(raw));
}

static void assert_text(const struct line *l, const char *want)
{
    char got[4096];

    str_copy_n(got, sizeof(got), l->text, l->len);
    assert_string_equal(got, want);
}

static void codes_are_taken_out(void **state)
{
    static const struct {
        const char *raw, *want;
    } rows[] = {
        {"\033[31mRuntimeError\033[0m: bad", "RuntimeError: bad"},
        {"\033[1;38;5;208mloss\033[39;49m 2.5", "loss 2.5"},
        {"\033]0;title\aValueError: x", "ValueError: x"},
        {"\033]8;;http://x\033\\ValueError\033]8;;\033\\: x", "ValueError: x"},
        {"[31mRuntimeError[0m: bad", "RuntimeError: bad"},
        {"[1;32mok[22m done", "ok done"},
        {"#033[31mRuntimeError#033[0m: bad", "RuntimeError: bad"},
        {"^[[31mRuntimeError^[[0m: bad", "RuntimeError: bad"},
        {"\\x1b[31mRuntimeError\\x1b[0m: bad", "RuntimeError: bad"},
        {"\\u001b[31mRuntimeError\\u001b[0m: bad", "RuntimeError: bad"},
        {"done\033[K", "done"},
        {"done#033[A", "done"},
        {"a#011b", "a\tb"},
        {"\xef\xbb\xbfloss 1", "loss 1"},
        {"cut\033", "cut"},
        {"cut\033[", "cut"},
        {"cut\033[38;5", "cut38;5"},
        /* Text that looks like a code. */
        {"rate(x[5m]) over [1m] is [60m", "rate(x[5m]) over [1m] is [60m"},
        {"shape [3, 4] [A] arg[0]", "shape [3, 4] [A] arg[0]"},
        {"issue #0151 and #033", "issue  1 and #033"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct line l = clean(rows[i].raw);

        assert_text(&l, rows[i].want);
    }
}

static void nul_and_invalid_bytes_do_no_harm(void **state)
{
    static const char raw[] = "\0Va\0lueError\0: \xff\xfe bad \x01\x7f";
    struct line l = clean_bytes(raw, sizeof(raw) - 1);

    assert_text(&l, "ValueError: \xff\xfe bad");
    l = clean_bytes("\0\0\0", 3);
    assert_int_equal(l.len, 0);
}

struct prefix_row {
    const char *raw, *text;
    int32_t rank, local_rank;
    const char *node;
};

static void prefixes_are_facts(void **state)
{
    static const struct prefix_row rows[] = {
        {"[rank7]: boom", "boom", 7, -1, ""},
        {"[rank7]:[E1023 22:24:55.605146032 x.cpp:1] y", "[E1023 22:24:55.605146032 x.cpp:1] y", 7,
         -1, ""},
        {"[default3]:boom", "boom", -1, 3, ""},
        {"29: boom", "boom", -1, -1, ""},
        {"  3: boom", "boom", -1, -1, ""},
        {"29: [rank231]: boom", "boom", 231, -1, ""},
        {"29: [default3]:boom", "boom", -1, 3, ""},
        {"[1,7]<stderr>:boom", "boom", 7, -1, ""},
        {"[1,mpirank:9,algo-2]<stdout>:boom", "boom", 9, -1, "algo-2"},
        {"(TrainWorker pid=4242) boom", "boom", -1, -1, ""},
        {"(RayTrainWorker pid=4242, ip=10.0.0.3) boom", "boom", -1, -1, "10.0.0.3"},
        {"n7:411:902 [5] NCCL WARN x", "NCCL WARN x", -1, 5, "n7"},
        {"29: n7:411:902 [5] NCCL WARN x", "NCCL WARN x", -1, 5, "n7"},
        {"2026-01-02T03:04:05.678Z stdout F [rank1]: boom", "boom", 1, -1, ""},
        {"2026-01-02T03:04:05.678901234Z stderr P boom", "boom", -1, -1, ""},
        {"[2026-01-02 03:04:05,678] boom", "boom", -1, -1, ""},
        {"[task 2026-01-02T03:04:05.678+00:00] boom", "boom", -1, -1, ""},
        {"Feb  6 03:08:40 n26 kernel: [   11.200042] NVRM: x", "NVRM: x", -1, -1, "n26"},
        {"2026-02-06T03:08:40+0100 n26 slurmd[991]: x", "x", -1, -1, "n26"},
        {"Feb 06 03:08:40 n26 slurmd: x", "x", -1, -1, "n26"},
        {"[Wed Mar 11 02:13:53 2026] NVRM: x", "NVRM: x", -1, -1, ""},
        {"[ 2207.114806] NVRM: x", "NVRM: x", -1, -1, ""},
        {"<4>[ 2207.114806] NVRM: x", "NVRM: x", -1, -1, ""},
        {"6,1234,5140900,-;NVRM: x", "NVRM: x", -1, -1, ""},
        {"kern  :err   : [Wed Mar 11 02:13:53 2026] NVRM: x", "NVRM: x", -1, -1, ""},
        {"[pod/trainer-3/pytorch] boom", "boom", -1, -1, "trainer-3"},
        {"gpu-n3: boom", "boom", -1, -1, "gpu-n3"},
        {"slurmstepd-n8: error: boom", "error: boom", -1, -1, "n8"},
        {"[gpu-n3/12] boom", "boom", -1, -1, "gpu-n3"},
        {"[gpu-n3:12] boom", "boom", -1, -1, "gpu-n3"},
        {"[gpu-n3:41233] boom", "[gpu-n3:41233] boom", -1, -1, ""},
        {"[train.py:12] boom", "[train.py:12] boom", -1, -1, ""},
        {"[syslog gpu-n3] kernel: boom", "kernel: boom", -1, -1, "gpu-n3"},
        {"gpu-n3 [rank7] 2026-01-02 03:04:05 boom", "boom", 7, -1, "gpu-n3"},
        {"gpu-n3 W0102 03:04:05.000000 9 a.py:1] boom", "9 a.py:1] boom", -1, -1, "gpu-n3"},
        {"n3: [Wed Mar 11 02:13:53 2026] NVRM: x", "NVRM: x", -1, -1, "n3"},
        {"n3: [ 2207.114806] NVRM: x", "NVRM: x", -1, -1, "n3"},
        {"n3 dmesg: [ 2207.114806] NVRM: x", "NVRM: x", -1, -1, "n3"},
        {"2024-06-18 22:05:00,000 | n3 | r07 | INFO | boom", "boom", 7, -1, "n3"},
        {"2024-06-18 22:05:00,000 | INFO | rank-7 | boom", "boom", 7, -1, ""},
        {"[rank=7] boom", "boom", 7, -1, ""},
        {"[process=12] boom", "boom", 12, -1, ""},
        {"rank 12: boom", "boom", 12, -1, ""},
        {"[Rank 8] boom", "boom", 8, -1, ""},
        {"[rank: 3] boom", "boom", 3, -1, ""},
        {"[Global Rank 3/8]: boom", "boom", 3, -1, ""},
        {"(rank=3) boom", "boom", 3, -1, ""},
        {"rank3 | boom", "boom", 3, -1, ""},
        {"rank3 boom", "boom", 3, -1, ""},
        {"[2026-01-02 03:04:05][rank 3] boom", "boom", 3, -1, ""},
        {"2026-01-02 03:04:05 | ERROR | rank 3 | boom", "| ERROR | rank 3 | boom", 3, -1, ""},
        {"ERROR:root:rank 3: boom", "ERROR:root:rank 3: boom", 3, -1, ""},
        {"n3-4 rank3 boom", "n3-4 rank3 boom", 3, -1, ""},
        {"[prterun-n1-99@1,7]<stderr>:boom", "boom", 7, -1, ""},
        {"[7]<stdout>:boom", "boom", 7, -1, ""},
        {"rank 3 waits", "rank 3 waits", -1, -1, ""},
        {"local_rank: 3: boom", "local_rank: 3: boom", -1, -1, ""},
        {"waiting for rank 3: boom", "waiting for rank 3: boom", -1, -1, ""},
        {"rank3d: boom", "rank3d: boom", -1, -1, ""},
        {"(raylet, ip=10.0.0.3) boom", "boom", -1, -1, "10.0.0.3"},
        {"(raylet) boom", "boom", -1, -1, ""},
        {"[Wed Mar 11 02:13:53 2026] nvme nvme2: x", "nvme nvme2: x", -1, -1, ""},
        /* Messages that begin like a prefix. */
        {"python3: can't open file 'x'", "python3: can't open file 'x'", -1, -1, ""},
        {"nvidia-nvswitch3: SXid", "nvidia-nvswitch3: SXid", -1, -1, ""},
        {"sha256: [abc]", "sha256: [abc]", -1, -1, ""},
        {"epoch-3 2026-01-02 03:04:05 x", "epoch-3 2026-01-02 03:04:05 x", -1, -1, ""},
        {"2024-06-18 22:05:00 | INFO | n3 | boom", "| INFO | n3 | boom", -1, -1, ""},
        {"run-7 begins", "run-7 begins", -1, -1, ""},
        {"2024: a year", "a year", -1, -1, ""},
        {"12:34:56 up 3 days", "up 3 days", -1, -1, ""},
        {"foo.py:12:34 [0] x", "foo.py:12:34 [0] x", -1, -1, ""},
        {"  File \"a.py\", line 1", "  File \"a.py\", line 1", -1, -1, ""},
        {"[0]:", "[0]:", -1, -1, ""},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct line l = clean(rows[i].raw);

        assert_text(&l, rows[i].text);
        assert_int_equal(l.rank, rows[i].rank);
        assert_int_equal(l.local_rank, rows[i].local_rank);
        assert_string_equal(l.node, rows[i].node);
    }
}

static void a_report_names_its_node(void **state)
{
    static const struct {
        const char *text, *node;
    } rows[] = {
        {"[preflight] gx231   GPU 6: row remap failed", "gx231"},
        {"[run-b4] gx231 GPU 6: row remap failed", "gx231"},
        {"[gx231] row remap failed", "gx231"},
        {"ERROR check: 11:07:59 gx231: row remap failed", "gx231"},
        {"node=gx231 row remap failed", "gx231"},
        {"GPU 6: row remap failed on node gke-a3-pool-e653-f56a", "gke-a3-pool-e653-f56a"},
        {"NHC: h-014: check_memory FAILED", "h-014"},
        {"GPU 6: row remap failed", ""},
        {"gpu6: row remap failed", ""},
        {"h100-sxm5: row remap failed", ""},
        {"nvidia-nvswitch3: row remap failed", ""},
        {"check.py7.py: row remap failed", ""},
        {"report for gx231 row remap failed", ""},
        {"row remap failed on sda1", ""},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char node[NODE_NAME_LEN] = "";

        assert_int_equal(subject_node(rows[i].text, strlen(rows[i].text), node),
                         *rows[i].node != '\0');
        assert_string_equal(node, rows[i].node);
    }
}

static void a_stack_is_told_with_its_rank(void **state)
{
    static const char *const lines[] = {
        "--- rank 5 pid 4505 ---",
        "Process 4505: python fit.py --lora_rank 8",
        "Thread 4505 (idle): \"MainThread\"",
        "    get (queue.py:113)",
        "    epoch (lab/fit_with_a_long_name.py:204)",
        "    main (lab/fit_with_a_long_name.py:311)",
        "Thread 4506 (idle): \"pt_autograd_0\"",
        "    wait (threading.py:11)",
        "    run (threading.py:12)",
        "",
    };
    struct stacks *s = stacks_new();
    struct stand stand;
    size_t told = 0;

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct line l = clean(lines[i]);

        told += stacks_feed(s, &l, i + 1, 0, &stand);
    }
    told += stacks_feed(s, NULL, 0, 0, &stand);
    assert_int_equal(told, 1);
    assert_int_equal(stand.rank, 5);
    assert_int_equal(stand.line, 4); /* the innermost: it does not stand in the library */
    assert_string_equal(stand.at, "with_a_long_name.py:204");
    stacks_free(s);
}

static void a_stack_within_the_library_is_told_so(void **state)
{
    static const char *const lines[] = {
        "watch | == rank 3 on n1",
        "watch | Thread 4505 (idle): \"MainThread\"",
        "watch |     all_reduce (torch/distributed/c10d.py:81)",
        "watch |     sync (lab/fit.py:204)",
        "watch |     main (lab/fit.py:311)",
    };
    struct stacks *s = stacks_new();
    struct stand stand = {.rank = RANK_NONE};

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct line l = clean(lines[i]);

        assert_false(stacks_feed(s, &l, i + 1, 0, &stand));
    }
    assert_true(stacks_feed(s, NULL, 0, 0, &stand));
    assert_int_equal(stand.rank, 3);
    assert_int_equal(stand.line, 4);
    assert_string_equal(stand.at, "fit.py:204 in torch");
    stacks_free(s);
}

/* Whether it is the rank too, only the whole log can tell (record.c). */
static void a_label_is_a_task_and_no_rank(void **state)
{
    (void)state;
    assert_int_equal(clean("29: boom").label, 29);
    assert_int_equal(clean("29: boom").rank, RANK_NONE);
    assert_int_equal(clean("29: [rank231]: boom").label, 29);
    assert_int_equal(clean("29 boom").label, RANK_NONE);
}

static void clocks_are_read(void **state)
{
    static const struct {
        const char *raw, *want;
    } rows[] = {
        {"2026-01-02T03:04:05.678901Z x", "2026-01-02T03:04:05.678Z"},
        {"2026-01-02 03:04:05,678 - INFO - x", "2026-01-02T03:04:05.678Z"},
        {"2026-01-02T03:04:05+02:00 x", "2026-01-02T01:04:05.000Z"},
        {"2026-01-02 03:04:05.5 -0530 x", "2026-01-02T08:34:05.500Z"},
        {"2026/01/02 03:04:05 x", "2026-01-02T03:04:05.000Z"},
        {"10/23/2024 17:14:38 - INFO", "2024-10-23T17:14:38.000Z"},
        {"23/10/2024 17:14:38 - INFO", "2024-10-23T17:14:38.000Z"},
        {"02/26 21:14:05 - mmengine - INFO", "2026-02-26T21:14:05.000Z"},
        {"I1115 03:04:05.678901 140704 train.py:71] x", "2025-11-15T03:04:05.678Z"},
        {"[E321 03:04:05.678901234 ProcessGroupNCCL.cpp:1] x", "2026-03-21T03:04:05.678Z"},
        {"[W1112 13:43:29.415698040 x.cpp:1505] x", "2025-11-12T13:43:29.415Z"},
        {"[Wed Mar 11 02:13:53 2026] x", "2026-03-11T02:13:53.000Z"},
        {"Wed Mar 11 02:13:53 UTC 2026", "2026-03-11T02:13:53.000Z"},
        {"Feb  6 03:08:40 n26 kernel: x", "2026-02-06T03:08:40.000Z"},
        {"[ 2207.114806] x", "1970-01-01T00:36:47.114Z"},
        {"6,1234,5140900,-;x", "1970-01-01T00:00:05.140Z"},
        {"2023-03-28 07:36:38.791660: F external/x.h:77] x", "2023-03-28T07:36:38.791Z"},
        {"submitit INFO (2022-10-03 02:31:40,204) - x", "2022-10-03T02:31:40.204Z"},
        {"[titan] 2024-11-13 23:25:56,139 - root - INFO - x", "2024-11-13T23:25:56.139Z"},
        {"  time      : 2022-07-30_05:48:31", "2022-07-30T05:48:31.000Z"},
        {"--- watch 2024-04-02 19:40 RUNNING ---", "2024-04-02T19:40:00.000Z"},
        /* None of these is a time. */
        {"12:34:56 up", "-"},
        {" 45%|####  | 45/100 [00:12:10<00:15:00, 3.4it/s]", "-"},
        {"2024-13-45 03:04:05 x", "-"},
        {"frame 2024-01-01 99:99:99", "-"},
        {"aa:bb:cc:dd:ee:ff 0000:4d:00.0", "-"},
        {"the run of this model was started at 2024-04-02 19:40", "-"},
        {"no clock at all", "-"},
    };
    char text[TIMESTAMP_TEXT_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct line l = clean(rows[i].raw);

        assert_string_equal(timestamp_format(l.time_us, text), rows[i].want);
    }
}

/* A log of 2023 whose absl lines have no year: the lines that have one tell. */
static void a_full_date_gives_the_others_their_year(void **state)
{
    static const char dated[] = "2023-12-31 23:59:58 x",
                      absl[] = "I0101 00:00:03.000001 7 f.py:1] x";
    struct log_clock clock = {NOW, USEC_UNKNOWN, 0};
    char text[TIMESTAMP_TEXT_MAX];
    struct line l;

    line_read(&clock, dated, sizeof(dated) - 1, &l);
    line_read(&clock, absl, sizeof(absl) - 1, &l);
    assert_string_equal(timestamp_format(l.time_us, text), "2024-01-01T00:00:03.000Z");
}

static void a_kernel_clock_counts_from_boot_until_the_kernel_tells_the_date(void **state)
{
    static const char bare[] = "[  311.204811] NVRM: x", raw[] = "6,1234,311204811,-;NVRM: x",
                      rtc[] = "[    1.500000] rtc_cmos 00:04: setting system clock to "
                              "2026-03-05T02:00:00 UTC (1772676000)",
                      audit[] = "[  100.000000] audit: type=1400 audit(1772676200.000:7): x",
                      other[] = "[  100.000000] program: audit(1772676200.000:7)";
    struct log_clock clock = {NOW, USEC_UNKNOWN, 0};
    char text[TIMESTAMP_TEXT_MAX];
    struct line l;

    line_read(&clock, bare, sizeof(bare) - 1, &l);
    assert_true(l.uptime && l.time_us == 311204811);
    line_read(&clock, raw, sizeof(raw) - 1, &l);
    assert_true(l.uptime && l.time_us == 311204811);
    line_read(&clock, other, sizeof(other) - 1, &l);
    assert_true(l.uptime);
    line_read(&clock, rtc, sizeof(rtc) - 1, &l);
    line_read(&clock, bare, sizeof(bare) - 1, &l);
    assert_false(l.uptime);
    assert_string_equal(timestamp_format(l.time_us, text), "2026-03-05T02:05:09.704Z");
    line_read(&clock, audit, sizeof(audit) - 1, &l);
    line_read(&clock, raw, sizeof(raw) - 1, &l);
    assert_string_equal(timestamp_format(l.time_us, text), "2026-03-05T02:06:51.204Z");
    assert_false(clean("2026-03-05 02:00:00 x").uptime || clean("x").uptime);
}

static void ray_says_how_many_lines_one_stands_for(void **state)
{
    struct line l = clean("(TrainWorker pid=41) CUDA error: x [repeated 14x across cluster]");

    assert_int_equal(l.repeats, 14);
    l = clean("(TrainWorker pid=41) CUDA error: x [repeated often]");
    assert_int_equal(l.repeats, 1);
}

static void streams_tell_processes_apart(void **state)
{
    uint64_t a = clean("[rank1]: x").stream, b = clean("[rank2]: x").stream;

    assert_true(a != 0 && b != 0 && a != b);
    assert_true(clean("[rank1]: y").stream == a);
    assert_true(clean("x").stream == 0);
}

static void a_rank_inside_a_line_is_found(void **state)
{
    static const char text[] = "x 45% |[rank12]: ValueError: a [rank3]: KeyError: b";

    assert_int_equal(prefix_rank_before(text, 20), 12);
    assert_int_equal(prefix_rank_before(text, sizeof(text) - 1), 3);
    assert_int_equal(prefix_rank_before(text, 8), RANK_NONE);
    assert_int_equal(prefix_rank_before("[rank", 5), RANK_NONE);
    assert_int_equal(prefix_rank_before("", 0), RANK_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_taken_out),
        cmocka_unit_test(nul_and_invalid_bytes_do_no_harm),
        cmocka_unit_test(prefixes_are_facts),
        cmocka_unit_test(a_label_is_a_task_and_no_rank),
        cmocka_unit_test(clocks_are_read),
        cmocka_unit_test(a_kernel_clock_counts_from_boot_until_the_kernel_tells_the_date),
        cmocka_unit_test(a_full_date_gives_the_others_their_year),
        cmocka_unit_test(ray_says_how_many_lines_one_stands_for),
        cmocka_unit_test(streams_tell_processes_apart),
        cmocka_unit_test(a_report_names_its_node),
        cmocka_unit_test(a_stack_is_told_with_its_rank),
        cmocka_unit_test(a_stack_within_the_library_is_told_so),
        cmocka_unit_test(a_rank_inside_a_line_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
