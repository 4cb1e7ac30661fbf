/** `nearcrawl crawler`: one migrating crawler in the foreground, as a partner runs it. */
import { join } from "node:path";
import { Command } from "commander";
import { addPartnerCommands, partnerSurroundings } from "#crawler/cli/partner-commands";
import { type CrawlerLog, lineLog, outliveLog } from "#crawler/core/log";
import { keepPriority } from "#crawler/core/priority";
import { endSoon } from "#crawler/crawler-process";
import { startCrawler } from "#crawler/main";
import { type CrawlerConfig, crawlerConfig } from "#crawler/settings/config";
import { placedFaults, readSettingsFile, watchSettings } from "#crawler/settings/settings-file";
import { askToLeave } from "#crawler/status/drain";
import { openStatus } from "#crawler/status/open-status";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { untilAskedToStop } from "../service-process.ts";

interface CrawlerOptions {
  readonly config?: string;
  readonly coordinator?: string;
  readonly key?: string;
  readonly name?: string;
  readonly home?: string;
  readonly publicAddress?: string;
  readonly place?: string;
  readonly proxy?: string;
  readonly resolver?: readonly string[];
  readonly pagesPerDay?: string;
  readonly bytesPerDay?: string;
  readonly concurrentHosts?: string;
  readonly kilobytesPerSecond?: string;
  readonly allowRange?: readonly string[];
  readonly denyRange?: readonly string[];
  readonly denyDomain?: readonly string[];
  readonly json?: boolean;
}

export function crawlerCommand(): Command {
  const command = bareCrawlerCommand();
  const self = [...process.execArgv, ...process.argv.slice(1, 2), "crawler"];
  const program = "nearcrawl crawler";
  addPartnerCommands(command, partnerSurroundings({ env: process.env, program, self }));
  return command;
}

function bareCrawlerCommand(): Command {
  return new Command("crawler")
    .description("run one crawler: it connects to the coordinator, outbound only, and stays in your limits")
    .option("--config <file>", "settings as TOML (or .json), looked at while it runs; flags win over it")
    .option("--coordinator <url>", "wss://HOST/crawler (ws:// only to this machine)")
    .option(
      "--key <key>",
      "this crawler's key; better in NEARCRAWL_CRAWLER_KEY, where other users cannot see it",
    )
    .option("--name <name>", "this crawler's name, as the key was issued for")
    .option("--home <folder>", "where the spool, the day's counters and what is known of hosts are kept")
    .option("--public-address <address>", "the address that sites see")
    .option("--place <name,country,latitude,longitude>", "where it stands, such as Athens,GR,37.98,23.73")
    .option("--proxy <url>", "http://HOST:PORT (CONNECT) or socks5://HOST:PORT")
    .option("--resolver <address:port...>", "DNS servers in place of the system's")
    .option("--pages-per-day <n>", "never fetch more pages per day")
    .option("--bytes-per-day <n>", "never fetch more bytes per day")
    .option("--concurrent-hosts <n>", "never crawl more hosts at a time")
    .option("--kilobytes-per-second <n>", "never download faster")
    .option(
      "--allow-range <range...>",
      "special-purpose ranges that may be contacted all the same, with ports (127.0.0.1:8080) or without",
    )
    .option("--deny-range <range...>", "ranges that must never be contacted")
    .option("--deny-domain <domain...>", "domains that must never be contacted, nor anything below them")
    .option("--json", "log lines as JSON")
    .addHelpText(
      "after",
      `
SIGTERM or Ctrl-C stop it for a while: its subnets wait for it. SIGUSR2 stops it for good: they go to others.
The settings file has more: time-outs, politeness, threads, disk for results, certificates, WARC. All of it, and
what its messages mean: ops/runbook/crawler-reference.md; what the crawler does to sites:
ops/runbook/what-a-crawler-does-to-sites.md

Examples:
  nearcrawl crawler --config crawler.json
  NEARCRAWL_CRAWLER_KEY=… nearcrawl crawler --coordinator wss://search.example/crawler --name athens --pages-per-day 50000`,
    )
    .action((options: CrawlerOptions) => runCrawler(options));
}

