/* SPDX-License-Identifier: Apache-2.0 */

/* When is what a look shows a trouble, and whose? A table in C and not in the catalogue: an entry
 * of the catalogue is a pattern with lines that must match it, a rule here compares numbers of two
 * looks, and a language for that would be one more to learn and to test.
 *
 * A node is isolated by what the driver, the kernel or the disk says outright. What merely looks
 * bad, rates and limits that somebody chose, is told, and isolates nobody. */

#include "probe/nvml.h"
#include "probe/rules.h"

#include "base/str.h"

/* DCGM's limits of a warning: 8 PCIe replays a minute, 100 CRC errors of NVLink a second. */
#define PCIE_REPLAYS_PER_MIN  8
#define NVLINK_ERRORS_PER_MIN 6000
/* InfiniBand Architecture, volume 2: a bit error rate below 1e-12, which is 10 symbol errors an
 * hour and lane at most; a link that retrains once a minute carries no collective. */
#define SYMBOL_ERRORS_PER_MIN  2
#define RECOVERIES_PER_MIN     1
#define RECEIVE_ERRORS_PER_MIN 60 /* one a second: packets are lost, and sent again */
/* One that is plugged in anew goes down and up: three changes are no single hand's work. */
#define FLAP_TURNS  3
#define FLAP_WITHIN (10 * USEC_PER_MIN)
/* The link of an idle GPU is made narrow and slow to save power; a busy one's is not. */
#define BUSY_PERCENT  50
#define FULL_PERMILLE 10 /* NCCL and PyTorch loaders fail when nothing more can be had */
#define CLOCK_OFF_US                                                                               \
    100000 /* far above what NTP leaves, and logs of nodes stop being comparable                   \
            */
#define BLOCKED_MANY                                                                               \
    64 /* a full queue of I/O is no trouble; so many for minutes wait for one thing */

static enum answer answer(bool yes)
{
    return yes ? ANSWER_YES : ANSWER_NO;
}

static enum answer is_set(const struct rule *r, const struct sight *s)
{
    return observation_has(s->now, r->item) ? answer(s->now->value[r->item] != 0) : ANSWER_UNKNOWN;
}

static enum answer is_clear(const struct rule *r, const struct sight *s)
{
    return observation_has(s->now, r->item) ? answer(s->now->value[r->item] == 0) : ANSWER_UNKNOWN;
}

static enum answer is_equal(const struct rule *r, const struct sight *s)
{
    return observation_has(s->now, r->item) ? answer(s->now->value[r->item] == r->limit)
                                            : ANSWER_UNKNOWN;
}

static enum answer is_below(const struct rule *r, const struct sight *s)
{
    return observation_has(s->now, r->item) ? answer(s->now->value[r->item] < r->limit)
                                            : ANSWER_UNKNOWN;
}

static enum answer is_above(const struct rule *r, const struct sight *s)
{
    return observation_has(s->now, r->item) ? answer(s->now->value[r->item] > r->limit)
                                            : ANSWER_UNKNOWN;
}

static enum answer is_far_off(const struct rule *r, const struct sight *s)
{
    int64_t n = s->now->value[r->item];

    return observation_has(s->now, r->item) ? answer(n > r->limit || n < -r->limit)
                                            : ANSWER_UNKNOWN;
}

static enum answer has_bits(const struct rule *r, const struct sight *s)
{
    return observation_has(s->now, r->item) ? answer(s->now->value[r->item] & r->limit)
                                            : ANSWER_UNKNOWN;
}

/* A counter that is lower than before was set back, by a reset or another driver. */
static bool has_risen_by(const struct rule *r, const struct sight *s, int64_t *ret)
{
    if (!s->before || !observation_has(s->now, r->item) || !observation_has(s->before, r->item) ||
        s->now->value[r->item] < s->before->value[r->item])
        return false;
    return !__builtin_sub_overflow(s->now->value[r->item], s->before->value[r->item], ret);
}

static enum answer rose(const struct rule *r, const struct sight *s)
{
    int64_t n;

