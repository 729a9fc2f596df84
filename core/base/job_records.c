/* SPDX-License-Identifier: Apache-2.0 */

#include "core/base/job_records.h"

#include <stdlib.h>
#include <string.h>

struct uc_job_chunk {
    struct uc_job_chunk *next;
    size_t record_count;
    struct uc_job_record records[];
};

/* Job ids are often consecutive or multiples of a power of two: spread them (splitmix64's last steps). */
static size_t
bucket_of(uint64_t job_id, size_t bucket_count)
{
    uint64_t hash = job_id;

    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
    return (size_t)(hash ^ (hash >> 31)) & (bucket_count - 1);
}

static void
rehash(const struct uc_job_records *records, struct uc_job_record **buckets, size_t bucket_count)
{
    for (size_t idx = 0; idx < records->record_count; idx++) {
        struct uc_job_record *record = records->buckets[idx];

        while (record != NULL) {
            struct uc_job_record *next = record->bucket_next;
            size_t bucket = bucket_of(record->job_id, bucket_count);

            record->bucket_next = buckets[bucket];
            buckets[bucket] = record;
            record = next;
        }
    }
}

/* Add a chunk of records and replace the buckets by as many as there are records then. */
static enum uc_status
grow(struct uc_job_records *records, size_t chunk_count)
{
    size_t bucket_count = records->record_count + chunk_count;
    struct uc_job_record **buckets;
    struct uc_job_chunk *chunk;

    chunk = calloc(1, sizeof(*chunk) + chunk_count * sizeof(chunk->records[0]));
    if (chunk == NULL) {
        return UC_ERR_OUT_OF_MEMORY;
    }

    buckets = calloc(bucket_count, sizeof(*buckets));
    if (buckets == NULL) {
        free(chunk);
        return UC_ERR_OUT_OF_MEMORY;
    }

    rehash(records, buckets, bucket_count);
    free(records->buckets);
    records->buckets = buckets;
    records->record_count = bucket_count;
    for (size_t idx = 0; idx < chunk_count; idx++) {
        uc_list_add(&records->free_records, &chunk->records[idx].node);
    }
    chunk->record_count = chunk_count;
    chunk->next = records->chunks;
    records->chunks = chunk;
    return UC_OK;
}

enum uc_status
uc_job_records_init(struct uc_job_records *records, size_t prepared_count)
{
    size_t record_count = 1;

    memset(records, 0, sizeof(*records));
    uc_list_init(&records->free_records);
    if (prepared_count > SIZE_MAX / 4 / sizeof(struct uc_job_record)) {
        return UC_ERR_OUT_OF_MEMORY;
    }
    while (record_count < prepared_count) {
        record_count *= 2;
    }
    return grow(records, record_count);
}

void
uc_job_records_fini(struct uc_job_records *records)
{
    struct uc_job_chunk *chunk = records->chunks;

    while (chunk != NULL) {
        struct uc_job_chunk *next = chunk->next;

        for (size_t idx = 0; idx < chunk->record_count; idx++) {
            free(chunk->records[idx].blocks);
        }
        free(chunk);
        chunk = next;
    }
    free(records->buckets);
}

struct uc_job_record **
uc_job_records_find(const struct uc_job_records *records, uint64_t job_id)
{
    struct uc_job_record **link = &records->buckets[bucket_of(job_id, records->record_count)];

    while (*link != NULL && (*link)->job_id != job_id) {
        link = &(*link)->bucket_next;
    }
    return link;
}

enum uc_status
uc_job_records_add(
        struct uc_job_records *records, uint64_t job_id, struct uc_job_record **record_out)
{
    struct uc_job_record **bucket;
    struct uc_job_record *record;

    if (uc_list_is_empty(&records->free_records) && grow(records, records->record_count) != UC_OK) {
        return UC_ERR_OUT_OF_MEMORY;
    }

    record = uc_list_entry(uc_list_take(&records->free_records), struct uc_job_record, node);
    bucket = &records->buckets[bucket_of(job_id, records->record_count)];
    record->job_id = job_id;
    record->bucket_next = *bucket;
    *bucket = record;
    records->used_count++;
    *record_out = record;
    return UC_OK;
}

void
uc_job_records_remove(struct uc_job_records *records, struct uc_job_record **link)
{
    struct uc_job_record *record = *link;

    *link = record->bucket_next;
    record->bucket_next = NULL;
    uc_list_remove(&record->node);
    uc_list_add(&records->free_records, &record->node);
    records->used_count--;
}
