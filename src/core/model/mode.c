/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/mode.h"

void mode_hear(struct mode_words *w, const struct mode_facts *f)
{
    if (!f->asked) {
        w->told = true;
        w->terms = f->mode;
    } else if (f->owner) {
        w->wished = !f->withdrawn;
        w->wish = f->mode;
    } else if (f->withdrawn) {
        w->ordered = false;
    } else {
        w->ordered = true;
        w->order = f->mode;
        w->wished = false;
    }
}

/* Of a job whose terms nobody has told yet, nothing but watching it can be meant. */
enum mode mode_allowed(const struct mode_words *w)
{
    if (w->ordered)
        return w->order;
    return w->told ? w->terms : MODE_OBSERVE;
}

enum mode mode_in_force(const struct mode_words *w)
{
    enum mode allowed = mode_allowed(w);

    return w->wished && w->wish < allowed ? w->wish : allowed;
}
