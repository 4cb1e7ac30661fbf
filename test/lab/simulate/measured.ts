/**
 * Measured round trips from a JSON file (crawlers, targets and the RTTs between them) as an instance for the delegation simulator
 * and as a world for the model of downloads.
 */
import { readFile, stat } from "node:fs/promises";
import { z } from "zod";
import { SourceFileError } from "#core/errors";
import type { World } from "#ops/world/model";
import { SeededRandom } from "#ops/world/seeded-random";

/** Limit on the size of a matrix file: about 12 million RTTs. */
const maxBytes = 64 * 1024 * 1024;

const name = z.string().max(200);
/** At most an hour: longer than any RTT on Earth. */
const rtts = z.array(z.number().min(0).max(3_600_000)).max(2000);
const host = z.object({ path: z.array(name.min(1)).min(2).max(32), org: name, cc: name });
const fixture = z
  .object({
    name: name.default(""),
    unit: z.literal("ms RTT").default("ms RTT"),
    crawlers: z.array(host).min(1).max(2000),
    crawlerRtt: z.array(rtts).max(2000),
    targets: z
      .array(host.extend({ rtt: rtts }))
      .min(1)
      .max(1_000_000),
  })
  .check(({ value: { crawlers, crawlerRtt, targets }, issues }) => {
    for (const row of [crawlerRtt, ...crawlerRtt, ...targets.map(({ rtt }) => rtt)])
      if (row.length !== crawlers.length) {
        const message = `${row.length} RTTs for ${crawlers.length} crawlers`;
        issues.push({ code: "custom", message, input: row, path: ["crawlerRtt or rtt"] });
        return;
      }
  });

export type Fixture = Readonly<z.infer<typeof fixture>>;

/** Throws SourceFileError, which names file and field, when the file cannot be read or is invalid. */
export async function readFixture(file: string): Promise<Fixture> {
  const text = await readBounded(file).catch((error: Error) => {
    throw new SourceFileError(file, null, `cannot be read: ${error.message}`, { cause: error });
  });
  return parseFixture(text, file);
}

async function readBounded(file: string): Promise<string> {
  const { size } = await stat(file);
  if (size > maxBytes) throw new Error(`${size} bytes; a fixture has at most ${maxBytes}`);
  return await readFile(file, "utf8");
}

/** Like `readFixture`, for a text; `file` appears only in errors. */
export function parseFixture(text: string, file: string): Fixture {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new SourceFileError(file, null, `is not JSON: ${(error as Error).message}`, { cause: error });
  }
  const parsed = fixture.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new SourceFileError(file, null, `${issue!.path.join(".")}: ${issue!.message}`);
}

/** Each host has its own subnet and address; bandwidths and delays, which were not measured, are drawn. */
export function measuredWorld({ name: worldName, crawlers, crawlerRtt, targets }: Fixture): World {
  const random = new SeededRandom(1);
  const hosts = [...crawlers, ...targets];
  const at = (index: number) => ({
    address: `193.${index >> 16}.${(index >> 8) & 255}.${index & 255}`,
    subnet: index,
    place: null,
    country: null,
  });
  const sites = targets.map((_, index) => ({
    ...at(crawlers.length + index),
    host: `site-${index + 1}.example`,
    addresses: [at(crawlers.length + index).address],
    language: "en" as const,
    pages: 3,
    bandwidthKbps: Math.round(Math.min(100_000, Math.max(1_000, 10_000 * Math.exp(random.normal())))),
    serverDelayMs: Math.round(Math.min(80, 2 + random.exponential(8)) * 10) / 10,
  }));
  const indexAt = new Map(sites.map(({ address }, index) => [address, index]));
  return {
    ...{ name: worldName, seed: 1, places: [], splitLeaves: [], sites },
    holders: hosts.map(({ org }) => ({ name: org, country: null, registry: "ripencc" as const })),
    subnets: hosts.map(({ path }, index) => ({
      range: { family: 4 as const, first: 0, last: 0 },
      ...{ parent: null, holder: index, country: null, registry: "ripencc" as const },
      ...{ kind: "assignment" as const, name: path.join(" ") },
    })),
    crawlers: crawlers.map((_, index) => ({ name: `crawler-${index + 1}`, ...at(index) })),
    rttMs: (crawler, address) => targets[indexAt.get(address) ?? -1]?.rtt[crawler] ?? null,
    crawlerRttMs: (a, b) => (a === b ? 0 : crawlerRtt[a]![b]!),
  };
}
