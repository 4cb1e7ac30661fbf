/** Messages that no honest child sends, or sends twice: what comes in, what is refused, and with which words. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { exchangePath, exchangeVersion } from "#protocol/exchange";
import { noon } from "../contract/world.ts";
import { newCoordinator, type TestCoordinator } from "./relatives-world.ts";

let top: TestCoordinator;
let low: TestCoordinator;
beforeAll(async () => {
  [top, low] = await Promise.all([newCoordinator(), newCoordinator()]);
});
afterAll(async () => await Promise.all([top, low].map(async (one) => await one?.close())));

describe("what a child sends", () => {
  let key: string;
  beforeEach(async () => {
    await Promise.all([top, low].map(async (one) => await one.startAnew()));
    key = await top.invite("greek");
    const child = await low.join({ url: top.url, key, owns: [".gr"] });
    await child.turn();
  });

  const entry = (number: number, url: string, differences: object = {}) => ({
    number,
    url,
    depth: 1,
    hops: 0,
    links: 1,
    ...differences,
  });
  const send = async (urls: readonly object[], differences: object = {}, shown = key) => {
    const id = (await low.store.list(noon)).coordinatorId;
    const message = {
      version: exchangeVersion,
      coordinatorId: id,
      owns: [".gr"],
      linkId: null,
      received: 0,
      urls,
      ...differences,
    };
    const response = await fetch(`${top.url}${exchangePath}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${shown}` },
      body: JSON.stringify(message),
    });
    return {
      status: response.status,
      body: (await response.json()) as {
        received?: number;
        urls?: { url: string }[];
        error?: { message: string };
      },
    };
  };

  it("is made canonical anew, and what is no URL is left out and counted", async () => {
    const { status, body } = await send([
      entry(1, "HTTP://X.com:80/#top"),
      entry(2, "ftp://x.com/"),
      entry(3, "http://x.com/b"),
    ]);

    expect([status, body.received]).toEqual([200, 3]);
    expect(Object.keys(await top.frontier())).toEqual(["http://x.com/", "http://x.com/b"]);
    expect((await top.store.list(noon)).children[0]).toMatchObject({ urlsReceived: 2, urlsDropped: 1 });
  });

  it("counts once, however often the same numbers come", async () => {
    await send([entry(1, "http://x.com/"), entry(2, "http://y.com/")]);
    const { body } = await send([
      entry(1, "http://x.com/"),
      entry(2, "http://y.com/"),
      entry(3, "http://x.com/"),
    ]);

    expect(body.received).toBe(3);
    expect(await top.frontier()).toEqual({ "http://x.com/": 2, "http://y.com/": 1 });
  });

  it("changes nobody's claim: its own URLs go back to it, others' to them", async () => {
    const { body } = await send([entry(1, "http://a.gr/"), entry(2, "http://x.com/")]);

    expect(body.urls?.map(({ url }) => url)).toEqual(["http://a.gr/"]);
    expect(Object.keys(await top.frontier())).toEqual(["http://x.com/"]);
  });

  it("is refused in words where it makes no sense, and nothing of it is kept", async () => {
    const refused = [
      await send([entry(2, "http://x.com/"), entry(1, "http://y.com/")]),
      await send([entry(1, "http://x.com/", { links: 1e12 })]),
      await send([entry(1, "http://x.com/", { depth: -1 })]),
      await send([], { owns: ["lang:el"] }),
      await send([], { version: 9 }),
      await send([], {}, "ncc_guessedguessedguessed"),
      await send(Array.from({ length: 2001 }, (_, at) => entry(at + 1, "http://x.com/"))),
    ];

    expect(refused.map(({ status }) => status)).toEqual([409, 400, 400, 409, 409, 401, 400]);
    expect(refused[0]!.body.error?.message).toBe("number 1 comes after number 2: numbers must rise");
    expect(refused[3]!.body.error?.message).toMatch(/"lang:el" names a language/);
    expect(await top.frontier()).toEqual({});
  });
});
