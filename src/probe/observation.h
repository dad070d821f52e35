/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_PROBE_OBSERVATION_H
#define REKNIT_PROBE_OBSERVATION_H

/* What reknit-probe says, one JSON object a line: an observation of one thing (a GPU, a port, a
 * file system), or how looking at an area ended. Numbers only, so that what they mean can be judged
 * without the node. */

#include "base/err.h"
#include "base/names.h"
#include "base/str.h"
#include "base/time.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define SUBJECT_LEN        256
#define LABEL_LEN          128
#define PROBE_LINE_MAX     8192
#define PROBE_SUBJECTS_MAX 512 /* of one look */

enum area {
    AREA_GPU,
    AREA_NIC,
    AREA_DISK,
    AREA_MOUNTS, /* of file systems that another host serves */
    AREA_MEMORY,
    AREA_CLOCK,
    AREA_PROCESSES,
    AREA_MAX,
    AREA_INVALID = -EINVAL,
};
DECLARE_NAMES(area, enum area);

enum ended {
    ENDED_DONE,
    ENDED_ABSENT, /* there is no such thing here, or nothing that could tell: that is fine */
    ENDED_HUNG,   /* no answer within the deadline */
    ENDED_FAILED, /* it could not be looked at: nothing is known */
    ENDED_MAX,
    ENDED_INVALID = -EINVAL,
};
DECLARE_NAMES(ended, enum ended);

enum item {
    /* A GPU. */
    ITEM_ECC_CORRECTED,   /* since the driver was loaded or the GPU reset */
    ITEM_ECC_UNCORRECTED, /* likewise */
    ITEM_PAGES_PENDING,   /* 1: a page is to be retired at the next reset */
    ITEM_ROWS_CORRECTED,  /* remapped because of correctable errors */
    ITEM_ROWS_UNCORRECTED,
    ITEM_ROWS_PENDING, /* 1: a row is to be remapped at the next reset */
    ITEM_ROWS_FAILED,  /* 1: a remapping has failed */
    ITEM_SM_MHZ,
    ITEM_SM_MHZ_MAX,
    ITEM_CLOCK_REASONS, /* bits of why the clock is not higher, as NVML has them */
    ITEM_POWER_MW,
    ITEM_POWER_LIMIT_MW,
    ITEM_TEMPERATURE_C,
    ITEM_SLOWDOWN_C,
    ITEM_SHUTDOWN_C,
    ITEM_PCIE_GEN,
    ITEM_PCIE_GEN_MAX,
    ITEM_PCIE_WIDTH,
    ITEM_PCIE_WIDTH_MAX,
    ITEM_PCIE_REPLAYS,
    ITEM_BUSY_PERCENT,
    ITEM_MEMORY_MIB,
    ITEM_COMPUTE_PROCESSES,
    ITEM_LEFTOVER_MIB, /* that belongs to processes that do not exist any more */
    ITEM_NVLINKS_UP,
    ITEM_NVLINKS_DOWN,
    ITEM_NVLINK_ERRORS,   /* replays, recoveries and CRC errors of all links */
    ITEM_RECOVERY_ACTION, /* nvmlDeviceGpuRecoveryAction_t */
    ITEM_NVML_RETURN,     /* the worst that the library said of it; 0 = nothing bad */
    /* A port of a network adapter. */
    ITEM_UP,
    ITEM_RATE_MBPS,
    ITEM_DOWNS, /* how often the link went down */
    ITEM_TURNS, /* how often it went up or down */
    ITEM_SYMBOL_ERRORS,
    ITEM_RECOVERIES,
    ITEM_RECEIVE_ERRORS,
    ITEM_SEND_ERRORS,
    ITEM_OUT_OF_SEQUENCE,
    ITEM_ACK_TIMEOUTS,
    /* A file system or disk. */
    ITEM_TOTAL_MIB,
    ITEM_FREE_MIB,
    ITEM_FREE_PERMILLE,
    ITEM_INODES_FREE_PERMILLE,
    ITEM_FORCED_READ_ONLY, /* 1: mounted for writing, and writable no more */
    ITEM_LIVE,             /* of an NVMe controller: 1; 0 = dead */
    ITEM_ERROR,            /* errno with which it answers; 0 = none */
    ITEM_ANSWER_US,
    /* Memory, clock, processes. */
    ITEM_AVAILABLE_MIB,
    ITEM_CORRUPTED_KIB, /* taken out of use by the kernel since boot */
    ITEM_UNCORRECTED,   /* errors of a memory controller since boot */
    ITEM_CORRECTED,
    ITEM_SYNCHRONISED,
    ITEM_OFFSET_US,
    ITEM_PROCESSES,
    ITEM_ZOMBIES,
    ITEM_BLOCKED, /* in state D */
    /* What the judge adds of its own. */
    ITEM_HUNG, /* 1: no answer in time; 0: it answered */
    ITEM_GONE, /* 1: was there, and is not seen any more */
    ITEM_MAX,
    ITEM_INVALID = -EINVAL,
};
DECLARE_NAMES(item, enum item);

struct observation {
    enum area area;
    char subject[SUBJECT_LEN]; /* "0000:4d:00", "mlx5_0/1", "/dev/shm"; "" = the node */
    char label[LABEL_LEN];     /* what a person calls it, "" = nothing more */
    uint64_t known;            /* a bit for each item whose value is known */
    int64_t value[ITEM_MAX];
};

struct ending {
    enum area area;
    char subject[SUBJECT_LEN]; /* "" = the whole area */
    enum ended how;
    usec_t took_us;
    char why[160]; /* of what is not done */
};

struct observation observation_make(enum area area, const char *subject);
void observation_set(struct observation *o, enum item i, int64_t value);
static inline bool observation_has(const struct observation *o, enum item i)
{
    return o->known >> i & 1;
}

/* One line, without its newline. */
void observation_write(const struct observation *o, struct strbuf *out);
void ending_write(const struct ending *e, struct strbuf *out);

struct probe_line {
    bool is_ending;
    struct observation observation;
    struct ending ending;
};
/* Items that are not known here are left out: another release may say more. -EINVAL. */
int probe_line_from_json(const json_t *j, struct probe_line *ret);
int probe_line_parse(const char *text, size_t len, struct probe_line *ret);

#endif
