/* SPDX-License-Identifier: Apache-2.0 */

/* NVIDIA's management library as a test wants it. The file that FAKE_NVML names says what it
 * answers, a line each: "gpus 2", "1.ecc.1 3" (GPU 1, uncorrected errors), "0.memory_used 4096". A
 * value "!15" is refused with that number, "sleep" never comes, "print" comes with noise on
 * standard output, "die" ends the process. What the file does not say is that of a healthy GPU.
 *
 * Compiled with OLD, it is a release that has few functions, under their first names. */

#include "probe/nvml.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int nvmlInit(void);
int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int r);
int nvmlDeviceGetCount(unsigned *n);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex(unsigned i, nvml_device_t *d);
int nvmlDeviceGetHandleByIndex_v2(unsigned i, nvml_device_t *d);
int nvmlDeviceGetPciInfo(nvml_device_t d, struct nvml_pci *pci);
int nvmlDeviceGetPciInfo_v3(nvml_device_t d, struct nvml_pci *pci);
int nvmlDeviceGetName(nvml_device_t d, char *s, unsigned size);
int nvmlDeviceGetUUID(nvml_device_t d, char *s, unsigned size);
int nvmlDeviceGetTotalEccErrors(nvml_device_t d, int type, int since, unsigned long long *n);
int nvmlDeviceGetRetiredPagesPendingStatus(nvml_device_t d, int *yes);
int nvmlDeviceGetRemappedRows(nvml_device_t d, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failed);
int nvmlDeviceGetClockInfo(nvml_device_t d, int type, unsigned *n);
int nvmlDeviceGetMaxClockInfo(nvml_device_t d, int type, unsigned *n);
int nvmlDeviceGetCurrentClocksEventReasons(nvml_device_t d, unsigned long long *n);
int nvmlDeviceGetPowerUsage(nvml_device_t d, unsigned *n);
int nvmlDeviceGetEnforcedPowerLimit(nvml_device_t d, unsigned *n);
int nvmlDeviceGetTemperature(nvml_device_t d, int sensor, unsigned *n);
int nvmlDeviceGetTemperatureThreshold(nvml_device_t d, int which, unsigned *n);
int nvmlDeviceGetCurrPcieLinkGeneration(nvml_device_t d, unsigned *n);
int nvmlDeviceGetMaxPcieLinkGeneration(nvml_device_t d, unsigned *n);
int nvmlDeviceGetCurrPcieLinkWidth(nvml_device_t d, unsigned *n);
int nvmlDeviceGetMaxPcieLinkWidth(nvml_device_t d, unsigned *n);
int nvmlDeviceGetPcieReplayCounter(nvml_device_t d, unsigned *n);
int nvmlDeviceGetUtilizationRates(nvml_device_t d, struct nvml_utilization *u);
int nvmlDeviceGetMemoryInfo(nvml_device_t d, struct nvml_memory *m);
int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device_t d, unsigned *n, struct nvml_process *p);
int nvmlDeviceGetNvLinkState(nvml_device_t d, unsigned link, int *up);
int nvmlDeviceGetNvLinkErrorCounter(nvml_device_t d, unsigned link, int counter,
                                    unsigned long long *n);
int nvmlDeviceGetFieldValues(nvml_device_t d, int n, struct nvml_field *f);

static const char *find(const char *key)
{
    static char line[256];
    const char *path = getenv("FAKE_NVML"), *value = NULL;
    FILE *f = path ? fopen(path, "re") : NULL;
    size_t len = strlen(key);

    while (f && !value && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, key, len) == 0 && line[len] == ' ')
            value = line + len + 1;
    }
    if (f)
        fclose(f);
    return value;
}

