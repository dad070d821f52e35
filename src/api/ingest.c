/* SPDX-License-Identifier: Apache-2.0 */

/* What other systems know of nodes: alerts, as Alertmanager posts them to a webhook (version 4 of
 * its JSON: prometheus.io/docs/alerting/latest/configuration, webhook_config). What an alert means
 * is the configuration's business; here is read which node it is about, and whether it is over. */

#include "api/routes.h"
#include "api/views.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define ALERTS_MAX 200 /* of one message; Alertmanager's own max_alerts keeps below */

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

/* The first of those labels that is there. "n7.example.org:9100" is n7. */
static void node_of(const json_t *labels, const char *label, char *ret, size_t size)
{
    const char *names[] = {label, "node", "nodename", "Hostname", "host", "instance"};
    const char *value = "";

    for (size_t i = 0; i < ARRAY_SIZE(names) && !*value; i++)
        if (*names[i])
            value = text_of(labels, names[i]);
    str_copy_n(ret, size, value, strcspn(value, ".:/ "));
}

/* "00000000:9B:00.0", as NVML and dcgm-exporter write an address, is 0000:9b:00 in the kernel's
 * log. */
static bool read_address(const char *text, char *ret, size_t size)
{
    unsigned domain, bus, device;
    int n = 0;

    if (sscanf(text, "%8x:%2x:%2x%n", &domain, &bus, &device, &n) != 3 ||
        (text[n] != '\0' && text[n] != '.'))
        return false;
    str_printf(ret, size, "%04x:%02x:%02x", domain, bus, device);
    return true;
}

/* The part that it is about: two GPUs of a node are two, whatever an exporter calls them. */
static void device_of(const json_t *labels, char *ret, size_t size)
{
    static const char *const names[] = {"pci_bus_id", "device", "UUID", "gpu"};
    const char *value = "";

    for (size_t i = 0; i < ARRAY_SIZE(names) && !*value; i++)
        value = text_of(labels, names[i]);
    if (!read_address(value, ret, size))
        str_copy(ret, size, value);
}

static int take_alert(struct store *store, const char *label, const json_t *alert)
{
    const json_t *labels = json_object_get(alert, "labels"),
                 *notes = json_object_get(alert, "annotations");
    const char *told = text_of(notes, "summary");
    char node[NODE_NAME_LEN], device[DEVICE_NAME_LEN];
    struct api_alert a = {.node = node, .device = device};

    node_of(labels, label, node, sizeof(node));
    a.name = text_of(labels, "alertname");
    device_of(labels, device, sizeof(device));
    a.text = *told ? told : text_of(notes, "description");
    a.over = streq(text_of(alert, "status"), "resolved");
    return !*node || !*a.name ? -EINVAL : store->backend.alert(store->ctx, &a);
}

void post_alertmanager(struct store *store, const struct api_request *r,
                       const struct route_params *p, struct api_answer *ret)
{
    const char *label = request_arg(r, "node_label");
    uint32_t taken = 0, known = 0, unknown = 0, bad = 0;
    json_t *body = request_object(r, ret), *list, *alert;
    size_t i;

    if (!body)
        return;
    list = json_object_get(body, "alerts");
    if (!json_is_array(list) || json_array_size(list) > ALERTS_MAX || !store->backend.alert) {
        answer_error(ret, 400,
                     "'alerts' is no list of at most %d: an Alertmanager's webhook, "
                     "version 4, is wanted (set its max_alerts)",
                     ALERTS_MAX);
        json_decref(body);
        return;
    }
    json_array_foreach (list, i, alert) {
        int n = take_alert(store, label ? label : "", alert);

        taken += n > 0;
        known += n == 0;
        unknown += n == -ENOENT;
        bad += n < 0 && n != -ENOENT;
    }
    json_decref(body);
    answer_json(ret, 200,
                json_pack("{s:I, s:I, s:I, s:I}", "taken", (json_int_t)taken, "known_already",
                          (json_int_t)known, "unknown_nodes", (json_int_t)unknown, "not_understood",
                          (json_int_t)bad));
}
