/**
 * A run on the real web: the same coordinator and crawlers without the emulated Internet. Data is kept between runs. If no
 * registry was imported, every address is in the root subnet, which is enough for one crawler.
 */

import { existsSync, readFileSync, statSync } from "node:fs";
import { z } from "zod";
import { coverageSum } from "#coordinator/crawl/channels/coverage";
import { coverageOfSeeds } from "#coordinator/crawl/channels/coverage-reads";
import { admitUrls, type RejectedUrl, seedFault } from "#coordinator/crawl/frontier/admit-urls";
import { createFrontierStore, createRejectedUrlStore } from "#coordinator/crawl/frontier/frontier-store";
import { knownPolicies } from "#coordinator/run/settings/change";
import { createPolicyStore } from "#coordinator/run/settings/settings-store";
import { UsageError } from "#core/errors";
import { plainLines } from "#core/plain-lines";
import { printable } from "#core/terminal-text";
import { urlKeyOf } from "#core/url-key";
import type { Database } from "#db/server-database";
import { checkedContact, requireContact } from "../contact.ts";
import { checkedRanges } from "../options.ts";
import { ofNewCrawls } from "../setup/coordinator-settings.ts";
import { followRun, limitText, type RunOutcome, type RunVoice } from "./follow-run.ts";
import { type RunFrame, type RunOptions, runFramed } from "./run-frame.ts";

const parametersSchema = z.object({
  crawlers: z.coerce.number().int().min(1).max(100).default(1),
  pagesPerSite: z.coerce.number().int().min(1).max(1_000_000).default(20),
  policy: z.string().default("nearest"),
  url: z.array(z.string()).default([]),
  urlFile: z.string().optional(),
  contact: z.string().optional(),
  allow: z.array(z.string()).default([]),
});

type RealWebParameters = ReturnType<typeof realWebParameters>;

/** Maximum number of URLs that are named. */
const namedUrls = 20;

/** A larger file is not a list of seeds. */
const maxUrlFileBytes = 64 * 1024 * 1024;

/** `refused` receives URLs that can never be crawled. Throws a UsageError for invalid values. */
export function realWebParameters(values: Record<string, unknown>) {
  const checked = parametersSchema.safeParse(values);
  if (!checked.success) {
    throw new UsageError(
      checked.error.issues.map((issue) => `--${String(issue.path[0])}: ${issue.message}`).join("\n"),
    );
  }
  const { url, urlFile, contact, ...plain } = checked.data;
  const allow = checkedRanges(checked.data.allow);
  const urls = [...url, ...(urlFile === undefined ? [] : readUrlFile(urlFile))];
  if (urls.length === 0)
    throw new UsageError("--no-world needs --url URL or --url-file FILE: where should it begin?");
  const judged = urls.map((url) => ({
    ...{ url, reason: seedFault(url, allow) },
    // True when its address is the only fault.
    isSpecialPurpose: seedFault(url, true) === null,
  }));
  const refused = judged.flatMap(({ url, reason, isSpecialPurpose }) =>
    reason === null ? [] : [{ url: url.slice(0, 500), reason, isSpecialPurpose }],
  );
  if (refused.length === urls.length) throw new UsageError(notCrawled(refused).join("\n"));
  const accepted = judged.flatMap(({ url, reason }) => (reason === null ? [url] : []));
  const parameters = { ...plain, urls: accepted, refused, contact: checkedContact(contact), allow };
  requireContact(coordinatorSettings(parameters, 0));
  return parameters;
}

interface NeverCrawled extends RejectedUrl {
  /** Its address is the fault, so `--allow` may permit it. */
  readonly isSpecialPurpose: boolean;
}

/** Returns a line for each of the first URLs, and one for the rest. */
export function notCrawled(refused: readonly NeverCrawled[]): string[] {
  const lines = refused
    .slice(0, namedUrls)
    .map(({ url, reason }) => `not crawled: ${printable(url, 200)}: ${reason}`);
  const more = refused.length - lines.length;
  const hint = refused.some(({ isSpecialPurpose }) => isSpecialPurpose)
    ? ["addresses of your own network are crawled with --allow RANGE, such as --allow 10.0.0.0/8"]
    : [];
  return [...lines, ...(more === 0 ? [] : [`not crawled: ${more} more (table rejected_url)`]), ...hint];
}

/** Reads one URL per line. Ignores blank lines and lines that begin with #. */
function readUrlFile(file: string): string[] {
  if (!existsSync(file)) throw new UsageError(`--url-file ${file}: there is no such file`);
  const { size } = statSync(file);
  if (size > maxUrlFileBytes)
    throw new UsageError(`--url-file ${file}: ${size} bytes are too many for a list of URLs`);
  const lines = plainLines(readFileSync(file)).toString().split(/\r?\n/);
  return lines.map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("#"));
}

interface RealWebRunOptions extends Omit<RunOptions, "fresh"> {
  readonly parameters: RealWebParameters;
}

interface RealWebRun {
  readonly webUrl: string;
  readonly outcome: RunOutcome;
  readonly summary: string;
  /** URLs that cannot be crawled: because of the URLs themselves (`asked`), or of what DNS and the sites say (`found`). */
  readonly refused: { readonly asked: readonly NeverCrawled[]; readonly found: readonly NeverCrawled[] };
  stop(): Promise<void>;
}

const schema = "nearcrawl";

/** Maximum number of links from a seed. */
const maxDepth = 20;

