/** What every crawl benchmark stands on: the sites in a process of their own, and our bundle, made anew. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readStopWords } from "#crawler/extract/stop-words";
import { bundleCrawler } from "../../../ops/bundle-crawler.mjs";

const root = join(import.meta.dirname, "../../..");

export interface CrawlGround {
  readonly bundle: string;
  /** Of all sites. */
  readonly port: number;
  readonly pageBytes: number;
  readonly sitesPid: number;
  /** A folder for the crawlers' homes; removed in the end. */
  readonly scratch: string;
  close(): void;
}

export async function crawlGround(): Promise<CrawlGround> {
  const scratch = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
  const sites = fork(join(import.meta.dirname, "../crawl-site.ts"), { execArgv: process.execArgv });
  const [{ port, pageBytes }] = (await once(sites, "message")) as [{ port: number; pageBytes: number }];
  const bundle = join(scratch, "crawler-bundle.mjs");
  await bundleCrawler({ root, outfile: bundle, stopWords: readStopWords() });
  const close = () => {
    sites.kill();
    rmSync(scratch, { recursive: true, force: true });
  };
  return { bundle, port, pageBytes, sitesPid: sites.pid!, scratch, close };
}
