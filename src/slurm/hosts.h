/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SLURM_HOSTS_H
#define REKNIT_SLURM_HOSTS_H

#include <jansson.h>

/* "n[1-3,7]" as ["n1","n2","n3","n7"]; at most TEXT_HOSTS_MAX of them; [] of NULL or nonsense. */
json_t *hosts_json(const char *list);

/* The list as Slurm takes it, for free(). -EINVAL: not a list of names, or one that is none. */
int hosts_text(const json_t *names, char **ret);

#endif
