/** Runs a reader over bytes and records its output for comparison with a JSON file. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { formatRange } from "#core/ip/range";
import type { FileFacts, Malformed, OpenReader, RegistryRecord } from "#rir-import/formats/record";

export interface Recorded {
  readonly records: readonly unknown[];
  readonly ignored: Readonly<Record<string, number>>;
  readonly malformed: readonly Malformed[];
  readonly warnings: readonly string[];
  readonly facts: FileFacts;
}

export const fixtures = join(import.meta.dirname, "../fixtures/rir");
export const fixture = (name: string) => readFileSync(join(fixtures, name));
export const expected = (name: string) => JSON.parse(fixture(name).toString("utf8")) as Recorded;

/** `chunkBytes` is the size of the chunks; by default all bytes are one. */
export function recorded(open: OpenReader, bytes: Buffer, chunkBytes = bytes.length): Recorded {
  const records: unknown[] = [];
  const ignored: Record<string, number> = {};
  const malformed: Malformed[] = [];
  const warnings: string[] = [];
  let facts: FileFacts = {};
  const reader = open("test-file", {
    record: (record) => records.push(printable(record)),
    ignore: (reason) => {
      ignored[reason] = (ignored[reason] ?? 0) + 1;
    },
    malformed: (problem) => malformed.push(problem),
    warn: (text) => warnings.push(text),
    facts: (more) => {
      facts = { ...facts, ...more };
    },
  });
  for (let start = 0; start < bytes.length; start += chunkBytes) {
    reader.push(bytes.subarray(start, start + chunkBytes));
  }
  reader.end();
  return { records, ignored, malformed, warnings, facts };
}

function printable(record: RegistryRecord): unknown {
  if (record.type !== "network") return record;
  const { type, line, source, range, registry, name, country, holder } = record;
  return { type, line, source, range: formatRange(range), registry, name, country, holder };
}
