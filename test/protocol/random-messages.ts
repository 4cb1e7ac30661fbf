/** Seeded results unlike the web: every text, number and list that the schema allows may occur. */
import { seededRandom } from "#core/random";
import { type FetchResult, fetchResultSchema } from "#protocol/result";
import { generatedResults } from "./generated-results.ts";

const oddTexts = [
  "",
  "plain",
  "two\nlines",
  "tab\tand !",
  "'quoted':1",
  "'a':1A,5 'b':2",
  "ünïcödé 語 👋",
  "\ud800 half a character",
  "\u2028\0\u0001",
  "0123456789abcdef0123456789abcdef",
  "0123456789ABCDEF",
  "2026-11-22T08:30:00.000Z",
  "2026-02-30T08:30:00.000Z",
  "Sun, 22 Nov 2026 08:30:00 GMT",
  "Sunday, 22-Nov-26 08:30:00 GMT",
  "007",
  "7",
  '"',
  "{a:s}",
];
const oddUrls = [
  "/no/origin",
  "//host/path",
  "https://",
  "http://other.example/a b",
  "https:///x",
  "mailto:x",
  "!https://x/",
];

/** Results with random texts and URLs, all valid by the schema. */
export function randomResults(count: number, seed: number): FetchResult[] {
  const random = seededRandom(seed);
  return generatedResults({ count, hosts: 3, seed }).map(({ result }) => {
    const odd = spoiled(result, random) as FetchResult;
    return fetchResultSchema.safeParse(odd).success ? odd : result;
  });
}

/** A copy in which about every fifth text differs and lists may be shorter. */
function spoiled(value: unknown, random: () => number, key = ""): unknown {
  if (Array.isArray(value)) {
    const kept = random() < 0.2 ? value.slice(0, Math.floor(random() * 3)) : value;
    return kept.map((item) => spoiled(item, random, key));
  }
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([name, field]) => [name, spoiled(field, random, name)]),
    );
  }
  if (typeof value === "string" && random() < 0.2 && isFree(key))
    return oneOf(key === "url" ? oddUrls : oddTexts, random);
  if (typeof value === "number" && random() < 0.2 && key.endsWith("Ms")) return random() * 1000;
  return value;
}

const isFree = (key: string) =>
  ["url", "anchor", "title", "text", "description", "etag", "charset"].includes(key);

function oneOf<Item>(items: readonly Item[], random: () => number): Item {
  return items[Math.floor(random() * items.length)]!;
}
