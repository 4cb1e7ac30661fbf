/** One page fetched under all the rules of a crawler, by the settings of its host if a file of them is given. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { UsageError } from "#core/errors";
import { canParseUrl } from "#core/ip/url-host";
import { type Followed, followRedirects } from "#crawler/crawl/follow-redirects";
import { closeTools, type FetchTools, fetchTools } from "#crawler/crawl/slice-tools";
import { resolveUrl } from "#crawler/extract/resolve-url";
import { type FetchingConfig, fetchingConfig } from "#crawler/settings/config";
import { maxUrlLength } from "#protocol/fields";
import { userAgent } from "#protocol/user-agent";
import { readSettings } from "../settings-file.ts";
import { softwareVersion } from "../software-version.ts";

export interface SingleFetchOptions {
  readonly config?: string;
  readonly resolver?: readonly string[];
  readonly proxy?: string;
  readonly allowRange?: readonly string[];
  readonly userAgent?: string;
}

export function withFetchOptions(command: Command): Command {
  return command
    .option(
      "--config <file>",
      "a crawler's settings as JSON: its limits and deny-lists hold; flags win over it",
    )
    .option("--resolver <address:port...>", "DNS servers in place of the system's")
    .option("--proxy <url>", "http://HOST:PORT (CONNECT) or socks5://HOST:PORT")
    .option(
      "--allow-range <range...>",
      "special-purpose ranges that may be contacted all the same, with ports (127.0.0.1:8080) or without",
    )
    .option("--user-agent <text>", "what to say of ourselves; begins with Nearcrawl/");
}

/** Follows up to five redirects, of the URL as any crawler asks for it: without fragment, user and password. Interrupted by Ctrl-C, which leaves nothing behind. */
export async function singleFetch(url: string, options: SingleFetchOptions): Promise<Followed> {
  const asked = canParseUrl(url) ? resolveUrl(url, url) : null;
  if (asked === null)
    throw new UsageError(`${url}: must be an http(s) URL of at most ${maxUrlLength} characters`);
  return await withFetchTools(options, (tools) =>
    followRedirects(asked, tools, new AbortController().signal),
  );
}

/** Work with the tools of a crawler that has no coordinator and keeps nothing. */
export async function withFetchTools<T>(
  options: SingleFetchOptions,
  work: (tools: FetchTools) => Promise<T>,
): Promise<T> {
  const config = configOf(options);
  const userAgent = statedUserAgent(options.userAgent);
  const home = mkdtempSync(join(tmpdir(), "nearcrawl-fetch-"));
  const tools = fetchTools({ config, home, userAgent: () => userAgent, quiet: async () => {} });
  try {
    return await work(tools);
  } finally {
    closeTools(tools);
    rmSync(home, { recursive: true, force: true });
  }
}

function configOf(options: SingleFetchOptions): FetchingConfig {
  const { config, resolver, proxy, allowRange } = options;
  return fetchingConfig({
    ...(config === undefined ? {} : readSettings(config)),
    ...(resolver === undefined ? {} : { resolvers: resolver }),
    ...(proxy === undefined ? {} : { proxy }),
    ...(allowRange === undefined ? {} : { allowRanges: allowRange }),
  });
}

/** Whoever fetches by hand has no coordinator that states one. */
function statedUserAgent(text = `Nearcrawl/${softwareVersion()} (+https://nearcrawl.invalid/about)`): string {
  if (userAgent.safeParse(text).success) return text;
  throw new UsageError(
    `--user-agent ${text.slice(0, 100)}: must begin with Nearcrawl/ and be up to 200 printable ASCII characters`,
  );
}
