/** The base of every crawl benchmark: the sites in their own process, and a new build of our bundle. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readStopWords } from "#core/words/stop-words-resolver";
import { bundleCrawler } from "../../../ops/bundle-crawler.mjs";
import { goodHosts } from "./real-pages.ts";

const root = join(import.meta.dirname, "../../..");

export interface CrawlGround {
  readonly bundle: string;
  /** Of all sites. */
  readonly port: number;
  readonly pageBytes: number;
  /** Null where the shared data is absent. */
  readonly realPages: { readonly count: number; readonly bytes: number } | null;
  /** Makes the sites serve the real pages in this edition. */
  serve(edition: number): Promise<void>;
  /** A folder for the crawlers' homes; removed in the end. */
  readonly scratch: string;
  close(): void;
}

/** Number of hosts with the real pages per round. */
export const realHosts = 64;

/** Every real page once, on hosts of this round only: there are seven rounds. */
export function realUrls({ port, realPages }: CrawlGround, round: number): readonly string[] {
  const hosts = goodHosts.slice(realHosts * round, realHosts * (round + 1));
  const count = realPages?.count ?? 0;
  return Array.from({ length: count }, (_, page) => `http://${hosts[page % realHosts]}:${port}/r/${page}`);
}

type SitesReady = Pick<CrawlGround, "port" | "pageBytes" | "realPages">;

export async function crawlGround(): Promise<CrawlGround> {
  const scratch = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
  const sites = fork(join(import.meta.dirname, "crawl-site.ts"), { execArgv: process.execArgv });
  const [{ port, pageBytes, realPages }] = (await once(sites, "message")) as [SitesReady];
  const bundle = join(scratch, "crawler-bundle.mjs");
  await bundleCrawler({ root, outfile: bundle, stopWords: readStopWords() });
  const close = () => {
    sites.kill();
    rmSync(scratch, { recursive: true, force: true });
  };
  const serve = async (edition: number) => {
    sites.send({ edition });
    await once(sites, "message");
  };
  return { bundle, port, pageBytes, realPages, serve, scratch, close };
}
