/**
 * The public suite of hostile origins: every case is crawled by coordinator and crawler and must end as its manifest
 * allows, within its limits. Skipped with a message when absent; `fetch/hostile-answers.test.ts` has similar sites of our own.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startDns } from "#ops/world/main";
import type { FetchResult } from "#protocol/result";
import { sharedData } from "../../support/shared-data.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { fetchOne } from "../support/fetch-one.ts";
import { type SmallCrawl, smallCrawl } from "../support/small-crawl.ts";

const server = sharedData("suites/hostile/server.mjs");
/** Cases run in parallel, because most of them wait. */
const lanes = 6;
const suiteSeconds = 150;
/** Far shorter than in a crawl, but long enough for a busy machine. */
const timeouts = { connectMs: 4000, firstByteMs: 4000, idleMs: 4000, totalMs: 12_000 };
/** The suite generates its bombs on first request. */
const bombTimeouts = { connectMs: 4000, firstByteMs: 40_000, idleMs: 40_000, totalMs: 60_000 };
/** Follows this many of a page's links to itself, unless the case is about their number. */
const mostOwnLinks = 3;
/** A body's limit plus the buffers of both sockets. */
const bytesPerRequest = 14e6;

interface Case {
  readonly name: string;
  readonly category: string;
  readonly url: string;
  readonly expect: {
    readonly outcome: string;
    readonly maxSeconds: number;
    readonly maxRequests?: number;
    readonly mustRequest?: readonly string[];
    readonly mustNotRequest?: readonly string[];
    readonly mustNotConnect?: boolean;
    readonly title?: string;
  };
}

interface Finished {
  readonly case: Case;
  readonly crawl: SmallCrawl;
  readonly seconds: number;
}

interface Stats {
  readonly requests: number;
  readonly bytes: number;
}

