/* SPDX-License-Identifier: Apache-2.0 */

/* The kernel's log as a FIFO: what is read of it, what is a fact about the node, what is told once,
 * and what a restart makes of it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/kernel_log.h"
#include "agent/kmsg_record.h"
#include "agent/troubles.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/vec.h"
#include "until.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- records ---- */

static int parse(const char *line, struct kmsg_record *ret)
{
    return kmsg_record_parse(line, strlen(line), ret);
}

static void a_record_is_its_first_line(void **state)
{
    static struct kmsg_record r;

    assert_int_equal(parse("6,339,5140900,-,caller=T1;NET: Registered; protocol 10", &r), 0);
    assert_true(r.by_kernel);
    assert_int_equal(r.seq, 339);
    assert_int_equal(r.boot_us, 5140900);
    assert_string_equal(r.text, "NET: Registered; protocol 10");
    assert_int_equal(parse("30,340,1,-;systemd[1]: up", &r), 0);
    assert_false(r.by_kernel);
    assert_int_equal(parse("3,1,1,-;a\\x5cb\\xc3\\xa4\\xzz", &r), 0);
    assert_string_equal(r.text, "a\\b\303\244\\xzz");
    assert_int_equal(parse("3,1,1,-;python[7]: segfault in \\x0aNVRM: Xid", &r), 0);
    assert_string_equal(r.text, "python[7]: segfault in ");
    assert_int_equal(parse("3,1,1,-;", &r), 0);
    assert_string_equal(r.text, "");
}

static void what_is_no_record(void **state)
{
    static const char *const bad[] = {
        "",
        ";",
        "x",
        "6,1,2",
        "6,1,2;x",
        "6,1;x",
        "6;1,2,3,x",
        "-6,1,2,-;x",
        "6,,2,-;x",
        "6,18446744073709551616,2,-;x",
        "6,9223372036854775808,2,-;x",
        "6,1,9223372036854775807,-;x",
    };
    static struct kmsg_record r;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (parse(bad[i], &r) != -EBADMSG)
            fail_msg("%s", bad[i]);
}

/* ---- the log ---- */

struct fixture {
    char folder[64], device[80], state[80];
    int fd; /* where the kernel writes */
    sd_event *event;
    struct kernel_log *log;
    VEC(struct node_fact) facts;
    unsigned troubles;
};

static void on_fact(void *ctx, const struct node_fact *f)
{
    struct fixture *x = ctx;

    *VEC_PUSH(&x->facts) = *f;
}

static void on_trouble(void *ctx, const char *what)
{
    struct fixture *x = ctx;

    x->troubles++;
}

static void start(struct fixture *x)
{
    static const struct kernel_log_handlers handlers = {.fact = on_fact, .trouble = on_trouble};
    struct kernel_log_config c = {.device = x->device, .state = x->state, .node = "n7"};

    assert_int_equal(kernel_log_new(x->event, &c, &handlers, x, &x->log, NULL), 0);
}

static int set_up(void **state)
{
    struct fixture *x = xnew(struct fixture);

    STR_COPY(x->folder, "/tmp/reknit-kmsg-XXXXXX");
    assert_non_null(mkdtemp(x->folder));
    STR_PRINTF(x->device, "%s/kmsg", x->folder);
    STR_PRINTF(x->state, "%s/state", x->folder);
    assert_int_equal(mkfifo(x->device, 0600), 0);
    x->fd = open(x->device, O_RDWR | O_CLOEXEC);
    assert_true(fcntl(x->fd, F_SETPIPE_SZ, 1 << 20) > 0);
    assert_true(sd_event_new(&x->event) >= 0);
    start(x);
    *state = x;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *x = *state;

    kernel_log_free(x->log);
    sd_event_unref(x->event);
    close(x->fd);
    unlink(x->device);
    unlink(x->state);
    rmdir(x->folder);
    VEC_DONE(&x->facts);
    free(x);
    return 0;
}

static struct node_heartbeat beat(const struct fixture *x)
{
    struct node_heartbeat b = {0};

