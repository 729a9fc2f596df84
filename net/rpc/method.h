/* SPDX-License-Identifier: Apache-2.0 */

/** @file method.h Names of the RPC methods (net/PROTOCOL.md). */

#ifndef UC_NET_RPC_METHOD_H
#define UC_NET_RPC_METHOD_H

#include <stddef.h>

/* X(ENUM, "wire name") */
#define UC_RPC_METHOD_MAP(X)      \
    X(HELLO, "hello")             \
    X(ATTACH, "attach")           \
    X(PING, "ping")               \
    X(LOOKUP, "lookup")           \
    X(PIN, "pin")                 \
    X(UNPIN, "unpin")             \
    X(ALLOC, "alloc")             \
    X(WRITE_BEGIN, "write_begin") \
    X(WRITE_END, "write_end")     \
    X(COMMIT, "commit")           \
    X(TOUCH, "touch")             \
    X(REPORT, "report")           \
    X(STAT, "stat")               \
    X(DEBUG_FLIP, "debug_flip")

#define UC_RPC_METHOD_ENUM_(name, text) UC_RPC_##name,
enum uc_rpc_method {
    UC_RPC_METHOD_MAP(UC_RPC_METHOD_ENUM_)
    UC_RPC_METHOD_COUNT, /* also: a name this build does not know */
};
#undef UC_RPC_METHOD_ENUM_

/** @return the wire name, static storage. */
const char *uc_rpc_method_name(enum uc_rpc_method method);

/** @return the method of a wire name, or UC_RPC_METHOD_COUNT. */
enum uc_rpc_method uc_rpc_method_find(const char *name, size_t length);

#endif /* UC_NET_RPC_METHOD_H */
