/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_CHECK_H
#define REKNIT_AGENT_CHECK_H

/* "reknit-agent check": is this node fit for a job, now? For Slurm's Prolog, Epilog and
 * HealthCheckProgram, for reknitd (nodes.check) and for people. argv[0] is "check"; returns the
 * exit status. */
int check_main(int argc, char **argv, const char *node);

#endif
