/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SLURM_USERS_H
#define REKNIT_SLURM_USERS_H

#include <sys/types.h>

/* Name of a user, its number where it has none. Valid until the next call. Remembered, because the
 * answer may come from a directory server far away. */
const char *users_name(uid_t uid);

#endif
