/** WebSub (W3C Recommendation, 23 January 2018), the subscriber's side, with a hub on loopback that may be anybody's. */
import { createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { inTransaction } from "#coordinator/database/transaction";
import { hintsOf } from "#coordinator/hints/hint-reads";
import { hintSettings } from "#coordinator/hints/hint-settings";
import { createHubClient } from "#coordinator/hints/hub-client";
import { maxDeliveryBytes } from "#coordinator/hints/routes";
import { hintWarnings, subscribeToFeeds } from "#coordinator/hints/start";
import { noteHubs } from "#coordinator/hints/subscription-store";
import { isSigned, renewAt } from "#coordinator/hints/web-sub";
import { silentLog } from "#core/log";
import { createNameResolver } from "#core/name-resolver";
import { hostHashOf } from "#core/url-key";
import { makeCertificate } from "../migrating-crawler/support/secure-origin.ts";
import { keyOf } from "../support/store-world.ts";
import { type HintedSite, newHintedSite } from "./hinted-site.ts";

let site: HintedSite;
let hub: Server;
let hubUrl = "";
let answer: (request: IncomingMessage, response: ServerResponse) => void;
/** What the hub was sent. */
let asked: URLSearchParams[] = [];
const accept = (_request: IncomingMessage, response: ServerResponse) => response.writeHead(202).end();

beforeAll(async () => {
  site = await newHintedSite();
  hub = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    asked.push(new URLSearchParams(Buffer.concat(chunks).toString()));
    answer(request, response);
  });
  await new Promise<void>((resolve) => hub.listen(0, "127.0.0.1", resolve));
  hubUrl = `http://127.0.0.1:${(hub.address() as AddressInfo).port}/hub`;
});
afterAll(async () => {
  hub?.closeAllConnections();
  await new Promise((resolve) => hub?.close(resolve));
  await site?.close();
});

const feed = (links: string) =>
  `<rss version="2.0"><channel>${links}<item><link>${site.site}/news</link></item></channel></rss>`;
const feedUrl = () => `${site.site}/feed.html`;

/** The site's feed is known, and names the hub. */
beforeEach(async () => {
  asked = [];
  answer = accept;
  await site.begin({
    "/": "<!doctype html><link rel=alternate type=application/rss+xml href=/feed.html><p>front page",
    "/feed.html": feed(`<atom:link rel="hub" href="${hubUrl}"/><atom:link rel="self" href="${feedUrl()}"/>`),
  });
  await named(hubUrl, feedUrl());
});

async function named(hubOfFeed: string, ...feeds: string[]): Promise<void> {
  const rows = feeds.map((url) => ({ key: keyOf(url), hub: keyOf(hubOfFeed), topic: url }));
  await inTransaction(site.pool, async (client) => await noteHubs(client, rows, site.now()));
}

const client = (allowSpecialPurpose: boolean, timeoutMs = 2000) =>
  createHubClient({
    resolver: createNameResolver({ servers: [] }),
    ...{ allowSpecialPurpose, timeoutMs, userAgent: "Nearcrawl/test" },
  });

const subscribe = async (
  changes: { webSub?: boolean; publicUrl?: string | null; feedsPerHost?: number } = {},
) => {
  const { publicUrl = site.base, webSub = true, ...policies } = changes;
  const config = { publicUrl, hints: hintSettings.parse({ webSub, ...policies }) };
  const count = (source: "indexnow" | "websub", what: string, many = 1) =>
    site.metrics.hints.inc({ source, what }, many);
  await subscribeToFeeds(
    { pool: site.pool, hubs: client(true), count, log: silentLog, now: site.now },
    config,
  );
};
const one = async () =>
  (
    await site.pool.query<{
      state: string;
      words: string;
      next_at: Date;
      lease_ends_at: Date | null;
      failures: number;
      token: string;
    }>("select * from websub_subscription")
  ).rows[0];
const verify = async (changes: Record<string, string> = {}) => {
  const callback = new URL(asked.at(-1)!.get("hub.callback")!);
  const query = {
    ...{
      "hub.mode": "subscribe",
      "hub.topic": feedUrl(),
      "hub.challenge": "c-h-a",
      "hub.lease_seconds": "864000",
    },
    ...changes,
  };
  for (const [name, value] of Object.entries(query)) callback.searchParams.set(name, value);
  return await fetch(callback);
};
const signature = (body: string, method = "sha256", secret = asked.at(-1)!.get("hub.secret")!) =>
  `${method}=${createHmac(method, secret).update(body).digest("hex")}`;
