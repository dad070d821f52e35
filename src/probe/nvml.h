/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_PROBE_NVML_H
#define REKNIT_PROBE_NVML_H

/* What of NVIDIA's management library is used, as its public reference manual describes it (NVML
 * API Reference Guide, docs.nvidia.com/deploy/nvml-api). It is loaded at run time where there is
 * one; each function that it does not have is NULL, and what it would tell is unknown. */

#include <stddef.h>
#include <stdint.h>

#define NVML_SUCCESS                0
#define NVML_ERROR_INVALID_ARGUMENT 2
#define NVML_ERROR_NOT_SUPPORTED    3
#define NVML_ERROR_INSUFFICIENT     7 /* the buffer is too small: how many there are was told */
#define NVML_ERROR_NO_DRIVER        9
#define NVML_ERROR_GPU_IS_LOST      15
#define NVML_ERROR_RESET_REQUIRED   16
#define NVML_ERROR_UNKNOWN          999

#define NVML_ECC_CORRECTED   0
#define NVML_ECC_UNCORRECTED 1
#define NVML_ECC_VOLATILE    0
#define NVML_CLOCK_SM        1
#define NVML_SENSOR_GPU      0
#define NVML_LIMIT_SHUTDOWN  0
#define NVML_LIMIT_SLOWDOWN  1
#define NVML_LINKS_MAX       18
#define NVML_LINK_COUNTERS   4 /* replays, recoveries, CRC errors of flits and of data: 0 to 3 */

#define NVML_FIELD_RECOVERY_ACTION 230
#define NVML_RECOVERY_NONE         0
#define NVML_RECOVERY_RESET        1
#define NVML_RECOVERY_REBOOT       2
#define NVML_RECOVERY_DRAIN_P2P    3
#define NVML_RECOVERY_DRAIN_RESET  4

/* Why the clock is not higher. */
#define NVML_CLOCK_HW_SLOWDOWN 0x08
#define NVML_CLOCK_HW_THERMAL  0x40
#define NVML_CLOCK_POWER_BRAKE 0x80

#define NVML_MEMORY_UNKNOWN UINT64_MAX

typedef struct nvml_device *nvml_device_t;

struct nvml_pci { /* all versions begin so; the longest has 68 bytes */
    char legacy_id[16];
    unsigned domain, bus, device;
    char rest[64];
};

struct nvml_process { /* of versions 2 and 3 */
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};

struct nvml_field {
    unsigned field, scope;
    long long timestamp, latency_us;
    unsigned type;
    int result;
    union {
        double real;
        unsigned number;
        unsigned long long large;
    } value;
};

struct nvml_utilization {
    unsigned gpu, memory;
};

struct nvml_memory {
    unsigned long long total, free, used;
};

struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int);
    int (*count)(unsigned *);
    int (*handle)(unsigned, nvml_device_t *);
    int (*pci)(nvml_device_t, struct nvml_pci *);
    int (*uuid)(nvml_device_t, char *, unsigned);
    int (*name)(nvml_device_t, char *, unsigned);
    int (*ecc)(nvml_device_t, int type, int since, unsigned long long *);
    int (*pages_pending)(nvml_device_t, int *);
    int (*rows)(nvml_device_t, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                unsigned *failed);
    int (*clock)(nvml_device_t, int type, unsigned *);
    int (*clock_max)(nvml_device_t, int type, unsigned *);
    int (*clock_reasons)(nvml_device_t, unsigned long long *);
    int (*power)(nvml_device_t, unsigned *);
    int (*power_limit)(nvml_device_t, unsigned *);
    int (*temperature)(nvml_device_t, int sensor, unsigned *);
    int (*temperature_limit)(nvml_device_t, int which, unsigned *);
    int (*pcie_gen)(nvml_device_t, unsigned *);
    int (*pcie_gen_max)(nvml_device_t, unsigned *);
    int (*pcie_width)(nvml_device_t, unsigned *);
    int (*pcie_width_max)(nvml_device_t, unsigned *);
    int (*pcie_replays)(nvml_device_t, unsigned *);
    int (*utilization)(nvml_device_t, struct nvml_utilization *);
    int (*memory)(nvml_device_t, struct nvml_memory *);
    int (*processes)(nvml_device_t, unsigned *n, struct nvml_process *);
    int (*link_state)(nvml_device_t, unsigned link, int *up);
    int (*link_errors)(nvml_device_t, unsigned link, int counter, unsigned long long *);
    int (*fields)(nvml_device_t, int n, struct nvml_field *);
};

/* The library is loaded, and nothing asked of it. Negative errno: it is not there, or is none; why
 * says so. It is never unloaded: that may hang too. */
int nvml_load(const char *library, struct nvml *ret, char *why, size_t size);

#endif
