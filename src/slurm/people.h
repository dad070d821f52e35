/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SLURM_PEOPLE_H
#define REKNIT_SLURM_PEOPLE_H

#include <sys/types.h>

/* Name of a user, its number where it has none. Valid until the next call. Remembered, because the
 * answer may come from a directory server far away. */
const char *people_name(uid_t uid);

#endif
