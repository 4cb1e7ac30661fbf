/**
 * Reads a fixture: an instance for the delegation simulator as a JSON file. The file comes from anywhere, so
 * its size is bounded before it is parsed, and its form is checked once; faults name file, field and value.
 */
import { readFile, stat } from "node:fs/promises";
import { z } from "zod";
import { SourceFileError } from "#core/errors";

/** Largest file that is read: about 12 million RTTs. */
export const maxFixtureBytes = 64 * 1024 * 1024;

const name = z.string().max(200);
/** An hour: no RTT on this planet is longer. */
const rttMs = z.number().min(0).max(3_600_000);
const host = z.object({ path: z.array(name.min(1)).min(2).max(32), org: name, cc: name });
const fixture = z.object({
  name: name.default(""),
  unit: z.literal("ms RTT").default("ms RTT"),
  crawlers: z.array(host).min(1).max(2000),
  crawlerRtt: z.array(z.array(rttMs).max(2000)).max(2000),
  targets: z
    .array(host.extend({ rtt: z.array(rttMs).max(2000) }))
    .min(1)
    .max(1_000_000),
});

export type Fixture = Readonly<z.infer<typeof fixture>>;

/** Throws SourceFileError when the file cannot be read or is not a fixture. */
export async function readFixture(file: string): Promise<Fixture> {
  return parseFixture(await readBounded(file), file);
}

/** The same for a text that is already here; `file` is what errors name. */
export function parseFixture(text: string, file: string): Fixture {
  return checkFixture(parseJson(text, file), file);
}

/** The same for JSON that is parsed already. */
export function checkFixture(json: unknown, file: string): Fixture {
  const parsed = fixture.safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    const found = describe(valueAt(json, issue.path));
    throw new SourceFileError(file, null, `${fieldOf(issue.path)}: ${issue.message} (found ${found})`);
  }
  checkCounts(parsed.data, file);
  return parsed.data;
}

async function readBounded(file: string): Promise<string> {
  try {
    const { size } = await stat(file);
    if (size > maxFixtureBytes) {
      throw new SourceFileError(file, null, `${size} bytes; a fixture has at most ${maxFixtureBytes}`);
    }
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof SourceFileError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new SourceFileError(file, null, `cannot be read: ${reason}`, { cause: error });
  }
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new SourceFileError(file, null, `is not JSON: ${reason.slice(0, 200)}`, { cause: error });
  }
}

/** Every matrix row has one value per crawler. */
function checkCounts({ crawlers, crawlerRtt, targets }: Fixture, file: string): void {
  const refuse = (field: string, found: number) => {
    throw new SourceFileError(file, null, `${field}: ${found} values for ${crawlers.length} crawlers`);
  };
  if (crawlerRtt.length !== crawlers.length) refuse("crawlerRtt", crawlerRtt.length);
  for (const [index, row] of crawlerRtt.entries()) {
    if (row.length !== crawlers.length) refuse(`crawlerRtt[${index}]`, row.length);
  }
  for (const [index, target] of targets.entries()) {
    if (target.rtt.length !== crawlers.length) refuse(`targets[${index}].rtt`, target.rtt.length);
  }
}

function fieldOf(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "the whole file";
  return path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`))
    .join("")
    .replace(/^\./, "");
}

function valueAt(json: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, part) =>
      typeof value === "object" && value !== null ? (value as Record<PropertyKey, unknown>)[part] : undefined,
    json,
  );
}

function describe(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === "object" && value !== null) return "an object";
  return String(JSON.stringify(value) ?? value).slice(0, 60);
}