/* Of all processes that read the file. */
static bool is_first(void)
{
    char path[300];
    int fd;

    snprintf(path, sizeof(path), "%s.asked", getenv("FAKE_NVML"));
    fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

__attribute__((format(printf, 3, 4))) static int
ask(unsigned long long normal, unsigned long long *ret, const char *format, ...)
{
    char key[64];
    const char *value;
    va_list ap;

    va_start(ap, format);
    vsnprintf(key, sizeof(key), format, ap);
    va_end(ap);
    value = find(key);
    while (value && strcmp(value, "sleep") == 0)
        pause();
    if (value && strcmp(value, "die") == 0)
        abort();
    if (value && strcmp(value, "print") == 0)
        printf("this is the driver's noise\n{\"area\":\"gpu\"}\n");
    if (value && strcmp(value, "once") == 0)
        value = is_first() ? "1" : "0";
    if (value && value[0] == '!')
        return (int)strtol(value + 1, NULL, 10);
    *ret = value && value[0] >= '0' && value[0] <= '9' ? strtoull(value, NULL, 10) : normal;
    return NVML_SUCCESS;
}

/* What a GPU is: one more than its index. */
static unsigned index_of(nvml_device_t d)
{
    return (unsigned)((uintptr_t)d - 1);
}

static int ask_unsigned(nvml_device_t d, const char *key, unsigned normal, unsigned *ret)
{
    unsigned long long n;
    int r = ask(normal, &n, "%u.%s", index_of(d), key);

    if (r == NVML_SUCCESS)
        *ret = (unsigned)n;
    return r;
}

static int init(void)
{
    unsigned long long n;

    return ask(0, &n, "init");
}

static int count(unsigned *ret)
{
    unsigned long long n;
    int r = ask(2, &n, "gpus");

    *ret = (unsigned)n;
    return r;
}

static int handle(unsigned i, nvml_device_t *ret)
{
    unsigned long long n;
    int r = ask(0, &n, "%u.handle", i);

    *ret = (nvml_device_t)(uintptr_t)(i + 1);
    return r;
}

static int pci(nvml_device_t d, struct nvml_pci *ret)
{
    ret->domain = 0;
    ret->device = 0;
    return ask_unsigned(d, "bus", 0x4d + index_of(d), &ret->bus);
}

const char *nvmlErrorString(int r)
{
    return r == NVML_ERROR_NO_DRIVER ? "Driver Not Loaded" : "Some Error";
}

#ifdef OLD
int nvmlInit(void)
{
    return init();
}

int nvmlDeviceGetCount(unsigned *n)
{
    return count(n);
}

int nvmlDeviceGetHandleByIndex(unsigned i, nvml_device_t *d)
{
    return handle(i, d);
}

int nvmlDeviceGetPciInfo(nvml_device_t d, struct nvml_pci *p)
{
    return pci(d, p);
}
#else
int nvmlInit_v2(void)
{
    return init();
}

int nvmlShutdown(void)
{
    return NVML_SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
    return count(n);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, nvml_device_t *d)
{
    return handle(i, d);
}

int nvmlDeviceGetPciInfo_v3(nvml_device_t d, struct nvml_pci *p)
{
    return pci(d, p);
}

int nvmlDeviceGetName(nvml_device_t d, char *s, unsigned size)
{
    snprintf(s, size, "NVIDIA Test");
    return NVML_SUCCESS;
}

int nvmlDeviceGetUUID(nvml_device_t d, char *s, unsigned size)
{
    snprintf(s, size, "GPU-%08x", index_of(d));
    return NVML_SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(nvml_device_t d, int type, int since, unsigned long long *n)
{
    return since == NVML_ECC_VOLATILE ? ask(0, n, "%u.ecc.%d", index_of(d), type)
                                      : NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetRetiredPagesPendingStatus(nvml_device_t d, int *yes)
{
    unsigned n = 0;
    int r = ask_unsigned(d, "pages_pending", 0, &n);

    *yes = (int)n;
    return r;
}

int nvmlDeviceGetRemappedRows(nvml_device_t d, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failed)
{
    ask_unsigned(d, "rows_corrected", 0, corrected);
    ask_unsigned(d, "rows_uncorrected", 0, uncorrected);
    ask_unsigned(d, "rows_failed", 0, failed);
    return ask_unsigned(d, "rows_pending", 0, pending);
}

int nvmlDeviceGetClockInfo(nvml_device_t d, int type, unsigned *n)
{
    return ask_unsigned(d, "clock", 1980, n);
}

int nvmlDeviceGetMaxClockInfo(nvml_device_t d, int type, unsigned *n)
{
    return ask_unsigned(d, "clock_max", 1980, n);
}

int nvmlDeviceGetCurrentClocksEventReasons(nvml_device_t d, unsigned long long *n)
{
    return ask(0, n, "%u.clock_reasons", index_of(d));
}

int nvmlDeviceGetPowerUsage(nvml_device_t d, unsigned *n)
{
    return ask_unsigned(d, "power", 650000, n);
}

int nvmlDeviceGetEnforcedPowerLimit(nvml_device_t d, unsigned *n)
{
    return ask_unsigned(d, "power_limit", 700000, n);
}

int nvmlDeviceGetTemperature(nvml_device_t d, int sensor, unsigned *n)
{
    return ask_unsigned(d, "temperature", 61, n);
}

int nvmlDeviceGetTemperatureThreshold(nvml_device_t d, int which, unsigned *n)
{
    return ask_unsigned(d, "temperature_limit", which == NVML_LIMIT_SLOWDOWN ? 87 : 92, n);
}

int nvmlDeviceGetCurrPcieLinkGeneration(nvml_device_t d, unsigned *n)
{
    return ask_unsigned(d, "pcie_gen", 5, n);
}

int nvmlDeviceGetMaxPcieLinkGeneration(nvml_device_t d, unsigned *n)
{
    return ask_unsigned(d, "pcie_gen_max", 5, n);
}

int nvmlDeviceGetCurrPcieLinkWidth(nvml_device_t d, unsigned *n)
{
    return ask_unsigned(d, "pcie_width", 16, n);
}

int nvmlDeviceGetMaxPcieLinkWidth(nvml_device_t d, unsigned *n)
{
    return ask_unsigned(d, "pcie_width_max", 16, n);
}

int nvmlDeviceGetPcieReplayCounter(nvml_device_t d, unsigned *n)
{
    return ask_unsigned(d, "pcie_replays", 0, n);
}

int nvmlDeviceGetUtilizationRates(nvml_device_t d, struct nvml_utilization *u)
{
    u->memory = 0;
    return ask_unsigned(d, "busy", 98, &u->gpu);
}

int nvmlDeviceGetMemoryInfo(nvml_device_t d, struct nvml_memory *m)
{
    unsigned mib = 0;
    int r = ask_unsigned(d, "memory_used", 1024, &mib);

    *m = (struct nvml_memory){.total = 144384ULL << 20, .used = (unsigned long long)mib << 20};
    return r;
}

/* One process, of that number, with that much memory. */
int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device_t d, unsigned *n, struct nvml_process *p)
{
    unsigned pid = 0, mib = 0;
    int r = ask_unsigned(d, "process", 0, &pid);

    ask_unsigned(d, "process_memory", 512, &mib);
    *n = pid > 0;
    if (pid > 0)
        *p = (struct nvml_process){.pid = pid, .memory = (unsigned long long)mib << 20};
    return r;
}

int nvmlDeviceGetNvLinkState(nvml_device_t d, unsigned link, int *up)
{
    unsigned links = 0;
    int r = ask_unsigned(d, "links", NVML_LINKS_MAX, &links);

    *up = link < links;
    return r;
}

int nvmlDeviceGetNvLinkErrorCounter(nvml_device_t d, unsigned link, int counter,
                                    unsigned long long *n)
{
    return ask(0, n, "%u.link_errors", index_of(d));
}

int nvmlDeviceGetFieldValues(nvml_device_t d, int n, struct nvml_field *f)
{
    f->result = f->field == NVML_FIELD_RECOVERY_ACTION
                    ? ask_unsigned(d, "recovery", 0, &f->value.number)
                    : NVML_ERROR_NOT_SUPPORTED;
    return NVML_SUCCESS;
}
#endif
