/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_GPUS_H
#define REKNIT_SOURCE_GPUS_H

/* The NVIDIA GPUs that a process started here can use, from what the driver shows in /proc; no
 * library is needed, and no GPU is touched. */

#include "base/str.h"
#include "core/model/event.h"

struct gpu {
    char name[DEVICE_NAME_LEN]; /* "0000:4d:00" */
    char uuid[64];              /* "GPU-..." */
};

struct gpu_places {
    const char *driver;  /* folder with one folder a GPU, NULL = /proc/driver/nvidia/gpus */
    const char *visible; /* value of CUDA_VISIBLE_DEVICES, NULL = not set */
    const char *order;   /* ... of CUDA_DEVICE_ORDER */
};

/* In the order in which an attempt sees them. Returns how many, 0 when there are none or when it
 * cannot be told which: then nothing is to be concluded from it. */
uint32_t gpus_list(const struct gpu_places *places, struct gpu ret[DEVICES_MAX]);

/* The UUIDs of all but those `without`, as CUDA_VISIBLE_DEVICES wants them. */
void gpus_name_rest(const struct gpu *gpus, uint32_t n, const char (*without)[DEVICE_NAME_LEN],
                    uint32_t n_without, struct strbuf *out);

#endif
