/** `log` prints the latest log lines of the crawler and its supervisor as text. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "#core/errors";
import { plainWords } from "#protocol/fields";
import { jsonOf } from "../core/json.ts";
import { inWords } from "../core/log.ts";
import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "../core/partner-context.ts";
import { checkCrawlerHome } from "../membership/home-folder.ts";
import { type Contact, fetchedFrom, readFetched } from "../spool/fetched-list.ts";
import { readerGone } from "./closed-output.ts";

export async function logCommand(
  { home, json, print, complain }: PartnerContext,
  options: { readonly lines: string },
): Promise<PartnerExitCode> {
  const count = Number(options.lines);
  if (!/^\d{1,5}$/.test(options.lines) || count < 1 || count > 10_000)
    throw new UsageError(`--lines ${options.lines}: a whole number from 1 to 10000 is expected`);
  checkCrawlerHome(home);
  const lines = lastLines(home, count);
  for (const line of lines) print(json ? line : readable(line));
  if (lines.length > 0) return partnerExitCodes.done;
  complain(
    `There is no log in ${home}: the supervisor writes it (run). A crawler that was started by hand writes to its terminal.`,
  );
  return partnerExitCodes.notFound;
}

/**
 * Returns the oldest line first. The supervisor starts a new file at 4 MiB (run-supervisor.ts), so missing lines come from the
 * previous file.
 */
function lastLines(home: string, count: number): string[] {
  const files = ["crawler.1.log", "crawler.log"].map((name) => join(home, "log", name)).filter(existsSync);
  const text = files.map((file) => readFileSync(file, "utf8")).join("");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .slice(-count);
}

/** Example: `2026-11-22 12:40:11 warn: what happened host=example.org`. A line that is not JSON is left unchanged. */
export function readable(line: string): string {
  const { time, level, msg, name: _name, ...fields } = fieldsOf(line);
  if (typeof time !== "string" || typeof msg !== "string") return plain(line);
  const mark = level === "info" || typeof level !== "string" ? "" : `${level}: `;
  const values = Object.entries(fields).map(([key, value]) => `${key}=${inWords(value)}`);
  return plain([time.slice(0, 19).replace("T", " "), `${mark}${msg}`, ...values].join(" "));
}

function fieldsOf(line: string): Record<string, unknown> {
  const fields = jsonOf(line);
  return typeof fields === "object" && fields !== null ? { ...fields } : {};
}

const plain = (text: string) => plainWords(text).slice(0, 2000);

// `fetched` lists the requests that this crawler made, from the record in its folder, so that a complaint can be answered.

interface FetchedOptions {
  readonly since: string;
  readonly until?: string;
  readonly host?: string;
}

export async function fetchedCommand(
  context: PartnerContext,
  options: FetchedOptions,
): Promise<PartnerExitCode> {
  const { home, json, print, complain, now } = context;
  checkCrawlerHome(home);
  const since = instantOf("--since", options.since, now());
  const until = options.until === undefined ? now() : instantOf("--until", options.until, now());
  const host = options.host?.toLowerCase() ?? null;
  const gone = readerGone();
  let found = 0;
  for await (const made of readFetched(home, { since, until, host })) {
    if (gone.aborted) return partnerExitCodes.done;
    print(json ? JSON.stringify(made) : contactWords(made));
    found++;
  }
  if (found > 0) return partnerExitCodes.done;
  const from = fetchedFrom(home);
  complain(
    from === null
      ? `There is no list in ${home}: nothing was fetched yet, or settings.toml keeps none ([fetched] days).`
      : `Nothing of that is in the list, which begins at ${from.toISOString()}.`,
  );
  return partnerExitCodes.notFound;
}

/** Example: `2026-11-28T18:40:11.123Z  200 GET https://example.org/ (192.0.2.7)` */
function contactWords({ at, status, how, url, address, failure }: Contact): string {
  const end = status ?? failure ?? "-";
  return plainWords(`${at}  ${end} ${how} ${url}${address === null ? "" : ` (${address})`}`);
}

const units = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
/** A time of day must have a time zone, because its meaning would otherwise depend on the machine. */
const instantForm = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/;

function instantOf(option: string, text: string, now: Date): Date {
  const [, count = "", unit = ""] = /^(\d{1,5})([mhd])$/.exec(text) ?? [];
  const at =
    count !== ""
      ? new Date(now.getTime() - Number(count) * units[unit as keyof typeof units])
      : new Date(instantForm.test(text) ? text : Number.NaN);
  // V8 accepts 30 February as a day in March, so the day is compared with the text.
  const isDay = count !== "" || new Date(text.slice(0, 10)).getUTCDate() === Number(text.slice(8, 10));
  if (isDay && !Number.isNaN(at.getTime()) && at.getUTCFullYear() >= 1970) return at;
  throw new UsageError(
    `${option} ${text}: must be so long ago (90m, 12h, 7d), a day (2026-11-28, of UTC) or a moment (2026-11-28T14:00Z)`,
  );
}
