/** Which settings a running crawler can take over, and what becomes of the others. Pure. */
import type { CrawlerConfig } from "./config.ts";

/** The others are wired in at the start: they take a restart. */
const changeable = [
  "limits",
  "allowRanges",
  "denyRanges",
  "denyDomains",
  "domainSets",
  "probeMethods",
] as const;
/** Said in the hello. */
const told = ["denyRanges", "denyDomains", "domainSets", "probeMethods"] as const;
/** The coordinator changes it while the crawler runs; the crawler has the newest. */
const notTheHosts: ReadonlySet<string> = new Set(["key"]);

export interface ChangedConfig {
  /** What is in force from now on. */
  readonly config: CrawlerConfig;
  /** Settings that were changed, by name: those in force, and those that wait for a restart. */
  readonly changed: readonly string[];
  readonly needRestart: readonly string[];
  /** The coordinator should know. */
  readonly isTold: boolean;
}

export function changedConfig(now: CrawlerConfig, next: CrawlerConfig): ChangedConfig {
  const { extractionThreads } = now.limits;
  const taken = Object.fromEntries(changeable.map((name) => [name, next[name]]));
  const config = { ...now, ...taken, limits: { ...next.limits, extractionThreads } };
  const wanted = changedNames(now, next).filter((name) => !notTheHosts.has(name));
  const inForce = new Set(changedNames(now, config));
  return {
    config,
    changed: wanted.filter((name) => inForce.has(name)),
    needRestart: wanted.filter((name) => !inForce.has(name)),
    isTold: told.some((name) => inForce.has(name)) || [...inForce].some((name) => name.startsWith("limits.")),
  };
}

function changedNames(one: CrawlerConfig, other: CrawlerConfig): string[] {
  const { limits: oneLimits, ...oneOthers } = one;
  const { limits: otherLimits, ...others } = other;
  const limits = differing(oneLimits, otherLimits).map((name) => `limits.${name}`);
  return [...differing(oneOthers, others), ...limits];
}

function differing<Values extends object>(one: Values, other: Values): string[] {
  const names = Object.keys(one) as (keyof Values & string)[];
  return names.filter((name) => JSON.stringify(one[name]) !== JSON.stringify(other[name]));
}
