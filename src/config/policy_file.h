/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CONFIG_POLICY_FILE_H
#define REKNIT_CONFIG_POLICY_FILE_H

/* Policies as people write them: YAML, durations as text ("90s", "1h 30m"). What a file does not
 * say stays as it is in the built-in default. conf/policy.yaml shows every key. */

#include "base/str.h"
#include "core/model/policy.h"

#define POLICY_FILE_MAX (256 * 1024) /* bytes */

/* Text of len bytes; `name` stands in errors, as "name:line: what is wrong". -EINVAL. */
int policy_parse(const char *text, size_t len, const char *name, struct policy *ret,
                 struct err *ret_err);

/* The file at path. -EINVAL, -EFBIG, or why it cannot be read. */
int policy_load(const char *path, struct policy *ret, struct err *ret_err);

/* Where a policy is looked for when none is named: ret_path gets the first that exists of
 * $XDG_CONFIG_HOME/reknit/policy.yaml (or below ~/.config) and /etc/reknit/policy.yaml. -ENOENT:
 * none does, the built-in default holds. */
int policy_find(char *ret_path, size_t size);

/* The whole policy as YAML that policy_parse() understands. */
void policy_format(const struct policy *p, struct strbuf *out);

#endif
