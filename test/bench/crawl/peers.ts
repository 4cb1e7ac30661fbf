/**
 * The crawlers that ours is measured beside. Their packages are no dependencies of ours: pinned versions are
 * installed into a cache folder outside the repository, once. Without a network they are left out, aloud.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MeasuredProcess } from "./measured-process.ts";

const crawleeVersion = "3.18.1";
/** The newest one whose compiled part is published too. */
const spiderVersion = "0.0.157";
const installMs = 180_000;

export interface Peer {
  readonly name: string;
  readonly process: MeasuredProcess;
  /** Crawls as many pages as there are URLs, so many hosts at a time; the number of pages. */
  crawl(urls: readonly string[], hosts: number): Promise<number>;
}

/** undici, with and without htmlparser2, Crawlee and spider-rs, as far as they can be had here. */
export function startPeers(say: (line: string) => void): readonly Peer[] {
  const peers = [
    startPeer("undici + htmlparser2 + words", "undici-words.mjs", [import.meta.resolve("htmlparser2")]),
    startPeer("undici alone", "undici.mjs", []),
  ];
  const spiderBinary = `@spider-rs/spider-rs-${process.platform}-${process.arch}${process.platform === "linux" ? "-gnu" : ""}`;
  for (const [name, script, packages] of [
    ["Crawlee CheerioCrawler", "crawlee.mjs", [`@crawlee/cheerio@${crawleeVersion}`]],
    [
      "spider-rs",
      "spider.mjs",
      [`@spider-rs/spider-rs@${spiderVersion}`, `${spiderBinary}@${spiderVersion}`],
    ],
  ] as const) {
    try {
      peers.push(startPeer(`${name} ${packages[0].split("@").at(-1)}`, script, [installed(name, packages)]));
    } catch (error) {
      say(`${name} is left out: ${(error as Error).message.split("\n")[0]}`);
    }
  }
  return peers;
}

function startPeer(name: string, script: string, args: readonly string[]): Peer {
  const process = new MeasuredProcess(join(import.meta.dirname, "peers", script), { args });
  const crawl = async (urls: readonly string[], hosts: number) =>
    (await process.ask<{ pages: number }>({ type: "crawl", urls, hosts }, "crawled")).pages;
  return { name, process, crawl };
}

/** The folder that holds the packages; they are installed when it does not. */
function installed(name: string, packages: readonly string[]): string {
  const version = packages[0]!.split("@").at(-1);
  const folder = join(tmpdir(), "nearcrawl-bench-peers", `${name.split(" ")[0]!.toLowerCase()}-${version}`);
  if (existsSync(join(folder, "installed"))) return folder;
  mkdirSync(folder, { recursive: true });
  execFileSync(
    "npm",
    ["install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts", ...packages],
    {
      timeout: installMs,
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  mkdirSync(join(folder, "installed"));
  return folder;
}
