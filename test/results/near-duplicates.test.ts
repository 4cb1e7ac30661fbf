/** Near-duplicates across hosts: found by simhash when a page is stored, and shown once in search. */
import { describe, expect, it } from "vitest";
import { asSubnetId } from "#core/ids";
import type { PageExtract } from "#protocol/result";
import { searchNow } from "../support/search-engine.ts";
import { noon, scope, secondsAfterNoon, seeds, worldOfFile } from "../support/store-world.ts";
import { newShippingWorld, text, turned } from "./shipping-world.ts";

const world = worldOfFile(newShippingWorld);

const days = (count: number) => secondsAfterNoon(count * 86_400);
const urlOf = (host: string) => `http://${host}.example/`;
const original = text(1);
/** The same text, except for this many bits of its simhash, in all four bands. */
const near = (...bits: readonly number[]): Partial<PageExtract> => ({
  ...original,
  simhash: turned(original.simhash, ...bits),
});

/** Stores each host's front page, one after the other. */
async function shipped(...pages: readonly (readonly [host: string, page: Partial<PageExtract>])[]) {
  const north = await world.delegatedHost("north", ...pages.map(([host]) => urlOf(host)));
  for (const [host, page] of pages) await world.ship(north, { [urlOf(host)]: { page } }, noon);
  return north;
}

/** Each page's URL and that of the page it nearly equals. */
const duplicates = async () =>
  Object.fromEntries(
    (
      await world.rows<{ url: string; of: string | null }>(
        `select p.url, q.url as of
         from page p
         left join page q on q.host_hash = p.duplicate_host_hash and q.url_hash = p.duplicate_url_hash`,
      )
    ).map(({ url, of }) => [new URL(url).hostname.split(".")[0], of && new URL(of).hostname.split(".")[0]]),
  );
const bands = async () => (await world.rows<{ n: number }>("select count(*)::int n from text_band"))[0]?.n;