    return has_risen_by(r, s, &n) ? answer(n > 0) : ANSWER_UNKNOWN;
}

/* More than `limit` a minute. */
static enum answer rises(const struct rule *r, const struct sight *s)
{
    int64_t n;

    if (!has_risen_by(r, s, &n) || s->between_us <= 0)
        return ANSWER_UNKNOWN;
    return answer(n > r->limit * s->between_us / USEC_PER_MIN);
}

/* One that was never up since we look may have no cable. */
static enum answer went_down(const struct rule *r, const struct sight *s)
{
    if (!observation_has(s->now, ITEM_UP))
        return ANSWER_UNKNOWN;
    return answer(s->past->was_up && !s->now->value[ITEM_UP]);
}

/* It was down between two looks that saw it up. */
static enum answer was_down(const struct rule *r, const struct sight *s)
{
    int64_t n;

    if (!has_risen_by(r, s, &n) || !observation_has(s->now, ITEM_UP) ||
        !observation_has(s->before, ITEM_UP))
        return ANSWER_UNKNOWN;
    return answer(n > 0 && s->now->value[ITEM_UP] && s->before->value[ITEM_UP]);
}

static enum answer flaps(const struct rule *r, const struct sight *s)
{
    if (s->past->n_turns < FLAP_TURNS)
        return ANSWER_NO;
    return answer(s->now_us - s->past->turns[FLAP_TURNS - 1] <= FLAP_WITHIN);
}

static enum answer is_narrow(const struct rule *r, const struct sight *s)
{
    const struct observation *o = s->now;

    if (!observation_has(o, ITEM_PCIE_WIDTH) || !observation_has(o, ITEM_PCIE_WIDTH_MAX) ||
        !observation_has(o, ITEM_BUSY_PERCENT) || o->value[ITEM_BUSY_PERCENT] < BUSY_PERCENT)
        return ANSWER_UNKNOWN;
    return answer(o->value[ITEM_PCIE_WIDTH] < o->value[ITEM_PCIE_WIDTH_MAX]);
}

static enum answer lost_links(const struct rule *r, const struct sight *s)
{
    return observation_has(s->now, r->item) ? answer(s->now->value[r->item] < s->past->links_best)
                                            : ANSWER_UNKNOWN;
}

/* Numbers that newer drivers may add mean nothing yet. */
static enum answer wants_reset(const struct rule *r, const struct sight *s)
{
    int64_t action = s->now->value[r->item];

    if (!observation_has(s->now, r->item) || action > NVML_RECOVERY_DRAIN_RESET)
        return ANSWER_UNKNOWN;
    return answer(action != NVML_RECOVERY_NONE && action != NVML_RECOVERY_REBOOT);
}

#define GPU_TROUBLE  .area = AREA_GPU, .cause = CAUSE_GPU_HARDWARE, .blame = BLAME_DEVICE
#define PORT_TROUBLE .area = AREA_NIC, .cause = CAUSE_NETWORK, .blame = BLAME_NODE

