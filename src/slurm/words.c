/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/words.h"

#include "base/str.h"

#include <slurm/slurm_errno.h>
#include <string.h>

enum slurm_state words_job_state(uint32_t job_state)
{
    static const enum slurm_state base[] = {
        [JOB_PENDING] = SLURM_STATE_PENDING,     [JOB_RUNNING] = SLURM_STATE_RUNNING,
        [JOB_SUSPENDED] = SLURM_STATE_SUSPENDED, [JOB_COMPLETE] = SLURM_STATE_COMPLETED,
        [JOB_CANCELLED] = SLURM_STATE_CANCELLED, [JOB_FAILED] = SLURM_STATE_FAILED,
        [JOB_TIMEOUT] = SLURM_STATE_TIMEOUT,     [JOB_NODE_FAIL] = SLURM_STATE_NODE_FAIL,
        [JOB_PREEMPTED] = SLURM_STATE_PREEMPTED, [JOB_BOOT_FAIL] = SLURM_STATE_BOOT_FAIL,
        [JOB_DEADLINE] = SLURM_STATE_DEADLINE,   [JOB_OOM] = SLURM_STATE_OUT_OF_MEMORY,
    };
    uint32_t state = job_state & JOB_STATE_BASE;

    if (state >= ARRAY_SIZE(base))
        return SLURM_STATE_UNKNOWN;
    if (state == JOB_PENDING && (job_state & JOB_SPECIAL_EXIT))
        return SLURM_STATE_SPECIAL_EXIT;
    if (job_state & (JOB_REQUEUE | JOB_REQUEUE_FED))
        return SLURM_STATE_REQUEUED;
    if (state == JOB_RUNNING && (job_state & (JOB_CONFIGURING | JOB_POWER_UP_NODE)))
        return SLURM_STATE_CONFIGURING;
    if (state == JOB_RUNNING && (job_state & JOB_STOPPED))
        return SLURM_STATE_SUSPENDED;
    return base[state];
}

/* Slurm's own function, under the name that it has in this release: neither is in slurm.h, the
 * second came with 23.11. */
extern char *slurm_job_reason_string(enum job_state_reason inx) __attribute__((weak));
extern const char *slurm_job_state_reason_string(enum job_state_reason inx) __attribute__((weak));

const char *words_reason(uint32_t state_reason)
{
    const char *word = NULL;

    if (slurm_job_state_reason_string)
        word = slurm_job_state_reason_string((enum job_state_reason)state_reason);
    else if (slurm_job_reason_string)
        word = slurm_job_reason_string((enum job_state_reason)state_reason);
    return word ? word : "";
}

/* Of a limit there are some two hundred kinds, and their words have it in common to say so. */
static bool is_limit(const char *reason)
{
    return str_startswith(reason, "QOS") || str_startswith(reason, "Assoc") ||
           str_startswith(reason, "Max") || str_endswith(reason, "Limit");
}

const char *words_reason_kind(uint32_t state_reason)
{
    switch (state_reason) {
    case WAIT_NO_REASON:
        return "none";
    case WAIT_TIME:
        return "time";
    case WAIT_DEPENDENCY:
        return "dependency";
    case WAIT_DEP_INVALID:
        return "dependency-never";
    case WAIT_HELD:
    case WAIT_MAX_REQUEUE:
        return "held";
    case WAIT_HELD_USER:
        return "held-by-user";
    case FAIL_BAD_CONSTRAINTS:
        return "constraints";
    case WAIT_PRIORITY:
    case WAIT_RESOURCES:
    case WAIT_RESERVATION:
    case WAIT_NODE_NOT_AVAIL:
    case WAIT_PART_DOWN:
    case WAIT_PART_INACTIVE:
    case WAIT_LICENSES:
        return "resources";
    case WAIT_CLEANING:
        return "cleaning";
    case FAIL_LAUNCH:
        return "launch";
    case FAIL_EXIT_CODE:
        return "exit";
    case FAIL_DOWN_NODE:
        return "node";
    case FAIL_TIMEOUT:
        return "time-limit";
    case FAIL_OOM:
        return "memory";
    default:
        return is_limit(words_reason(state_reason)) ? "limits" : "other";
    }
}

const char *words_node_state(uint32_t node_state)
{
    switch (node_state & NODE_STATE_BASE) {
    case NODE_STATE_IDLE:
        return "idle";
    case NODE_STATE_ALLOCATED:
        return "allocated";
    case NODE_STATE_MIXED:
        return "mixed";
    case NODE_STATE_DOWN:
    case NODE_STATE_ERROR:
        return "down";
    default:
        return "unknown";
    }
}

json_t *words_node_flags(uint32_t node_state)
{
    static const struct {
        uint32_t bits;
        const char *word;
    } flags[] = {
        {NODE_STATE_DRAIN, "drain"},
        {NODE_STATE_FAIL, "fail"},
        {NODE_STATE_MAINT, "maint"},
        {NODE_STATE_RES, "reserved"},
        {NODE_STATE_COMPLETING, "completing"},
        {NODE_STATE_NO_RESPOND, "not-responding"},
        {NODE_STATE_POWERED_DOWN, "powered-down"},
        {NODE_STATE_POWERING_UP | NODE_STATE_POWER_UP, "powering-up"},
        {NODE_STATE_POWERING_DOWN | NODE_STATE_POWER_DOWN | NODE_STATE_POWER_DRAIN,
         "powering-down"},
        {NODE_STATE_REBOOT_REQUESTED | NODE_STATE_REBOOT_ISSUED, "rebooting"},
        {NODE_STATE_PLANNED, "planned"},
        {NODE_STATE_INVALID_REG, "invalid"},
    };
    json_t *words = json_array();

    for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
        if (node_state & flags[i].bits)
            json_array_append_new(words, json_string(flags[i].word));
    return words;
}

