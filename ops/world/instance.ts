/**
 * The form in which the delegation simulator takes a world or a measured matrix: no addresses, only the
 * names on the way down the registry, holder, country and the round-trip times. One that comes from outside
 * is checked once, here.
 */
import { z } from "zod";
import { UsageError } from "#core/errors";

export interface LatencyInstance {
  readonly name: string;
  /** What the RTTs are: `ms RTT`. */
  readonly unit: string;
  readonly crawlers: readonly InstanceHost[];
  /** Between crawlers, in ms. */
  readonly crawlerRtt: readonly (readonly number[])[];
  readonly targets: readonly InstanceTarget[];
}

export interface InstanceHost {
  /** Names of the subnets from the root to the leaf. */
  readonly path: readonly string[];
  readonly org: string;
  readonly cc: string;
}

export interface InstanceTarget extends InstanceHost {
  /** From each crawler, in ms. */
  readonly rtt: readonly number[];
}

/** Throws UsageError that names what is wrong and where. */
export function readInstance(json: unknown): LatencyInstance {
  const parsed = shape.safeParse(json);
  if (!parsed.success) {
    const [first] = parsed.error.issues;
    throw new UsageError(
      `fixture: ${first?.path.join(".") || "the file"}: ${first?.message ?? "not an instance"}`,
    );
  }
  const instance = parsed.data;
  const crawlers = instance.crawlers.length;
  instance.crawlerRtt.forEach((row, index) => {
    refuseLength(`crawlerRtt.${index}`, row.length, crawlers);
  });
  refuseLength("crawlerRtt", instance.crawlerRtt.length, crawlers);
  instance.targets.forEach((target, index) => {
    refuseLength(`targets.${index}.rtt`, target.rtt.length, crawlers);
  });
  return instance;
}

const name = z.string().max(200);
const rttMs = z.number().min(0).max(60_000);
const host = z.object({ path: z.array(name).min(2).max(32), org: name, cc: name });
const shape = z.object({
  name: name.default("fixture"),
  unit: name.default("ms RTT"),
  crawlers: z.array(host).min(1).max(2000),
  crawlerRtt: z.array(z.array(rttMs)),
  targets: z.array(host.extend({ rtt: z.array(rttMs) })).max(200_000),
});

function refuseLength(where: string, found: number, expected: number): void {
  if (found === expected) return;
  throw new UsageError(
    `fixture: ${where} has ${found} values, one for each of the ${expected} crawlers expected`,
  );
}
