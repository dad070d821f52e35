/* SPDX-License-Identifier: Apache-2.0 */

/* What the looks at a node mean: rows of looks in, changes out. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "probe/judge.h"
#include "probe/nvml.h"
#include "probe/rules.h"

#include "base/str.h"

#include <string.h>

#define MINUTE USEC_PER_MIN

struct world {
    struct judge *judge;
    usec_t now;
    struct strbuf said; /* " signature" of each change, " -signature" of one that is over */
    struct change last;
};

static int set_up(void **state)
{
    static struct world w;

    w = (struct world){.judge = judge_new(), .now = USEC_PER_HOUR};
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    judge_free(w->judge);
    strbuf_done(&w->said);
    return 0;
}

static void on_change(void *ctx, const struct change *c)
{
    struct world *w = ctx;

    strbuf_addf(&w->said, " %s%s", c->cleared ? "-" : "", c->signature);
    w->last = *c;
}

static void begin(struct world *w)
{
    w->now += MINUTE;
    strbuf_reset(&w->said);
    judge_begin(w->judge, w->now);
}

static void end(struct world *w)
{
    judge_end(w->judge, on_change, w);
}

static void see(struct world *w, enum area area, const char *subject, enum item i, int64_t value)
{
    struct probe_line l = {.observation = observation_make(area, subject)};

    observation_set(&l.observation, i, value);
    judge_take(w->judge, &l);
}

static void finish(struct world *w, enum area area, const char *subject, enum ended how)
{
    struct probe_line l = {.is_ending = true, .ending = {.area = area, .how = how}};

    STR_COPY(l.ending.subject, subject);
    judge_take(w->judge, &l);
}

/* A whole look that sees one number. */
static const char *look_once(struct world *w, enum area area, const char *subject, enum item i,
                             int64_t value)
{
    begin(w);
    see(w, area, subject, i, value);
    finish(w, area, "", ENDED_DONE);
    end(w);
    return strbuf_str(&w->said);
}

static const char *look_gpu(struct world *w, enum item i, int64_t value)
{
    return look_once(w, AREA_GPU, "0000:4d:00", i, value);
}

static const char *look_port(struct world *w, enum item i, int64_t value)
{
    return look_once(w, AREA_NIC, "mlx5_0/1", i, value);
}