    kernel_log_beat(x->log, &b);
    return b;
}

/* Until all that was written has been read: `records` of the kernel since the last start. */
static void await(struct fixture *x, int64_t records)
{
    UNTIL(beat(x).kernel_records == records, sd_event_run(x->event, 20 * USEC_PER_MSEC));
}

static void put(struct fixture *x, const char *text)
{
    assert_int_equal(write(x->fd, text, strlen(text)), strlen(text));
}

static void say_at(struct fixture *x, unsigned prio, uint64_t seq, usec_t at, const char *text)
{
    char line[1024];

    STR_PRINTF(line, "%u,%llu,%lld,-;%s\n", prio, (unsigned long long)seq, (long long)at, text);
    put(x, line);
}

#define XID(rest) "NVRM: Xid (PCI:0000:9b:00): " rest
#define OFF_BUS   XID("79, pid=77, name=python, GPU has fallen off the bus.")

static void an_xid_is_a_fact_about_the_node(void **state)
{
    struct fixture *x = *state;
    const struct node_fact *f;

    say_at(x, 4, 1, 5, OFF_BUS);
    await(x, 1);
    assert_int_equal(x->facts.n, 1);
    f = &x->facts.v[0];
    assert_string_equal(f->node, "n7");
    assert_string_equal(f->signal.who.node, "n7");
    assert_string_equal(f->signal.who.device, "0000:9b:00");
    assert_int_equal(f->signal.who.pid, 77);
    assert_string_equal(f->signal.signature, "gpu.xid.79");
    assert_string_equal(f->signal.text, OFF_BUS);
    assert_int_equal(f->signal.provenance, PROVENANCE_KERNEL);
    assert_int_equal(f->isolation, ISOLATION_REBOOT);
    assert_int_equal(f->code, 79);
    assert_int_equal(f->count, 1);
    assert_true(f->signal.time_us > now_us() - 10 * USEC_PER_SEC); /* we waited for it */
}

/* What it held before is told when it was. */
static void what_was_there_before_us(void **state)
{
    struct fixture *x = *state;

    x->log = kernel_log_free(x->log);
    say_at(x, 4, 1, 1, OFF_BUS);
    start(x);
    await(x, 1);
    assert_int_equal(x->facts.n, 1);
    assert_true(x->facts.v[0].signal.time_us <= now_us() - mono_us() + USEC_PER_SEC);
}

static void only_the_kernel_s_own_words(void **state)
{
    struct fixture *x = *state;

    say_at(x, 12, 1, 5, OFF_BUS); /* a user's, as root may write */
    say_at(x, 4, 2, 5, "python3[7]: segfault at 0 ip 0000 sp 0000 error 6 in " OFF_BUS);
    say_at(x, 4, 3, 5, "python3[7]: segfault at 0 ip 0000 error 6 in x\\x0a" OFF_BUS);
    say_at(x, 4, 4, 5, "tmpfs: Unknown parameter '" OFF_BUS "'");
    put(x, " " OFF_BUS "\n");
    put(x, "rubbish\n");
    say_at(x, 4, 5, 5, "random: crng init done");
    await(x, 4);
    assert_int_equal(x->facts.n, 0);
}

/* By what it calls itself: "Row remap fail" would be a reset of the GPU, and hide the Xid. */
static void a_name_neither_convicts_nor_hides(void **state)
{
    struct fixture *x = *state;

    say_at(x, 4, 1, 5, XID("13, pid=7, name=Row remap fail, Graphics Exception: ESR 0x1"));
    await(x, 1);
    assert_int_equal(x->facts.n, 1);
    assert_string_equal(x->facts.v[0].signal.signature, "gpu.xid.13");
    assert_int_equal(x->facts.v[0].isolation, ISOLATION_REPEATED);
}

