/** Which new URLs have a place at their hosts, in tiny worlds. */
import { expect, it } from "vitest";
import { type HostRoom, mostListUrls, placeUrls } from "#coordinator/crawl/frontier/place-urls";
import type { HostHash } from "#core/ids";
import { keyOf } from "../support/store-world.ts";

const room = (open: number, rest: Partial<HostRoom> = {}): HostRoom => ({
  refused: null,
  open,
  holds: 0,
  lists: 0,
  ...rest,
});

const found = (path: string, depth = 1, isList = false) => ({
  key: keyOf(`http://a.example/${path}`),
  depth,
  ...(isList ? { isList } : {}),
});

const hostHash: HostHash = keyOf("http://a.example/").hostHash;

function placed(urls: ReturnType<typeof found>[], roomOfHost: HostRoom) {
  const { placed: rows, counts } = placeUrls(urls, new Map([[hostHash, roomOfHost]]));
  return {
    rows: rows.map(({ url, state }) => `${url.key.url.slice("http://a.example/".length)} ${state}`),
    counts: counts.get(hostHash),
  };
}

it("the shallowest are due, then those found first; some are held, and the rest is left out", () => {
  const urls = [found("deep", 3), found("one"), found("two"), found("three"), found("four")];

  expect(placed(urls, room(2, { holds: 2 }))).toEqual({
    rows: ["one due", "two due", "three held", "four held"],
    counts: { urls: 2, due: 2, held: 2, lists: 0, leftOut: 1 },
  });
});

it("a refused host's URLs are refused with its reason as far as it has room, and none is held", () => {
  const { placed: rows, counts } = placeUrls(
    [found("one"), found("two")],
    new Map([[hostHash, room(1, { refused: "10.0.0.1 is private", holds: 5 })]]),
  );

  expect(rows).toMatchObject([{ state: "refused", reason: "10.0.0.1 is private" }]);
  expect(counts.get(hostHash)).toEqual({ urls: 1, due: 0, held: 0, lists: 0, leftOut: 1 });
});

it("sitemaps and feeds have a bound of their own, whatever room there is", () => {
  const urls = [found("map-1", 0, true), found("map-2", 0, true), found("page")];

  expect(placed(urls, room(9, { lists: mostListUrls - 1 }))).toEqual({
    rows: ["map-1 due", "page due"],
    counts: { urls: 2, due: 2, held: 0, lists: 1, leftOut: 1 },
  });
});

it("a host without a room, which opted out, takes none and counts none", () => {
  expect(placeUrls([found("one")], new Map())).toEqual({ placed: [], counts: new Map() });
});
