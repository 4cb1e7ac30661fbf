/**
 * By which a plan is known again: the generation that it was compared with, and what the files held. An import that
 * is told a plan's fingerprint goes through only while both are as they were.
 *
 *   12-5f2c…   generation 12, and the first 32 hex digits of the SHA-256 over the files' own, in their order
 *   0-5f2c…    an empty tree
 */
import { createHash } from "node:crypto";
import { UsageError } from "#core/errors";
import type { FileReport } from "./read/file-report.ts";

export const fingerprintForm = /^(\d{1,10})-([0-9a-f]{32})$/;

export function fingerprintOf(
  generation: number | null,
  files: readonly Pick<FileReport, "sha256">[],
): string {
  const digest = createHash("sha256").update(files.map(({ sha256 }) => sha256).join("\n"));
  return `${generation ?? 0}-${digest.digest("hex").slice(0, 32)}`;
}

/** Throws UsageError when the tree has changed since the plan. */
export function requirePlannedGeneration(planned: string, generation: number | null): void {
  const [, before] = fingerprintForm.exec(planned) ?? [];
  if (before === undefined) throw new UsageError(`"${planned.slice(0, 80)}" is no plan's fingerprint`);
  if (Number(before) === (generation ?? 0)) return;
  const was = before === "0" ? "an empty tree" : `generation ${before}`;
  const now = generation === null ? "no registry is in force" : `generation ${generation} is in force`;
  throw new UsageError(`the plan was made against ${was}, and now ${now}: plan anew`);
}

/** Throws UsageError when the files have changed since the plan. */
export function requirePlannedFiles(
  planned: string,
  generation: number | null,
  files: readonly FileReport[],
): void {
  if (fingerprintOf(generation, files) === planned) return;
  throw new UsageError("the files are not those that the plan was made from: plan anew");
}