static void a_record_may_come_in_pieces_and_be_too_long(void **state)
{
    struct fixture *x = *state;
    static char dirt[4 * KMSG_RECORD_BYTES - 7]; /* as much as is read of one, with what precedes */

    put(x, "4,1,5,-;NVRM: Xid (PCI:00");
    sd_event_run(x->event, 20 * USEC_PER_MSEC);
    put(x, "00:9b:00): 79, x\n4,2,5,-;");
    memset(dirt, 'x', sizeof(dirt) - 1);
    put(x, dirt);
    say_at(x, 4, 9, 5, "NVRM: Xid (PCI:0000:2b:00): 79, the end of it");
    say_at(x, 4, 3, 5, "NVRM: Xid (PCI:0000:1b:00): 79, y");
    await(x, 3);
    assert_int_equal(x->facts.n, 2);
    assert_string_equal(x->facts.v[1].signal.who.device, "0000:1b:00");
}

static void a_burst_is_told_with_its_first(void **state)
{
    struct fixture *x = *state;

    for (int i = 0; i < 1000; i++)
        say_at(x, 4, (uint64_t)i + 1, i * USEC_PER_SEC, XID("31, pid=7, name=a, MMU Fault"));
    say_at(x, 4, 1001, 1000 * USEC_PER_SEC, "NVRM: Xid (PCI:0000:1b:00): 31, pid=7, name=a");
    await(x, 1001);
    assert_int_equal(x->facts.n, 2);
    say_at(x, 4, 1002, 1500 * USEC_PER_SEC, XID("31, pid=7, name=a, MMU Fault"));
    await(x, 1002);
    assert_int_equal(x->facts.n, 4); /* the end of the burst, and the next */
    assert_int_equal(x->facts.v[2].count, 1000);
    assert_int_equal(x->facts.v[2].signal.time_us, x->facts.v[0].signal.time_us);
    assert_int_equal(x->facts.v[3].count, 1);
}

/* In one record of several lines, and in several records. */
static void a_gpu_that_is_off_the_bus_in_the_words_of_the_probe(void **state)
{
    struct fixture *x = *state;

    say_at(x, 3, 1, 5, "NVRM: The NVIDIA GPU 0000:c4:00.0\\x0aNVRM: has fallen off the bus");
    say_at(x, 3, 2, 5, "NVRM: fallen off the bus and is not responding to commands.");
    await(x, 2);
    assert_int_equal(x->facts.n, 1);
    assert_string_equal(x->facts.v[0].signal.who.device, "0000:c4:00");
    assert_int_equal(x->facts.v[0].isolation, ISOLATION_REBOOT);
}

static void gaps_are_counted(void **state)
{
    struct fixture *x = *state;

    say_at(x, 4, 10, 5, "random: crng init done");
    say_at(x, 4, 11, 5, "random: crng init done");
    await(x, 2);
    assert_int_equal(beat(x).kernel_gaps, 0); /* what was before us is not ours to know */
    say_at(x, 4, 21, 5, OFF_BUS);
    say_at(x, 4, 23, 5, "random: crng init done");
    await(x, 4);
    assert_int_equal(beat(x).kernel_gaps, 2);
    assert_int_equal(beat(x).kernel_lost, 10);
    assert_int_equal(x->troubles, 2);
    assert_int_equal(x->facts.n, 1);
}

/* ---- whose process ---- */

#define OOM(path, pid)                                                                             \
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=step_0,mems_allowed=0,"           \
    "oom_memcg=/x,task_memcg=" path ",task=python3,pid=" pid ",uid=7"
#define KILLED(pid) "Memory cgroup out of memory: Killed process " pid " (python3) total-vm:99kB"

