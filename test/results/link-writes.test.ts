/** The web graph after random visits equals a count from scratch. */
import { describe, expect, it } from "vitest";
import { changeRatio } from "#coordinator/crawl/results/link-writes";
import { namedUrls } from "#coordinator/crawl/results/take-results";
import type { HostHash, UrlHash } from "#core/ids";
import { seededRandom } from "#core/random";
import type { FetchOutcome } from "#protocol/result";
import { arrivedResult, keyOf, noon, storeWorld, type World } from "../support/store-world.ts";

const world = storeWorld();

const root = "http://a.example/";
const pages = [root, "http://a.example/1", "http://a.example/2", "http://b.example/"];
const targets = [...pages, "http://a.example/3", "http://a.example/4", "http://c.example/"];
const others: readonly FetchOutcome[] = [
  { type: "unchanged", status: 304 },
  { type: "redirected", status: 301, location: root },
  { type: "http-error", status: 404, retryAfterSeconds: null },
  { type: "http-error", status: 503, retryAfterSeconds: null },
  { type: "failed", blame: "network", code: "timeout", reason: "" },
];
const keysOf = (urls: readonly string[]) => urls.map(keyOf);

/** Visits everything due on the day; `visit` says what each page contains. */
async function visitAll(
  crawlerId: Parameters<World["lease"]>[0],
  day: number,
  visit: (url: string) => { links: readonly string[]; outcome?: FetchOutcome },
): Promise<void> {
  const at = new Date(noon.getTime() + 2 * 86_400_000 * day);
  const leases = await world.lease(crawlerId, at);
  const urls = leases.flatMap(({ leaseId, urls }) => urls.map(({ url }) => ({ leaseId, url })));
  const results = urls.map(({ leaseId, url }, index) => {
    const result = { fetchedAt: at.toISOString() };
    return arrivedResult({ sequence: 1000 * day + index + 1, leaseId, url, result, ...visit(url) });
  });
  await world.take(crawlerId, results, at);
}

describe("after many visits that find random links, errors, redirects and nothing new", () => {
  it("back-links, out-links, change ratios and the links of the latest visit are as counted from scratch", async () => {
    const random = seededRandom(4);
    const crawlerId = await world.delegatedHost("north", ...targets);
    const found = new Map<string, string[][]>();
    for (let day = 1; day <= 10; day++) {
      await visitAll(crawlerId, day, (url) => {
        const outcome = random() < 0.3 ? others[Math.floor(random() * others.length)] : undefined;
        const same = random() < 0.3 ? found.get(url)?.at(-1) : undefined;
        const links = outcome === undefined ? (same ?? targets.filter(() => random() < 0.5)) : [];
        const now = linksNow(found.get(url), outcome, links);
        if (now !== null) found.set(url, [...(found.get(url) ?? []), now]);
        return outcome === undefined ? { links } : { links, outcome };
      });
    }

    const rows = await world.rows<{
      url: string;
      back_links: number;
      out_links: number | null;
      change_ratio: number | null;
    }>("select url, back_links, out_links, change_ratio from frontier_url order by url");

    expect(found.size).toBe(targets.length);
    for (const { url, back_links: backLinks, out_links: outLinks, change_ratio: ratio } of rows) {
      const visits = found.get(url)!;
      const latest = visits.at(-1)!;
      const linking = [...found.values()].filter((links) => links.at(-1)!.includes(url));
      expect({ url, backLinks, outLinks }).toEqual({
        url,
        backLinks: linking.length,
        outLinks: latest.length,
      });
      expect(ratio, url).toBeCloseTo(changeRatio(keysOf(visits.at(-2)!), keysOf(latest)), 6);
      expect(await linksOf(url)).toEqual(hashesOf(latest));
    }
  });
});

describe("the links of a visit", () => {
  it("are those of the latest visit, even if the clock jumped back before it", async () => {
    const crawlerId = await world.delegatedHost("north", root);
    await visitAll(crawlerId, 9, () => ({ links: targets.slice(0, 3) }));
    await world.pool.query("update frontier_url set next_fetch_at = $1", [noon]);
    await world.pool.query("update frontier_host set not_before = $1, due_at = $1", [noon]);
    await world.pool.query("update spool set acknowledged_sequence = 0");

    await visitAll(crawlerId, 3, (url) => ({ links: url === root ? targets.slice(2, 4) : [] }));

    expect(await linksOf(root)).toEqual(hashesOf(targets.slice(2, 4)));
  });
});

/** The page's links according to the visit; null: nothing. */
function linksNow(
  visits: readonly string[][] | undefined,
  outcome: FetchOutcome | undefined,
  links: string[],
): string[] | null {
  if (outcome === undefined) return links;
  if (outcome.type === "unchanged") return visits?.at(-1) ?? null;
  if (outcome.type === "failed") return null;
  return outcome.type === "http-error" && outcome.status !== 404 ? null : [];
}

const hashesOf = (urls: readonly string[]) =>
  keysOf(urls)
    .map(({ urlHash }) => urlHash)
    .sort();

/** As they are stored. */
async function linksOf(url: string): Promise<string[]> {
  const { hostHash, urlHash } = keyOf(url);
  const [row] = await world.rows<{ urls: string[] }>(
    `select urls from out_link where host_hash = ${hostHash} and url_hash = ${urlHash}`,
  );
  return [...(row?.urls ?? [])].sort();
}

// C of the Anansi thesis, section 4.3.3 and equation 4.2.

const links = (...urls: number[]) =>
  urls.map((url) => ({ hostHash: "1" as HostHash, urlHash: `${url}` as UrlHash }));

describe("the change ratio", () => {
  it("is the share of links that two visits do not share, as in the thesis", () => {
    expect(changeRatio(links(1, 2, 3), links(1, 2, 3))).toBe(0);
    expect(changeRatio(links(1, 2, 3), links(2, 3, 4))).toBe(0.5);
    expect(changeRatio(links(1, 2), links(3, 4))).toBe(1);
    expect(changeRatio(links(), links(3))).toBe(1);
  });

  it("is 1 when neither visit found a link", () => {
    expect(changeRatio([], [])).toBe(1);
  });

  it("counts a repeated link once", () => {
    expect(changeRatio(links(1, 1, 1, 2), links(1, 2, 2))).toBe(0);
  });
});

// Which of the URLs that a result names are to be fetched, where links were asked for their type.

it("a link of a type that no crawler reads is kept but not fetched", () => {
  const page = "http://a.example/";
  const links = [
    { url: `${page}film`, anchor: "film", nofollow: false, contentType: "video/mp4" },
    { url: `${page}next`, anchor: "next", nofollow: false },
  ];
  const { result } = arrivedResult({ sequence: 1, leaseId: "1", url: page });
  const told = { ...result, page: { ...result.page!, links } };

  const named = namedUrls(told, keyOf(page), false);

  expect(named.links.map(({ anchor }) => anchor)).toEqual(["film", "next"]);
  expect(named.admit.map(({ key }) => key.url)).toEqual([`${page}next`]);
});