const deliver = async (body: string, headers: Record<string, string>) =>
  await fetch(asked.at(-1)!.get("hub.callback")!, {
    method: "POST",
    headers: { "content-type": "application/rss+xml", ...headers },
    body,
  });
const hints = async () => (await site.pool.query("select url, source from hint")).rows;

describe("a feed that names a hub", () => {
  it("is subscribed, verified, told of and fetched sooner; what the hub sends is not kept", async () => {
    await site.pool.query("truncate websub_subscription");
    expect(await site.crawl()).toEqual(["/"]);
    expect(await site.crawl()).toEqual(["/feed.html"]);
    await site.crawl();
    await subscribe();
    const verified = await verify();
    const echoed = [verified.status, verified.headers.get("content-type"), await verified.text()];
    const body = feed("<title>new</title>");
    site.at(7200);

    const delivered = await deliver(body, { "x-hub-signature": signature(body) });
    await site.turn();
    const fetched = await site.crawl();
    const { judged } = await site.turn();

    expect(Object.fromEntries(asked[0]!)).toMatchObject({
      "hub.mode": "subscribe",
      "hub.topic": feedUrl(),
      "hub.lease_seconds": "864000",
    });
    expect(asked[0]!.get("hub.callback")).toMatch(/\/websub\/[\w-]{43}$/);
    expect(asked[0]!.get("hub.secret")).toMatch(/^[\w-]{43}$/);
    expect(echoed).toEqual([200, "text/plain; charset=utf-8", "c-h-a"]);
    expect(delivered.status).toBe(202);
    expect(fetched).toEqual(["/feed.html"]);
    expect(judged.websub).toEqual({ right: 0, wrong: 1 });
    expect((await hintsOf(site.pool, hostHashOf("site.localhost")))[0]).toMatchObject({
      source: "websub",
      received: 1,
      taken: 1,
      feeds: [{ feed: feedUrl(), hub: hubUrl, state: "active", deliveries: 1, forged: 0 }],
    });
  });

  it("is not subscribed where WebSub is off, or hubs could not reach us, which doctor says", async () => {
    await subscribe({ webSub: false });
    await subscribe({ publicUrl: null });
    const off = readCoordinatorConfig({});
    const on = readCoordinatorConfig({ hints: { webSub: true } });

    expect(asked).toEqual([]);
    expect((await one())?.state).toBe("found");
    expect(off.hints.webSub).toBe(false);
    expect([hintWarnings(off).length, hintWarnings(on).length]).toEqual([0, 1]);
  });

  it("is asked for again before its lease ends, at the same callback, and counts for nothing after it", async () => {
    await subscribe();
    await verify();
    site.at(8 * 86_400);
    await subscribe();
    site.at(9.5 * 86_400);
    await subscribe();
    const still = await deliver("x", { "x-hub-signature": signature("x") });
    site.at(10.5 * 86_400);
    const late = await deliver("x", { "x-hub-signature": signature("x") });

    expect(asked).toHaveLength(2);
    expect(asked[1]!.get("hub.callback")).toBe(asked[0]!.get("hub.callback"));
    expect([still.status, late.status]).toEqual([202, 410]);
  });

  it("is forgotten when its host opts out, and its callback is gone", async () => {
    await subscribe();
    await verify();
    await site.pool.query("update frontier_host set opt_out_id = 1");
    await subscribe();

    expect(await one()).toBeUndefined();
    expect((await deliver("x", { "x-hub-signature": signature("x") })).status).toBe(410);
  });

  it("is subscribed as far as its host may have subscriptions", async () => {
    await named(hubUrl, ...[1, 2, 3, 4, 5].map((n) => `${site.site}/feed-${n}`));
    for (const _ of [1, 2, 3]) await subscribe({ feedsPerHost: 2 });

    const { rows } = await site.pool.query(
      "select count(*)::int as n from websub_subscription where token is not null",
    );
    expect(rows).toEqual([{ n: 2 }]);
  });
});

