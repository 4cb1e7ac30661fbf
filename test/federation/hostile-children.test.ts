/** Hostile, faulty and repeated messages of children and parents. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { answerChild } from "#coordinator/crawl/federation/exchange";
import { createExchangeStore } from "#coordinator/crawl/federation/exchange-store";
import { HttpParentClient } from "#coordinator/crawl/federation/parent-client";
import { NewHostBudget } from "#coordinator/crawl/frontier/budgets";
import { mostHops } from "#coordinator/crawl/frontier/claims";
import { childMessage, exchangePath, exchangeVersion } from "#protocol/exchange";
import { noon, scope } from "../support/store-world.ts";
import { newCoordinator, type TestCoordinator } from "./related-coordinators-world.ts";

let top: TestCoordinator;
let low: TestCoordinator;
beforeAll(async () => {
  [top, low] = await Promise.all([newCoordinator(), newCoordinator()]);
});
afterAll(async () => await Promise.all([top, low].map(async (one) => await one?.close())));

const messageOf = (coordinatorId: string) => ({
  ...{ version: exchangeVersion, coordinatorId, owns: [".gr"], linkId: null, received: 0 },
});

describe("a child's message", () => {
  let key: string;
  beforeEach(async () => {
    await Promise.all([top, low].map(async (one) => await one.startAnew()));
    key = await top.invite("greek");
    const child = await low.join({ url: top.url, key, owns: [".gr"] });
    await child.turn();
  });

  const entry = (number: number, url: string, differences: object = {}) => ({
    ...{ number, url, depth: 1, hops: 0, links: 1, ...differences },
  });
  const send = async (urls: readonly object[], differences: object = {}, shown = key) => {
    const { coordinatorId } = await low.store.list(noon);
    const message = { ...messageOf(coordinatorId!), urls, ...differences };
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

  it("is canonicalised again; what is no URL is dropped and counted", async () => {
    const { status, body } = await send([
      entry(1, "HTTP://X.com:80/#top"),
      entry(2, "ftp://x.com/"),
      entry(3, "http://x.com/b"),
    ]);

    expect([status, body.received]).toEqual([200, 3]);
    expect(Object.keys(await top.frontier())).toEqual(["http://x.com/", "http://x.com/b"]);
    expect((await top.store.list(noon)).children[0]).toMatchObject({ urlsReceived: 2, urlsDropped: 1 });
  });

  it("counts once when the same numbers come again", async () => {
    await send([entry(1, "http://x.com/"), entry(2, "http://y.com/")]);
    const { body } = await send([
      entry(1, "http://x.com/"),
      entry(2, "http://y.com/"),
      entry(3, "http://x.com/"),
    ]);

    expect(body.received).toBe(3);
    expect(await top.frontier()).toEqual({ "http://x.com/": 2, "http://y.com/": 1 });
  });

  it("goes back to its owner, without changing claims", async () => {
    const { body } = await send([entry(1, "http://a.gr/"), entry(2, "http://x.com/")]);

    expect(body.urls?.map(({ url }) => url)).toEqual(["http://a.gr/"]);
    // In transit until acknowledged.
    expect((await top.store.list(noon)).children).toMatchObject([{ waiting: 1 }]);
    expect(Object.keys(await top.frontier())).toEqual(["http://x.com/"]);
  });

  it("passes a limited number of coordinators and then stays", async () => {
    const { body } = await send([
      entry(1, "http://a.gr/", { hops: mostHops - 1 }),
      entry(2, "http://b.gr/", { hops: mostHops }),
      entry(3, "http://c.gr/", { hops: 1000 }),
    ]);

    expect(body.urls).toMatchObject([{ url: "http://a.gr/", hops: mostHops }]);
    expect(Object.keys(await top.frontier())).toEqual(["http://b.gr/", "http://c.gr/"]);
  });

  it("adds no more new hosts than a child may in a day", async () => {
    const childId = (await top.world.rows<{ peer_id: number }>("select peer_id from related_coordinator"))[0]!
      .peer_id;
    const { coordinatorId } = await low.store.list(noon);
    const urls = ["a", "b", "c"].map((name, at) => entry(at + 1, `http://${name}.com/`));
    const ports = {
      store: createExchangeStore(top.world.pool),
      scope: () => scope,
      newHosts: new NewHostBudget(() => 2),
      onTaken: () => {},
    };

    for (const url of urls)
      await answerChild(
        childId,
        childMessage.parse({ ...messageOf(coordinatorId!), urls: [url] }),
        ports,
        noon,
      );

    expect(Object.keys(await top.frontier())).toEqual(["http://a.com/", "http://b.com/"]);
  });

  it("endless links count up to a limit and block no others", async () => {
    const most = 1e9;
    const victims = (from: number) => [
      entry(from, "http://x.com/", { links: most }),
      entry(from + 1, "http://x.com/b", { links: most }),
      entry(from + 2, "http://x.com/c", { links: most }),
      ...[3, 4, 5].map((at) => entry(from + at, "http://a.gr/", { links: most })),
    ];

    const statuses = [await send(victims(1)), await send(victims(7)), await send(victims(13))];
    await top.seed("http://y.com/");
    await top.crawl((url) => (url === "http://y.com/" ? ["http://x.com/", "http://a.gr/"] : []));
    const { body } = await send([]);

    expect(statuses.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await top.frontier())["http://x.com/"]).toBe(most);
    expect(body.urls).toMatchObject([{ url: "http://a.gr/", links: most }]);
  });

  it("is one message at a time; a second must wait, and nothing is lost", async () => {
    const { pool } = top.world;
    const other = await pool.connect();
    await other.query("begin");
    await other.query("select from related_coordinator for update");

    const first = send([entry(1, "http://x.com/")]);
    await top.someoneWaits("Lock");
    const second = await send([entry(2, "http://y.com/")]);
    await other.query("commit");
    other.release();

    expect(second.status).toBe(429);
    expect(second.body.error?.message).toMatch(/being processed/);
    expect((await first).status).toBe(200);
    expect((await send([entry(2, "http://y.com/")])).status).toBe(200);
  });

  it("is refused with a reason when it is invalid, and nothing of it is kept", async () => {
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

  it("is refused briefly, however many faults it has, without an internal error", async () => {
    const keys = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`key${at}`, 1]));
    const refused = [
      await send([], keys),
      await send([], { owns: ["\u0000"] }),
      await send([], { owns: ["\ud800.gr"] }),
      await send([], { owns: Array(1001).fill(".gr") }),
      await send([entry(1, "http://x.com/", { redirects: 1e9 })]),
      await send([entry(1, `http://x.com/${"a".repeat(100_000)}`)]),
      await send([entry(Number.MAX_SAFE_INTEGER + 2, "http://x.com/")]),
    ];
    const taken = await send([
      entry(1, "http://x.com/\u0000\ud800"),
      entry(2, "http://0x7f000001/"),
      entry(3, "http://\ud800.com/"),
    ]);

    expect(refused.map(({ status }) => status)).toEqual([400, 409, 409, 400, 400, 400, 400]);
    expect(Math.max(...refused.map(({ body }) => body.error!.message.length))).toBeLessThan(500);
    expect(taken.status).toBe(200);
    expect(Object.keys(await top.frontier())).toEqual(["http://127.0.0.1/", "http://x.com/%00%EF%BF%BD"]);
  });
});

describe("a parent's answer", () => {
  it("is refused briefly when it is invalid", async () => {
    const keys = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`key${at}`, 1]));
    const id = "018f2c5e-0000-4000-8000-000000000001";
    const answer = { ...keys, coordinatorId: id, chain: [id], linkId: id, received: 0, urls: [] };
    const parent = createServer((_, response) => response.end(JSON.stringify(answer)));
    await new Promise<void>((resolve) => parent.listen(0, "127.0.0.1", resolve));
    const { port } = parent.address() as AddressInfo;
    const client = new HttpParentClient({
      url: `http://127.0.0.1:${port}`,
      key: "ncc_keykeykeykeykeykey",
      certificatePin: null,
    });

    const reply = await client.exchange({ ...messageOf(id), urls: [] });
    await client.close();
    parent.close();

    expect(reply.type).toBe("refused");
    expect("words" in reply && reply.words.length).toBeLessThan(500);
  });
});
