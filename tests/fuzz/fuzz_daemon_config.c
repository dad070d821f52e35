/* SPDX-License-Identifier: Apache-2.0 */

/* reknitd's configuration: whatever is in a file, it is refused with a text that names the place,
 * or makes a configuration that reads the same again when it is written down. */

#include "config/terms.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(const struct daemon_config *c)
{
    _cleanup_(daemon_config_freep) struct daemon_config *again = daemon_config_new();
    _cleanup_strbuf_ struct strbuf one = {0}, two = {0};
    struct err e = {0};

    daemon_config_format(c, &one);
    assert(daemon_config_add(again, &(struct form_text){"f", one.s, one.len}, &e) == 0);
    daemon_config_format(again, &two);
    if (!strstr(one.s, " # from ")) /* where a policy was read from is not read again */
        assert(streq(one.s, two.s));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(daemon_config_freep) struct daemon_config *c = daemon_config_new();
    struct job_labels job = {"gpu", "a", "q", "u", "reknit"};
    struct err e = {0};
    struct job_terms t;

    if (size > 4096)
        return 0;
    if (daemon_config_add(c, &(struct form_text){"f", (const char *)data, size}, &e) < 0) {
        assert(e.code == -EINVAL && str_startswith(e.text, "f:"));
        return 0;
    }
    check_round_trip(c);
    if (daemon_config_check(c, &e) == 0)
        daemon_config_for_job(c, &job, &t);
    else
        assert(e.code == -EINVAL && strlen(e.text) > 4);
    return 0;
}