describe("a caller", () => {
  it("that verifies what was not asked for is answered with 404", async () => {
    await subscribe();
    const statuses: number[] = [];
    for (const changes of [
      { "hub.topic": "https://other.example/feed" },
      { "hub.mode": "unsubscribe" },
      { "hub.lease_seconds": "60" },
      { "hub.lease_seconds": "-1" },
      { "hub.challenge": "" },
      { "hub.challenge": "x".repeat(600) },
    ])
      statuses.push((await verify(changes)).status);
    site.at(2 * 86_400);
    statuses.push((await verify()).status);

    expect(statuses).toEqual([404, 404, 404, 404, 404, 404, 404]);
    expect((await one())?.state).toBe("asked");
  });

  it("that verifies twice is answered once: the first answer is what was asked for", async () => {
    await subscribe();

    expect([(await verify()).status, (await verify()).status]).toEqual([200, 404]);
  });

  it("with a forged signature is answered like the hub, and counts for nothing", async () => {
    await subscribe();
    await verify();
    const bad = [
      undefined,
      "sha256=00",
      `sha256=${"0".repeat(64)}`,
      signature("other body"),
      signature("x", "sha1"),
      signature("x", "sha256", "another secret"),
      "md5=00",
    ];
    for (const one of bad) {
      const { status } = await deliver("x", one === undefined ? {} : { "x-hub-signature": one });
      expect([one, status]).toEqual([one, 202]);
    }

    expect(await hints()).toEqual([]);
    expect(await site.counted("forged", "websub")).toBe(bad.length);
  });

  it("that says the same again makes no second hint", async () => {
    await subscribe();
    await verify();
    for (const _ of [1, 2, 3]) await deliver("x", { "x-hub-signature": signature("x", "sha512") });

    expect(await hints()).toEqual([{ url: feedUrl(), source: "websub" }]);
    expect(await site.counted("dropped", "websub")).toBe(2);
  });

  it("of a callback that there is not is told that it is gone", async () => {
    for (const token of ["x", "0".repeat(43), "%2e%2e%2f", "'; drop table hint"]) {
      const url = `${site.base}/websub/${token}`;
      expect([(await fetch(url)).status, (await fetch(url, { method: "POST", body: "x" })).status]).toEqual([
        410, 410,
      ]);
    }
    expect(await site.counted("unknown-callback", "websub")).toBe(8);
  });

  it("with megabytes is cut off", async () => {
    await subscribe();
    await verify();
    const body = "x".repeat(8 * maxDeliveryBytes);

    const status = await deliver(body, { "x-hub-signature": signature(body) }).then(
      (response) => response.status,
      () => "cut off",
    );

    expect([413, "cut off"]).toContain(status);
    expect(await hints()).toEqual([]);
  });
});

