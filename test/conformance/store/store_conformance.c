/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The store conformance suite against any store:
 *
 *     store_conformance [config.yaml] [key=value ...]
 *
 * The configuration is what an assembler takes, as YAML; without a file it is read from the environment
 * variable UCM_STORE_CONFIG. key=value changes it, e.g. config.servers.0=127.0.0.1:7000.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config/fields.h"
#include "test/conformance/store/suite.h"

static enum uc_status
read_config(int argc, char **argv, struct uc_dict **config_out)
{
    const char *text = getenv("UCM_STORE_CONFIG");
    struct uc_dict *config = NULL;
    enum uc_status status;
    int next = 1;

    if (argc > 1 && strchr(argv[1], '=') == NULL) {
        status = uc_yaml_read_file(argv[1], &config);
        next = 2;
    } else if (text != NULL) {
        status = uc_yaml_read_text(text, strlen(text), "UCM_STORE_CONFIG", &config);
    } else {
        return uc_error(UC_ERR_INVALID_PARAM,
                "no configuration: give a YAML file, or set UCM_STORE_CONFIG");
    }

    for (int idx = next; status == UC_OK && idx < argc; idx++) {
        status = uc_config_set_text(config, argv[idx]);
    }
    if (status != UC_OK) {
        uc_dict_destroy(config);
        return status;
    }
    *config_out = config;
    return UC_OK;
}

static int
run_suite(void)
{
    TCase *cases[] = {suite_lookup_cases(), suite_transfer_cases(), suite_window_cases(),
            suite_job_cases(), suite_memory_cases(), suite_split_cases(), suite_engine_cases()};
    Suite *all = suite_create("store_conformance");
    SRunner *runner;
    int failed;

    for (size_t idx = 0; idx < sizeof(cases) / sizeof(cases[0]); idx++) {
        tcase_add_checked_fixture(cases[idx], suite_start, suite_stop);
        tcase_set_timeout(cases[idx], SUITE_CASE_TIMEOUT_S);
        suite_add_tcase(all, cases[idx]);
    }
    runner = srunner_create(all);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
    bool is_worker = argc > 2 && strcmp(argv[1], "--worker") == 0;
    struct uc_dict *config = NULL;
    int exit_status;

    /* The worker of a split case is this program again: "--worker FD" before the same arguments. */
    if (read_config(is_worker ? argc - 2 : argc, is_worker ? argv + 2 : argv, &config) != UC_OK) {
        (void)fprintf(stderr, "store_conformance: %s\n", uc_last_error());
        return EXIT_FAILURE;
    }
    suite.config = config;
    suite.arguments = argv + 1;
    exit_status = is_worker ? suite_run_worker(atoi(argv[2])) : run_suite();
    uc_dict_destroy(config);
    return exit_status;
}