const struct rule rules[] = {
    {"probe.gpu_lost", "the driver has lost it (NVML: GPU is lost)", GPU_TROUBLE,
     .item = ITEM_NVML_RETURN, .is = is_equal, .limit = NVML_ERROR_GPU_IS_LOST, .looks = 2,
     .isolation = ISOLATION_REBOOT, .role = ROLE_ROOT, .confidence = 95},
    {"probe.gpu_gone", "was there and is not any more", GPU_TROUBLE, .item = ITEM_GONE,
     .is = is_set, .looks = 2, .compares = true, .isolation = ISOLATION_DRAIN, .role = ROLE_ROOT,
     .confidence = 85},
    {"probe.gpu_needs_reset", "must be reset (NVML: reset required)", GPU_TROUBLE,
     .item = ITEM_NVML_RETURN, .is = is_equal, .limit = NVML_ERROR_RESET_REQUIRED, .looks = 2,
     .isolation = ISOLATION_RESET, .role = ROLE_ROOT, .confidence = 90},
    {"probe.gpu_unknown_error", "the driver cannot say what is wrong (NVML: unknown error)",
     GPU_TROUBLE, .item = ITEM_NVML_RETURN, .is = is_equal, .limit = NVML_ERROR_UNKNOWN, .looks = 2,
     .isolation = ISOLATION_EXCLUDE, .role = ROLE_SYMPTOM, .confidence = 60},
    {"probe.gpu_recovery_reset", "the driver asks for a reset", GPU_TROUBLE,
     .item = ITEM_RECOVERY_ACTION, .is = wants_reset, .looks = 1, .isolation = ISOLATION_RESET,
     .role = ROLE_ROOT, .confidence = 90},
    {"probe.gpu_recovery_reboot", "the driver asks for a reboot of the node", GPU_TROUBLE,
     .item = ITEM_RECOVERY_ACTION, .is = is_equal, .limit = NVML_RECOVERY_REBOOT, .looks = 1,
     .isolation = ISOLATION_REBOOT, .role = ROLE_ROOT, .confidence = 95},
    {"probe.gpu_hangs", "the GPUs' driver does not answer", .area = AREA_GPU, .item = ITEM_HUNG,
     .is = is_set, .looks = 2, .isolation = ISOLATION_EXCLUDE, .cause = CAUSE_GPU_HARDWARE,
     .role = ROLE_SYMPTOM, .blame = BLAME_NODE, .confidence = 70},
    /* Whether the program alone suffered (Xid 94) or the GPU is of no use (95), the kernel says. */
    {"probe.gpu_ecc", "uncorrectable memory errors", GPU_TROUBLE, .item = ITEM_ECC_UNCORRECTED,
     .is = rose, .looks = 1, .passes = true, .compares = true, .isolation = ISOLATION_EXCLUDE,
     .role = ROLE_ROOT, .confidence = 85},
    /* Not even a reset mends that: it has no rows left. */
    {"probe.gpu_remap_failed", "a row of its memory could not be replaced", GPU_TROUBLE,
     .item = ITEM_ROWS_FAILED, .is = is_set, .looks = 1, .isolation = ISOLATION_DRAIN,
     .role = ROLE_ROOT, .confidence = 90},
    {"probe.gpu_remap_pending", "a row of its memory is replaced at the next reset", GPU_TROUBLE,
     .item = ITEM_ROWS_PENDING, .is = is_set, .looks = 1, .isolation = ISOLATION_NONE,
     .role = ROLE_CONFIRM, .confidence = 40},
    {"probe.gpu_page_pending", "a page of its memory is retired at the next reset", GPU_TROUBLE,
     .item = ITEM_PAGES_PENDING, .is = is_set, .looks = 1, .isolation = ISOLATION_NONE,
     .role = ROLE_CONFIRM, .confidence = 40},
    {"probe.gpu_hot", "is held back because it is too hot", GPU_TROUBLE, .item = ITEM_CLOCK_REASONS,
     .is = has_bits, .limit = NVML_CLOCK_HW_THERMAL, .looks = 5, .straggler = true,
     .isolation = ISOLATION_EXCLUDE, .role = ROLE_SYMPTOM, .confidence = 60},
    /* All of a row of racks may be braked at once. */
    {"probe.gpu_braked", "is held back by its board or its power", GPU_TROUBLE,
     .item = ITEM_CLOCK_REASONS, .is = has_bits,
     .limit = NVML_CLOCK_HW_SLOWDOWN | NVML_CLOCK_POWER_BRAKE, .looks = 5, .straggler = true,
     .isolation = ISOLATION_NONE, .role = ROLE_SYMPTOM, .confidence = 50},
    {"probe.gpu_narrow", "its PCIe link has fewer lanes than it could", GPU_TROUBLE,
     .item = ITEM_PCIE_WIDTH, .is = is_narrow, .looks = 3, .straggler = true,
     .isolation = ISOLATION_NONE, .role = ROLE_SYMPTOM, .confidence = 50},
    {"probe.gpu_pcie_replays", "its PCIe link repeats itself", GPU_TROUBLE,
     .item = ITEM_PCIE_REPLAYS, .is = rises, .limit = PCIE_REPLAYS_PER_MIN, .looks = 2,
     .compares = true, .isolation = ISOLATION_NONE, .role = ROLE_SYMPTOM, .confidence = 40},
    {"probe.gpu_nvlink_lost", "has fewer NVLinks than before", GPU_TROUBLE, .item = ITEM_NVLINKS_UP,
     .is = lost_links, .looks = 2, .compares = true, .isolation = ISOLATION_EXCLUDE,
     .role = ROLE_ROOT, .confidence = 80},
    {"probe.gpu_nvlink_errors", "its NVLinks make errors", GPU_TROUBLE, .item = ITEM_NVLINK_ERRORS,
     .is = rises, .limit = NVLINK_ERRORS_PER_MIN, .looks = 2, .compares = true,
     .isolation = ISOLATION_NONE, .role = ROLE_SYMPTOM, .confidence = 40},
    {"probe.gpu_leftover", "memory of it belongs to processes that have ended", .area = AREA_GPU,
     .item = ITEM_LEFTOVER_MIB, .is = is_set, .looks = 2, .isolation = ISOLATION_EXCLUDE,
     .cause = CAUSE_GPU_OOM, .role = ROLE_SYMPTOM, .blame = BLAME_DEVICE, .confidence = 60},

    {"probe.port_down", "the link was up and is down", PORT_TROUBLE, .item = ITEM_UP,
     .is = went_down, .looks = 1, .compares = true, .isolation = ISOLATION_NONE,
     .role = ROLE_SYMPTOM, .confidence = 60},
    {"probe.port_was_down", "the link was down for a moment", PORT_TROUBLE, .item = ITEM_DOWNS,
     .is = was_down, .looks = 1, .passes = true, .compares = true, .isolation = ISOLATION_NONE,
     .role = ROLE_SYMPTOM, .confidence = 50},
    {"probe.port_flaps", "the link goes up and down", PORT_TROUBLE, .item = ITEM_DOWNS, .is = flaps,
     .looks = 1, .compares = true, .isolation = ISOLATION_EXCLUDE, .role = ROLE_ROOT,
     .confidence = 75},
    {"probe.port_symbol_errors", "bits arrive wrong", PORT_TROUBLE, .item = ITEM_SYMBOL_ERRORS,
     .is = rises, .limit = SYMBOL_ERRORS_PER_MIN, .looks = 2, .compares = true,
     .isolation = ISOLATION_NONE, .role = ROLE_SYMPTOM, .confidence = 40},
    {"probe.port_recoveries", "the link is trained again and again", PORT_TROUBLE,
     .item = ITEM_RECOVERIES, .is = rises, .limit = RECOVERIES_PER_MIN, .looks = 2,
     .compares = true, .isolation = ISOLATION_NONE, .role = ROLE_SYMPTOM, .confidence = 50},
    {"probe.port_receive_errors", "packets arrive broken", PORT_TROUBLE,
     .item = ITEM_RECEIVE_ERRORS, .is = rises, .limit = RECEIVE_ERRORS_PER_MIN, .looks = 2,
     .compares = true, .isolation = ISOLATION_NONE, .role = ROLE_SYMPTOM, .confidence = 40},

    {"probe.disk_read_only", "nobody can write to it any more, though it was mounted for that",
     .area = AREA_DISK, .item = ITEM_FORCED_READ_ONLY, .is = is_set, .looks = 1,
     .isolation = ISOLATION_DRAIN, .cause = CAUSE_NODE_HARDWARE, .role = ROLE_ROOT,
     .blame = BLAME_NODE, .confidence = 90},
    {"probe.nvme_dead", "the controller is dead", .area = AREA_DISK, .item = ITEM_LIVE,
     .is = is_clear, .looks = 1, .isolation = ISOLATION_DRAIN, .cause = CAUSE_NODE_HARDWARE,
     .role = ROLE_ROOT, .blame = BLAME_NODE, .confidence = 90},
    /* Most often a job's own doing. */
    {"probe.disk_full", "is full", .area = AREA_DISK, .item = ITEM_FREE_PERMILLE, .is = is_below,
     .limit = FULL_PERMILLE, .looks = 2, .isolation = ISOLATION_NONE, .cause = CAUSE_STORAGE,
     .role = ROLE_SYMPTOM, .blame = BLAME_NONE, .confidence = 50},
    {"probe.disk_no_inodes", "has no room for another file", .area = AREA_DISK,
     .item = ITEM_INODES_FREE_PERMILLE, .is = is_below, .limit = FULL_PERMILLE, .looks = 2,
     .isolation = ISOLATION_NONE, .cause = CAUSE_STORAGE, .role = ROLE_SYMPTOM, .blame = BLAME_NONE,
     .confidence = 50},
    {"probe.disk_hangs", "the node's own disks do not answer", .area = AREA_DISK, .item = ITEM_HUNG,
     .is = is_set, .looks = 2, .isolation = ISOLATION_EXCLUDE, .cause = CAUSE_NODE_HARDWARE,
     .role = ROLE_SYMPTOM, .blame = BLAME_NODE, .confidence = 70},
    /* Who serves it, or the way there, may be at fault as well: no node's alone. */
    {"storage.mount_hangs", "does not answer", .area = AREA_MOUNTS, .item = ITEM_HUNG, .is = is_set,
     .looks = 2, .isolation = ISOLATION_NONE, .cause = CAUSE_STORAGE, .role = ROLE_ROOT,
     .blame = BLAME_NONE, .confidence = 70},
    {"storage.mount_fails", "answers with an error", .area = AREA_MOUNTS, .item = ITEM_ERROR,
     .is = is_set, .looks = 2, .isolation = ISOLATION_NONE, .cause = CAUSE_STORAGE,
     .role = ROLE_ROOT, .blame = BLAME_NONE, .confidence = 70},

    {"probe.memory_uncorrected", "uncorrectable memory errors", .area = AREA_MEMORY,
     .item = ITEM_UNCORRECTED, .is = rose, .looks = 1, .passes = true, .compares = true,
     .isolation = ISOLATION_DRAIN, .cause = CAUSE_NODE_HARDWARE, .role = ROLE_ROOT,
     .blame = BLAME_NODE, .confidence = 90},
    {"probe.memory_poisoned", "the kernel took broken memory out of use", .area = AREA_MEMORY,
     .item = ITEM_CORRUPTED_KIB, .is = rose, .looks = 1, .passes = true, .compares = true,
     .isolation = ISOLATION_EXCLUDE, .cause = CAUSE_NODE_HARDWARE, .role = ROLE_ROOT,
     .blame = BLAME_NODE, .confidence = 80},
    {"probe.clock_unsynchronised", "nobody sets it", .area = AREA_CLOCK, .item = ITEM_SYNCHRONISED,
     .is = is_clear, .looks = 5, .isolation = ISOLATION_NONE, .cause = CAUSE_NODE_HARDWARE,
     .role = ROLE_CONFIRM, .blame = BLAME_NONE, .confidence = 10},
    {"probe.clock_off", "is wrong", .area = AREA_CLOCK, .item = ITEM_OFFSET_US, .is = is_far_off,
     .limit = CLOCK_OFF_US, .looks = 2, .isolation = ISOLATION_NONE, .cause = CAUSE_NODE_HARDWARE,
     .role = ROLE_CONFIRM, .blame = BLAME_NONE, .confidence = 20},
    {"probe.processes_blocked", "many processes wait in the kernel", .area = AREA_PROCESSES,
     .item = ITEM_BLOCKED, .is = is_above, .limit = BLOCKED_MANY, .looks = 5,
     .isolation = ISOLATION_NONE, .cause = CAUSE_UNKNOWN, .role = ROLE_SYMPTOM, .blame = BLAME_NONE,
     .confidence = 20},
};
const size_t rules_count = ARRAY_SIZE(rules);
_Static_assert(ARRAY_SIZE(rules) <= RULES_MAX, "each thing remembers about each rule");
