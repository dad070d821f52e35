/* SPDX-License-Identifier: Apache-2.0 */

/* What NVIDIA's driver says of the GPUs. Every call may hang: a GPU that does not answer blocks the
 * whole driver, the library inside of it. So each GPU is told as soon as it has been asked.
 *
 * What a call refuses, or the library does not have, stays unknown. Three answers are observations
 * themselves: that a GPU is lost, that it must be reset, and that the driver does not know what is
 * wrong with it. */

#include "probe/areas.h"
#include "probe/nvml.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define GPUS_MAX      64
#define PROCESSES_MAX 1024 /* of one GPU */
#define MIB           (1024ULL * 1024)

/* The inode of the first namespace of pids (PROC_PID_INIT_INO): in another one the driver's numbers
 * of processes mean nothing. */
#define FIRST_PID_NAMESPACE "pid:[4026531836]"

struct gpu {
    const struct probe *probe;
    const struct nvml *nvml;
    nvml_device_t device;
    struct observation o;
    int64_t worst;
};

/* From the least to the worst. */
static int badness(int64_t said)
{
    return said == NVML_ERROR_GPU_IS_LOST      ? 3
           : said == NVML_ERROR_RESET_REQUIRED ? 2
           : said == NVML_ERROR_UNKNOWN        ? 1
                                               : 0;
}

static bool is_answer(struct gpu *g, int said)
{
    if (badness(said) > badness(g->worst))
        g->worst = said;
    return said == NVML_SUCCESS;
}

