/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/observation.h"

#include "base/cleanup.h"

#include <assert.h>

static_assert(ITEM_MAX <= 64, "one bit each");

static const char *const area_names[AREA_MAX] = {
    [AREA_GPU] = "gpu",
    [AREA_NIC] = "nic",
    [AREA_DISK] = "disk",
    [AREA_MOUNTS] = "mounts",
    [AREA_MEMORY] = "memory",
    [AREA_CLOCK] = "clock",
    [AREA_PROCESSES] = "processes",
};
DEFINE_NAMES(area, enum area, area_names);

static const char *const ended_names[ENDED_MAX] = {
    [ENDED_DONE] = "done",
    [ENDED_ABSENT] = "absent",
    [ENDED_HUNG] = "hung",
    [ENDED_FAILED] = "failed",
};
DEFINE_NAMES(ended, enum ended, ended_names);

static const char *const item_names[ITEM_MAX] = {
    [ITEM_ECC_CORRECTED] = "ecc_corrected",
    [ITEM_ECC_UNCORRECTED] = "ecc_uncorrected",
    [ITEM_PAGES_PENDING] = "pages_pending",
    [ITEM_ROWS_CORRECTED] = "rows_corrected",
    [ITEM_ROWS_UNCORRECTED] = "rows_uncorrected",
    [ITEM_ROWS_PENDING] = "rows_pending",
    [ITEM_ROWS_FAILED] = "rows_failed",
    [ITEM_SM_MHZ] = "sm_mhz",
    [ITEM_SM_MHZ_MAX] = "sm_mhz_max",
    [ITEM_CLOCK_REASONS] = "clock_reasons",
    [ITEM_POWER_MW] = "power_mw",
    [ITEM_POWER_LIMIT_MW] = "power_limit_mw",
    [ITEM_TEMPERATURE_C] = "temperature_c",
    [ITEM_SLOWDOWN_C] = "slowdown_c",
    [ITEM_SHUTDOWN_C] = "shutdown_c",
    [ITEM_PCIE_GEN] = "pcie_gen",
    [ITEM_PCIE_GEN_MAX] = "pcie_gen_max",
    [ITEM_PCIE_WIDTH] = "pcie_width",
    [ITEM_PCIE_WIDTH_MAX] = "pcie_width_max",
    [ITEM_PCIE_REPLAYS] = "pcie_replays",
    [ITEM_BUSY_PERCENT] = "busy_percent",
    [ITEM_MEMORY_MIB] = "memory_mib",
    [ITEM_COMPUTE_PROCESSES] = "compute_processes",
    [ITEM_LEFTOVER_MIB] = "leftover_mib",
    [ITEM_NVLINKS_UP] = "nvlinks_up",
    [ITEM_NVLINKS_DOWN] = "nvlinks_down",
    [ITEM_NVLINK_ERRORS] = "nvlink_errors",
    [ITEM_RECOVERY_ACTION] = "recovery_action",
    [ITEM_NVML_RETURN] = "nvml_return",
    [ITEM_UP] = "up",
    [ITEM_RATE_MBPS] = "rate_mbps",
    [ITEM_DOWNS] = "downs",
    [ITEM_TURNS] = "turns",
    [ITEM_SYMBOL_ERRORS] = "symbol_errors",
    [ITEM_RECOVERIES] = "recoveries",
    [ITEM_RECEIVE_ERRORS] = "receive_errors",
    [ITEM_SEND_ERRORS] = "send_errors",
    [ITEM_OUT_OF_SEQUENCE] = "out_of_sequence",
    [ITEM_ACK_TIMEOUTS] = "ack_timeouts",
    [ITEM_TOTAL_MIB] = "total_mib",
    [ITEM_FREE_MIB] = "free_mib",
    [ITEM_FREE_PERMILLE] = "free_permille",
    [ITEM_INODES_FREE_PERMILLE] = "inodes_free_permille",
    [ITEM_FORCED_READ_ONLY] = "forced_read_only",
    [ITEM_LIVE] = "live",
    [ITEM_ERROR] = "error",
    [ITEM_ANSWER_US] = "answer_us",
    [ITEM_AVAILABLE_MIB] = "available_mib",
    [ITEM_CORRUPTED_KIB] = "corrupted_kib",
    [ITEM_UNCORRECTED] = "uncorrected",
    [ITEM_CORRECTED] = "corrected",
    [ITEM_SYNCHRONISED] = "synchronised",
    [ITEM_OFFSET_US] = "offset_us",
    [ITEM_PROCESSES] = "processes",
    [ITEM_ZOMBIES] = "zombies",
    [ITEM_BLOCKED] = "blocked",
    [ITEM_HUNG] = "hung",
    [ITEM_GONE] = "gone",
};
DEFINE_NAMES(item, enum item, item_names);

