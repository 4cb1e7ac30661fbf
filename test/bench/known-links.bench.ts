/**
 * What known links to other sites save on the wire (SARSS section 2.1, "the digests of discovered inter-site URLs"): bytes
 * that leave a crawler for a lease, as packed and deflated results, and the set that goes the other way. Sites of the
 * emulated Internet, drawn with more pages; of each, so many pages are known, and the next twenty are leased. Two webs of
 * links: as the emulated Internet has them (front pages of other sites, short), and deep (the same links to pages with
 * paths of some 50 characters). Each after a reconnect, and in a connection in which a lease of the same host went before,
 * whose links both ends remember by number (packed/link-history.ts).
 */
import { linksThatPay } from "#coordinator/channels/known-links";
import { seededRandom } from "#core/random";
import { withKnownLinks } from "#crawler/fetch/shorten-known-links";
import { generateWorld } from "#ops/world/generate-world";
import { pageHtml, siteFurniture } from "#ops/world/page-html";
import { hashText, SeededRandom } from "#ops/world/seeded-random";
import { headline } from "#ops/world/sentences";
import { type PlannedPage, planSite } from "#ops/world/site-plan";
import { MessageDeflater } from "#protocol/deflate";
import { KnownDigests, packKnownDigests } from "#protocol/known-digests";
import { isLinkName, linkDigestOf, linkHashOf } from "#protocol/lease";
import { FrameWriter, joinFrame, packResult } from "#protocol/packed/message-frames";
import type { FetchResult, PageLink } from "#protocol/result";
import { resultOf } from "./extracted-result.ts";

const leaseUrls = 20;
const sitesMeasured = 6;
const knownPages = [100];
/** Deep links: so many pages of another site are linked to. */
const deepPages = 2;
/** Links abroad that stand on every page. */
const footerLinks = 15;

const world = generateWorld({ seed: 1, sites: 60, crawlers: 4 });

interface Site {
  readonly host: string;
  readonly results: readonly FetchResult[];
}

const most = Math.max(...knownPages) + leaseUrls;
const plain: Site[] = [];
for (const site of world.sites.slice(0, sitesMeasured)) {
  const plan = planSite(world, { ...site, pages: most });
  const furniture = siteFurniture(plan.pages[0]!.seed);
  const html = (page: PlannedPage) => Buffer.from(pageHtml(plan, page, furniture));
  const results: FetchResult[] = [];
  for (const page of plan.pages) results.push(await resultOf(`http://${site.host}${page.path}`, html(page)));
  plain.push({ host: site.host, results: shuffled(results) });
}
const deep = plain.map(deepened);
const webs = { "front pages": plain, "deep pages": deep, "and on every page": deep.map(withFooter) };

console.log(`${plain.length} sites, leases of ${leaseUrls} new URLs, mean bytes of a lease`);
console.log(
  "| links to | pages known | connection | in full | by name | set | told | named | saved | a named link saves |",
);
for (const [web, sites] of Object.entries(webs))
  for (const count of knownPages)
    for (const connection of ["new", "running"] as const) await measure(web, sites, { count, connection });

async function measure(
  web: string,
  sites: readonly Site[],
  { count, connection }: { readonly count: number; readonly connection: "new" | "running" },
): Promise<void> {
  const sums = { full: 0, short: 0, set: 0, told: 0, named: 0 };
  for (const { host, results } of sites) {
    const known = results.slice(0, count);
    const lease = results.slice(count, count + leaseUrls);
    const before = connection === "new" ? [] : known.slice(-leaseUrls);
    const { packed, told } = setOf(known, host);
    const named = told === 0 ? lease : lease.map((one) => nameLinks(one, host, packed));
    sums.full += await wireBytes(before, lease);
    sums.short += await wireBytes(
      told === 0 ? before : before.map((one) => nameLinks(one, host, packed)),
      named,
    );
    // Told once in a connection.
    sums.set += told === 0 || connection === "running" ? 0 : packed.length;
    sums.told += told;
    sums.named += new Set(
      named.flatMap(({ page }) => page!.links.map(({ url }) => url)).filter(isLinkName),
    ).size;
  }
  const of = (sum: number) => Math.round(sum / sites.length);
  const saved = (100 * (sums.full - sums.short - sums.set)) / sums.full;
  const each = sums.named === 0 ? "" : ((sums.full - sums.short) / sums.named).toFixed(1);
  console.log(
    `| ${[web, count, connection, of(sums.full), of(sums.short), of(sums.set), of(sums.told), of(sums.named), `${saved.toFixed(1)} %`, each].join(" | ")} |`,
  );
}