static void who_was_killed_for_memory(void **state)
{
    static const struct {
        const char *path;
        uint32_t job;
    } groups[] = {
        {"/slurm/uid_7/job_42/step_0/task_0", 42},
        {"/slurm_n7/uid_7/job_43/step_batch", 43},
        {"/system.slice/slurmstepd.scope/job_44/step_0/user/task_0", 44},
        {"/system.slice/n7_slurmstepd.scope/job_45/step_0/user/task_0", 45},
        {"/user.slice/user-7.slice/slurmstepd.scope/job_46/x", 0}, /* a user may make that */
        {"/system.slice/cron.service/job_47", 0},
    };
    struct fixture *x = *state;
    char text[400];

    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        STR_PRINTF(text, OOM("%s", "4194%zu"), groups[i].path, 300 + i);
        say_at(x, 6, 2 * i + 1, (usec_t)i * USEC_PER_MIN, text);
        STR_PRINTF(text, KILLED("4194%zu"), 300 + i);
        say_at(x, 3, 2 * i + 2, (usec_t)i * USEC_PER_MIN, text);
        await(x, 2 * (int64_t)i + 2);
        assert_int_equal(x->facts.n, i + 1);
        assert_int_equal(x->facts.v[i].job, groups[i].job);
        assert_int_equal(x->facts.v[i].signal.cause, CAUSE_HOST_OOM);
        assert_int_equal(x->facts.v[i].isolation, ISOLATION_NONE);
    }
}

/* As kernels before 5.0 say it. */
static void who_was_killed_by_an_old_kernel(void **state)
{
    struct fixture *x = *state;

    say_at(x, 6, 1, 1, "Task in /slurm/uid_7/job_42/step_0 killed as a result of limit of /slurm");
    say_at(x, 3, 2, 1, "Memory cgroup out of memory: Kill process 4194301 (python) score 9");
    say_at(x, 3, 3, 1, KILLED("4194302"));
    await(x, 3);
    assert_int_equal(x->facts.n, 2);
    assert_int_equal(x->facts.v[0].job, 42);
    assert_int_equal(x->facts.v[1].job, 0); /* another's */
}

/* ---- that it is over ---- */

static void what_is_over_is_told_of_what_was_told(void **state)
{
    struct fixture *x = *state;

    say_at(x, 4, 1, 1, "nfs: server 10.1.1.5 OK");
    say_at(x, 4, 2, 2,
           XID("154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 "
               "(None)"));
    await(x, 2);
    assert_int_equal(x->facts.n, 0);
}

/* ---- after a restart ---- */

static void nothing_is_told_twice(void **state)
{
    struct fixture *x = *state;

    say_at(x, 4, 1, 1, OFF_BUS);
    say_at(x, 4, 2, 2, "random: crng init done");
    await(x, 2);
    x->log = kernel_log_free(x->log);
    start(x);
    say_at(x, 4, 1, 1, OFF_BUS);
    say_at(x, 4, 2, 2, "random: crng init done");
    say_at(x, 4, 3, 3, OFF_BUS); /* the same burst */
    await(x, 1);
    assert_int_equal(x->facts.n, 1);
    assert_int_equal(beat(x).kernel_gaps, 0);
    say_at(x, 4, 4, USEC_PER_HOUR, OFF_BUS);
    await(x, 2);
    assert_int_equal(x->facts.n, 3);
    assert_int_equal(x->facts.v[1].count, 2);
}

/* What it had not written down is read again, and comes to the same. */
static void a_killed_agent_reads_again(void **state)
{
    struct fixture *x = *state;
    _cleanup_strbuf_ struct strbuf before = {0};

    say_at(x, 4, 1, 1, OFF_BUS);
    await(x, 1);
    assert_int_equal(file_read(x->state, 100000, &before, NULL), 0);
    say_at(x, 4, 2, 2, OFF_BUS);
    await(x, 2);
    x->log = kernel_log_free(x->log);
    assert_int_equal(file_replace(AT_FDCWD, x->state, before.s, before.len), 0);
    start(x);
    say_at(x, 4, 2, 2, OFF_BUS);
    await(x, 1);
    say_at(x, 4, 3, USEC_PER_HOUR, OFF_BUS);
    await(x, 2);
    assert_int_equal(x->facts.n, 3);
    assert_int_equal(x->facts.v[1].count, 2);
}

