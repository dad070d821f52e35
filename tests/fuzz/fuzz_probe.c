/* SPDX-License-Identifier: Apache-2.0 */

/* What reknit-probe reads of a node and says of it. Each line of the input is taken as one of its
 * own lines, of which the judge may think what it likes but not fall over, or as one of mountinfo.
 */

#include "base/cleanup.h"
#include "base/str.h"
#include "probe/judge.h"
#include "probe/mountinfo.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_change(void *ctx, const struct change *c)
{
    assert(c->signature && c->text[0]);
    assert(!c->device[0] || c->area == AREA_GPU);
}

static void check_again(const struct probe_line *l)
{
    static struct probe_line again;
    _cleanup_strbuf_ struct strbuf text = {0};

    if (l->is_ending)
        ending_write(&l->ending, &text);
    else
        observation_write(&l->observation, &text);
    assert(probe_line_parse(text.s, text.len, &again) == 0);
    assert(again.is_ending == l->is_ending);
    if (!l->is_ending)
        assert(again.observation.known == l->observation.known);
}

static void check_mount(char *line)
{
    struct mount_line m;

    if (mount_line_parse(line, &m)) {
        assert(strlen(m.path) < sizeof(m.path));
        mount_is_remote(&m);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct probe_line l;
    _cleanup_(freep) char *text = strndup((const char *)data, size);
    struct judge *j = judge_new();
    char *rest = text, *line;
    usec_t now = USEC_PER_HOUR;

    judge_begin(j, now);
    while ((line = strsep(&rest, "\n"))) {
        if (!line[0]) { /* the next look */
            judge_end(j, check_change, NULL);
            judge_begin(j, now += USEC_PER_MIN);
        } else if (probe_line_parse(line, strlen(line), &l) == 0) {
            check_again(&l);
            judge_take(j, &l);
        } else {
            check_mount(line);
        }
    }
    judge_now(j, check_change, NULL);
    judge_end(j, check_change, NULL);
    judge_free(j);
    return 0;
}
