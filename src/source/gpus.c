/* SPDX-License-Identifier: Apache-2.0 */

/* The driver shows each GPU as a folder, named by its PCI address, with a text of its model, its
 * UUID and the number of its device file. Those whose device file may not be opened (a cgroup of
 * the scheduler) do not exist for CUDA either. It numbers the others by PCI address, if it is told
 * to or if all are of one model; otherwise by a guess at their speed, which cannot be repeated
 * here.
 *
 * A wrong guess would keep a good GPU out and the bad one in. So whatever is not understood makes
 * the answer "not known". */

#include "source/gpus.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRIVER_FOLDER "/proc/driver/nvidia/gpus"

struct machine {
    uint32_t n;
    struct gpu gpus[DEVICES_MAX]; /* by PCI address */
    char model[128];
    bool mixed; /* more than one model */
    bool broken;
};

/* "0000:4d:00.0" as the catalogue writes it: lower case, no function. */
static bool set_name(struct gpu *g, const char *folder)
{
    unsigned domain, bus, device, function;
    int n = 0;

    if (sscanf(folder, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &n) != 4 ||
        folder[n])
        return false;
    STR_PRINTF(g->name, "%04x:%02x:%02x", domain, bus, device);
    return true;
}

/* The text behind "KEY:" and blanks, NULL = another line. Cuts the end of the line off. */
static char *value_of(char *line, const char *key)
{
    size_t n = strlen(key);

    if (strncmp(line, key, n) != 0 || line[n] != ':')
        return NULL;
    line[strcspn(line, "\n")] = '\0';
    for (line += n + 1; isspace((unsigned char)*line); line++)
        ;
    return line;
}

/* A device file that is not there is made when CUDA first wants it. */
static bool may_open(const char *minor)
{
    long long number;
    char path[64];

    if (str_to_i64(minor, &number) < 0)
        return false;
    STR_PRINTF(path, "/dev/nvidia%lld", number);
    return access(path, F_OK) < 0 || access(path, R_OK | W_OK) == 0;
}

static void note_model(struct machine *m, const char *model)
{
    if (m->model[0] && !streq(m->model, model))
        m->mixed = true;
    STR_COPY(m->model, model);
}

/* Whether the GPU can be used. One that nothing is known of makes all that follows a guess. */
static bool read_gpu(struct machine *m, const char *path, struct gpu *g)
{
    _cleanup_(fclosep) FILE *f = fopen(path, "re");
    char line[256], model[128] = "", *value;
    bool open = false;

    g->uuid[0] = '\0';
    while (f && fgets(line, sizeof(line), f)) {
        if ((value = value_of(line, "Model")))
            STR_COPY(model, value);
        else if ((value = value_of(line, "GPU UUID")))
            STR_COPY(g->uuid, value);
        else if ((value = value_of(line, "Device Minor")))
            open = may_open(value);
    }
    if (!str_startswith(g->uuid, "GPU-") || strpbrk(g->uuid, ", ?"))
        m->broken = true;
    if (open)
        note_model(m, model);
    return open;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct gpu *)a)->name, ((const struct gpu *)b)->name);
}

static void read_machine(const char *folder, struct machine *m)
{
    DIR *d = opendir(folder);
    char path[PATH_MAX];

    for (struct dirent *e; d && (e = readdir(d));) {
        struct gpu *g = &m->gpus[m->n];

        if (e->d_name[0] == '.')
            continue;
        STR_PRINTF(path, "%s/%s/information", folder, e->d_name);
        if (m->n == DEVICES_MAX || !set_name(g, e->d_name))
            m->broken = true;
        else if (read_gpu(m, path, g))
            m->n++;
    }
    if (d)
        closedir(d);
    qsort(m->gpus, m->n, sizeof(m->gpus[0]), by_name);
}

/* One word of CUDA_VISIBLE_DEVICES: a number, or the beginning of one UUID. */
static const struct gpu *find_gpu(const struct machine *m, const char *word, const char *order)
{
    const struct gpu *found = NULL;
    long long number;

    if (str_to_i64(word, &number) == 0) {
        bool counts = !m->mixed || (order && streq(order, "PCI_BUS_ID"));

        return counts && number >= 0 && number < m->n ? &m->gpus[number] : NULL;
    }
    if (!str_startswith(word, "GPU-"))
        return NULL;
    for (uint32_t i = 0; i < m->n; i++)
        if (str_startswith(m->gpus[i].uuid, word)) {
            if (found)
                return NULL;
            found = &m->gpus[i];
        }
    return found;
}

/* Returns how many, 0 = one of them is not understood. */
static uint32_t choose(const struct machine *m, const struct gpu_places *places, struct gpu *ret)
{
    char words[4096], *save = NULL;
    uint32_t n = 0;

    if (!STR_COPY(words, places->visible))
        return 0;
    for (char *w = strtok_r(words, ", ", &save); w; w = strtok_r(NULL, ", ", &save)) {
        const struct gpu *g = find_gpu(m, w, places->order);

        if (!g || n == DEVICES_MAX)
            return 0;
        for (uint32_t i = 0; i < n; i++)
            if (streq(ret[i].name, g->name))
                return 0;
        ret[n++] = *g;
    }
    return n;
}

uint32_t gpus_list(const struct gpu_places *places, struct gpu ret[DEVICES_MAX])
{
    struct machine m = {0};

    read_machine(places->driver ? places->driver : DRIVER_FOLDER, &m);
    if (m.broken)
        return 0;
    if (places->visible)
        return choose(&m, places, ret);
    memcpy(ret, m.gpus, m.n * sizeof(m.gpus[0]));
    return m.n;
}

static bool is_among(const char *name, const char (*list)[DEVICE_NAME_LEN], uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (streq(list[i], name))
            return true;
    return false;
}

void gpus_name_rest(const struct gpu *gpus, uint32_t n, const char (*without)[DEVICE_NAME_LEN],
                    uint32_t n_without, struct strbuf *out)
{
    for (uint32_t i = 0; i < n; i++)
        if (!is_among(gpus[i].name, without, n_without))
            strbuf_addf(out, "%s%s", out->len > 0 ? "," : "", gpus[i].uuid);
}
