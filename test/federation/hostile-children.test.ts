/** Messages that no honest child or parent sends, or sends twice: what comes in, what is refused, and with which words. */
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
import { until } from "../support/until.ts";
import { newCoordinator, type TestCoordinator } from "./related-coordinators-world.ts";

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
    // Under way until it says that it has them.
    expect((await top.store.list(noon)).children).toMatchObject([{ waiting: 1 }]);
    expect(Object.keys(await top.frontier())).toEqual(["http://x.com/"]);
  });

  it("goes round no further than so many coordinators, and stays where it is then", async () => {
    const { body } = await send([
      entry(1, "http://a.gr/", { hops: mostHops - 1 }),
      entry(2, "http://b.gr/", { hops: mostHops }),
      entry(3, "http://c.gr/", { hops: 1000 }),
    ]);

    expect(body.urls).toMatchObject([{ url: "http://a.gr/", hops: mostHops }]);
    expect(Object.keys(await top.frontier())).toEqual(["http://b.gr/", "http://c.gr/"]);
  });

  it("brings in no more hosts that nobody knew than a child may in a day", async () => {
    const childId = (await top.world.rows<{ peer_id: number }>("select peer_id from related_coordinator"))[0]!
      .peer_id;
    const { coordinatorId } = await low.store.list(noon);
    const urls = ["a", "b", "c"].map((name, at) => entry(at + 1, `http://${name}.com/`));
    const asked = {
      version: exchangeVersion,
      coordinatorId: coordinatorId!,
      owns: [".gr"],
      linkId: null,
      received: 0,
    };
    const ports = {
      store: createExchangeStore(top.world.pool),
      scope: () => scope,
      newHosts: new NewHostBudget(() => 2),
      onTaken: () => {},
    };

    for (const url of urls)
      await answerChild(childId, childMessage.parse({ ...asked, urls: [url] }), ports, noon);

    expect(Object.keys(await top.frontier())).toEqual(["http://a.com/", "http://b.com/"]);
  });

  it("links without end are counted up to a bound, and stand in the way of nobody's own", async () => {
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

  it("is one message at a time: who sends more at once is asked to wait, and nothing is lost", async () => {
    const { pool } = top.world;
    const other = await pool.connect();
    await other.query("begin");
    await other.query("select from related_coordinator for update");

    const first = send([entry(1, "http://x.com/")]);
    const waits = async () =>
      await top.world.rows(
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
    await until(async () => (await waits()).length > 0, 10_000);
    const second = await send([entry(2, "http://y.com/")]);
    await other.query("commit");
    other.release();

    expect(second.status).toBe(429);
    expect(second.body.error?.message).toMatch(/being processed/);
    expect((await first).status).toBe(200);
    expect((await send([entry(2, "http://y.com/")])).status).toBe(200);
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

  it("is refused in few words, however many faults it has, and never ends in an error of ours", async () => {
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

describe("what a parent answers", () => {
  it("that is no answer is told in few words", async () => {
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

    const reply = await client.exchange({
      version: exchangeVersion,
      coordinatorId: id,
      owns: [".gr"],
      linkId: null,
      received: 0,
      urls: [],
    });
    await client.close();
    parent.close();

    expect(reply.type).toBe("refused");
    expect("words" in reply && reply.words.length).toBeLessThan(500);
  });
});
