/**
 * What an independent parser (robots-parser) makes of a robots.txt. Ours decides; of one file in 1,000, chosen by its digest, a
 * difference is told to the operators, because it says that one of the two is wrong.
 */
import imported from "robots-parser";
import type { OtherReading } from "#protocol/result";
import { bodyDigest } from "../extract/extract-list.ts";
import { isSampled } from "../extract/second-opinion.ts";
import { type RobotsRules, robotsVerdict } from "./robots-rules.ts";

/** Its types describe a default export that the module does not have. */
const robotsParser = imported as unknown as (
  url: string,
  text: string,
) => { isAllowed(url: string, agent: string): boolean | undefined };

const oneOfFiles = 1000;

// The other parser compares each rule with each path: 18 ms for the slowest of 1,867 real files, and what is left when the
// time is over is not asked.
const maxBytes = 64 * 1024;
const maxPaths = 20;
const maxPathCharacters = 300;
const maxMs = 50;

/** On `%7E`, `|`, `[` and the like it departs from RFC 9309, and on robots.txt itself. */
const isPlain = (path: string) => /^\/[\w\-.~/?=&]*$/.test(path) && path !== "/robots.txt";

/** Whether the other parser allows each path; null for one that it was not asked about. */
export function otherVerdicts(
  file: Uint8Array,
  agent: string,
  paths: readonly string[],
): readonly (boolean | null)[] {
  if (file.length > maxBytes) return paths.map(() => null);
  const site = "http://site.example";
  const endMs = performance.now() + maxMs;
  const other = robotsParser(`${site}/robots.txt`, Buffer.from(file).toString());
  return paths.map((path, index) => {
    const isAsked = index < maxPaths && path.length <= maxPathCharacters && performance.now() < endMs;
    return isAsked && isPlain(path) ? (other.isAllowed(site + path, agent) ?? null) : null;
  });
}

/** Undefined: the file is not among those chosen, or both judge its rules' own paths alike. */
export function robotsDifference(
  { file, origin, agent }: { readonly file: Buffer; readonly origin: string; readonly agent: string },
  rules: RobotsRules,
): OtherReading | undefined {
  if (!isSampled(bodyDigest(file), oneOfFiles)) return undefined;
  const named = rules.rules.map(({ source }) => source.replaceAll("*", "x").replace(/\$$/, ""));
  const paths = ["/", ...named].filter(isPlain).slice(0, maxPaths);
  const others = otherVerdicts(file, agent, paths);
  const judged = paths.map((path, index) => ({
    path,
    ours: robotsVerdict(rules, path),
    other: others[index],
  }));
  const found = judged.find(({ ours, other }) => typeof other === "boolean" && other !== ours.allowed);
  if (found === undefined) return undefined;
  const { path, ours } = found;
  const words =
    `${origin}/robots.txt: we ${ours.allowed ? "allow" : "forbid"} ${path}, by ${ours.rule ?? "no rule"}, ` +
    `and robots-parser ${ours.allowed ? "forbids" : "allows"} it`;
  return { words: words.slice(0, 500), file: Buffer.from(file).toString().slice(0, 16_384) };
}
