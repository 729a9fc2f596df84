/* SPDX-License-Identifier: Apache-2.0 */

/** @file node.h What the files of the test node share. One thread. */

#ifndef UC_TEST_NODE_H
#define UC_TEST_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/assembler.h>

enum {
    NODE_KEYS_MAX = 4096,
    NODE_JOBS_MAX = 64,
};

/** A job that was not waited for; one of a prefetch has no blocks of ours. */
struct job {
    uint64_t id;
    uint64_t first;
    size_t count;
    uint8_t *memory;
    uint64_t memory_bytes;
    uint32_t region_idx;
    bool is_registered;
    bool is_plain; /* memory of the C library */
    bool in_use;
    bool put;
};

struct node {
    struct uc_assembler *assembler;
    struct uc_scheduler *scheduler;
    struct uc_worker *worker;
    uint64_t block_bytes;
    bool is_plain; /* jobs from now on use memory that nobody registers */
    struct job jobs[NODE_JOBS_MAX];
    struct uc_block_id keys[NODE_KEYS_MAX];
};

/** Commands: `words[0]` is the name; there are as many words as the table of node.c asks for, at least. */
typedef void (*command_fn)(struct node *node, char **words, size_t word_count);

/** Answer "ok", or "error STATUS text". */
void node_answer(enum uc_status status);

uint64_t node_number(const char *word);

/** Keys of `count` hash ids from `first` on; @return the count, cut to what fits. */
size_t node_make_keys(struct node *node, const char *first, const char *count);

/** Answer "ok TOKEN" and release it. */
void node_print_token(struct uc_token *token);

/** The token of a word, owned by the caller. */
enum uc_status node_read_token(const char *hex, struct uc_token **token_out);

/* node_jobs.c: put, get, prefetch, wait, memory. */
void node_command_submit(struct node *node, char **words, size_t word_count);
void node_command_prefetch(struct node *node, char **words, size_t word_count);
void node_command_wait(struct node *node, char **words, size_t word_count);
void node_command_memory(struct node *node, char **words, size_t word_count);

/* node_describe.c: describe. */
void node_command_describe(struct node *node, char **words, size_t word_count);

#endif /* UC_TEST_NODE_H */