static void records_that_were_lost_meanwhile_are_a_gap(void **state)
{
    struct fixture *x = *state;

    say_at(x, 4, 5, 1, OFF_BUS);
    await(x, 1);
    x->log = kernel_log_free(x->log);
    start(x);
    say_at(x, 4, 8, 2, OFF_BUS);
    await(x, 1);
    assert_int_equal(beat(x).kernel_lost, 2);
}

/* The file of another boot says nothing about the numbers of this one. */
static void another_boot_begins_anew(void **state)
{
    struct fixture *x = *state;
    static const char old[] = "{\"v\":1,\"boot\":\"of before\",\"seq\":1000,\"troubles\":[]}";

    x->log = kernel_log_free(x->log);
    assert_int_equal(file_replace(AT_FDCWD, x->state, old, strlen(old)), 0);
    start(x);
    say_at(x, 4, 7, 1, OFF_BUS);
    await(x, 1);
    assert_int_equal(x->facts.n, 1);
}

static void a_log_that_cannot_be_read_is_said(void **state)
{
    struct fixture *x = *state;

    x->log = kernel_log_free(x->log);
    STR_COPY(x->device, "/nonexistent/kmsg");
    start(x);
    assert_non_null(strstr(beat(x).kernel_trouble, "No such file"));
    x->log = kernel_log_free(x->log);
    STR_PRINTF(x->device, "%s/kmsg", x->folder);
}

/* ---- bursts, by their clocks ---- */

struct told {
    VEC(struct node_fact) v;
};

static void on_told(void *ctx, const struct node_fact *f)
{
    struct told *t = ctx;

    *VEC_PUSH(&t->v) = *f;
}

static struct node_fact fact(const char *signature, int32_t code, const char *device)
{
    struct node_fact f = {.node = "n7", .count = 1, .code = code};

    f.signal = signal_make(SIGNAL_HIT, PROVENANCE_KERNEL);
    STR_COPY(f.signal.signature, signature);
    STR_COPY(f.signal.who.device, device);
    STR_COPY(f.signal.who.node, "n7");
    return f;
}

#define S(n) ((n)*USEC_PER_SEC)

static void the_end_of_a_burst_is_told_in_time(void **state)
{
    struct told told = {0};
    struct troubles *t = troubles_new(NULL, "b", on_told, &told);
    struct node_fact f = fact("gpu.xid.31", 31, "0000:9b:00"), g = fact("gpu.xid.31", 31, "");

    troubles_add(t, &f, S(1), S(100));
    assert_int_equal(troubles_settle(t, S(101)), S(115));
    troubles_add(t, &g, S(2), S(102)); /* it names no device: the same */
    assert_int_equal(told.v.n, 1);
    assert_int_equal(troubles_settle(t, S(116)), S(117));
    assert_int_equal(troubles_settle(t, S(117)), USEC_NEVER);
    assert_int_equal(told.v.n, 2);
    assert_int_equal(told.v.v[1].count, 2);
    troubles_add(t, &f, S(20), S(120));
    assert_int_equal(troubles_settle(t, S(200)), USEC_NEVER);
    assert_int_equal(told.v.n, 3); /* a burst of one has no end that says more */
    VEC_DONE(&told.v);
    troubles_free(t);
}

static void what_flaps_is_one_burst(void **state)
{
    struct told told = {0};
    struct troubles *t = troubles_new(NULL, "b", on_told, &told);
    struct node_fact down = fact("network.link_down", 0, "0000:41:00"), up = down;
    struct node_fact other = fact("network.link_up", 0, "0000:42:00");

    STR_COPY(up.signal.signature, "network.link_up");
    STR_COPY(up.signal.clears, "network.link_down");
    STR_COPY(other.signal.clears, "network.link_down");
    for (int i = 0; i < 100; i++) {
        troubles_add(t, &down, S(2 * i), S(2 * i));
        troubles_over(t, &other, S(2 * i));
        troubles_over(t, &up, S(2 * i + 1));
        troubles_settle(t, S(2 * i + 1));
    }
    assert_int_equal(told.v.n, 1);
    troubles_settle(t, S(300));
    assert_int_equal(told.v.n, 3);
    assert_int_equal(told.v.v[1].count, 100);
    assert_true(told.v.v[2].cleared);
    assert_string_equal(told.v.v[2].signal.clears, "network.link_down");
    troubles_over(t, &up, S(301)); /* it was told already */
    assert_int_equal(told.v.n, 3);
    troubles_add(t, &down, S(400), S(400));
    troubles_settle(t, S(420));
    troubles_over(t, &up, S(421)); /* of a burst that is closed: at once */
    assert_int_equal(told.v.n, 5);
    VEC_DONE(&told.v);
    troubles_free(t);
}

