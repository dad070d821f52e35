/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_KERNEL_LINE_H
#define REKNIT_EXTRACT_KERNEL_LINE_H

/* A record of the kernel's log is the kernel's word, but for what it passes on: how a process calls
 * itself, how files and control groups are called. */

#include <stdbool.h>
#include <stddef.h>

/* Longer than a process can call itself: TASK_COMM_LEN of Linux, with its NUL. */
#define KERNEL_WORDS_MIN 16

/* Whether text[start..end) are the kernel's own words. Of the record's first line: what stands
 * behind a line feed may be anybody's. */
bool kernel_line_vouches(const char *text, size_t start, size_t end);

#endif