/* One that does not respond, or of which a slurmctld that was started anew knows nothing yet, may
 * do so in a moment; when it is given up, it is called down. */
bool words_node_is_usable(uint32_t node_state)
{
    uint32_t base = node_state & NODE_STATE_BASE;

    if (base != NODE_STATE_IDLE && base != NODE_STATE_ALLOCATED && base != NODE_STATE_MIXED &&
        base != NODE_STATE_UNKNOWN)
        return false;
    return !(node_state &
             (NODE_STATE_DRAIN | NODE_STATE_FAIL | NODE_STATE_MAINT | NODE_STATE_POWER_DRAIN |
              NODE_STATE_REBOOT_ISSUED | NODE_STATE_INVALID_REG));
}

static const struct {
    int number;
    enum fault fault;
} faults[] = {
    {ESLURM_INVALID_JOB_ID, FAULT_NO_SUCH_JOB},
    {ESLURM_NO_STEPS, FAULT_NO_SUCH_JOB},
    {ESLURM_ALREADY_DONE, FAULT_ALREADY_DONE},
    {ESLURM_JOB_PENDING, FAULT_ALREADY_DONE},
    {ESLURM_TRANSITION_STATE_NO_UPDATE, FAULT_CHANGED},
    {ESLURM_JOB_NOT_PENDING, FAULT_CHANGED},
    {ESLURM_JOB_NOT_RUNNING, FAULT_CHANGED},
    {ESLURM_JOB_NOT_PENDING_NOR_RUNNING, FAULT_CHANGED},
    {ESLURM_JOB_STARTED, FAULT_CHANGED},
    {ESLURM_ACCESS_DENIED, FAULT_NOT_ALLOWED},
    {ESLURM_USER_ID_MISSING, FAULT_NOT_ALLOWED},
    {ESLURM_DISABLED, FAULT_NOT_ALLOWED},
    {ESLURM_NOT_SUPPORTED, FAULT_NOT_ALLOWED},
    {ESLURM_BATCH_ONLY, FAULT_NOT_ALLOWED},
    {ESLURM_JOB_FINISHED, FAULT_NOT_ALLOWED},
    {ESLURM_NOT_HET_JOB_LEADER, FAULT_NOT_ALLOWED},
    {ESLURM_NOT_WHOLE_HET_JOB, FAULT_NOT_ALLOWED},
    {ESLURM_CANNOT_MODIFY_CRON_JOB, FAULT_NOT_ALLOWED},
    {ESLURM_RESERVATION_ACCESS, FAULT_NOT_ALLOWED},
    {ESLURM_INVALID_NODE_NAME, FAULT_INVALID_REQUEST},
    {ESLURM_PATHNAME_TOO_LONG, FAULT_INVALID_REQUEST}, /* any text */
    {ESLURM_INVALID_NODE_STATE, FAULT_INVALID_REQUEST},
    {ESLURM_INVALID_PARTITION_NAME, FAULT_INVALID_REQUEST},
    {ESLURM_DEPENDENCY, FAULT_INVALID_REQUEST},
    {ESLURM_CIRCULAR_DEPENDENCY, FAULT_INVALID_REQUEST},
    {ESLURM_RESERVATION_INVALID, FAULT_INVALID_REQUEST},
    {ESLURM_INVALID_TIME_LIMIT, FAULT_INVALID_REQUEST},
    {ESLURM_INVALID_TIME_VALUE, FAULT_INVALID_REQUEST},
    {SLURM_PROTOCOL_VERSION_ERROR, FAULT_UNREACHABLE},
    {SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR, FAULT_UNREACHABLE},
    {SLURM_COMMUNICATIONS_CONNECTION_ERROR, FAULT_UNREACHABLE},
    {ESLURM_IN_STANDBY_MODE, FAULT_UNREACHABLE},
    {ESLURM_IN_STANDBY_USE_BACKUP, FAULT_UNREACHABLE},
    {ECONNREFUSED, FAULT_UNREACHABLE},
    {EHOSTUNREACH, FAULT_UNREACHABLE},
    {ENETUNREACH, FAULT_UNREACHABLE},
};

/* Numbers that say the conversation broke off, after it may have begun. */
static bool is_broken_off(int number)
{
    return (number >= SLURM_UNEXPECTED_MSG_ERROR &&
            number <= SLURM_COMMUNICATIONS_MISSING_SOCKET_ERROR) ||
           (number >= SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR &&
            number <= SLURMCTLD_COMMUNICATIONS_SHUTDOWN_ERROR) ||
           (number >= SLURM_PROTOCOL_SOCKET_IMPL_ZERO_RECV_LENGTH &&
            number <= SLURM_PROTOCOL_SOCKET_ZERO_BYTES_SENT) ||
           (number >= ESLURM_AUTH_CRED_INVALID && number <= ESLURM_AUTH_SKIP) ||
           (number > 0 && number < SLURM_UNEXPECTED_MSG_ERROR); /* the system's own */
}

enum fault words_fault(int slurm_errno, bool acting)
{
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        if (faults[i].number != slurm_errno)
            continue;
        /* A step is looked for of a job that waits. */
        if (!acting && faults[i].fault == FAULT_ALREADY_DONE)
            return FAULT_NO_SUCH_JOB;
        return faults[i].fault;
    }
    if (slurm_errno <= 0) /* it failed and does not say how */
        return acting ? FAULT_UNKNOWN : FAULT_FAILED;
    if (is_broken_off(slurm_errno))
        return acting ? FAULT_UNKNOWN : FAULT_UNREACHABLE;
    return FAULT_FAILED;
}
