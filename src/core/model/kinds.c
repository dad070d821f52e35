/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/kinds.h"

static const char *const incident_class_names[CLASS_MAX] = {
    [CLASS_HEALTHY] = "healthy",
    [CLASS_CRASH] = "crash",
    [CLASS_HANG] = "hang",
    [CLASS_STRAGGLER] = "straggler",
    [CLASS_INTERRUPTED] = "interrupted",
};
DEFINE_NAMES(incident_class, enum incident_class, incident_class_names);

static const char *const cause_names[CAUSE_MAX] = {
    [CAUSE_NONE] = "none",
    [CAUSE_UNKNOWN] = "unknown",
    [CAUSE_GPU_HARDWARE] = "gpu-hardware",
    [CAUSE_NETWORK] = "network",
    [CAUSE_NODE_HARDWARE] = "node-hardware",
    [CAUSE_NODE_FAILURE] = "node-failure",
    [CAUSE_STORAGE] = "storage",
    [CAUSE_GPU_OOM] = "gpu-oom",
    [CAUSE_HOST_OOM] = "host-oom",
    [CAUSE_FRAMEWORK] = "framework",
    [CAUSE_USER_CODE] = "user-code",
    [CAUSE_USER_CONFIG] = "user-config",
    [CAUSE_NUMERICAL] = "numerical",
    [CAUSE_EXTERNAL_SERVICE] = "external-service",
    [CAUSE_TIME_LIMIT] = "time-limit",
    [CAUSE_PREEMPTION] = "preemption",
    [CAUSE_CANCELLED] = "cancelled",
};
DEFINE_NAMES(cause, enum cause, cause_names);

static const char *const domain_names[DOMAIN_MAX] = {
    [DOMAIN_NONE] = "none",
    [DOMAIN_UNKNOWN] = "unknown",
    [DOMAIN_INFRASTRUCTURE] = "infrastructure",
    [DOMAIN_WORKLOAD] = "workload",
    [DOMAIN_EXTERNAL] = "external",
    [DOMAIN_SCHEDULER] = "scheduler",
};
DEFINE_NAMES(domain, enum domain, domain_names);

enum domain cause_domain(enum cause c)
{
    switch (c) {
    case CAUSE_NONE:
        return DOMAIN_NONE;
    case CAUSE_GPU_HARDWARE:
    case CAUSE_NETWORK:
    case CAUSE_NODE_HARDWARE:
    case CAUSE_NODE_FAILURE:
    case CAUSE_STORAGE:
        return DOMAIN_INFRASTRUCTURE;
    case CAUSE_GPU_OOM:
    case CAUSE_HOST_OOM:
    case CAUSE_FRAMEWORK:
    case CAUSE_USER_CODE:
    case CAUSE_USER_CONFIG:
    case CAUSE_NUMERICAL:
        return DOMAIN_WORKLOAD;
    case CAUSE_EXTERNAL_SERVICE:
        return DOMAIN_EXTERNAL;
    case CAUSE_TIME_LIMIT:
    case CAUSE_PREEMPTION:
    case CAUSE_CANCELLED:
        return DOMAIN_SCHEDULER;
    case CAUSE_UNKNOWN:
    case CAUSE_MAX:
    case CAUSE_INVALID:
        break;
    }
    return DOMAIN_UNKNOWN;
}

static const char *const advice_names[ADVICE_MAX] = {
    [ADVICE_NONE] = "none",
    [ADVICE_RESTART] = "restart",
    [ADVICE_RESTART_EXCLUDING] = "restart-excluding",
    [ADVICE_STOP] = "stop",
};
DEFINE_NAMES(advice, enum advice, advice_names);

static const char *const role_names[ROLE_MAX] = {
    [ROLE_ROOT] = "root",         [ROLE_SYMPTOM] = "symptom",       [ROLE_CASCADE] = "cascade",
    [ROLE_CONFIRM] = "confirm",   [ROLE_TEARDOWN] = "teardown",     [ROLE_NOISE] = "noise",
    [ROLE_PROGRESS] = "progress", [ROLE_CHECKPOINT] = "checkpoint", [ROLE_PHASE] = "phase",
    [ROLE_LAUNCH] = "launch",     [ROLE_FINISH] = "finish",
};
DEFINE_NAMES(role, enum role, role_names);

static const char *const layer_names[LAYER_MAX] = {
    [LAYER_JOB] = "job",
    [LAYER_KERNEL] = "kernel",
    [LAYER_SCHEDULER] = "scheduler",
};
DEFINE_NAMES(layer, enum layer, layer_names);

static const char *const blame_names[BLAME_MAX] = {
    [BLAME_NONE] = "none", [BLAME_JOB] = "job",       [BLAME_RANK] = "rank",
    [BLAME_NODE] = "node", [BLAME_DEVICE] = "device", [BLAME_PEER] = "peer",
};
DEFINE_NAMES(blame, enum blame, blame_names);

static const char *const provenance_names[PROVENANCE_MAX] = {
    [PROVENANCE_JOB_TEXT] = "job-text",   [PROVENANCE_MONITOR] = "monitor",
    [PROVENANCE_AGENT] = "agent",         [PROVENANCE_SPANK] = "spank",
    [PROVENANCE_SCHEDULER] = "scheduler", [PROVENANCE_NVML] = "nvml",
    [PROVENANCE_KERNEL] = "kernel",
};
DEFINE_NAMES(provenance, enum provenance, provenance_names);

static const char *const mode_names[MODE_MAX] = {
    [MODE_OFF] = "off",
    [MODE_OBSERVE] = "observe",
    [MODE_PROPOSE] = "propose",
    [MODE_ACT] = "act",
};
DEFINE_NAMES(mode, enum mode, mode_names);

static const char *const keep_place_names[KEEP_PLACE_MAX] = {
    [KEEP_PLACE_NONE] = "none",
    [KEEP_PLACE_PRIORITY] = "priority",
    [KEEP_PLACE_RESERVATION] = "reservation",
};
DEFINE_NAMES(keep_place, enum keep_place, keep_place_names);
