/** `log` prints the last log lines of the crawler and its supervisor as text. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "#core/errors";
import { plainWords } from "#protocol/fields";
import { jsonOf } from "../core/json.ts";
import { inWords } from "../core/log.ts";
import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "../core/partner-context.ts";
import { checkCrawlerHome } from "../membership/home-folder.ts";

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
 * Returns the oldest first. The supervisor starts a new file at 4 MiB (run-supervisor.ts), so the previous file
 * supplies missing lines.
 */
function lastLines(home: string, count: number): string[] {
  const files = ["crawler.1.log", "crawler.log"].map((name) => join(home, "log", name)).filter(existsSync);
  const text = files.map((file) => readFileSync(file, "utf8")).join("");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .slice(-count);
}

/** Example: `2026-11-22 12:40:11 warn: what happened host=example.org`. A line that is not JSON stays as it is. */
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

/** Lines contain text from sites and crawlers. */
const plain = (text: string) => plainWords(text).slice(0, 2000);
