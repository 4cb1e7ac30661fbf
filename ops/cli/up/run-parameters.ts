/** What a run is asked for, checked; and what of it decides whether a broken-off run can be taken up again. */
import { z } from "zod";
import { policyNames } from "#coordinator/delegation/policies/round";
import { UsageError } from "#core/errors";

/** From the command line as text; an empty one would be read as 0. */
const written = z.union([z.number(), z.string().regex(/\S/, "expected a number").transform(Number)]);
const amount = (least: number, most: number) => written.pipe(z.number().min(least).max(most));
const count = (least: number, most: number) => written.pipe(z.int().min(least).max(most));

const worldSchema = z.strictObject({
  sites: count(1, 100_000).default(1000),
  crawlers: count(1, 200).default(12),
  policy: z.enum(policyNames).default("nearest"),
  seed: count(0, 0xffff_ffff).default(1),
  pagesPerSite: count(1, 1000).default(5),
  noiseMs: amount(0, 100).default(0),
  /** A fixture file (format of `simulate delegation`) in place of the generated world; null: generated. */
  fixture: z.string().nullable().default(null),
  thresholdMs: amount(0, 10_000).default(50),
  lambdaMs: amount(0, 1000).default(2),
});

/** A run against the emulated Internet. The same parameters name the same run. */
export type WorldParameters = Readonly<z.infer<typeof worldSchema>>;

export function worldParameters(values: Record<string, unknown>): WorldParameters {
  const known = Object.fromEntries(
    Object.keys(worldSchema.shape).flatMap((name) =>
      values[name] === undefined ? [] : [[name, values[name]]],
    ),
  );
  const checked = worldSchema.safeParse(known);
  if (checked.success) return checked.data;
  const faults = checked.error.issues.map((issue) => `--${kebab(String(issue.path[0]))}: ${issue.message}`);
  throw new UsageError(faults.join("\n"));
}

const kebab = (name: string) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
