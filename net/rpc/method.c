/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/method.h"

#include <string.h>

#define METHOD_NAME_(name, text)  [UC_RPC_##name] = (text),
#define METHOD_BYTES_(name, text) [UC_RPC_##name] = sizeof(text) - 1,

static const char *const method_names[UC_RPC_METHOD_COUNT] = {UC_RPC_METHOD_MAP(METHOD_NAME_)};
static const unsigned char method_bytes[UC_RPC_METHOD_COUNT] = {UC_RPC_METHOD_MAP(METHOD_BYTES_)};

const char *
uc_rpc_method_name(enum uc_rpc_method method)
{
    return (unsigned int)method < UC_RPC_METHOD_COUNT ? method_names[method] : "unknown";
}

enum uc_rpc_method
uc_rpc_method_find(const char *name, size_t length)
{
    for (unsigned int idx = 0; idx < UC_RPC_METHOD_COUNT; idx++) {
        if (length == method_bytes[idx] && memcmp(name, method_names[idx], length) == 0) {
            return (enum uc_rpc_method)idx;
        }
    }

    return UC_RPC_METHOD_COUNT;
}
