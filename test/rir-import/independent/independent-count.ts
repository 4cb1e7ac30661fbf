/**
 * Counts a registry file with awk programs that are independent of the readers: one per format over the unpacked text,
 * with their own rules for ranges, placeholders and special-purpose addresses.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";

export interface RecordCounts {
  readonly records: number;
  readonly kept: number;
  readonly ignored: number;
  readonly malformed: number;
}

const programs = {
  delegated: ["addresses.awk", "delegated.awk"],
  rpsl: ["addresses.awk", "rpsl.awk"],
  "iana-xml": ["iana.awk"],
  /** RPSL's shape without its address classes. */
  libloc: ["paragraphs.awk"],
} as const;

export function independentCount(file: string, format: keyof typeof programs): RecordCounts {
  const program = programs[format].map((name) => readFileSync(join(import.meta.dirname, name), "utf8"));
  const unpack = file.endsWith(".zip") ? "unzip -p" : "gzip -dcf";
  const shell = `set -o pipefail; ${unpack} "$1" | LC_ALL=C awk "$2" /dev/stdin`;
  const options = { encoding: "utf8", maxBuffer: 1_000_000, timeout: 120_000 } as const;
  const out = execFileSync("bash", ["-c", shell, basename(file), file, program.join("\n")], options);
  const counts = out.trim().split(" ").map(Number);
  const [records = Number.NaN, kept = Number.NaN, ignored = Number.NaN, malformed = Number.NaN] = counts;
  return { records, kept, ignored, malformed };
}
