/** `nearcrawl robots`: what a robots.txt allows and by which rule, from a file or as the crawler would fetch it. */
import { Command } from "commander";
import { statementLines } from "#coordinator/crawl/batch/stated-uses";
import { UsageError } from "#core/errors";
import { canParseUrl, withoutUser } from "#core/ip/url-host";
import { printable } from "#core/terminal-text";
import type { RobotsAnswer } from "#crawler/fetch/ask-robots";
import { RobotsCache } from "#crawler/fetch/robots";
import {
  agentToken,
  maxRobotsBytes,
  otherVerdicts,
  parseRobots,
  type RobotsRules,
  robotsVerdict,
  sitemapUrls,
} from "#crawler/fetch/robots-rules";
import { type StatedInRobots, usesOfPath } from "#crawler/fetch/robots-uses";
import { SiteClient } from "#crawler/fetch/site-client";
import { type PreferenceAnswer, type UseAnswers, useAnswers } from "#protocol/preferences";
import { exitCodes } from "../exit-codes.ts";
import { printAnswer } from "../output.ts";
import {
  forUsWords,
  readInput,
  type SingleFetchOptions,
  withFetchOptions,
  withFetchTools,
} from "../page/single-fetch.ts";

interface RobotsOptions extends SingleFetchOptions {
  readonly agent: string;
  readonly path?: readonly string[];
  readonly json?: boolean;
}

export function robotsCommand(): Command {
  const command = new Command("robots")
    .description(
      "what a robots.txt allows (RFC 9309) and states of the uses of pages, and by which of its lines",
    )
    .argument("<source>", "the URL of a page or of a robots.txt, a file, or - for standard input")
    .option(
      "--agent <token>",
      "whom to judge for: FooBot, or its User-Agent from the first letter on",
      "Nearcrawl",
    )
    .option("--path <path...>", "paths to judge, such as '/a?b=c' (default: the URL's own, or /)")
    .option("--json", "print for programs");
  return withFetchOptions(command)
    .addHelpText(
      "after",
      `
What the file states of the uses of pages (Content-Signal, Content-Usage, License) stands under each path, with its
line and what it comes to for us: a page whose use for search is denied is fetched for its links and not indexed.
Headers and the page itself may state more: see \`nearcrawl fetch\`.
Of a URL, robots.txt is fetched as the crawler does it: redirects followed, addresses guarded; 4xx allows
everything, 5xx, 429 and no answer forbid everything.
Exit codes: 0 judged, whatever the verdict; 1 robots.txt could not be had; 2 the file cannot be read.

Examples:
  nearcrawl robots https://www.example.org/private/page
  nearcrawl robots robots.txt --agent FooBot --path /a '/b?c=d'`,
    )
    .action((source: string, options: RobotsOptions) => robots(source, options));
}

async function robots(source: string, options: RobotsOptions): Promise<void> {
  const report = /^https?:\/\//i.test(source) ? await robotsOfUrl(source, options) : ofFile(source, options);
  printAnswer(options, report, robotsText(report));
  if (report.hops.length > 0 && report.hops.at(-1)!.status === null) process.exitCode = exitCodes.failed;
}

function ofFile(source: string, { agent, path = ["/"] }: RobotsOptions): RobotsReport {
  const { bytes: file } = readInput(source, maxRobotsBytes + 1);
  const about = { agent, source, hops: [], url: "http://localhost/robots.txt", file, paths: path };
  return reportOf(parseRobots(file, agent), about);
}

/** `source` is the URL of a robots.txt, or of a page. The page itself is judged unless paths are given. */
async function robotsOfUrl(source: string, options: RobotsOptions): Promise<RobotsReport> {
  if (!canParseUrl(source)) throw new UsageError(`${source}: must be an http(s) URL`);
  const { origin, pathname, search } = new URL(source);
  const { agent, path: paths = [pathname === "/robots.txt" ? "/" : pathname + search] } = options;
  const hops: { url: string; status: number | null }[] = [];
  let file: Buffer = Buffer.alloc(0);
  const answer = await withFetchTools(options, async ({ connector, timeouts, userAgent, governor }) => {
    const client = new SiteClient({ origin, connector, timeouts });
    const take = (bytes: number) => governor.takeBytes(bytes);
    const onFile = (bytes: Buffer) => {
      file = bytes;
    };
    try {
      const robots = new RobotsCache({ connector, timeouts, userAgent, take, agent, onFile });
      return await robots.ask(
        client,
        async (asked) => (got) => void hops.push({ url: asked.origin, status: got?.status ?? null }),
      );
    } finally {
      await client.close();
    }
  });
  const about = { agent, source: withoutUser(source), hops, url: `${origin}/robots.txt`, file, paths };
  return reportOf(answer.type === "rules" ? answer.rules : withoutRules(answer), about);
}

/** The origin's robots.txt gives no rules, because it is missing, forbidden or unreachable. */
interface WithoutRules {
  readonly allowed: boolean;
  readonly why: string;
}

function withoutRules(answer: RobotsAnswer): WithoutRules {
  if (answer.type === "closed") return { allowed: false, why: answer.why };
  if (answer.type !== "unreachable")
    return { allowed: true, why: "there is no robots.txt: everything is allowed" };
  return {
    allowed: false,
    why: `robots.txt could not be had, which forbids everything: ${answer.failure.message}`,
  };
}