static void test_states_are_told_once_and_when_they_are_over(void **state)
{
    static const struct {
        enum area area;
        enum item item;
        int64_t good, bad;
        int looks;
        const char *signature;
        enum isolation isolation;
    } rows[] = {
        {AREA_GPU, ITEM_NVML_RETURN, 0, NVML_ERROR_GPU_IS_LOST, 2, "probe.gpu_lost",
         ISOLATION_REBOOT},
        {AREA_GPU, ITEM_NVML_RETURN, 0, NVML_ERROR_RESET_REQUIRED, 2, "probe.gpu_needs_reset",
         ISOLATION_RESET},
        {AREA_GPU, ITEM_NVML_RETURN, 0, NVML_ERROR_UNKNOWN, 2, "probe.gpu_unknown_error",
         ISOLATION_EXCLUDE},
        {AREA_GPU, ITEM_RECOVERY_ACTION, 0, 1, 1, "probe.gpu_recovery_reset", ISOLATION_RESET},
        {AREA_GPU, ITEM_RECOVERY_ACTION, 0, 2, 1, "probe.gpu_recovery_reboot", ISOLATION_REBOOT},
        {AREA_GPU, ITEM_RECOVERY_ACTION, 0, 3, 1, "probe.gpu_recovery_reset", ISOLATION_RESET},
        {AREA_GPU, ITEM_RECOVERY_ACTION, 0, 4, 1, "probe.gpu_recovery_reset", ISOLATION_RESET},
        {AREA_GPU, ITEM_ROWS_FAILED, 0, 1, 1, "probe.gpu_remap_failed", ISOLATION_DRAIN},
        {AREA_GPU, ITEM_ROWS_PENDING, 0, 1, 1, "probe.gpu_remap_pending", ISOLATION_NONE},
        {AREA_GPU, ITEM_PAGES_PENDING, 0, 1, 1, "probe.gpu_page_pending", ISOLATION_NONE},
        {AREA_GPU, ITEM_CLOCK_REASONS, 1, NVML_CLOCK_HW_THERMAL, 5, "probe.gpu_hot",
         ISOLATION_EXCLUDE},
        {AREA_GPU, ITEM_CLOCK_REASONS, 4, NVML_CLOCK_POWER_BRAKE, 5, "probe.gpu_braked",
         ISOLATION_NONE},
        {AREA_GPU, ITEM_LEFTOVER_MIB, 0, 4096, 2, "probe.gpu_leftover", ISOLATION_EXCLUDE},
        {AREA_GPU, ITEM_NVLINKS_UP, 18, 17, 2, "probe.gpu_nvlink_lost", ISOLATION_EXCLUDE},
        {AREA_NIC, ITEM_UP, 1, 0, 1, "probe.port_down", ISOLATION_NONE},
        {AREA_DISK, ITEM_FORCED_READ_ONLY, 0, 1, 1, "probe.disk_read_only", ISOLATION_DRAIN},
        {AREA_DISK, ITEM_LIVE, 1, 0, 1, "probe.nvme_dead", ISOLATION_DRAIN},
        {AREA_DISK, ITEM_FREE_PERMILLE, 500, 3, 2, "probe.disk_full", ISOLATION_NONE},
        {AREA_DISK, ITEM_INODES_FREE_PERMILLE, 500, 0, 2, "probe.disk_no_inodes", ISOLATION_NONE},
        {AREA_MOUNTS, ITEM_ERROR, 0, 116, 2, "storage.mount_fails", ISOLATION_NONE},
        {AREA_CLOCK, ITEM_SYNCHRONISED, 1, 0, 5, "probe.clock_unsynchronised", ISOLATION_NONE},
        {AREA_CLOCK, ITEM_OFFSET_US, 200, -700000, 2, "probe.clock_off", ISOLATION_NONE},
        {AREA_PROCESSES, ITEM_BLOCKED, 64, 65, 5, "probe.processes_blocked", ISOLATION_NONE},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char want[64];
        struct world *w;

        tear_down(state); /* each row begins anew */
        set_up(state);
        w = *state;
        assert_string_equal(look_once(w, rows[i].area, "x", rows[i].item, rows[i].good), "");
        for (int k = 1; k < rows[i].looks; k++)
            assert_string_equal(look_once(w, rows[i].area, "x", rows[i].item, rows[i].bad), "");
        STR_PRINTF(want, " %s", rows[i].signature);
        assert_string_equal(look_once(w, rows[i].area, "x", rows[i].item, rows[i].bad), want);
        assert_int_equal(w->last.isolation, rows[i].isolation);
        for (int k = 0; k < 5; k++)
            assert_string_equal(look_once(w, rows[i].area, "x", rows[i].item, rows[i].bad), "");
        for (int k = 1; k < rows[i].looks; k++)
            assert_string_equal(look_once(w, rows[i].area, "x", rows[i].item, rows[i].good), "");
        STR_PRINTF(want, " -%s", rows[i].signature);
        assert_string_equal(look_once(w, rows[i].area, "x", rows[i].item, rows[i].good), want);
    }
}

static void test_what_is_not_known_is_not_ill_and_breaks_the_row(void **state)
{
    struct world *w = *state;

    assert_string_equal(look_gpu(w, ITEM_LEFTOVER_MIB, 10), "");
    assert_string_equal(look_gpu(w, ITEM_TEMPERATURE_C, 50), "");
    assert_string_equal(look_gpu(w, ITEM_LEFTOVER_MIB, 10), "");
    assert_string_equal(look_gpu(w, ITEM_LEFTOVER_MIB, 10), " probe.gpu_leftover");
    assert_string_equal(look_gpu(w, ITEM_TEMPERATURE_C, 50), "");
    assert_string_equal(look_gpu(w, ITEM_TEMPERATURE_C, 50), "");
    assert_string_equal(look_gpu(w, ITEM_RECOVERY_ACTION, 5), "");
    assert_string_equal(look_gpu(w, ITEM_RECOVERY_ACTION, 77), "");
}

