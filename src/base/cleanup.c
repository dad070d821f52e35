/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"

#include <errno.h>

void closep(int *fd)
{
    int saved = errno;

    if (*fd >= 0)
        close(*fd);
    errno = saved;
}
