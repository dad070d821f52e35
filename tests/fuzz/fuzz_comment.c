/* SPDX-License-Identifier: Apache-2.0 */

/* Comments of jobs: whatever is in one, what comes of it is bounded, printable, and no more than
 * the operator's rules allow. */

#include "config/terms.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_terms(const char *text, const struct comment *c)
{
    _cleanup_(daemon_config_freep) struct daemon_config *config = daemon_config_new();
    struct job_labels job = {.comment = text};
    struct job_terms t;

    config->mode = MODE_PROPOSE;
    daemon_config_for_job(config, &job, &t);
    assert(t.mode <= MODE_PROPOSE && (t.mode <= MODE_OBSERVE || t.opted_in));
    assert(c->mode < 0 || t.mode <= c->mode);
    assert(t.policy.max_restarts <= config->policies[0].policy.max_restarts);
    assert(policy_check(&t.policy, NULL) == 0);
    assert(strlen(t.notes) < sizeof(t.notes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[4097], shown[sizeof(((struct comment *)0)->notes)];
    struct comment c;

    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    comment_read(text, &c);
    assert(c.n_logs <= COMMENT_LOGS_MAX && strlen(c.policy) < sizeof(c.policy));
    assert(c.mode == MODE_INVALID || mode_name(c.mode));
    str_sanitize(shown, sizeof(shown), c.notes, strlen(c.notes));
    assert(streq(shown, c.notes));
    check_terms(text, &c);
    return 0;
}
