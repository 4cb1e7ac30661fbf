/**
 * Reads what robots.txt says about page uses: the `Content-Signal` and `Content-Usage` lines of the group that applies and
 * those before any group. `License` (RSL 1.0) outside groups is for all crawlers. In a group it replaces those for that group.
 * It must be an absolute URL.
 *
 * A rule may begin with a path (attach-05 section 3: `Content-Usage: /a/ train-ai=n`), which is matched like Allow and
 * Disallow. For `Content-Usage`, the longest matching paths apply, all of them if equally long. The policy of `Content-Signal`
 * has no paths, but sites write them, so every matching line applies, and the strictest counts.
 */
import { type ContentUse, contentUses, type StatedPreference } from "#protocol/preferences";
import { resolveUrl } from "../extract/resolve-url.ts";
import { contentSignal, contentUsage } from "../preferences/content-usage.ts";
import { type RobotsRule, robotsPath, robotsRule, ruleMatches } from "../preferences/robots-match.ts";
import { namedLicense } from "../preferences/rsl.ts";
import { boundedValue, legible, statementsOf } from "../preferences/statements.ts";

export const useFields = ["content-signal", "content-usage", "license"] as const;

export type UseField = (typeof useFields)[number];

export const isUseField = (key: string): key is UseField => (useFields as readonly string[]).includes(key);

interface UseLine {
  readonly field: UseField;
  readonly value: string;
  readonly line: number;
}

export interface RobotsUses {
  readonly lines: readonly UseLine[];
  /** The lines that exceed the limit, and the uses they deny. These are denied for every path, since the paths are not kept. */
  readonly leftOut: { readonly lines: number; readonly denied: readonly ContentUse[] };
}

export const noUses: RobotsUses = { lines: [], leftOut: { lines: 0, denied: [] } };

/** Maximum number of different lines per group. Real files have one or two. */
export const maxUseLines = 64;

/** The lines of one group, without duplicates. */
export class UseLines {
  readonly #lines = new Map<string, UseLine>();
  readonly #denied = new Set<ContentUse>();
  #leftOut = 0;

  take({ field, value, line }: UseLine): void {
    const bounded = boundedValue(value);
    const key = `${field} ${bounded}`;
    if (bounded === "" || this.#lines.has(key)) return;
    if (this.#lines.size < maxUseLines) this.#lines.set(key, { field, value: bounded, line });
    else this.#leaveOut({ field, value: bounded, line });
  }

  get all(): RobotsUses {
    const leftOut = { lines: this.#leftOut, denied: contentUses.filter((use) => this.#denied.has(use)) };
    return { lines: [...this.#lines.values()], leftOut };
  }

  #leaveOut(line: UseLine): void {
    this.#leftOut++;
    for (const { uses, answer } of read(line).stated)
      if (answer === "denied") for (const use of uses) this.#denied.add(use);
  }
}

/** A relative `License` is invalid. */
export function isAbsoluteUrl(value: string): boolean {
  return /^https?:\/\/[^/]/i.test(value) && resolveUrl(value, value) !== null;
}

/** The group's licenses replace those for all crawlers. */
export function usesOf(forAll: UseLines, group: UseLines): RobotsUses {
  const [one, other] = [forAll.all, group.all];
  const isLicensed = other.lines.some(({ field }) => field === "license");
  return {
    lines: [...one.lines.filter(({ field }) => field !== "license" || !isLicensed), ...other.lines],
    leftOut: {
      lines: one.leftOut.lines + other.leftOut.lines,
      denied: [...new Set([...one.leftOut.denied, ...other.leftOut.denied])],
    },
  };
}

/** `line` is null for lines that exceed the limit. */
export interface StatedInRobots extends StatedPreference {
  readonly line: number | null;
}

/** Takes a path with its query. */
export function usesOfPath(uses: RobotsUses, pathAndQuery: string): StatedInRobots[] {
  if (uses.lines.length === 0) return [];
  const path = robotsPath(pathAndQuery);
  const matching = uses.lines.map(readOnce).filter(({ rule }) => rule === null || ruleMatches(rule, path));
  const longest = Math.max(...matching.map((one) => (one.field === "content-usage" ? lengthOf(one) : 0)), 0);
  const inForce = matching.filter((one) => one.field !== "content-usage" || lengthOf(one) === longest);
  return [
    ...inForce.flatMap(({ stated, line }) => stated.map((one) => ({ ...one, line }))),
    ...leftOutOf(uses),
  ];
}

interface ReadLine extends UseLine {
  /** Null if the line applies to every path. */
  readonly rule: RobotsRule | null;
  readonly stated: readonly StatedPreference[];
}

const lengthOf = ({ rule }: ReadLine) => rule?.length ?? 0;

/** Caches the parsed lines for as long as their origin is cached. */
const readLines = new WeakMap<UseLine, ReadLine>();

function readOnce(line: UseLine): ReadLine {
  const known = readLines.get(line) ?? read(line);
  readLines.set(line, known);
  return known;
}

function read(line: UseLine): ReadLine {
  const { field, value } = line;
  if (field === "license") return { ...line, rule: null, stated: namedLicense(value, "robots.txt") };
  const [, path, statement = ""] = /^(\/[^ \t]*)?[ \t]*(.*)$/s.exec(value) ?? [];
  const of = field === "content-signal" ? contentSignal : contentUsage;
  const stated = of(statement, "robots.txt").map((one) =>
    path === undefined ? one : { ...one, text: legible(value) },
  );
  return { ...line, rule: path === undefined ? null : ruleOf(path), stated };
}

/** Returns a rule that matches nothing for a path that no URL can have. */
function ruleOf(path: string): RobotsRule {
  const nothing = { allow: false, line: 0, source: "", length: 0, pieces: ["\0"], anchored: true };
  return robotsRule(false, Buffer.from(path).toString("latin1"), 0) ?? nothing;
}

function leftOutOf({ leftOut: { lines, denied } }: RobotsUses): StatedInRobots[] {
  if (denied.length === 0) return [];
  const text = `${lines} further lines`;
  const stated = { standard: "content-signal", place: "robots.txt" } as const;
  return statementsOf(
    stated,
    denied.map((use) => [use, "denied"]),
    text,
  ).map((one) => ({ ...one, line: null }));
}
