/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CONFIG_DAEMON_FORM_H
#define REKNIT_CONFIG_DAEMON_FORM_H

/* The parts of daemon_file.c: the tables of keys, and what values may be. */

#include "config/daemon_file.h"
#include "config/keys.h"

/* Each value by itself; ret_path (of size bytes) gets the key that is at fault, e why. */
int daemon_values_check(const struct daemon_config *c, char *ret_path, size_t size, struct err *e);
/* A name of a policy that a job's comment can say too: letters, digits, and . _ - between them, and
 * no word that means a mode. */
bool policy_name_is_sound(const char *name);
const struct named_policy *daemon_config_policy(const struct daemon_config *c, const char *name);

#endif