struct observation observation_make(enum area area, const char *subject)
{
    struct observation o = {.area = area};

    str_sanitize(o.subject, sizeof(o.subject), subject, __builtin_strlen(subject));
    return o;
}

void observation_set(struct observation *o, enum item i, int64_t value)
{
    assert(i >= 0 && i < ITEM_MAX);
    o->known |= (uint64_t)1 << i;
    o->value[i] = value;
}

static void write_object(json_t *j, struct strbuf *out)
{
    _cleanup_(freep) char *text = json_dumps(j, JSON_COMPACT);

    strbuf_adds(out, text);
    json_decref(j);
}

void observation_write(const struct observation *o, struct strbuf *out)
{
    json_t *items = json_object();

    for (int i = 0; i < ITEM_MAX; i++)
        if (observation_has(o, (enum item)i))
            json_object_set_new(items, item_name((enum item)i), json_integer(o->value[i]));
    write_object(json_pack("{s:s, s:s, s:s, s:o}", "area", area_name(o->area), "subject",
                           o->subject, "label", o->label, "items", items),
                 out);
}

void ending_write(const struct ending *e, struct strbuf *out)
{
    write_object(json_pack("{s:s, s:s, s:s, s:I, s:s}", "area", area_name(e->area), "subject",
                           e->subject, "outcome", ended_name(e->how), "took_us",
                           (json_int_t)e->took_us, "why", e->why),
                 out);
}

static const char *text_of(const json_t *j, const char *key)
{
    const char *text = json_string_value(json_object_get(j, key));

    return text ? text : "";
}

static int take_items(const json_t *items, struct observation *o)
{
    const char *name;
    json_t *value;

    if (!json_is_object(items))
        return -EINVAL;
    json_object_foreach ((json_t *)items, name, value) {
        enum item i = item_from_name(name);

        if (i >= 0 && json_is_integer(value))
            observation_set(o, i, json_integer_value(value));
    }
    return 0;
}

static int take_line(const json_t *j, struct probe_line *l)
{
    enum area area = area_from_name(text_of(j, "area"));

    if (area < 0)
        return -EINVAL;
    l->is_ending = json_object_get(j, "outcome") != NULL;
    if (!l->is_ending) {
        l->observation = observation_make(area, text_of(j, "subject"));
        STR_COPY(l->observation.label, text_of(j, "label"));
        return take_items(json_object_get(j, "items"), &l->observation);
    }
    l->ending.area = area;
    l->ending.how = ended_from_name(text_of(j, "outcome"));
    l->ending.took_us = json_integer_value(json_object_get(j, "took_us"));
    STR_COPY(l->ending.subject, text_of(j, "subject"));
    STR_COPY(l->ending.why, text_of(j, "why"));
    return l->ending.how < 0 ? -EINVAL : 0;
}

int probe_line_from_json(const json_t *j, struct probe_line *ret)
{
    struct probe_line l = {0};
    int r = take_line(j, &l);

    if (r == 0)
        *ret = l;
    return r;
}

int probe_line_parse(const char *text, size_t len, struct probe_line *ret)
{
    json_t *j = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    int r = probe_line_from_json(j, ret);

    json_decref(j);
    return r;
}