describe("a hub", () => {
  it("that denies is not asked again, and why is kept", async () => {
    await subscribe();
    await verify({ "hub.mode": "denied", "hub.reason": "not <here>" });
    site.at(30 * 86_400);
    await subscribe();

    expect(asked).toHaveLength(1);
    expect(await one()).toMatchObject({ state: "denied", words: "not <here>" });
  });

  it("that refuses is asked again later and later, and then left alone", async () => {
    answer = (_request, response) => response.writeHead(400).end("no\r\nsuch\u0007 topic");
    for (let day = 0; day < 12; day += 1) {
      site.at(day * 86_400);
      await subscribe();
    }

    expect(asked).toHaveLength(7);
    expect(await one()).toMatchObject({ state: "failed", words: "status 400: no such topic" });
  });

  it("that never verifies what it took is left alone, too", async () => {
    for (let day = 0; day < 12; day += 1) {
      site.at(day * 86_400);
      await subscribe();
    }

    expect(asked).toHaveLength(7);
    expect((await one())?.state).toBe("failed");
  });

  it("may lie at no special-purpose address, by name, number or redirect, and not speak plain http", async () => {
    const request = { callback: "https://us.example/websub/x", topic: feedUrl(), secret: "s" };
    const guarded = client(false);
    answer = (_request, response) =>
      response.writeHead(308, { location: "http://169.254.169.254/latest" }).end();
    const onlyLoopback = createHubClient({
      resolver: createNameResolver({ servers: [] }),
      ...{ allowSpecialPurpose: ["127.0.0.0/8"], timeoutMs: 2000, userAgent: "Nearcrawl/test" },
    });

    const direct = await guarded.subscribe({ ...request, hub: hubUrl });
    const mapped = await guarded.subscribe({
      ...request,
      hub: hubUrl.replace("127.0.0.1", "[::ffff:127.0.0.1]"),
    });
    const plain = await guarded.subscribe({ ...request, hub: "http://192.0.9.1/" });
    const redirected = await onlyLoopback.subscribe({ ...request, hub: hubUrl });

    expect(direct).toMatchObject({ type: "refused", words: expect.stringContaining("special-purpose") });
    expect(mapped).toMatchObject({ type: "refused", words: expect.stringContaining("special-purpose") });
    expect(plain).toMatchObject({ type: "refused", words: expect.stringContaining("https") });
    expect(redirected).toMatchObject({ type: "refused", words: expect.stringContaining("169.254.169.254") });
    expect(asked).toHaveLength(1);
  });

  it("with TLS is spoken to at the address that was looked at, and is who its certificate names", async () => {
    const { key, certificate, remove } = makeCertificate("hub.example");
    const names: unknown[] = [];
    const secure = createSecureServer({ key, cert: certificate }, (_request, response) =>
      response.writeHead(202).end(),
    ).on("secureConnection", (socket) => names.push(socket.servername));
    await new Promise<void>((resolve) => secure.listen(0, "127.0.0.1", resolve));
    const { port } = secure.address() as AddressInfo;
    const ask = async (name: string, authorities?: string) =>
      await createHubClient({
        resolver: { resolve: async () => ({ addresses: ["127.0.0.1"], ttlSeconds: 60 }) },
        ...{ allowSpecialPurpose: true, userAgent: "Nearcrawl/test", timeoutMs: 2000 },
        ...(authorities === undefined ? {} : { authorities }),
      }).subscribe({
        hub: `https://${name}:${port}/`,
        callback: "https://us.example/",
        topic: "t",
        secret: "s",
      });

    const right = await ask("hub.example", certificate);
    const stranger = await ask("hub.example");
    const another = await ask("other.example", certificate);
    secure.closeAllConnections();
    await new Promise((resolve) => secure.close(resolve));
    remove();

    expect(right).toEqual({ type: "accepted" });
    expect(names[0]).toBe("hub.example");
    expect(stranger).toMatchObject({ type: "refused", words: expect.stringContaining("certificate") });
    expect(another).toMatchObject({ type: "refused", words: expect.stringContaining("altnames") });
  });

  it("that redirects for ever, says nothing, or too much, costs a moment", async () => {
    const request = { callback: "https://us.example/websub/x", topic: feedUrl(), secret: "s", hub: hubUrl };
    answer = (_request, response) => response.writeHead(307, { location: "/hub?again" }).end();
    const endless = await client(true).subscribe(request);
    answer = () => {};
    const silent = await client(true, 100).subscribe(request);
    answer = (_request, response) => {
      response.writeHead(500);
      const more = () =>
        void (response.write("y".repeat(65_536)) ? setImmediate(more) : response.once("drain", more));
      more();
    };
    const flooding = await client(true).subscribe(request);

    expect(endless).toEqual({ type: "refused", words: "more than 2 redirects" });
    expect(silent).toEqual({ type: "refused", words: "no answer in time" });
    expect(flooding).toEqual({ type: "refused", words: `status 500: ${"y".repeat(200)}` });
  });
});

it("leases are renewed a day before their end, or when a fifth is left", () => {
  const now = new Date(0);
  const hours = (leaseHours: number) => renewAt(leaseHours * 3600, now).getTime() / 3_600_000;

  expect([hours(240), hours(10)]).toEqual([216, 8]);
});

it("a signature is compared over the body's bytes, in either case of its digits", () => {
  const body = Buffer.from([0, 255, 10]);
  const hex = createHmac("sha384", "s").update(body).digest("hex");

  expect(isSigned(`sha384=${hex.toUpperCase()}`, body, "s")).toBe(true);
  expect(isSigned(`sha384=${hex}`, Buffer.from([0, 255]), "s")).toBe(false);
  expect(isSigned(`sha384=${hex}0`, body, "s")).toBe(false);
});
