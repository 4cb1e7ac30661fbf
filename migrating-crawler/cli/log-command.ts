/** `log`: the last lines of what the crawler and its dock wrote, in words, and those that follow. */

import { setTimeout as delay } from "node:timers/promises";
import { UsageError } from "#core/errors";
import { plainWords } from "#protocol/fields";
import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "../core/partner-context.ts";
import { checkCrawlerHome } from "../membership/home-folder.ts";
import { LogFollower, lastLogLines } from "../status/control-server.ts";
import { readerGone } from "./closed-output.ts";

interface LogOptions {
  readonly lines: string;
  readonly follow?: boolean;
}

const lookEveryMs = 500;

export async function logCommand(context: PartnerContext, options: LogOptions): Promise<PartnerExitCode> {
  const { home, json, print, complain } = context;
  const count = Number(options.lines);
  if (!/^\d{1,5}$/.test(options.lines) || count < 1 || count > 10_000)
    throw new UsageError(`--lines ${options.lines}: a whole number from 1 to 10000 is expected`);
  checkCrawlerHome(home);
  const follower = options.follow ? new LogFollower(home) : null;
  const gone = readerGone();
  const lines = lastLogLines(home, count);
  for (const line of lines) print(json ? line : readable(line));
  if (follower !== null) await followLog(context, follower, gone);
  if (lines.length > 0) return partnerExitCodes.done;
  complain(
    `There is no log in ${home}: the supervisor writes it (run). A crawler that was started by hand writes to its terminal.`,
  );
  return partnerExitCodes.notFound;
}

/** Until the signal. */
async function followLog(
  { json, print }: PartnerContext,
  follower: LogFollower,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    for (const line of follower.next()) print(json ? line : readable(line));
    await delay(lookEveryMs, undefined, { signal }).catch(() => {});
  }
}

/** `2026-11-22 12:40:11 warn: what happened host=example.org`; a line that is no JSON as it is. */
export function readable(line: string): string {
  const { time, level, msg, name: _name, ...fields } = fieldsOf(line);
  if (typeof time !== "string" || typeof msg !== "string") return plain(line);
  const mark = level === "info" || typeof level !== "string" ? "" : `${level}: `;
  const values = Object.entries(fields).map(([key, value]) => `${key}=${inWords(value)}`);
  return plain([time.slice(0, 19).replace("T", " "), `${mark}${msg}`, ...values].join(" "));
}

function fieldsOf(line: string): Record<string, unknown> {
  try {
    const fields: unknown = JSON.parse(line);
    return typeof fields === "object" && fields !== null ? { ...fields } : {};
  } catch {
    return {};
  }
}

function inWords(value: unknown): string {
  return typeof value === "string" && /^\S+$/.test(value) ? value : JSON.stringify(value);
}

/** Lines hold what sites and crawlers said. */
const plain = (text: string) => plainWords(text).slice(0, 2000);
