/**
 * A run on the real web: the same coordinator and crawlers without the emulated Internet. Data is kept from run
 * to run. Without an imported registry every address lies in the root subnet, which is enough for one crawler.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { admitUrls } from "#coordinator/flows/admit-urls";
import { createCrawlerStore } from "#coordinator/postgres/crawler-store";
import { createFrontierStore } from "#coordinator/postgres/frontier-store";
import { createRejectedUrlStore } from "#coordinator/postgres/rejected-url-store";
import { UsageError } from "#core/errors";
import type { Database } from "#db/connect";
import { type CommandContext, writeCurrentRun } from "../command-context.ts";
import { newCrawlerKey } from "../crawler-key.ts";
import { ownSignInLink } from "../issue-command-link.ts";
import { followRun, type RunOutcome } from "./follow-run.ts";
import { openRun } from "./run-record.ts";
import type { RunVoice } from "./run-voice.ts";
import { SystemProcesses } from "./system-processes.ts";
import { type ThroughOutages, throughOutages } from "./through-outages.ts";

const parametersSchema = z.object({
  crawlers: z.coerce.number().int().min(1).max(100).default(1),
  pagesPerSite: z.coerce.number().int().min(1).max(1_000_000).default(20),
  policy: z.string().default("nearest"),
  url: z.array(z.string()).default([]),
  urlFile: z.string().optional(),
});

export interface RealWebParameters {
  readonly crawlers: number;
  readonly pagesPerSite: number;
  readonly policy: string;
  readonly urls: readonly string[];
}

/** A list of URLs larger than this is no seed list. */
const maxUrlFileBytes = 64 * 1024 * 1024;

export function realWebParameters(values: Record<string, unknown>): RealWebParameters {
  const checked = parametersSchema.safeParse(values);
  if (!checked.success) {
    throw new UsageError(
      checked.error.issues.map((issue) => `--${String(issue.path[0])}: ${issue.message}`).join("\n"),
    );
  }
  const { crawlers, pagesPerSite, policy, url, urlFile } = checked.data;
  const urls = [...url, ...(urlFile === undefined ? [] : readUrlFile(urlFile))];
  if (urls.length === 0)
    throw new UsageError("--no-world needs --url URL or --url-file FILE: where should it begin?");
  return { crawlers, pagesPerSite, policy, urls };
}

/** One URL a line; blank lines and lines that begin with # are left out. */
function readUrlFile(file: string): string[] {
  if (!existsSync(file)) throw new UsageError(`--url-file ${file}: there is no such file`);
  const { size } = statSync(file);
  if (size > maxUrlFileBytes)
    throw new UsageError(`--url-file ${file}: ${size} bytes are too many for a list of URLs`);
  const lines = readFileSync(file, "utf8").split(/\r?\n/);
  return lines.map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("#"));
}

export interface RealWebRunOptions {
  readonly context: CommandContext;
  readonly parameters: RealWebParameters;
  readonly port: number;
  readonly voice: RunVoice;
  readonly stopRequested: Promise<unknown>;
}

export interface RealWebRun {
  readonly webUrl: string;
  readonly outcome: RunOutcome;
  readonly summary: string;
  stop(): Promise<void>;
}

const schema = "nearcrawl";

export async function runRealWeb(options: RealWebRunOptions): Promise<RealWebRun> {
  const { context, parameters, voice } = options;
  const folder = join(context.home, schema);
  const run = await openRun({
    database: { databaseUrl: context.databaseUrl, home: context.home, schema },
    parameters: { ...parameters },
    folder,
    fresh: false,
    disposable: false,
    onReturn: (words) => voice.note(words),
  });
  const steadily = throughOutages(voice, options.stopRequested);
  const processes = new SystemProcesses({ run: folder }, (words) => voice.note(words));
  const stop = async () => {
    await processes.stop();
    await run.close();
  };
  try {
    const { database } = run;
    const webUrl = await startProcesses(database, processes, { ...options, steadily });
    await steadily(async () => await admitSeeds(database, parameters, voice));
    const outcome = await followRun({
      database,
      crawlers: parameters.crawlers,
      expectedPages: null,
      voice,
      throughOutages: steadily,
      stopRequested: options.stopRequested,
    });
    if (outcome.finished) await steadily(async () => await run.finish({ outcome }));
    return { webUrl, outcome, summary: await steadily(async () => await outcomesOf(database)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startProcesses(
  database: Database,
  processes: SystemProcesses,
  options: RealWebRunOptions & { readonly steadily: ThroughOutages },
): Promise<string> {
  const { context, parameters, steadily } = options;
  const coordinator = await processes.startCoordinator(
    {
      listen: { host: "127.0.0.1", port: options.port },
      delegation: { policy: parameters.policy, expectedCrawlers: parameters.crawlers, settleSeconds: 5 },
      scope: { pagesPerHost: parameters.pagesPerSite, maxDepth: 20, admitNewHosts: false },
    },
    { home: context.home, databaseUrl: context.databaseUrl, schema },
  );
  const webUrl = String(coordinator.webUrl);
  const { url: signInUrl } = await steadily(async () => await ownSignInLink(database.pool));
  options.voice.webUrl(webUrl, database.description, signInUrl);
  writeCurrentRun(context.home, { schema, webUrl, pid: process.pid, resolvers: [] });
  const crawlers = createCrawlerStore(database.pool);
  for (let number = 1; number <= parameters.crawlers; number += 1) {
    const name = `local-${number}`;
    const { key, keyHash } = newCrawlerKey();
    await steadily(async () => await crawlers.register({ name, keyHash }));
    processes.startCrawler({
      coordinatorUrl: `${webUrl.replace(/^http/, "ws")}/crawler`,
      key,
      name,
      home: join(context.home, schema, "crawlers", name),
    });
  }
  return webUrl;
}

async function admitSeeds(database: Database, parameters: RealWebParameters, voice: RunVoice): Promise<void> {
  const ports = {
    frontier: createFrontierStore(database.pool),
    rejected: createRejectedUrlStore(database.pool),
  };
  const scope = { pagesPerHost: parameters.pagesPerSite, maxDepth: 20, admitNewHosts: true };
  const { rejected } = await admitUrls(parameters.urls, ports, { scope, now: new Date() });
  for (const { url, reason } of rejected.slice(0, 20)) voice.note(`not admitted: ${url}: ${reason}`);
  if (rejected.length > 20) voice.note(`not admitted: ${rejected.length - 20} more (table rejected_url)`);
}

/** What became of the URLs, a line for each outcome. */
async function outcomesOf(database: Database): Promise<string> {
  const { rows } = await database.pool.query<{
    outcome: string;
    urls: number;
    example: string;
    reason: string;
  }>(
    `select coalesce(last_outcome, state) as outcome, count(*)::int as urls, min(url) as example,
       coalesce(min(last_reason), '') as reason
     from frontier_url
     group by 1
     order by 2 desc`,
  );
  const lines = rows.map(
    ({ outcome, urls, example, reason }) =>
      `  ${outcome}: ${urls}${outcome === "fetched" ? "" : ` (${example}${reason ? `: ${reason}` : ""})`}`,
  );
  return ["", "done:", ...lines].join("\n");
}