async function runCrawler(options: CrawlerOptions): Promise<void> {
  const read = () => configOf(options);
  const config = read();
  outliveLog([process.stdout]);
  const form = options.json || !process.stdout.isTTY ? "json" : "plain";
  const log = lineLog((line) => void process.stdout.write(`${line}\n`), form, config.name);
  keepPriority(config.limits.priority, log);
  await runUntilAsked(config, log, options.config === undefined ? null : { file: options.config, read });
}

/** Errors name the settings file and the line. */
function configOf(options: CrawlerOptions): CrawlerConfig {
  try {
    return crawlerConfig(settingsOf(options, process.env));
  } catch (error) {
    throw options.config === undefined ? error : placedFaults(error, options.config);
  }
}

async function runUntilAsked(
  config: CrawlerConfig,
  log: CrawlerLog,
  settings: { readonly file: string; readonly read: () => CrawlerConfig } | null,
): Promise<void> {
  const asked = Promise.race([untilAskedToStop(), untilAskedToLeave()]);
  let refuse: (reason: string) => void = () => {};
  const refused = new Promise<string>((resolve) => {
    refuse = resolve;
  });
  const onDrained = () => askToLeave(false);
  const crawler = await startCrawler(config, { log, onDrained, onRefused: ({ reason }) => refuse(reason) });
  const status = await openStatus({ config, crawler, log });
  log.info({ coordinatorUrl: config.coordinatorUrl, home: config.home }, "the crawler has started");
  const watching = settings === null ? null : watchSettings({ ...settings, crawler, log });
  const reporting = setInterval(() => log.info(crawler.status(), "status"), statusEveryMs);
  const end = await Promise.race([asked, refused]);
  clearInterval(reporting);
  watching?.close();
  await status.close();
  if (end === leaves) await crawler.leave();
  else await crawler.stop();
  log.info(crawler.status(), "the crawler has stopped");
  if (end !== "signal" && end !== "disconnect" && end !== leaves) {
    process.stderr.write(`nearcrawl: ${end}\n`);
    process.exitCode = exitCodes.failed;
  }
  if (process.connected) process.disconnect();
  endSoon();
}

const leaves = "leaves for good";

function untilAskedToLeave(): Promise<typeof leaves> {
  return new Promise((resolve) => process.once("SIGUSR2", () => resolve(leaves)));
}

const statusEveryMs = 60_000;

/** Flags override the environment's key, which overrides the file. Invalid numbers stay text, so that validation names them. */
export function settingsOf(options: CrawlerOptions, env: NodeJS.ProcessEnv): Record<string, unknown> {
  const file = options.config === undefined ? {} : readSettingsFile(options.config);
  const name = options.name ?? file.name;
  const flags = {
    coordinatorUrl: options.coordinator,
    key: options.key ?? env.NEARCRAWL_CRAWLER_KEY,
    name,
    home: options.home ?? file.home ?? join(commandContext({}, env).home, "crawlers", String(name)),
    publicAddress: options.publicAddress,
    place: options.place === undefined ? undefined : placeOf(options.place),
    proxy: options.proxy,
    resolvers: options.resolver,
    allowRanges: options.allowRange,
    denyRanges: options.denyRange,
    denyDomains: options.denyDomain,
  };
  return { ...file, ...stated(flags), limits: limitsOf(options, file.limits) };
}

function limitsOf(options: CrawlerOptions, fromFile: unknown = {}): unknown {
  if (typeof fromFile !== "object" || fromFile === null) return fromFile;
  const { pagesPerDay, bytesPerDay, concurrentHosts, kilobytesPerSecond } = options;
  const limits = { pagesPerDay, bytesPerDay, concurrentHosts, kilobytesPerSecond };
  const numbers = Object.entries(stated(limits)).map(([name, text]) => [name, numberIn(text)]);
  return { ...fromFile, ...Object.fromEntries(numbers) };
}

const stated = (values: object) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

function placeOf(text: string): unknown {
  const [name, country, latitude, longitude] = text.split(",").map((part) => part.trim());
  return { name, country: country || null, latitude: numberIn(latitude), longitude: numberIn(longitude) };
}

const numberIn = (text: string | undefined): unknown =>
  text !== undefined && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
