/**
 * Links packed by page against the former table with a row for each link: after random visits, table out_link reads
 * the same one by one, by page and by target.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { linksTo } from "#coordinator/crawl/batch/link-sql";
import { packOutLinks } from "#coordinator/crawl/results/link-writes";
import type { HostHash, UrlHash } from "#core/ids";
import { seededRandom } from "#core/random";
import { nameOf, type UrlAddress } from "#core/url-key";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { addLinks } from "../support/links.ts";

interface GoldenLink {
  readonly from: UrlAddress;
  readonly to: UrlAddress;
  readonly anchor: string;
  readonly nofollow: boolean;
}

const address = (host: number, url: number): UrlAddress => ({
  // Both ends of bigint.
  hostHash: `${(BigInt(host) - 3n) * 1_600_000_000_000_000_000n}` as HostHash,
  urlHash: `${(BigInt(url) - 30n) * 150_000_000_000_000_000n}` as UrlHash,
});
/** A URL's hash determines its host. */
const pages = Array.from({ length: 60 }, (_, url) => address(url % 7, url));
const anchors = ["", "words", "ü and ☂", "a\nline", "tab\tquote'\"\\", "{a,b}", "  spaces  "];

function randomGraph(seed: number): GoldenLink[] {
  const random = seededRandom(seed);
  const pick = <T>(values: readonly T[]) => values[Math.floor(random() * values.length)]!;
  return pages.slice(0, 30).flatMap((from) => {
    const targets = new Set(Array.from({ length: Math.floor(random() * 25) }, () => pick(pages)));
    return [...targets].map((to) => ({ from, to, anchor: pick(anchors), nofollow: random() < 0.2 }));
  });
}

const database = await forThisFile(testDatabase());
const links = randomGraph(19);
beforeAll(async () => await addLinks(database.pool, links));

const line = (link: Omit<GoldenLink, "to">) =>
  JSON.stringify([nameOf(link.from), link.anchor.replaceAll("\n", " "), link.nofollow]);

describe("packed links", () => {
  it("are a row each in the view", async () => {
    const { rows } = await database.pool.query<{
      from: string;
      to: string;
      anchor: string;
      nofollow: boolean;
    }>(
      `select host_hash || '/' || url_hash as "from", to_host_hash || '/' || to_url_hash as "to", anchor, nofollow
       from link`,
    );

    expect(rows.map((row) => JSON.stringify(row)).sort()).toEqual(
      links
        .map(({ from, to, anchor, nofollow }) => ({ from: nameOf(from), to: nameOf(to), anchor, nofollow }))
        .map((row) => JSON.stringify({ ...row, anchor: row.anchor.replaceAll("\n", " ") }))
        .sort(),
    );
  });

  it("are found by their target, from pages of the same host and of others", async () => {
    for (const target of pages) {
      const { rows } = await database.pool.query<{
        host: HostHash;
        url: UrlHash;
        anchor: string;
        nofollow: boolean;
      }>(
        `select host_hash as host, url_hash as url, anchor, nofollow
         from ${linksTo("$1::bigint", "$2::bigint", 1000)} linking`,
        [target.hostHash, target.urlHash],
      );

      const found = rows.map(({ host: hostHash, url: urlHash, ...row }) =>
        line({ from: { hostHash, urlHash }, ...row }),
      );
      expect(found.sort(), nameOf(target)).toEqual(
        links
          .filter(({ to }) => nameOf(to) === nameOf(target))
          .map(line)
          .sort(),
      );
    }
  });

  it("are found by their target up to the limit", async () => {
    const target = pages.reduce((a, b) => (linking(a) >= linking(b) ? a : b));

    const { rowCount } = await database.pool.query(
      `select from ${linksTo("$1::bigint", "$2::bigint", 3)} linking`,
      [target.hostHash, target.urlHash],
    );

    expect(linking(target)).toBeGreaterThan(3);
    expect(rowCount).toBe(3);
  });

  it("have the same digest exactly when they are the same", () => {
    const page = { hostHash: pages[0]!.hostHash };
    const given = pages.slice(0, 20).map((to) => ({ ...to, anchor: "words", nofollow: false }));
    const digest = (changed: typeof given) => packOutLinks(page, changed).digest;
    const others = [
      given.slice(1),
      given.map((link, at) => (at === 3 ? { ...link, anchor: "others" } : link)),
      given.map((link, at) => (at === 3 ? { ...link, nofollow: true } : link)),
      given.map((link, at) => (at === 3 ? { ...link, ...pages[40]! } : link)),
    ];

    expect(digest([...given, given[0]!])).toBe(digest(given));
    expect(new Set([given, ...others].map(digest)).size).toBe(5);
  });
});

const linking = (target: UrlAddress) => links.filter(({ to }) => nameOf(to) === nameOf(target)).length;
