/** What `nearcrawl robots` answers: the group that holds for an agent, and its verdict on each path. */
import {
  agentToken,
  maxRobotsBytes,
  type RobotsRules,
  robotsVerdict,
  sitemapUrls,
} from "#crawler/fetch/robots-rules";
import { printable } from "../printable.ts";

export interface RobotsReport {
  /** The product token that groups were looked up for. */
  readonly agent: string;
  readonly source: string;
  /** How robots.txt was had: each URL asked and what it answered; empty for a file. */
  readonly hops: readonly { readonly url: string; readonly status: number | null }[];
  /** Null where rules were read; else why everything is allowed or forbidden, in words. */
  readonly why: string | null;
  /** The User-agent lines of the groups in force; empty: no group is for this agent. */
  readonly group: readonly string[];
  readonly crawlDelaySeconds: number | null;
  readonly sitemaps: readonly string[];
  /** The file is longer than what is read of it. */
  readonly cut: boolean;
  readonly verdicts: readonly PathVerdict[];
}

export interface PathVerdict {
  readonly path: string;
  readonly allowed: boolean;
  /** The deciding line in words; null when none matched. */
  readonly rule: string | null;
  readonly line: number | null;
}

export type RobotsSource = Pick<RobotsReport, "agent" | "source" | "hops"> & {
  /** Relative sitemaps belong to it. */
  readonly url: string;
};

export function reportOfRules(
  rules: RobotsRules,
  { url, ...source }: RobotsSource,
  paths: readonly string[],
): RobotsReport {
  return {
    ...source,
    agent: agentToken(source.agent),
    why: null,
    group: rules.agents,
    crawlDelaySeconds: rules.crawlDelaySeconds,
    sitemaps: sitemapUrls(rules, url),
    cut: rules.cut,
    verdicts: paths.map((path) => ({ path, ...robotsVerdict(rules, path) })),
  };
}

/** For an origin whose robots.txt has no rules: absent, closed or out of reach. */
export function reportWithoutRules(
  { url: _url, ...source }: RobotsSource,
  { allowed, why }: { readonly allowed: boolean; readonly why: string },
  paths: readonly string[],
): RobotsReport {
  return {
    ...source,
    agent: agentToken(source.agent),
    why,
    group: [],
    crawlDelaySeconds: null,
    sitemaps: [],
    cut: false,
    verdicts: paths.map((path) => ({ path, allowed, rule: null, line: null })),
  };
}

export function robotsText(report: RobotsReport): string {
  const lines = [
    ...report.hops.map(({ url, status }) => `asked    ${printable(url)} → ${status ?? "no answer"}`),
    `agent    ${printable(report.agent)}, ${groupWords(report)}`,
    ...(report.crawlDelaySeconds === null ? [] : [`delay    ${report.crawlDelaySeconds} s between requests`]),
    ...report.sitemaps.map((url) => `sitemap  ${printable(url)}`),
    ...(report.cut
      ? [`cut      the file is longer than ${maxRobotsBytes} bytes; the rest was not read`]
      : []),
    ...report.verdicts.map(verdictLine),
  ];
  return lines.join("\n");
}

function groupWords({ why, group }: RobotsReport): string {
  if (why !== null) return printable(why);
  if (group.length === 0) return "for whom no group stands in the file: everything is allowed";
  return `by the group of ${group.map((agent) => printable(agent, 60)).join(", ")}`;
}

function verdictLine({ path, allowed, rule }: PathVerdict): string {
  const because = rule === null ? "" : `  by ${printable(rule)}`;
  return `${allowed ? "allowed  " : "FORBIDDEN"} ${printable(path)}${because}`;
}
