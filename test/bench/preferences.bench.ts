/**
 * What it costs to hear what sites state of the uses of their pages: bytes of a result on the wire, in the deflate
 * stream of a session, and CPU of a page from its header to its extract, as ratios to the same pages without statements
 * in the same round, median and range. On the benchmark's pages of one host, and on the real pages of the shared data.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { canParseUrl } from "#core/ip/url-host";
import { extractPage } from "#crawler/extract/extract-page";
import { parseRobots } from "#crawler/fetch/robots-rules";
import { usesOfPath } from "#crawler/fetch/robots-uses";
import { contentSignal } from "#crawler/preferences/content-signal";
import { mergedStatements } from "#crawler/preferences/statements";
import { MessageDeflater } from "#protocol/deflate";
import { FrameWriter, joinFrame, packResult } from "#protocol/packed/message-frames";
import { maxPreferences, type StatedPreference } from "#protocol/preferences";
import type { FetchResult } from "#protocol/result";
import { sharedData } from "../support/shared-data.ts";
import { benchPages } from "./crawl/page-markup.ts";
import { resultOf } from "./extracted-result.ts";

const rounds = 9;

interface Page {
  readonly url: string;
  readonly html: Buffer;
}

/** What most sites state that state anything: a content delivery network's managed lines, in both places. */
const managed = "search=yes,ai-train=no,use=reference";
const rules = parseRobots(`User-agent: *\nContent-Signal: ${managed}\nAllow: /\n`, "Nearcrawl");

const statedOf = ({ url }: Page): StatedPreference[] => {
  const { pathname, search } = new URL(url);
  return mergedStatements([
    ...usesOfPath(rules.uses, pathname + search).map(({ line: _, ...one }) => one),
    ...contentSignal(managed, "header"),
  ]);
};

const most = Array.from({ length: maxPreferences }, (_, at) =>
  contentSignal(`search=yes, of-the-site=${at}`.padEnd(300, "x"), "header"),
).flat();

console.log(`node ${process.version}`);
const { typical } = benchPages(200);
await report(
  "the benchmark's pages, one host",
  typical.map((text, at) => ({ url: `https://site.example/p/${at}`, html: Buffer.from(text) })),
);
const real = realPages();
if (real.length > 0) await report("the real pages, by host", real);

async function report(what: string, pages: readonly Page[]): Promise<void> {
  console.log(`\n${what}: ${pages.length} pages`);
  const results = await Promise.all(pages.map(({ url, html }) => resultOf(url, html)));
  const bare = await wireBytes(results);
  const bytes = async (name: string, preferences: (page: Page) => StatedPreference[]) => {
    const sent = await wireBytes(
      results.map((result, at) => ({ ...result, preferences: preferences(pages[at]!) })),
    );
    const more = (sent - bare) / pages.length;
    console.log(
      `  ${name.padEnd(44)} ${(sent / pages.length).toFixed(0)} bytes a result, ${more.toFixed(1)} more, ${(sent / bare).toFixed(4)} of none stated`,
    );
  };
  console.log(`  ${"nothing stated".padEnd(44)} ${(bare / pages.length).toFixed(0)} bytes a result`);
  await bytes("managed lines in robots.txt and header", statedOf);
  await bytes(`${maxPreferences} statements of 300 characters`, () => most);
  await reportCpu(pages);
}

async function reportCpu(pages: readonly Page[]): Promise<void> {
  const ratios: number[] = [];
  let extractMs = Number.POSITIVE_INFINITY;
  for (let round = 0; round <= rounds; round++) {
    const without = await cpuMs(pages, () => undefined);
    const stated = await cpuMs(pages, statedOf);
    extractMs = Math.min(extractMs, without);
    if (round > 0) ratios.push(stated / without);
  }
  ratios.sort((a, b) => a - b);
  const [least, median, most] = [ratios[0]!, ratios[ratios.length >> 1]!, ratios.at(-1)!];
  console.log(
    `  CPU of a page with managed lines             ${median.toFixed(3)} (${least.toFixed(3)} to ${most.toFixed(3)}) of none stated`,
  );
  let readMs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const before = process.cpuUsage();
    for (const page of pages) statedOf(page);
    const { user, system } = process.cpuUsage(before);
    readMs = Math.min(readMs, (user + system) / 1000);
  }
  const each = (ms: number) => ((1000 * ms) / pages.length).toFixed(0);
  console.log(
    `  of which reading the statements              ${each(readMs)} µs a page, extraction ${each(extractMs)} µs: ${(readMs / extractMs).toFixed(4)} of it (least of the rounds)`,
  );
}

async function cpuMs(
  pages: readonly Page[],
  stated: (page: Page) => StatedPreference[] | undefined,
): Promise<number> {
  const before = process.cpuUsage();
  for (const page of pages) {
    const body = { url: page.url, bytes: page.html, contentType: "text/html", contentLanguage: null };
    const said = stated(page);
    await extractPage({
      ...body,
      robotsTag: undefined,
      ...(said === undefined ? {} : { stated: said }),
      quiet: async () => {},
    });
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

async function wireBytes(results: readonly FetchResult[]): Promise<number> {
  const writer = new FrameWriter();
  const parts = results.map((result, at) => writer.result(at + 1, packResult("123456", result)));
  const deflater = new MessageDeflater();
  const texts = await Promise.all(parts.map(({ text }) => deflater.deflate(text)));
  deflater.close();
  return parts.reduce((sum, { numbers }, at) => sum + joinFrame(numbers, texts[at]!).length, 0);
}

function realPages(): Page[] {
  const folder = sharedData("suites/pages");
  if (folder === null) return [];
  const entries = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8")) as {
    readonly file: string;
    readonly url: string;
  }[];
  const pages = entries.map(({ file, url }, at) => ({
    url: canParseUrl(url) ? url : `https://site-${at}.example/page`,
    html: readFileSync(join(folder, file)),
  }));
  return pages.sort((a, b) => (new URL(a.url).host < new URL(b.url).host ? -1 : 1));
}