static void test_errors_are_told_when_they_rise_and_only_then(void **state)
{
    struct world *w = *state;

    assert_string_equal(look_gpu(w, ITEM_ECC_UNCORRECTED, 7), ""); /* of before we looked */
    assert_string_equal(look_gpu(w, ITEM_ECC_UNCORRECTED, 7), "");
    assert_string_equal(look_gpu(w, ITEM_ECC_UNCORRECTED, 8), " probe.gpu_ecc");
    assert_string_equal(w->last.text,
                        "GPU 0000:4d:00: uncorrectable memory errors (ecc_uncorrected 8, was 7)");
    assert_string_equal(w->last.device, "0000:4d:00");
    assert_int_equal(w->last.provenance, PROVENANCE_NVML);
    assert_string_equal(look_gpu(w, ITEM_ECC_UNCORRECTED, 9), " probe.gpu_ecc");
    assert_string_equal(look_gpu(w, ITEM_ECC_UNCORRECTED, 0), ""); /* it was reset */
    assert_string_equal(look_gpu(w, ITEM_ECC_UNCORRECTED, 1), " probe.gpu_ecc");

    assert_string_equal(look_once(w, AREA_MEMORY, "mc0", ITEM_UNCORRECTED, 1), "");
    assert_string_equal(look_once(w, AREA_MEMORY, "mc0", ITEM_UNCORRECTED, 2),
                        " probe.memory_uncorrected");
    assert_string_equal(w->last.text,
                        "memory mc0: uncorrectable memory errors (uncorrected 2, was 1)");
    assert_int_equal(w->last.isolation, ISOLATION_DRAIN);
    assert_int_equal(w->last.provenance, PROVENANCE_AGENT);
    assert_string_equal(w->last.device, "");
}

static void test_a_rate_is_told_when_two_looks_in_a_row_show_it(void **state)
{
    struct world *w = *state;

    assert_string_equal(look_port(w, ITEM_SYMBOL_ERRORS, 100000), "");
    assert_string_equal(look_port(w, ITEM_SYMBOL_ERRORS, 100500), "");
    assert_string_equal(look_port(w, ITEM_SYMBOL_ERRORS, 100500), ""); /* a burst, and no more */
    assert_string_equal(look_port(w, ITEM_SYMBOL_ERRORS, 100502), ""); /* slowly */
    assert_string_equal(look_port(w, ITEM_SYMBOL_ERRORS, 100504), "");
    assert_string_equal(look_port(w, ITEM_SYMBOL_ERRORS, 100600), "");
    assert_string_equal(look_port(w, ITEM_SYMBOL_ERRORS, 100700), " probe.port_symbol_errors");
    assert_string_equal(look_port(w, ITEM_SYMBOL_ERRORS, 100800), "");
    assert_string_equal(look_port(w, ITEM_SYMBOL_ERRORS, 100800), "");
    assert_string_equal(look_port(w, ITEM_SYMBOL_ERRORS, 100800), " -probe.port_symbol_errors");
}

/* The same counts over an hour are nothing. */
static void test_a_rate_is_one_of_time(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 5; i++) {
        assert_string_equal(look_port(w, ITEM_SYMBOL_ERRORS, i * 100), "");
        w->now += 59 * MINUTE;
    }
}

static void test_a_port_that_was_never_up_is_nothing(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 20; i++)
        assert_string_equal(look_port(w, ITEM_UP, 0), "");
    assert_string_equal(look_port(w, ITEM_UP, 1), "");
    assert_string_equal(look_port(w, ITEM_UP, 0), " probe.port_down");
    assert_string_equal(w->last.text, "port mlx5_0/1: the link was up and is down (up 0, was 1)");
    assert_string_equal(look_port(w, ITEM_UP, 1), " -probe.port_down probe.port_flaps");
}

static const char *look_link(struct world *w, int64_t up, int64_t downs)
{
    begin(w);
    see(w, AREA_NIC, "mlx5_0/1", ITEM_UP, up);
    see(w, AREA_NIC, "mlx5_0/1", ITEM_DOWNS, downs);
    end(w);
    return strbuf_str(&w->said);
}

static void test_a_port_flaps_when_it_turns_three_times_in_ten_minutes(void **state)
{
    struct world *w = *state;

    assert_string_equal(look_link(w, 1, 4), "");
    assert_string_equal(look_link(w, 1, 5), " probe.port_was_down"); /* plugged in anew */
    for (int i = 0; i < 11; i++)
        assert_string_equal(look_link(w, 1, 5), "");
    assert_string_equal(look_link(w, 0, 6), " probe.port_down");
    assert_string_equal(look_link(w, 1, 6), " -probe.port_down");
    assert_string_equal(look_link(w, 1, 7), " probe.port_was_down probe.port_flaps");
    assert_int_equal(w->last.isolation, ISOLATION_EXCLUDE);
    for (int i = 0; i < 9; i++)
        assert_string_equal(look_link(w, 1, 7), "");
    assert_string_equal(look_link(w, 1, 7), " -probe.port_flaps");
}

