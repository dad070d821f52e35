/* SPDX-License-Identifier: Apache-2.0 */

/* The ports of InfiniBand and RoCE adapters (Documentation/ABI/stable/sysfs-class-infiniband) and
 * of network cards (sysfs-class-net). What is switched off by an operator is neither up nor down.
 */

#include "probe/areas.h"

#include "base/cleanup.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LINK_STATE_ACTIVE   4 /* "4: ACTIVE" */
#define PHYS_STATE_DISABLED 3 /* "3: Disabled" */

/* "100 Gb/sec (4X EDR)", "2.5 Gb/sec (1X SDR)" */
static bool rate_of(const char *text, int64_t *ret)
{
    char *end;
    long long whole = strtoll(text, &end, 10), tenths = 0;

    if (end == text)
        return false;
    if (end[0] == '.' && end[1] >= '0' && end[1] <= '9') {
        tenths = end[1] - '0';
        end += 2;
    }
    if (!str_startswith(end, " Gb/sec"))
        return false;
    *ret = whole * 1000 + tenths * 100;
    return true;
}

static void read_port_state(const struct probe *p, const char *device, const char *port,
                            struct observation *o)
{
    char rate[64];
    int64_t state, phys, mbps;

    if (node_number(p, &state, "/sys/class/infiniband/%s/ports/%s/state", device, port)) {
        bool off =
            node_number(p, &phys, "/sys/class/infiniband/%s/ports/%s/phys_state", device, port) &&
            phys == PHYS_STATE_DISABLED;

        if (!off)
            observation_set(o, ITEM_UP, state == LINK_STATE_ACTIVE);
    }
    if (node_file(p, rate, sizeof(rate), "/sys/class/infiniband/%s/ports/%s/rate", device, port) ==
            0 &&
        rate_of(rate, &mbps))
        observation_set(o, ITEM_RATE_MBPS, mbps);
}

static void look_at_port(const struct probe *p, const char *device, const char *port,
                         struct report *r)
{
    static const struct {
        enum item item;
        const char *file;
    } counters[] = {
        {ITEM_DOWNS, "counters/link_downed"},
        {ITEM_SYMBOL_ERRORS, "counters/symbol_error"},
        {ITEM_RECOVERIES, "counters/link_error_recovery"},
        {ITEM_RECEIVE_ERRORS, "counters/port_rcv_errors"},
        {ITEM_SEND_ERRORS, "counters/port_xmit_discards"},
        {ITEM_OUT_OF_SEQUENCE, "hw_counters/out_of_sequence"},
        {ITEM_ACK_TIMEOUTS, "hw_counters/local_ack_timeout_err"},
    };
    char name[SUBJECT_LEN];
    struct observation o;

    STR_PRINTF(name, "%s/%s", device, port);
    o = observation_make(AREA_NIC, name);
    read_port_state(p, device, port, &o);
    for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
        node_item(p, &o, counters[i].item, "/sys/class/infiniband/%s/ports/%s/%s", device, port,
                  counters[i].file);
    r->tell(r, &o);
}

static size_t look_at_adapters(const struct probe *p, struct report *r)
{
    _cleanup_names_ struct names devices = {0};
    size_t n = 0;

    node_names(p, &devices, "/sys/class/infiniband");
    for (size_t i = 0; i < devices.n; i++) {
        _cleanup_names_ struct names ports = {0};

        node_names(p, &ports, "/sys/class/infiniband/%s/ports", devices.name[i]);
        for (size_t k = 0; k < ports.n && n < PROBE_SUBJECTS_MAX; k++, n++)
            look_at_port(p, devices.name[i], ports.name[k], r);
    }
    return n;
}

/* Bridges, tunnels and the ends of containers have no device behind them. */
static bool is_card(const struct probe *p, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    STR_PRINTF(path, "%s/sys/class/net/%s/device", p->root, name);
    return stat(path, &st) == 0;
}

static void look_at_card(const struct probe *p, const char *name, struct report *r)
{
    struct observation o = observation_make(AREA_NIC, name);
    int64_t speed;

    /* Its carrier can be read of one that is switched on only. */
    node_item(p, &o, ITEM_UP, "/sys/class/net/%s/carrier", name);
    if (node_number(p, &speed, "/sys/class/net/%s/speed", name) && speed > 0)
        observation_set(&o, ITEM_RATE_MBPS, speed);
    node_item(p, &o, ITEM_DOWNS, "/sys/class/net/%s/carrier_down_count", name);
    node_item(p, &o, ITEM_TURNS, "/sys/class/net/%s/carrier_changes", name);
    node_item(p, &o, ITEM_RECEIVE_ERRORS, "/sys/class/net/%s/statistics/rx_errors", name);
    node_item(p, &o, ITEM_SEND_ERRORS, "/sys/class/net/%s/statistics/tx_errors", name);
    node_item(p, &o, ITEM_SYMBOL_ERRORS, "/sys/class/net/%s/statistics/rx_crc_errors", name);
    r->tell(r, &o);
}

enum ended area_nic(const struct probe *p, const char *subject, struct report *r)
{
    _cleanup_names_ struct names cards = {0};
    size_t n = look_at_adapters(p, r);

    node_names(p, &cards, "/sys/class/net");
    for (size_t i = 0; i < cards.n; i++)
        if (n < PROBE_SUBJECTS_MAX && is_card(p, cards.name[i])) {
            look_at_card(p, cards.name[i], r);
            n++;
        }
    STR_COPY(r->why, n > 0 ? "" : "no network adapter");
    return n > 0 ? ENDED_DONE : ENDED_ABSENT;
}
