/**
 * Runs a crawler as a process. It reads settings from a file or from a joined crawler's folder and logs one JSON line per
 * event to standard output. It ends on SIGTERM, SIGINT, the supervisor's request or a closed IPC channel. SIGUSR2 also ends
 * it, and tells the coordinator to reassign its subnets at once. Under a supervisor (`--dock`), it opens nothing before the
 * supervisor's greeting. Exit codes: 0 stopped as asked, 1 refused by the coordinator or failed, 2 invalid settings.
 */
import { statSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { ConfigError, NearcrawlError } from "#core/errors";
import { lineLog, outliveLog } from "./core/log.ts";
import { keepPriority } from "./core/priority.ts";
import { type CrawlerSurroundings, type RefusedCrawler, SupervisorLine } from "./link/supervisor-line.ts";
import { homeSettings, settingsFile } from "./membership/home-folder.ts";
import type { Resident } from "./resident-crawler.ts";
import type { CrawlerConfig } from "./settings/config.ts";
import { settingsFileConfig, watchSettings } from "./settings/settings-file.ts";
import { askToLeave } from "./status/drain.ts";
import { openStatus } from "./status/open-status.ts";

type Start = (config: CrawlerConfig, surroundings: Partial<CrawlerSurroundings>) => Promise<Resident>;

/**
 * Limits the growth of the heap between collections. By default, V8 lets the heap grow to four times its live size. With 500
 * open hosts this value halves the peak (test/bench/results/crawl.md).
 */
const heapGrowingPercent = 40;

interface CrawlerProcess {
  readonly settings: string | undefined;
  readonly isSupervised: boolean;
  readonly start: Start;
}

/** Never throws: an error is printed to standard error and sets the exit code. */
export async function runCrawlerProcess(asked: CrawlerProcess): Promise<void> {
  const { settings, isSupervised } = asked;
  setFlagsFromString(`--heap-growing-percent=${heapGrowingPercent}`);
  outliveLog([process.stdout, process.stderr]);
  try {
    const supervisor = isSupervised ? await SupervisorLine.open(process) : undefined;
    const config = readSettings(settings);
    const log = lineLog((line) => void process.stdout.write(`${line}\n`), "json", config.name);
    keepPriority(config.limits.priority, log);
    await runUntilAsked(config, { log, ...(supervisor && { supervisor }) }, asked);
  } catch (error) {
    const words =
      error instanceof NearcrawlError ? error.message : ((error as Error)?.stack ?? String(error));
    process.stderr.write(`nearcrawl crawler: ${words}\n`);
    process.exitCode = error instanceof ConfigError ? 2 : 1;
    if (process.connected) process.disconnect();
    endSoon();
  }
}

async function runUntilAsked(
  config: CrawlerConfig,
  surroundings: Pick<CrawlerSurroundings, "log" | "supervisor">,
  { settings, start }: CrawlerProcess,
): Promise<void> {
  const { log, supervisor } = surroundings;
  const asked = untilAsked(supervisor);
  let refuse: (refused: RefusedCrawler) => void = () => {};
  const refused = new Promise<RefusedCrawler>((resolve) => {
    refuse = resolve;
  });
  const onDrained = () => askToLeave(supervisor !== undefined);
  const crawler = await start(config, { ...surroundings, onDrained, onRefused: (given) => refuse(given) });
  const status = await openStatus({ config, crawler, log });
  log.info({ coordinatorUrl: config.coordinatorUrl }, "the crawler has started");
  process.send?.({ type: "started", name: config.name });
  const watching = watchSettings({
    file: isHome(settings ?? "") ? settingsFile(config.home) : (settings ?? ""),
    read: () => readSettings(settings),
    crawler,
    log,
  });
  const end = await Promise.race([asked, refused]);
  watching.close();
  await status.close();
  const isRefused = typeof end === "object" && end !== null;
  if (isRefused) supervisor?.refused(end);
  if (end === leaves) await crawler.leave();
  else await crawler.stop();
  log.info({ reason: isRefused ? end.reason : (end ?? "asked to stop") }, "the crawler has stopped");
  if (isRefused) process.exitCode = 1;
  if (process.connected) process.disconnect();
  endSoon();
}

/** Forces the exit, in case a site or server still holds a connection open. */
export function endSoon(): void {
  setTimeout(() => process.exit(), endMs).unref();
}

const endMs = 1000;

const leaves = "leaves for good";

function untilAsked(supervisor: SupervisorLine | undefined): Promise<null | typeof leaves> {
  return new Promise((resolve) => {
    supervisor?.onStop(() => resolve(null));
    process.once("SIGUSR2", () => resolve(leaves));
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve(null));
    if (process.connected) process.once("disconnect", () => resolve(null));
    // The process was forked, but its supervisor has already exited.
    else if (process.send) resolve(null);
  });
}

function readSettings(path: string | undefined): CrawlerConfig {
  if (path === undefined) {
    throw new ConfigError(["no settings: give a file as the argument or in NEARCRAWL_CRAWLER_CONFIG"]);
  }
  return isHome(path) ? homeSettings(path) : settingsFileConfig(path, {});
}

const isHome = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
