/* SPDX-License-Identifier: Apache-2.0 */

/** @file compiler.h Attribute macros; empty where the compiler lacks them. */

#ifndef UC_COMPILER_H
#define UC_COMPILER_H

#define UC_API __attribute__((visibility("default")))
/* Exported for the libraries of this tree only (version node UCM_PRIVATE in core/core.map). */
#define UC_PRIVATE_API  __attribute__((visibility("default")))
#define UC_MUST_CHECK   __attribute__((warn_unused_result))
#define UC_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define UC_PREFETCH(p)  __builtin_prefetch(p) /* a line that is read soon */

#if defined(__clang__)
#    define UC_TSA_(x) __attribute__((x))
#else
#    define UC_TSA_(x)
#endif
#define UC_CAPABILITY  UC_TSA_(capability("mutex"))
#define UC_ACQUIRES(l) UC_TSA_(acquire_capability(l))
#define UC_RELEASES(l) UC_TSA_(release_capability(l))
#define UC_REQUIRES(l) UC_TSA_(requires_capability(l))
#define UC_EXCLUDES(l) UC_TSA_(locks_excluded(l))
#define UC_NO_TSA      UC_TSA_(no_thread_safety_analysis)

#endif /* UC_COMPILER_H */
