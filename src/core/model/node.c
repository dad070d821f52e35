/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/node.h"

static const char *const isolation_names[ISOLATION_MAX] = {
    [ISOLATION_NONE] = "none",   [ISOLATION_REPEATED] = "repeated", [ISOLATION_EXCLUDE] = "exclude",
    [ISOLATION_DRAIN] = "drain", [ISOLATION_RESET] = "reset",       [ISOLATION_REBOOT] = "reboot",
};
DEFINE_NAMES(isolation, enum isolation, isolation_names);