describe.skipIf(server === null)("hostile origins of the public suite", () => {
  let child: ChildProcess;
  let base = 0;
  let finished: Finished[] = [];
  let stats: Record<string, Stats> = {};
  let grownBytes = 0;

  beforeAll(async () => {
    ({ child, base } = await startServer(server!));
    const { cases, origins } = await read<{ cases: Case[]; origins: Case[] }>("manifest.json");
    // Loads one-time data such as the language models before measuring.
    await crawlAll(cases.filter(({ category }) => category === "charset"));
    const before = await heldBytes();
    finished = await crawlAll([...cases, ...origins.filter((origin) => origin.name !== "canary")]);
    grownBytes = (await heldBytes()) - before;
    stats = await read("__stats");
  }, suiteSeconds * 1000);

  afterAll(() => void child?.kill());

  it("end with an allowed outcome", () => {
    expect(finished.flatMap(faultsOf)).toEqual([]);
    expect(finished.length).toBeGreaterThanOrEqual(80);
  });

  it("end in time", () => {
    const late = finished.filter((each) => each.seconds > each.case.expect.maxSeconds);

    expect(late.map((each) => [each.case.name, each.seconds])).toEqual([]);
  });

  it("get no more requests than allowed", () => {
    const limitOf = (each: Case) => each.expect.maxRequests ?? 60;
    const many = finished.filter((each) => (stats[each.case.name]?.requests ?? 0) > limitOf(each.case));

    expect(many.map((each) => [each.case.name, stats[each.case.name]?.requests])).toEqual([]);
  });

  it("get the required requests and no forbidden ones", async () => {
    const faults: string[] = [];
    for (const { case: each } of finished) {
      const log = await read<{ path?: string }[]>(`__log?case=${each.name}`);
      const isAsked = (start: string) => log.some(({ path }) => path?.startsWith(start));
      for (const path of each.expect.mustRequest ?? [])
        if (!isAsked(path)) faults.push(`${each.name}: not ${path}`);
      for (const path of each.expect.mustNotRequest ?? [])
        if (isAsked(path)) faults.push(`${each.name}: ${path}`);
    }

    expect(faults).toEqual([]);
  });

  it("cannot make us read more than a body's limit", () => {
    const many = Object.entries(stats).filter(
      ([, { bytes, requests }]) => bytes > requests * bytesPerRequest,
    );

    expect(many).toEqual([]);
  });

  it("cannot make us grow by 100 MB", () => {
    expect(grownBytes / 1e6).toBeLessThan(100);
  });

  it("cannot make us contact forbidden targets", () => {
    const elsewhere = finished.flatMap(({ crawl }) =>
      crawl.results.filter((result) => !isOurs(result) && result.address !== null),
    );

    expect(stats.canary?.requests ?? 0).toBe(0);
    expect(elsewhere).toEqual([]);
  });

  it.each([
    ["etag-304", (result: FetchResult) => ({ etag: result.etag! })],
    ["last-modified-304", (result: FetchResult) => ({ lastModified: result.lastModified! })],
  ])("answer %s when nothing changed", async (name, validators) => {
    const { case: each, crawl } = finished.find(({ case: { name: other } }) => other === name)!;

    const again = await fetchOne({ url: each.url, ...validators(crawl.answer!) }, settings());

    expect(again.outcome).toEqual({ type: "unchanged", status: 304 });
  });

  it("are left alone as long as they request", () => {
    const delayOf = (name: string) =>
      finished.find((each) => each.case.name === name)!.crawl.answer!.hostDelayMs;

    expect(delayOf("retry-after-seconds")).toBeGreaterThan(6900);
    expect(delayOf("retry-after-absurd")).toBeGreaterThan(50_000);
  });

  async function crawlAll(cases: readonly Case[]): Promise<Finished[]> {
    const dns = await startDns(() => null);
    const done: Finished[] = [];
    const queue = cases.values();
    const lane = async () => {
      for (const each of queue) {
        const startedMs = performance.now();
        const crawl = await smallCrawl({
          seed: each.url,
          mostResults: (each.expect.maxRequests ?? 50) + 10,
          retries: each.name.startsWith("flaky") ? 2 : 0,
          admits: admitting(each),
          changes: { ...settings(each.category), resolvers: [dns.address] },
        });
        const results = crawl.results.map((result) => ({ ...result, page: null }));
        done.push({
          case: each,
          crawl: { ...crawl, results },
          seconds: (performance.now() - startedMs) / 1000,
        });
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    await dns.close();
    return done;
  }

  /** Allows the suite's ports except its canary. */
  function settings(category = "") {
    return {
      timeouts: category === "coding" ? bombTimeouts : timeouts,
      allowRanges: [`127.0.0.1:${base}`, `127.0.0.1:${base + 10}-${base + 70}`],
    };
  }

  async function read<T>(path: string): Promise<T> {
    return (await (await fetch(`http://127.0.0.1:${base}/${path}`)).json()) as T;
  }
});

/** Measures after releasing everything: buffers outside the heap follow the objects that held them. */
async function heldBytes(): Promise<number> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let pass = 0; pass < 3; pass += 1) {
    collect();
    await new Promise(setImmediate);
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function admitting({ url, category }: Case): (link: string) => boolean {
  let own = 0;
  return (link) => category === "trap" || !link.startsWith(url) || ++own <= mostOwnLinks;
}

function faultsOf({ case: each, crawl }: Finished): string[] {
  const kinds = kindsOf(crawl);
  const { outcome, title } = each.expect;
  const wanted = outcome === "ok-or-error" ? ["ok", "truncated", "error", "not-html"] : [outcome];
  const isSane = wanted.some((kind) => kinds.includes(kind));
  const told = JSON.stringify({ outcome: crawl.answer?.outcome, endings: crawl.endings });
  const found = crawl.answer?.page?.title;
  return [
    ...(isSane ? [] : [`${each.name}: ${outcome} is sane, not ${told}`]),
    ...(title === undefined || title === found ? [] : [`${each.name}: its title is ${title}, not ${found}`]),
  ];
}

/** Translates the end into the manifest's terms. */
function kindsOf({ answer, results }: SmallCrawl): string[] {
  const others = results.filter((result) => result !== answer);
  const isGuarded = others.length > 0 && others.every((each) => isOurs(each) || each.address === null);
  const outcome = answer?.outcome;
  switch (outcome?.type) {
    case "fetched":
      return [outcome.truncated ? "truncated" : "ok", ...(isGuarded ? ["refuse"] : [])];
    case "refused-address":
    case "refused-by-robots":
      return ["refuse"];
    case "unsupported":
      return [outcome.status === 204 ? "no-content" : "not-html"];
    case "http-error": {
      const special: Record<number, string> = { 410: "gone", 429: "retry-later", 503: "retry-later" };
      return [special[outcome.status] ?? "error"];
    }
    case "failed":
      return kindsOfFailure(outcome.code);
    case "redirected":
      return ["redirect-error"];
    default:
      return [];
  }
}

const isOurs = ({ url }: FetchResult) => new URL(url).hostname === "127.0.0.1";

function kindsOfFailure(code: string): string[] {
  if (code === "decompression-bomb") return ["truncated", "error"];
  if (code === "bad-redirect") return ["redirect-error", "refuse"];
  return /redirect|headers-too-large/.test(code) ? ["redirect-error", "error"] : ["error", "refuse"];
}

/** Uses a free port and the following ones. */
async function startServer(path: string): Promise<{ readonly child: ChildProcess; readonly base: number }> {
  // The server leaves its own temporary folder behind.
  const env = { ...process.env, TMPDIR: temporaryFolder("hostile-origins-") };
  for (let tries = 0; tries < 10; tries++) {
    const base = 20_000 + 80 * Math.floor(Math.random() * 100);
    const child = spawn(process.execPath, [path, String(base)], { stdio: ["ignore", "pipe", "ignore"], env });
    const started = once(child.stdout, "data").then(() => true);
    const ended = once(child, "exit").then(() => false);
    if (await Promise.race([started, ended])) return { child, base };
  }
  throw new Error("the suite's server finds no ports");
}