#define ASK(g, call, ...)                                                                          \
    ((g)->nvml->call && is_answer((g), (g)->nvml->call((g)->device, ##__VA_ARGS__)))

static void ask_number(struct gpu *g, int (*call)(nvml_device_t, unsigned *), enum item i)
{
    unsigned n;

    if (call && is_answer(g, call(g->device, &n)))
        observation_set(&g->o, i, n);
}

static void ask_names(struct gpu *g)
{
    char name[96] = "", uuid[96] = "";
    char label[LABEL_LEN];

    if (!ASK(g, name, name, sizeof(name)))
        name[0] = '\0';
    if (!ASK(g, uuid, uuid, sizeof(uuid)))
        uuid[0] = '\0';
    STR_PRINTF(label, "%.64s%s%.64s", name, name[0] && uuid[0] ? " " : "", uuid);
    str_sanitize(g->o.label, sizeof(g->o.label), label, strlen(label));
}

static void ask_memory_errors(struct gpu *g)
{
    unsigned corrected, uncorrected, pending, failed;
    unsigned long long n;
    int yes;

    if (ASK(g, ecc, NVML_ECC_CORRECTED, NVML_ECC_VOLATILE, &n))
        observation_set(&g->o, ITEM_ECC_CORRECTED, (int64_t)n);
    if (ASK(g, ecc, NVML_ECC_UNCORRECTED, NVML_ECC_VOLATILE, &n))
        observation_set(&g->o, ITEM_ECC_UNCORRECTED, (int64_t)n);
    if (ASK(g, pages_pending, &yes))
        observation_set(&g->o, ITEM_PAGES_PENDING, yes);
    if (!ASK(g, rows, &corrected, &uncorrected, &pending, &failed))
        return;
    observation_set(&g->o, ITEM_ROWS_CORRECTED, corrected);
    observation_set(&g->o, ITEM_ROWS_UNCORRECTED, uncorrected);
    observation_set(&g->o, ITEM_ROWS_PENDING, pending);
    observation_set(&g->o, ITEM_ROWS_FAILED, failed);
}

static void ask_pace(struct gpu *g)
{
    struct nvml_utilization busy;
    unsigned long long reasons;
    unsigned n;

    if (ASK(g, clock, NVML_CLOCK_SM, &n))
        observation_set(&g->o, ITEM_SM_MHZ, n);
    if (ASK(g, clock_max, NVML_CLOCK_SM, &n))
        observation_set(&g->o, ITEM_SM_MHZ_MAX, n);
    if (ASK(g, clock_reasons, &reasons))
        observation_set(&g->o, ITEM_CLOCK_REASONS, (int64_t)reasons);
    if (ASK(g, temperature, NVML_SENSOR_GPU, &n))
        observation_set(&g->o, ITEM_TEMPERATURE_C, n);
    if (ASK(g, temperature_limit, NVML_LIMIT_SLOWDOWN, &n))
        observation_set(&g->o, ITEM_SLOWDOWN_C, n);
    if (ASK(g, temperature_limit, NVML_LIMIT_SHUTDOWN, &n))
        observation_set(&g->o, ITEM_SHUTDOWN_C, n);
    if (ASK(g, utilization, &busy))
        observation_set(&g->o, ITEM_BUSY_PERCENT, busy.gpu);
    ask_number(g, g->nvml->power, ITEM_POWER_MW);
    ask_number(g, g->nvml->power_limit, ITEM_POWER_LIMIT_MW);
}

static void ask_bus(struct gpu *g)
{
    ask_number(g, g->nvml->pcie_gen, ITEM_PCIE_GEN);
    ask_number(g, g->nvml->pcie_gen_max, ITEM_PCIE_GEN_MAX);
    ask_number(g, g->nvml->pcie_width, ITEM_PCIE_WIDTH);
    ask_number(g, g->nvml->pcie_width_max, ITEM_PCIE_WIDTH_MAX);
    ask_number(g, g->nvml->pcie_replays, ITEM_PCIE_REPLAYS);
}

/* A GPU without NVLink refuses to speak of any: then nothing is known. */
static void ask_links(struct gpu *g)
{
    int64_t up = 0, down = 0, errors = 0;
    bool counted = false;

    for (unsigned i = 0; i < NVML_LINKS_MAX; i++) {
        unsigned long long n;
        int state;

        if (!ASK(g, link_state, i, &state))
            continue;
        up += state != 0;
        down += state == 0;
        for (int counter = 0; state && counter < NVML_LINK_COUNTERS; counter++)
            if (ASK(g, link_errors, i, counter, &n)) {
                errors += (int64_t)n;
                counted = true;
            }
    }
    if (up + down == 0)
        return;
    observation_set(&g->o, ITEM_NVLINKS_UP, up);
    observation_set(&g->o, ITEM_NVLINKS_DOWN, down);
    if (counted)
        observation_set(&g->o, ITEM_NVLINK_ERRORS, errors);
}

static void ask_recovery(struct gpu *g)
{
    struct nvml_field f = {.field = NVML_FIELD_RECOVERY_ACTION};

    if (ASK(g, fields, 1, &f) && f.result == NVML_SUCCESS)
        observation_set(&g->o, ITEM_RECOVERY_ACTION, f.value.number);
}

static bool may_name_processes(const struct probe *p)
{
    char name[64] = "";

    if (p->root[0])
        return true;
    return readlink("/proc/self/ns/pid", name, sizeof(name) - 1) > 0 &&
           streq(name, FIRST_PID_NAMESPACE);
}

static bool has_process(const struct probe *p, unsigned pid)
{
    char path[PATH_MAX];
    struct stat st;

    STR_PRINTF(path, "%s/proc/%u", p->root, pid);
    return stat(path, &st) == 0 || errno != ENOENT;
}

static void ask_processes(struct gpu *g)
{
    static struct nvml_process found[PROCESSES_MAX];
    struct nvml_memory memory;
    unsigned long long left = 0;
    unsigned n = PROCESSES_MAX;

    if (ASK(g, memory, &memory))
        observation_set(&g->o, ITEM_MEMORY_MIB, (int64_t)(memory.used / MIB));
    if (!ASK(g, processes, &n, found) || n > PROCESSES_MAX)
        return;
    observation_set(&g->o, ITEM_COMPUTE_PROCESSES, n);
    for (unsigned i = 0; i < n; i++)
        if (found[i].memory != NVML_MEMORY_UNKNOWN && !has_process(g->probe, found[i].pid))
            left += found[i].memory;
    if (may_name_processes(g->probe))
        observation_set(&g->o, ITEM_LEFTOVER_MIB, (int64_t)(left / MIB));
}

/* Its place on the bus is how the kernel names it too; one whose place is not told has no name that
 * lasts. */
static bool ask_place(struct gpu *g)
{
    struct nvml_pci pci = {0};
    char name[64];

    if (!ASK(g, pci, &pci))
        return false;
    STR_PRINTF(name, "%04x:%02x:%02x", pci.domain, pci.bus, pci.device);
    g->o = observation_make(AREA_GPU, name);
    return true;
}

static void look_at(const struct probe *p, const struct nvml *nvml, unsigned i, struct report *r)
{
    struct gpu g = {.probe = p, .nvml = nvml};
    char name[32];

    STR_PRINTF(name, "index %u", i);
    g.o = observation_make(AREA_GPU, name);
    if (is_answer(&g, nvml->handle(i, &g.device)) && ask_place(&g)) {
        ask_names(&g);
        ask_recovery(&g);
        ask_memory_errors(&g);
        ask_pace(&g);
        ask_bus(&g);
        ask_links(&g);
        ask_processes(&g);
    }
    observation_set(&g.o, ITEM_NVML_RETURN, g.worst);
    r->tell(r, &g.o);
}

static enum ended refuse(const struct nvml *nvml, int said, const char *what, struct report *r)
{
    const char *text = nvml->error_string ? nvml->error_string(said) : NULL;

    STR_PRINTF(r->why, "%s: %s (%d)", what, text ? text : "error", said);
    return said == NVML_ERROR_NO_DRIVER ? ENDED_ABSENT : ENDED_FAILED;
}

enum ended area_gpu(const struct probe *p, const char *subject, struct report *r)
{
    struct nvml nvml;
    unsigned n;
    int said = nvml_load(p->nvml, &nvml, r->why, sizeof(r->why));

    if (said < 0)
        return said == -ENOENT ? ENDED_ABSENT : ENDED_FAILED;
    said = nvml.init();
    if (said != NVML_SUCCESS)
        return refuse(&nvml, said, "NVML does not start", r);
    said = nvml.count(&n);
    if (said != NVML_SUCCESS)
        return refuse(&nvml, said, "NVML does not count its GPUs", r);
    for (unsigned i = 0; i < n && i < GPUS_MAX; i++)
        look_at(p, &nvml, i, r);
    return n > 0 ? ENDED_DONE : ENDED_ABSENT;
}