// The answer of `nearcrawl robots`: the group for an agent, and its verdict on each path.

interface RobotsReport {
  /** The product token that selected the groups. */
  readonly agent: string;
  readonly source: string;
  /** Each URL requested for robots.txt with its status. Empty for a file. */
  readonly hops: readonly { readonly url: string; readonly status: number | null }[];
  /** Why everything is allowed or forbidden. Null when rules were read. */
  readonly why: string | null;
  /** The User-agent lines of the groups in force. Empty when no group matches the agent. */
  readonly group: readonly string[];
  readonly crawlDelaySeconds: number | null;
  readonly sitemaps: readonly string[];
  /** True when the file exceeds the size that is read. */
  readonly cut: boolean;
  /** Number of lines about uses beyond those that are kept. */
  readonly linesLeftOut: number;
  readonly verdicts: readonly PathVerdict[];
}

interface PathVerdict {
  readonly path: string;
  readonly allowed: boolean;
  /** The deciding line in words. Null when no line matched. */
  readonly rule: string | null;
  readonly line: number | null;
  /**
   * The verdict of robots-parser. Null when it was not used, because of long files or paths, or characters that it reads
   * differently.
   */
  readonly second: boolean | null;
  /** Statements on how the path may be used, with their place and line. Empty when the path may not be fetched. */
  readonly stated: readonly StatedInRobots[];
  /** The strictest answer for each use mentioned. */
  readonly uses: UseAnswers;
  /** Whether robots.txt lets a page be indexed and shown. */
  readonly search: PreferenceAnswer | "not stated";
}

/** `url` is the base of relative sitemap URLs. */
function reportOf(
  found: RobotsRules | WithoutRules,
  about: Pick<RobotsReport, "agent" | "source" | "hops"> & {
    readonly url: string;
    readonly file: Buffer;
    readonly paths: readonly string[];
  },
): RobotsReport {
  const { source, hops, url, file, paths } = about;
  const agent = agentToken(about.agent);
  if ("why" in found) {
    const nothing = { group: [], crawlDelaySeconds: null, sitemaps: [], cut: false, linesLeftOut: 0 };
    const verdict = { allowed: found.allowed, rule: null, line: null, second: null, stated: [], uses: {} };
    const verdicts = paths.map((path) => ({ path, ...verdict, search: "not stated" as const }));
    return { agent, source, hops, why: found.why, ...nothing, verdicts };
  }
  const others = otherVerdicts(file, agent, paths);
  return {
    ...{ agent, source, hops, why: null },
    group: found.agents,
    crawlDelaySeconds: found.crawlDelaySeconds,
    sitemaps: sitemapUrls(found, url),
    cut: found.cut,
    linesLeftOut: found.uses.leftOut.lines,
    verdicts: paths.map((path, index) => verdictOf(found, path, others[index] ?? null)),
  };
}

function verdictOf(rules: RobotsRules, path: string, second: boolean | null): PathVerdict {
  const verdict = robotsVerdict(rules, path);
  // Statements do not apply to what may not be fetched (draft-ietf-aipref-attach-05 section 3.1).
  const stated = verdict.allowed ? usesOfPath(rules.uses, path) : [];
  const uses = useAnswers(stated);
  return { path, ...verdict, second, stated, uses, search: uses.search ?? "not stated" };
}

function robotsText(report: RobotsReport): string {
  const lines = [
    ...report.hops.map(({ url, status }) => `asked    ${printable(url)} → ${status ?? "no answer"}`),
    `agent    ${printable(report.agent)}, ${groupWords(report)}`,
    ...(report.crawlDelaySeconds === null ? [] : [`delay    ${report.crawlDelaySeconds} s between requests`]),
    ...report.sitemaps.map((url) => `sitemap  ${printable(url)}`),
    ...(report.cut
      ? [`cut      the file is longer than ${maxRobotsBytes} bytes; the rest was not read`]
      : []),
    ...(report.linesLeftOut === 0
      ? []
      : [
          `left out ${report.linesLeftOut} further lines about uses; what they deny is taken as denied everywhere`,
        ]),
    ...report.verdicts.flatMap((verdict) => [verdictLine(verdict), ...useLines(verdict)]),
  ];
  return lines.join("\n");
}

function groupWords({ why, group }: RobotsReport): string {
  if (why !== null) return printable(why);
  if (group.length === 0) return "for whom no group stands in the file: everything is allowed";
  return `by the group of ${group.map((agent) => printable(agent, 60)).join(", ")}`;
}

function useLines({ stated, uses }: PathVerdict): string[] {
  if (stated.length === 0) return [];
  const numbers = [...new Set(stated.map(({ line }) => line))];
  const lines = numbers.flatMap((number) =>
    statementLines(stated.filter(({ line }) => line === number)).map(
      (text) => `  states   ${printable(text, 400)}${number === null ? "" : `, line ${number}`}`,
    ),
  );
  return [...lines, `  for us   ${forUsWords(uses)}`];
}

function verdictLine({ path, allowed, rule, second }: PathVerdict): string {
  const because = rule === null ? "" : `  by ${printable(rule)}`;
  const differs = second !== null && second !== allowed;
  const other = differs ? `  (robots-parser ${second ? "allows" : "forbids"} it)` : "";
  return `${allowed ? "allowed  " : "FORBIDDEN"} ${printable(path)}${because}${other}`;
}