static const char *look_lanes(struct world *w, int64_t width, int64_t busy)
{
    begin(w);
    see(w, AREA_GPU, "0000:4d:00", ITEM_PCIE_WIDTH, width);
    see(w, AREA_GPU, "0000:4d:00", ITEM_PCIE_WIDTH_MAX, 16);
    see(w, AREA_GPU, "0000:4d:00", ITEM_BUSY_PERCENT, busy);
    end(w);
    return strbuf_str(&w->said);
}

static void test_a_narrow_link_counts_while_the_gpu_is_busy(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 10; i++)
        assert_string_equal(look_lanes(w, 4, 0), "");
    assert_string_equal(look_lanes(w, 8, 100), "");
    assert_string_equal(look_lanes(w, 8, 100), "");
    assert_string_equal(look_lanes(w, 8, 100), " probe.gpu_narrow");
    assert_true(w->last.straggler);
}

/* Two GPUs, one of which is seen only while `both`. */
static const char *look_pair(struct world *w, bool both, enum ended how)
{
    begin(w);
    see(w, AREA_GPU, "0000:4d:00", ITEM_NVML_RETURN, 0);
    if (both)
        see(w, AREA_GPU, "0000:9b:00", ITEM_NVML_RETURN, 0);
    finish(w, AREA_GPU, "", how);
    end(w);
    return strbuf_str(&w->said);
}

static void test_a_gpu_that_was_there_and_is_not_is_gone(void **state)
{
    struct world *w = *state;

    look_pair(w, true, ENDED_DONE);
    assert_string_equal(look_pair(w, false, ENDED_DONE), "");
    assert_string_equal(look_pair(w, false, ENDED_DONE), " probe.gpu_gone");
    assert_string_equal(w->last.text, "GPU 0000:9b:00: was there and is not any more");
    assert_string_equal(look_pair(w, false, ENDED_DONE), "");
    assert_string_equal(look_pair(w, true, ENDED_DONE), "");
    assert_string_equal(look_pair(w, true, ENDED_DONE), " -probe.gpu_gone");
}

/* It may have been behind the one at which the look hung or failed. */
static void test_a_gpu_is_not_gone_when_the_look_did_not_come_to_its_end(void **state)
{
    struct world *w = *state;

    look_pair(w, true, ENDED_DONE);
    for (int i = 0; i < 5; i++) {
        assert_string_equal(look_pair(w, false, ENDED_FAILED), "");
        begin(w);
        finish(w, AREA_GPU, "", ENDED_ABSENT);
        end(w);
        assert_string_equal(strbuf_str(&w->said), "");
    }
}

static const char *look_hang(struct world *w, enum area area, const char *subject, enum ended how)
{
    begin(w);
    finish(w, area, subject, how);
    end(w);
    return strbuf_str(&w->said);
}

static void test_what_hangs_twice_in_a_row_is_told(void **state)
{
    struct world *w = *state;

    assert_string_equal(look_hang(w, AREA_GPU, "", ENDED_HUNG), "");
    assert_string_equal(look_hang(w, AREA_GPU, "", ENDED_DONE), "");
    assert_string_equal(look_hang(w, AREA_GPU, "", ENDED_HUNG), "");
    assert_string_equal(look_hang(w, AREA_GPU, "", ENDED_FAILED), "");
    assert_string_equal(look_hang(w, AREA_GPU, "", ENDED_HUNG), " probe.gpu_hangs");
    assert_int_equal(w->last.isolation, ISOLATION_EXCLUDE);
    assert_int_equal(w->last.blame, BLAME_NODE);
    assert_string_equal(w->last.device, "");
    assert_string_equal(w->last.text, "GPUs: the GPUs' driver does not answer");

    assert_string_equal(look_hang(w, AREA_MOUNTS, "/home", ENDED_HUNG), "");
    assert_string_equal(look_hang(w, AREA_MOUNTS, "/home", ENDED_HUNG), " storage.mount_hangs");
    assert_string_equal(w->last.text, "/home: does not answer");
    assert_int_equal(w->last.isolation, ISOLATION_NONE);
    assert_int_equal(w->last.cause, CAUSE_STORAGE);
    assert_string_equal(look_hang(w, AREA_MOUNTS, "/home", ENDED_DONE), "");
    assert_string_equal(look_hang(w, AREA_MOUNTS, "/home", ENDED_DONE), " -storage.mount_hangs");
}

