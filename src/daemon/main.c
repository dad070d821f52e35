/* SPDX-License-Identifier: Apache-2.0 */

/* reknitd: the control plane. One process, one thread, one loop, one journal, no privilege. */

#include "base/log.h"
#include "base/str.h"
#include "daemon/daemon.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>

#define EXIT_TROUBLE 1
#define EXIT_USAGE   2

static const char help[] =
    "usage: reknitd [--config FILE] [--drop-ins FOLDER]\n"
    "\n"
    "Watches the jobs of a cluster, finds out why one fails, hangs or slows down, and brings it\n"
    "back without what is at fault, as far as the configuration lets it: it begins by observing\n"
    "only. Started by systemd (systemctl start reknitd) or in the foreground.\n"
    "\n"
    "  --config FILE        " DAEMON_CONFIG_PATH "\n"
    "  --drop-ins FOLDER    read after it: the folder beside it, x.d beside x.yaml\n"
    "  --help, --version\n"
    "\n"
    "SIGHUP reads the configuration again; SIGTERM ends it, and no job notices.\n"
    "\n"
    "  reknit config check    is the configuration sound?\n"
    "  reknit doctor          does every link of the chain work?\n"
    "  reknit jobs            what it sees and did\n";

struct options {
    const char *config, *drop_ins; /* drop_ins NULL = none */
};

/* They lie beside their file, unless somebody says otherwise. */
static const char *drop_ins_of(const char *config)
{
    static char folder[PATH_MAX];

    return daemon_config_drop_ins(config, folder, sizeof(folder)) ? folder : NULL;
}

/* 0: go on; otherwise the exit status + 1. */
static int parse(int argc, char **argv, struct options *ret)
{
    enum { OPT_CONFIG = 256, OPT_DROP_INS, OPT_HELP, OPT_VERSION };
    static const struct option options[] = {
        {"config", required_argument, NULL, OPT_CONFIG},
        {"drop-ins", required_argument, NULL, OPT_DROP_INS},
        {"help", no_argument, NULL, OPT_HELP},
        {"version", no_argument, NULL, OPT_VERSION},
        {0},
    };
    int opt;

    *ret = (struct options){.config = DAEMON_CONFIG_PATH};
    while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (opt) {
        case OPT_CONFIG:
            ret->config = optarg;
            break;
        case OPT_DROP_INS:
            ret->drop_ins = optarg;
            break;
        case OPT_HELP:
            fputs(help, stdout);
            return EXIT_SUCCESS + 1;
        case OPT_VERSION:
            puts("reknitd " REKNIT_VERSION);
            return EXIT_SUCCESS + 1;
        default:
            return EXIT_USAGE + 1;
        }
    }
    if (!ret->drop_ins)
        ret->drop_ins = drop_ins_of(ret->config);
    if (optind < argc) {
        log_error("there is nothing to be done with '%s'; see reknitd --help", argv[optind]);
        return EXIT_USAGE + 1;
    }
    return 0;
}

static int on_hangup(sd_event_source *s, const struct signalfd_siginfo *si, void *ctx)
{
    sd_notify(0, "RELOADING=1");
    daemon_reload(ctx);
    sd_notify(0, "READY=1");
    return 0;
}

static int add_signals(sd_event *event)
{
    sigset_t set;
    int r;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    r = sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL);
    return r < 0 ? r : sd_event_add_signal(event, NULL, SIGINT, NULL, NULL);
}

static int serve(sd_event *event, const struct options *o)
{
    _cleanup_(daemon_freep) struct daemon *d = NULL;
    struct err e = {0};
    int status = EXIT_SUCCESS, r = daemon_new(event, o->config, o->drop_ins, &d, &e);

    if (r < 0) {
        log_error("%s", e.text);
        return EXIT_TROUBLE;
    }
    r = sd_event_add_signal(event, NULL, SIGHUP, on_hangup, d);
    if (r >= 0) {
        sd_event_set_watchdog(event, true);
        sd_notify(0, "READY=1");
        r = status = sd_event_loop(event);
    }
    sd_notify(0, "STOPPING=1");
    if (r >= 0)
        r = pump_close(d->pump, &e);
    if (r < 0)
        log_error("%s", e.text[0] ? e.text : strerror(-r));
    return r < 0 ? EXIT_TROUBLE : status;
}

int main(int argc, char **argv)
{
    sd_event *event = NULL;
    struct options o;
    int status;

    log_init("reknitd");
    log_set_level(LOG_LEVEL_INFO);
    status = parse(argc, argv, &o);
    if (status != 0)
        return status - 1;
    if (sd_event_default(&event) < 0 || add_signals(event) < 0) {
        log_error("no event loop");
        return EXIT_TROUBLE;
    }
    status = serve(event, &o);
    sd_event_unref(event);
    return status;
}
