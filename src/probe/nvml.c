/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/nvml.h"

#include "base/str.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define CALL(member, ...)                                                                          \
    {                                                                                              \
        offsetof(struct nvml, member),                                                             \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

/* The newest name first; versions that are laid out differently from what nvml.h says are left out.
 */
static const struct {
    size_t member;
    const char *names[3];
} calls[] = {
    CALL(init, "nvmlInit_v2", "nvmlInit"),
    CALL(shutdown, "nvmlShutdown"),
    CALL(error_string, "nvmlErrorString"),
    CALL(count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"),
    CALL(handle, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"),
    CALL(pci, "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"),
    CALL(uuid, "nvmlDeviceGetUUID"),
    CALL(name, "nvmlDeviceGetName"),
    CALL(ecc, "nvmlDeviceGetTotalEccErrors"),
    CALL(pages_pending, "nvmlDeviceGetRetiredPagesPendingStatus"),
    CALL(rows, "nvmlDeviceGetRemappedRows"),
    CALL(clock, "nvmlDeviceGetClockInfo"),
    CALL(clock_max, "nvmlDeviceGetMaxClockInfo"),
    CALL(clock_reasons, "nvmlDeviceGetCurrentClocksEventReasons",
         "nvmlDeviceGetCurrentClocksThrottleReasons"),
    CALL(power, "nvmlDeviceGetPowerUsage"),
    CALL(power_limit, "nvmlDeviceGetEnforcedPowerLimit"),
    CALL(temperature, "nvmlDeviceGetTemperature"),
    CALL(temperature_limit, "nvmlDeviceGetTemperatureThreshold"),
    CALL(pcie_gen, "nvmlDeviceGetCurrPcieLinkGeneration"),
    CALL(pcie_gen_max, "nvmlDeviceGetMaxPcieLinkGeneration"),
    CALL(pcie_width, "nvmlDeviceGetCurrPcieLinkWidth"),
    CALL(pcie_width_max, "nvmlDeviceGetMaxPcieLinkWidth"),
    CALL(pcie_replays, "nvmlDeviceGetPcieReplayCounter"),
    CALL(utilization, "nvmlDeviceGetUtilizationRates"),
    CALL(memory, "nvmlDeviceGetMemoryInfo"),
    CALL(processes, "nvmlDeviceGetComputeRunningProcesses_v3",
         "nvmlDeviceGetComputeRunningProcesses_v2"),
    CALL(link_state, "nvmlDeviceGetNvLinkState"),
    CALL(link_errors, "nvmlDeviceGetNvLinkErrorCounter"),
    CALL(fields, "nvmlDeviceGetFieldValues"),
};

static void *find(void *library, const char *const names[3])
{
    void *found = NULL;

    for (int i = 0; i < 3 && names[i] && !found; i++)
        found = dlsym(library, names[i]);
    return found;
}

int nvml_load(const char *library, struct nvml *ret, char *why, size_t size)
{
    struct nvml n = {.library = dlopen(library, RTLD_NOW | RTLD_LOCAL)};
    const char *said = n.library ? NULL : dlerror();

    if (!n.library) {
        str_printf(why, size, "%s", said ? said : library);
        return -ENOENT;
    }
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        void *found = find(n.library, calls[i].names);

        memcpy((char *)&n + calls[i].member, &found, sizeof(found));
    }
    if (!n.init || !n.count || !n.handle) {
        str_printf(why, size, "%s: is not NVIDIA's management library", library);
        return -EINVAL;
    }
    *ret = n;
    return 0;
}
