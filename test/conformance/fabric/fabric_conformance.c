/* SPDX-License-Identifier: Apache-2.0 */

/* The contract of net/fabric.h, run on one provider; harness.h names the environment. */

#include <stdlib.h>
#include <string.h>

#include "test/conformance/fabric/harness.h"

int
main(int argc, char **argv)
{
    Suite *suite = suite_create("fabric_conformance");
    SRunner *runner;
    int failed;

    if (argc > 1 && strncmp(argv[1], "--", 2) == 0) {
        return peer_main(&argv[1]);
    }

    /* fabric_conformance [provider [address [connections]]], like UCM_FABRIC, …_ADDRESS, …_CONNECTIONS */
    if (argc > 1) {
        (void)setenv("UCM_FABRIC", argv[1], 1);
    }
    if (argc > 2) {
        (void)setenv("UCM_FABRIC_ADDRESS", argv[2], 1);
    }
    if (argc > 3) {
        (void)setenv("UCM_FABRIC_CONNECTIONS", argv[3], 1);
    }

    suite_add_tcase(suite, capability_cases());
    suite_add_tcase(suite, transfer_cases());
    suite_add_tcase(suite, shape_cases());
    suite_add_tcase(suite, refusal_cases());
    suite_add_tcase(suite, failure_cases());
    suite_add_tcase(suite, killed_cases());
    suite_add_tcase(suite, killed_initiator_cases());
    suite_add_tcase(suite, connection_cases());
    suite_add_tcase(suite, soak_cases());
    suite_add_tcase(suite, steady_cases());
    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* threads, and registered memory */
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
