/* SPDX-License-Identifier: Apache-2.0 */

/* A file of any bytes as a log: plain, or an archive that may be cut or damaged. */

#include "base/cleanup.h"
#include "extract/input.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define UNPACKED_MAX ((size_t)64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(input_freep) struct input *in = NULL;
    _cleanup_(closep) int fd = memfd_create("fuzz", MFD_CLOEXEC);
    struct err e = {0};
    size_t total = 0, len;
    const char *bytes;
    char path[64];
    int r;

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (input_open(path, &in, &e) < 0)
        return 0;
    while ((r = input_read(in, &bytes, &len, &e)) > 0 && total < UNPACKED_MAX) {
        assert(len > 0);
        total += len;
    }
    assert(r >= 0 || strncmp(e.text, path, strlen(path)) == 0);
    assert(r < 0 || input_size(in) == 0 || total == size);
    return 0;
}
