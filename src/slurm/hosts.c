/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/hosts.h"

#include "base/str.h"
#include "slurm/text.h"

#include <ctype.h>
#include <errno.h>
#include <slurm/slurm.h>
#include <stdbool.h>
#include <stdlib.h>

/* A pointer; before 23.11 the type itself hides that. */
typedef __typeof__(slurm_hostlist_create("")) hosts_t;

json_t *hosts_json(const char *list)
{
    json_t *names = json_array();
    hosts_t hosts = list && *list ? slurm_hostlist_create(list) : NULL;
    char *name;

    while (hosts && json_array_size(names) < TEXT_HOSTS_MAX &&
           (name = slurm_hostlist_shift(hosts))) {
        json_array_append_new(names, text_json(name, TEXT_MAX));
        free(name);
    }
    if (hosts)
        slurm_hostlist_destroy(hosts);
    return names;
}

/* Nothing that would make one name several, "n[1-9]" or "n1,n2". */
static bool is_host_name(const char *s)
{
    if (!s || !isalnum((unsigned char)*s))
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '-' && *s != '_' && *s != '.')
            return false;
    return true;
}

int hosts_text(const json_t *names, char **ret)
{
    struct strbuf text = {0};
    const json_t *name;
    size_t i;

    if (!json_is_array(names) || json_array_size(names) > TEXT_HOSTS_MAX)
        return -EINVAL;
    strbuf_adds(&text, "");
    json_array_foreach (names, i, name) {
        if (!is_host_name(json_string_value(name))) {
            strbuf_done(&text);
            return -EINVAL;
        }
        strbuf_addf(&text, "%s%s", i ? "," : "", json_string_value(name));
    }
    *ret = text.s;
    return 0;
}
