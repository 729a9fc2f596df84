/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>

#include <ucm/block.h>

void
uc_io_results_release(struct uc_io_result *results, size_t count)
{
    if (results == NULL) {
        return;
    }

    for (size_t idx = 0; idx < count; idx++) {
        free(results[idx].blocks);
        results[idx].blocks = NULL; /* releasing twice is harmless */
    }
}