describe("a page that is stored", () => {
  it("is compared with all others: nearly the same up to three bits, wherever they are", async () => {
    await shipped(
      ["a", original],
      ["same", near()],
      ["one", near(5)],
      ["three", near(0, 20, 40)],
      ["four", near(0, 20, 40, 60)],
      ["other", text(2)],
    );

    expect(await duplicates()).toEqual({ a: null, same: "a", one: "a", three: "a", four: null, other: null });
    expect(await bands()).toBe(3 * 4);
  });

  it("is compared with those of its own batch, too", async () => {
    const north = await world.delegatedHost("north", urlOf("a"), urlOf("b"), urlOf("c"));

    await world.ship(
      north,
      { [urlOf("a")]: { page: original }, [urlOf("b")]: { page: near(7) }, [urlOf("c")]: { page: text(3) } },
      noon,
    );

    expect(await duplicates()).toEqual({ a: null, b: "a", c: null });
  });

  it("is not grouped when its text is short, of another length, or empty", async () => {
    await shipped(
      ["a", original],
      ["short", { ...near(), words: 49 }],
      ["longer", { ...near(), words: 400 }],
      ["zero", { words: 300, simhash: "0".repeat(16) }],
      ["nought", { words: 300, simhash: "0".repeat(16) }],
    );

    expect(await duplicates()).toEqual({ a: null, short: null, longer: null, zero: null, nought: null });
  });

  it("follows its crawler about pages of the same host, even if the simhashes are further apart", async () => {
    const north = await shipped(["a", original]);
    await world.ship(north, { [urlOf("a")]: { page: original, links: [`${urlOf("a")}print`] } }, days(7));
    const page = { ...text(9), nearDuplicateOf: urlOf("a") };

    await world.ship(north, { [`${urlOf("a")}print`]: { page } }, days(8));

    expect(await world.urlRow(`${urlOf("a")}print`)).toMatchObject({ worth: "near-duplicate" });
    expect(await world.rows("select count(distinct text_group)::int as groups from page")).toEqual([
      { groups: 1 },
    ]);
  });

  it("keeps its group as long as its text is the same", async () => {
    const north = await shipped(["a", original], ["b", near(1)]);

    await world.ship(north, { [urlOf("a")]: { page: original }, [urlOf("b")]: { page: near(1) } }, days(7));

    expect(await duplicates()).toEqual({ a: null, b: "a" });
    expect(await world.urlRow(urlOf("b"))).toMatchObject({ worth: "near-duplicate" });
    expect(await bands()).toBe(4);
  });

  it("is replaced as the first of its group when it changes its text or goes", async () => {
    const north = await shipped(["a", original], ["b", near(1)], ["c", near(2)]);

    await world.ship(north, { [urlOf("a")]: { page: text(5) } }, days(7));
    const missing = { type: "http-error", status: 410, retryAfterSeconds: null } as const;
    await world.ship(north, { [urlOf("b")]: { outcome: missing } }, days(8));
    await admit("d");
    await world.ship(north, { [urlOf("d")]: { page: near(3) } }, days(9));

    const groups = await world.rows<{ url: string; text_group: string }>(
      "select url, text_group from page order by url",
    );
    const groupOf = (host: string) => groups.find(({ url }) => url === urlOf(host))?.text_group;
    expect(groupOf("d")).toBe(groupOf("c"));
    expect(groupOf("a")).not.toBe(groupOf("c"));
    expect(await duplicates()).toMatchObject({ a: null, d: "c" });
    expect(await bands()).toBe(2 * 4);
  });

  it("costs no more in a flood of the same text", async () => {
    const hosts = Array.from({ length: 300 }, (_, index) => `h${index}`);
    const north = await world.delegatedHost("north", ...hosts.map(urlOf));

    for (const part of [0, 1, 2]) {
      const given = hosts.slice(100 * part, 100 * part + 100).map((host) => [urlOf(host), { page: near() }]);
      await world.ship(north, Object.fromEntries(given), secondsAfterNoon(part));
    }

    expect(await bands()).toBe(4);
    expect(await world.rows("select count(*)::int as n from page where duplicate_url_hash is null")).toEqual([
      { n: 1 },
    ]);
  });
});

describe("search", () => {
  const find = async (words: string) => await searchNow(world.pool, words, new Date());
  const found = async (words: string) =>
    (await find(words)).pages.map(({ host, alike }) => [host.split(".")[0], alike]);

  it("shows one page of a group, the first that had the text, and counts the others", async () => {
    await shipped(
      ["a", { ...original, text: "All about ferries" }],
      ["b", { ...near(1), title: "Ferries", text: "Ferries, ferries" }],
      ["c", { ...text(4), title: "Ferries", text: "Ferries" }],
    );

    const answer = await find("ferries");

    expect(await found("ferries")).toEqual(
      expect.arrayContaining([
        ["a", 1],
        ["c", 0],
      ]),
    );
    expect([answer.total, answer.pages.length]).toEqual([2, 2]);
  });

  it("shows another page of the group where the first lacks the words", async () => {
    await shipped(["a", { ...original, text: "ships" }], ["b", { ...near(1), text: "ferries" }]);

    expect(await found("ferries")).toEqual([["b", 0]]);
  });

  it("shows each page whose text is too short to compare", async () => {
    await shipped(["a", { words: 2, text: "ferries" }], ["b", { words: 2, text: "ferries" }]);

    expect(await found("ferries")).toHaveLength(2);
  });
});

/** One more host in the subnet of the others. */
async function admit(host: string): Promise<void> {
  await world.frontier.admit(seeds(urlOf(host)), scope, noon);
  const [subnet] = await world.rows<{ subnet_id: number }>("select subnet_id from delegation");
  await world.resolve(`${host}.example`, "198.51.100.7", asSubnetId(subnet!.subnet_id));
}