/** As the coordinator makes it of what it has of the channel. */
function setOf(known: readonly FetchResult[], host: string): { packed: Buffer; told: number } {
  const pages = new Map<string, number>();
  for (const { page } of known)
    for (const url of new Set(page!.links.filter((link) => isAbroad(link, host)).map((link) => link.url)))
      pages.set(url, (pages.get(url) ?? 0) + 1);
  const links = [...pages].map(([url, count]) => ({
    url,
    pageShare: count / known.length,
    urlLength: url.length,
  }));
  const told = linksThatPay(links, { newPages: leaseUrls, knownPages: 0, changedShare: 0 });
  const digests = told.map(({ url }) => linkDigestOf(linkHashOf(url)));
  return { packed: packKnownDigests(digests, 0), told: told.length };
}

function nameLinks(result: FetchResult, host: string, packed: Buffer): FetchResult {
  return { ...result, ...withKnownLinks(result, host, new KnownDigests(packed)) };
}

/** The same links, to pages within the other sites: each of these has some that are linked to, named by their titles. */
function deepened({ host, results }: Site): Site {
  const random = seededRandom(7);
  return {
    host,
    results: results.map((result) =>
      withLinks(result, (link) => (isAbroad(link, host) ? deepLink(link, random) : link)),
    ),
  };
}

/** The first so many of those stand on every page, as links to partners, sources and profiles do. */
function withFooter({ host, results }: Site): Site {
  const abroad = new Map(
    results.flatMap(({ page }) =>
      page!.links.filter((link) => isAbroad(link, host)).map((link) => [link.url, link]),
    ),
  );
  const footer = [...abroad.values()].slice(0, footerLinks);
  return {
    host,
    results: results.map((result) => {
      const { page } = result;
      const own = page!.links.filter((link) => !footer.some(({ url }) => url === link.url));
      return { ...result, page: { ...page!, links: [...own, ...footer] } };
    }),
  };
}

function isAbroad({ url }: PageLink, host: string): boolean {
  return new URL(url).hostname !== host;
}

function withLinks(result: FetchResult, change: (link: PageLink) => PageLink): FetchResult {
  return { ...result, page: { ...result.page!, links: result.page!.links.map(change) } };
}

function deepLink(link: PageLink, random: () => number): PageLink {
  const words = new SeededRandom(hashText(Math.floor(random() * deepPages), link.url));
  const anchor = headline("en", words);
  const slug = anchor.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  const [year, month, number] = [
    words.integer(2005, 2026),
    words.integer(10, 12),
    words.integer(10_000, 99_999),
  ];
  return { ...link, anchor, url: `${link.url}${year}/${month}/${slug}-${number}.html` };
}

/** Pages in no order, as a crawl meets them: the first of a plan are its upper levels. */
function shuffled(results: readonly FetchResult[]): FetchResult[] {
  const random = seededRandom(results.length);
  return results
    .map((result) => ({ result, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ result }) => result);
}

/** Of the lease alone, behind what the connection carried before it. */
async function wireBytes(before: readonly FetchResult[], lease: readonly FetchResult[]): Promise<number> {
  const writer = new FrameWriter();
  const deflater = new MessageDeflater("large");
  let bytes = 0;
  for (const [at, result] of [...before, ...lease].entries()) {
    const { text, numbers } = writer.result(at + 1, packResult("123456", result));
    const frame = joinFrame(numbers, await deflater.deflate(text)).length;
    if (at >= before.length) bytes += frame;
  }
  deflater.close();
  return bytes;
}
