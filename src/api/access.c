/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access.h"

bool access_sees(const struct asker *who, uid_t owner)
{
    return who->is_operator || (who->known && owner != 0 && who->uid == owner);
}

bool access_sets_mode(const struct asker *who, uid_t owner, enum mode allowed, enum mode wanted)
{
    return who->is_operator || (access_sees(who, owner) && wanted <= allowed);
}
