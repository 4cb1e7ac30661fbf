/** A lease with known links: through the real fetch they travel by name; without the field, or with a broken one, in full. */
import { expect, test } from "vitest";
import { KnownLinkSets } from "#crawler/fetch/shorten-known-links";
import { decodeCoordinatorMessage } from "#protocol/codec";
import { packKnownDigests } from "#protocol/known-digests";
import {
  isLinkName,
  keptLinkSets,
  keptLinkSetsMs,
  lease as leaseSchema,
  linkDigestOf,
  linkHashOf,
  linkHashOfNumber,
  linkNameBits,
  linkNameOf,
} from "#protocol/lease";
import { html, startOrigin } from "../support/origin.ts";
import { sliceRunner } from "../support/slices.ts";

const known = "https://known.example/page?a=1";
const other = "https://other.example/";
const body = `<title>Links</title><p><a href="${known}">Known</a> <a rel=nofollow href="${other}">Other</a> <a href="/here">Here</a>`;

test("known links to other sites go by name with their texts; those of the site, and unknown ones, in full", async () => {
  const origin = await startOrigin((request, response) => {
    if (request.url === "/robots.txt") return void response.writeHead(404).end();
    html(response, body);
  });
  const runner = sliceRunner({ politenessFloorMs: 0 });
  const here = `${origin.url}/here`;
  const set = packKnownDigests(
    [known, here].map((url) => linkDigestOf(linkHashOf(url))),
    3,
  ).toString("base64");
  const linksOf = async (changes: object) =>
    (await runner.crawl([`${origin.url}/`], changes)).results[0]?.page?.links;

  const [[named, again], broken, full] = [
    // Told once, it holds for the leases that follow.
    [await linksOf({ knownLinks: set }), await linksOf({})],
    await linksOf({ knownLinks: "AAAB" }),
    await linksOf({}),
  ];
  runner.close();
  await origin.close();

  expect(full).toEqual([
    { url: known, anchor: "Known", nofollow: false },
    { url: other, anchor: "Other", nofollow: true },
    { url: here, anchor: "Here", nofollow: false },
  ]);
  expect(named).toEqual([{ ...full![0], url: linkNameOf(linkHashOf(known)) }, full![1], full![2]]);
  expect(again).toEqual(named);
  expect(broken).toEqual(full);
});

test("a set is kept for twelve hours, and those of the latest hosts alone", () => {
  const sets = new KnownLinkSets();
  const knownLinks = packKnownDigests([linkDigestOf(linkHashOf(known))], 0).toString("base64");
  const has = (host: string, nowMs: number) => sets.of({ host }, nowMs) !== null;

  sets.of({ host: "a.example", knownLinks }, 0);
  const kept = [has("a.example", keptLinkSetsMs - 1), has("b.example", 1), has("a.example", keptLinkSetsMs)];
  sets.of({ host: "a.example", knownLinks }, 0);
  for (let host = 0; host < keptLinkSets; host += 1) sets.of({ host: `h${host}.example`, knownLinks }, 0);

  expect(kept).toEqual([true, false, false]);
  expect([has("a.example", 1), has("h0.example", 1)]).toEqual([false, true]);
});

test("a crawler takes tasks with fields that it does not know, and reads them as if they were not there", () => {
  const lease = {
    leaseId: "7",
    host: "a.example",
    addresses: [],
    expiresInSeconds: 60,
    waitMs: 0,
    urls: [{ url: "http://a.example/", etag: null, lastModified: null }],
  };
  const tasks = { type: "coordinator:tasks", askAgainMs: 500, reason: "" };

  const read = decodeCoordinatorMessage(
    JSON.stringify({ ...tasks, leases: [{ ...lease, knownOfAnotherTime: "AAAA" }] }),
  );

  if (read.type !== "coordinator:tasks") throw new Error(read.type);
  expect(read.leases.map((offered) => leaseSchema.parse(offered))).toEqual([lease]);
});

test("a name is 24 bits of the URL's hash, the same from the crawler's form of it and from the frontier's", () => {
  const hash = linkHashOf(known);
  const asNumber = BigInt.asIntN(64, BigInt(`0x${hash}`)).toString();

  expect(linkHashOfNumber(asNumber)).toBe(hash);
  expect(linkHashOfNumber("1")).toBe("0000000000000001");
  expect(linkNameBits(linkNameOf(hash))).toBe(Number.parseInt(hash.slice(0, 6), 16));
  expect([linkNameOf(hash), known, "k:short", "k:toolong"].map(isLinkName)).toEqual([
    true,
    false,
    false,
    false,
  ]);
});
