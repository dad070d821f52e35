/* SPDX-License-Identifier: Apache-2.0 */

/* For prebuild.c, which makes them. */

#include "extract/prebuilt.h"

const struct prebuilt prebuilt_sets[] = {{0}};
