/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_CHECK_POLICY_H
#define REKNIT_AGENT_CHECK_POLICY_H

/* Which troubles make a check fail: those for which a node is drained, unless a site says otherwise
 * in a file:
 *
 *   fail: [probe.gpu_hangs, 'storage.*']
 *   ignore: [probe.gpu_remap_failed]                                                            */

#include "base/err.h"
#include "probe/judge.h"

#define CHECK_PATTERNS_MAX 64

struct check_patterns {
    char text[CHECK_PATTERNS_MAX][SIGNATURE_MAX];
    unsigned n;
};

struct check_policy {
    struct check_patterns fail, ignore; /* what both name is ignored */
};

int check_policy_read(const char *path, struct check_policy *ret, struct err *e);
int check_policy_parse(const char *name, const char *text, size_t len, struct check_policy *ret,
                       struct err *e);
bool check_policy_fails(const struct check_policy *p, const struct change *c);

#endif