export async function runRealWeb(options: RealWebRunOptions): Promise<RealWebRun> {
  const { parameters, voice } = options;
  const asked = { schema, parameters, disposable: false };
  return await runFramed({ ...options, fresh: false }, asked, async (frame) => {
    const { run, steadily, stop } = frame;
    const { database } = run;
    const webUrl = await startProcesses(database, frame, options);
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
    const found = await steadily(async () => await neverCrawled(database, parameters.urls));
    const summary = await steadily(async () => await summaryOf(database, parameters, outcome));
    return { webUrl, outcome, summary, refused: { asked: parameters.refused, found }, stop };
  });
}

async function startProcesses(
  database: Database,
  frame: RunFrame,
  { parameters, port }: RealWebRunOptions,
): Promise<string> {
  const kept = await frame.steadily(async () => await keptFrom(database));
  const webUrl = await frame.startCoordinator(coordinatorSettings(parameters, port, kept), []);
  for (let number = 1; number <= parameters.crawlers; number += 1)
    await frame.startCrawler(webUrl, {
      name: `local-${number}`,
      ...(parameters.allow.length === 0 ? {} : { allowRanges: parameters.allow }),
    });
  return webUrl;
}

type KeptFrom = { readonly [Section in keyof typeof ofNewCrawls]: object };

/** An existing crawl keeps its settings. A new one gets the defaults of new crawls. */
async function keptFrom({ pool }: Database): Promise<KeptFrom> {
  const stored = await createPolicyStore(pool).read();
  if (stored.file === null) return ofNewCrawls;
  const { recrawl, frontier } = knownPolicies(stored).file;
  return { recrawl: { strategy: recrawl.strategy }, frontier: { order: frontier.order } };
}

function coordinatorSettings(
  { policy, crawlers, pagesPerSite, contact, allow }: RealWebParameters,
  port: number,
  kept: KeptFrom = ofNewCrawls,
) {
  return {
    listen: { host: "127.0.0.1", port },
    delegation: { policy, expectedCrawlers: crawlers, settleSeconds: 5 },
    scope: { pagesPerHost: pagesPerSite, maxDepth, admitNewHosts: false },
    ...kept,
    ...(contact === undefined ? {} : { contact }),
    ...(allow.length === 0 ? {} : { allowSpecialPurpose: allow }),
  };
}

async function admitSeeds(database: Database, parameters: RealWebParameters, voice: RunVoice): Promise<void> {
  const ports = {
    frontier: createFrontierStore(database.pool),
    rejected: createRejectedUrlStore(database.pool),
  };
  const scope = { pagesPerHost: parameters.pagesPerSite, maxDepth, admitNewHosts: true };
  const now = new Date();
  await admitUrls(parameters.urls, ports, { scope, now });
  await ports.rejected.record(parameters.refused, "operator", now);
  for (const line of notCrawled(parameters.refused)) voice.note(line);
}

const mostFound = 1000;

/** URLs that nobody will fetch, with the reason: no address, a special-purpose address, an opt-out, or a full host. */
async function neverCrawled({ pool }: Database, urls: readonly string[]): Promise<NeverCrawled[]> {
  const keys = urls.map((url) => urlKeyOf(url.trim())).filter((key) => typeof key !== "string");
  const { rows } = await pool.query<NeverCrawled>(
    `select given.url, u.last_outcome is not distinct from 'refused-address' as "isSpecialPurpose",
       case
         when h.opt_out_id is not null then 'its site does not want to be crawled (nearcrawl opt-outs)'
         when u.url_hash is null then 'its host has as many URLs as it may have'
         when u.last_outcome = 'refused-address' then coalesce(u.last_reason, h.state_reason)
         else h.state_reason
       end as reason
     from unnest($1::bigint[], $2::bigint[], $3::text[]) as given (host_hash, url_hash, url)
     left join frontier_host h on h.host_hash = given.host_hash
     left join frontier_url u on u.host_hash = given.host_hash and u.url_hash = given.url_hash
     where h.opt_out_id is not null or u.url_hash is null or u.last_outcome = 'refused-address'
       or (u.visits = 0 and h.state = 'unresolvable')
     order by given.url
     limit ${mostFound}`,
    [keys.map(({ hostHash }) => hostHash), keys.map(({ urlHash }) => urlHash), keys.map(({ url }) => url)],
  );
  return rows;
}

/** Maximum number of seed hosts reported. */
const mostCovered = 1000;

async function summaryOf(database: Database, { urls }: RealWebParameters, outcome: RunOutcome) {
  const seeds = urls.map((url) => urlKeyOf(url.trim())).filter((key) => typeof key !== "string");
  const { coverage } = await coverageOfSeeds(database.pool, seeds, { maxDepth, most: mostCovered });
  const limit = outcome.limitedBy === null ? [] : [limitText(outcome.limitedBy)];
  const covered = `seeds' hosts: ${coverageSum(coverage)} (nearcrawl coverage --host NAME)`;
  return [await outcomesOf(database), ...limit, covered].join("\n");
}

/** Returns a line per outcome with the number of its URLs. */
async function outcomesOf(database: Database): Promise<string> {
  const { rows } = await database.pool.query<{
    outcome: string;
    urls: number;
    example: string;
    reason: string;
  }>(
    `select coalesce(last_outcome, state) as outcome, count(*)::int as urls, min(url) as example,
       coalesce(min(last_reason), '') as reason
     from (
       select url, state, last_outcome, last_reason from frontier_url
       union all
       select url, 'held', null, null from held_url
     ) u
     group by 1
     order by 2 desc`,
  );
  const lines = rows.map(
    ({ outcome, urls, example, reason }) =>
      `  ${outcome}: ${urls}${outcome === "fetched" ? "" : ` (${example}${reason ? `: ${reason}` : ""})`}`,
  );
  return ["", "done:", ...lines].join("\n");
}
