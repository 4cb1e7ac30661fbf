/**
 * How much room V8 gets for the young objects of an extraction thread, by the memory that the partner allows. With more of it
 * there are fewer collections, and fewer objects of a page live until they count as old ones: less work for the
 * processor, for memory that a small host does not have (test/bench/results/crawl.md).
 */

const mebibyte = 1024 * 1024;

/** From so much allowed memory on there is room. No limit is one that the host did not want to set. */
const roomyFromBytes = 512 * mebibyte;

/** Three semi-spaces. */
const roomyMegabytes = 48;
const narrowMegabytes = 8;

export function youngMegabytes(memoryBytes: number | null): number {
  return memoryBytes === null || memoryBytes >= roomyFromBytes ? roomyMegabytes : narrowMegabytes;
}