static void test_the_trouble_of_what_is_gone_is_over(void **state)
{
    struct world *w = *state;

    look_once(w, AREA_DISK, "/scratch", ITEM_FORCED_READ_ONLY, 1);
    assert_string_equal(strbuf_str(&w->said), " probe.disk_read_only");
    assert_string_equal(look_once(w, AREA_DISK, "/", ITEM_FORCED_READ_ONLY, 0),
                        " -probe.disk_read_only");
    assert_string_equal(w->last.subject, "/scratch");
}

static void test_one_look_shows_what_needs_no_other(void **state)
{
    struct world *w = *state;

    begin(w);
    see(w, AREA_GPU, "0000:4d:00", ITEM_NVML_RETURN, NVML_ERROR_GPU_IS_LOST);
    see(w, AREA_GPU, "0000:9b:00", ITEM_ECC_UNCORRECTED, 5);
    see(w, AREA_NIC, "eth0", ITEM_UP, 0);
    finish(w, AREA_GPU, "", ENDED_DONE);
    judge_now(w->judge, on_change, w);
    assert_string_equal(strbuf_str(&w->said), " probe.gpu_lost");
}

static void test_more_things_than_can_be_remembered_are_left_out(void **state)
{
    struct world *w = *state;
    char name[16];

    begin(w);
    for (int i = 0; i < 2 * PROBE_SUBJECTS_MAX; i++) {
        STR_PRINTF(name, "d%d", i);
        see(w, AREA_DISK, name, ITEM_LIVE, 1);
    }
    end(w);
    assert_string_equal(strbuf_str(&w->said), "");
}

/* As a restart of the agent does. */
static void begin_anew(struct world *w)
{
    json_t *kept = judge_to_json(w->judge);

    judge_free(w->judge);
    w->judge = judge_new();
    judge_from_json(w->judge, kept);
    json_decref(kept);
}

static void test_what_was_told_outlives_a_restart(void **state)
{
    struct world *w = *state;

    look_gpu(w, ITEM_RECOVERY_ACTION, 1);
    assert_string_equal(strbuf_str(&w->said), " probe.gpu_recovery_reset");
    begin_anew(w);
    assert_string_equal(look_gpu(w, ITEM_RECOVERY_ACTION, 1), "");
    begin_anew(w);
    assert_string_equal(look_gpu(w, ITEM_RECOVERY_ACTION, 0), " -probe.gpu_recovery_reset");
    begin_anew(w);
    assert_string_equal(look_gpu(w, ITEM_RECOVERY_ACTION, 0), "");
}

static void test_how_things_were_at_their_best_outlives_a_restart(void **state)
{
    struct world *w = *state;

    look_port(w, ITEM_UP, 1);
    look_gpu(w, ITEM_NVLINKS_UP, 18);
    begin_anew(w);
    assert_string_equal(look_port(w, ITEM_UP, 0), " probe.port_down");
    look_gpu(w, ITEM_NVLINKS_UP, 17);
    assert_string_equal(look_gpu(w, ITEM_NVLINKS_UP, 17), " probe.gpu_nvlink_lost");
    begin_anew(w);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(look_gpu(w, ITEM_NVLINKS_UP, 17), "");
        assert_string_equal(look_port(w, ITEM_UP, 0), "");
    }
}

static void test_what_is_not_understood_of_a_memory_is_left_out(void **state)
{
    static const char *const texts[] = {
        "7",
        "[7, [], {}, null]",
        "[{\"area\":\"moon\",\"subject\":\"x\",\"told\":[\"probe.gpu_lost\"]}]",
        "[{\"area\":\"gpu\",\"subject\":7}]",
        "[{\"area\":\"gpu\",\"subject\":\"x\",\"told\":[3,\"none.such\",\"probe.gpu_ecc\"]}]",
    };
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        json_t *j = json_loads(texts[i], JSON_DECODE_ANY, NULL), *kept;

        assert_non_null(j);
        judge_from_json(w->judge, j);
        json_decref(j);
        kept = judge_to_json(w->judge);
        assert_int_equal(json_array_size(kept), 0);
        json_decref(kept);
    }
}