/* Whatever else there is: the worst is told. */
static void a_flood_keeps_no_xid_out(void **state)
{
    struct told told = {0};
    struct troubles *t = troubles_new(NULL, "b", on_told, &told);
    struct node_fact f = fact("storage.lustre_lost", 0, "");
    struct node_fact xid = fact("gpu.xid.79", 79, "0000:9b:00");

    for (int i = 0; i < 1000; i++) {
        STR_PRINTF(f.signal.who.peer, "10.0.0.%d@o2ib", i);
        troubles_add(t, &f, S(1), S(1));
    }
    assert_int_equal(told.v.n, TROUBLES_MAX);
    assert_int_equal(troubles_untold(t), 1000 - TROUBLES_MAX);
    xid.isolation = ISOLATION_REBOOT;
    troubles_add(t, &xid, S(1), S(1));
    assert_int_equal(told.v.n, TROUBLES_MAX + 1);
    assert_int_equal(told.v.v[TROUBLES_MAX].code, 79);
    VEC_DONE(&told.v);
    troubles_free(t);
}

/* Also what is still to be told when its burst is over. */
static void what_is_to_be_told_outlives_us(void **state)
{
    struct fixture *x = *state;
    struct told told = {0};
    struct troubles *t = troubles_new(x->state, "b", on_told, &told);
    struct node_fact down = fact("network.link_down", 0, "0000:41:00"), up = down;

    STR_COPY(up.signal.clears, "network.link_*");
    troubles_add(t, &down, S(1), S(1));
    troubles_add(t, &down, S(2), S(2));
    troubles_over(t, &up, S(3));
    assert_int_equal(troubles_save(t, 7, false), 0);
    troubles_free(t);
    t = troubles_new(x->state, "b", on_told, &told);
    assert_int_equal(troubles_recall(t, S(100)), 7);
    assert_int_equal(troubles_settle(t, S(100)), S(115));
    troubles_settle(t, S(115));
    assert_int_equal(told.v.n, 3);
    assert_int_equal(told.v.v[1].count, 2);
    assert_true(told.v.v[2].cleared);
    VEC_DONE(&told.v);
    troubles_free(t);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_its_first_line),
        cmocka_unit_test(what_is_no_record),
        TEST(an_xid_is_a_fact_about_the_node),
        TEST(what_was_there_before_us),
        TEST(only_the_kernel_s_own_words),
        TEST(a_name_neither_convicts_nor_hides),
        TEST(a_record_may_come_in_pieces_and_be_too_long),
        TEST(a_burst_is_told_with_its_first),
        TEST(a_gpu_that_is_off_the_bus_in_the_words_of_the_probe),
        TEST(gaps_are_counted),
        TEST(who_was_killed_for_memory),
        TEST(who_was_killed_by_an_old_kernel),
        TEST(what_is_over_is_told_of_what_was_told),
        TEST(nothing_is_told_twice),
        TEST(a_killed_agent_reads_again),
        TEST(records_that_were_lost_meanwhile_are_a_gap),
        TEST(another_boot_begins_anew),
        TEST(a_log_that_cannot_be_read_is_said),
        cmocka_unit_test(the_end_of_a_burst_is_told_in_time),
        cmocka_unit_test(what_flaps_is_one_burst),
        cmocka_unit_test(a_flood_keeps_no_xid_out),
        TEST(what_is_to_be_told_outlives_us),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
