/**
 * Compares our reading of a robots.txt with an independent parser (robots-parser) on one file in 1,000, chosen by
 * digest. Ours decides; operators learn of a difference, because one parser must be wrong.
 */
import imported from "robots-parser";
import type { OtherReading } from "#protocol/result";
import { bodyDigest } from "../extract/extract-list.ts";
import { isSampled } from "../extract/second-opinion.ts";
import { type RobotsRules, robotsVerdict } from "./robots-rules.ts";

/** Its types describe a default export that the module lacks. */
const robotsParser = imported as unknown as (
  url: string,
  text: string,
) => { isAllowed(url: string, agent: string): boolean | undefined };

const oneOfFiles = 1000;

// The other parser compares every rule with every path: 18 ms for the slowest of 1,867 real files. It is not asked for
// what remains after the time limit.
const maxBytes = 64 * 1024;
const maxPaths = 20;
const maxPathCharacters = 300;
const maxMs = 50;

/** It departs from RFC 9309 on `%7E`, `|`, `[` and similar characters, and on robots.txt itself. */
const isPlain = (path: string) => /^\/[\w\-.~/?=&]*$/.test(path) && path !== "/robots.txt";

/** Returns null for a path that the other parser was not asked about. */
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
    const isAsked =
      index < maxPaths && path.length <= maxPathCharacters && (index === 0 || performance.now() < endMs);
    return isAsked && isPlain(path) ? (other.isAllowed(site + path, agent) ?? null) : null;
  });
}

/** Returns undefined when the file is not sampled or both parsers agree on its rules' paths. */
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