static void test_every_rule_is_whole(void **state)
{
    for (size_t i = 0; i < rules_count; i++) {
        assert_non_null(rules[i].is);
        assert_true(rules[i].looks > 0);
        assert_true(strlen(rules[i].signature) < SIGNATURE_MAX);
        assert_true(rules[i].confidence > 0);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(rules[i].signature, rules[k].signature);
    }
}

static void test_lines_are_read_as_they_were_written(void **state)
{
    struct observation o = observation_make(AREA_MOUNTS, "/a \"b\"\x01");
    struct ending e = {.area = AREA_GPU, .how = ENDED_HUNG, .took_us = 17, .why = "so"};
    struct strbuf line = {0};
    struct probe_line l;

    for (int i = 0; i < ITEM_MAX; i += 2)
        observation_set(&o, (enum item)i, (int64_t)i * -1000000007);
    observation_write(&o, &line);
    assert_int_equal(probe_line_parse(line.s, line.len, &l), 0);
    assert_false(l.is_ending);
    assert_memory_equal(&l.observation, &o, sizeof(o));
    strbuf_reset(&line);
    ending_write(&e, &line);
    assert_int_equal(probe_line_parse(line.s, line.len, &l), 0);
    assert_true(l.is_ending);
    assert_int_equal(l.ending.how, ENDED_HUNG);
    assert_string_equal(l.ending.why, "so");
    strbuf_done(&line);
}

static void test_lines_that_are_none_are_refused(void **state)
{
    static const char *const none[] = {
        "",
        "{",
        "[]",
        "7",
        "{}",
        "{\"area\":\"moon\",\"items\":{}}",
        "{\"area\":\"gpu\"}",
        "{\"area\":\"gpu\",\"items\":[]}",
        "{\"area\":\"gpu\",\"outcome\":\"well\"}",
        "{\"area\":\"gpu\",\"outcome\":3}",
    };
    struct probe_line l;
    const char *more = "{\"area\":\"nic\",\"items\":{\"up\":1,\"new\":2,\"downs\":\"x\"}}";

    for (size_t i = 0; i < ARRAY_SIZE(none); i++)
        assert_int_equal(probe_line_parse(none[i], strlen(none[i]), &l), -EINVAL);
    assert_int_equal(probe_line_parse(more, strlen(more), &l), 0);
    assert_int_equal(l.observation.known, (uint64_t)1 << ITEM_UP);
}

static void test_every_name_stands_for_one(void **state)
{
    for (int i = 0; i < AREA_MAX; i++)
        assert_int_equal(area_from_name(area_name((enum area)i)), i);
    for (int i = 0; i < ENDED_MAX; i++)
        assert_int_equal(ended_from_name(ended_name((enum ended)i)), i);
    for (int i = 0; i < ITEM_MAX; i++)
        assert_int_equal(item_from_name(item_name((enum item)i)), i);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_states_are_told_once_and_when_they_are_over),
        TEST(test_what_is_not_known_is_not_ill_and_breaks_the_row),
        TEST(test_errors_are_told_when_they_rise_and_only_then),
        TEST(test_a_rate_is_told_when_two_looks_in_a_row_show_it),
        TEST(test_a_rate_is_one_of_time),
        TEST(test_a_port_that_was_never_up_is_nothing),
        TEST(test_a_port_flaps_when_it_turns_three_times_in_ten_minutes),
        TEST(test_a_narrow_link_counts_while_the_gpu_is_busy),
        TEST(test_a_gpu_that_was_there_and_is_not_is_gone),
        TEST(test_a_gpu_is_not_gone_when_the_look_did_not_come_to_its_end),
        TEST(test_what_hangs_twice_in_a_row_is_told),
        TEST(test_the_trouble_of_what_is_gone_is_over),
        TEST(test_one_look_shows_what_needs_no_other),
        TEST(test_more_things_than_can_be_remembered_are_left_out),
        TEST(test_what_was_told_outlives_a_restart),
        TEST(test_how_things_were_at_their_best_outlives_a_restart),
        TEST(test_what_is_not_understood_of_a_memory_is_left_out),
        TEST(test_every_rule_is_whole),
        TEST(test_lines_are_read_as_they_were_written),
        TEST(test_lines_that_are_none_are_refused),
        TEST(test_every_name_stands_for_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
