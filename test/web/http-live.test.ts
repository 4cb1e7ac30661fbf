/** Live events over real sockets: fastify's inject cannot hold a stream open. */
import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { request } from "undici";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { maxListeners, maxListenersOfAddress } from "#coordinator/tell/overview/routes";
import {
  maxOpenOfAddress,
  maxOpenRequests,
  maxReceived,
  maxReceivedOfAddress,
} from "#coordinator/web/limits";
import { testDatabase } from "../support/database.ts";
import { everyRead } from "../support/every-read.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { makeGate } from "../support/gate.ts";
import { seedWorld } from "../support/seed-world.ts";
import { signIn } from "../support/signed-in.ts";
import { until } from "../support/until.ts";
import { webServer, webSettings } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
let base: string;
beforeAll(async () => await seedWorld(database.pool));
beforeEach(async () => await listenWith(webServer(database)));
afterEach(async () => await app.close());

async function listenWith(server: FastifyInstance): Promise<void> {
  await app?.close();
  app = server;
  await app.listen({ host: "127.0.0.1", port: 0 });
  base = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
}

/** A server whose overview waits for this promise. */
async function reopen(held: Promise<void>, behindProxy = false): Promise<void> {
  const reads = everyRead(database.pool, () => performance.now());
  await listenWith(
    webServer(database, {
      reads: { crawlTotals: () => held.then(() => reads.crawlTotals()) },
      settings: { ...webSettings, behindProxy },
    }),
  );
}

type Regions = Record<string, string | undefined>;

/** A stream of events, read one by one; `end` hangs up. */
async function listen() {
  const { statusCode, headers, body } = await request(`${base}/events`);
  body.on("error", () => {});
  const chunks = body[Symbol.asyncIterator]();
  let text = "";
  return {
    statusCode,
    headers,
    async until(wanted: (regions: Regions) => boolean): Promise<Regions> {
      for (;;) {
        const [event, ...rest] = text.split("\n\n");
        if (rest.length === 0) {
          const { value, done } = await chunks.next();
          if (done) throw new Error("the stream ended before the event came");
          text += String(value);
          continue;
        }
        text = rest.join("\n\n");
        const data = /^data: (.*)$/m.exec(event ?? "")?.[1];
        const regions = data ? (JSON.parse(data) as { regions: Regions }).regions : {};
        if (wanted(regions)) return regions;
      }
    },
    end: () => body.destroy(),
    ended: async () => {
      while (!(await chunks.next()).done);
    },
  };
}

describe("live events", () => {
  it("start with every region of the overview, then send what changed", async () => {
    const stream = await listen();

    const first = await stream.until((regions) => regions.figures !== undefined);
    await database.pool.query(`update crawler set offline_reason = 'moved <away>' where name = 'berlin'`);
    const later = await stream.until((regions) => regions.fleet?.includes("moved") === true);
    stream.end();

    expect(stream.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
    expect(Object.keys(first).sort()).toEqual([
      "alerts-operator",
      "alerts-reader",
      "errors",
      "figures",
      "fleet",
      "history",
      "map",
      "picture",
      "queue",
      "recent",
    ]);
    expect(later.fleet).toContain("moved &lt;away&gt;");
    expect(later.map).toBeUndefined();
  });

  it("limit their listeners, who get the reason", async () => {
    const streams = await Promise.all(Array.from({ length: maxListeners }, listen));

    const refused = await request(`${base}/events`);
    const words = await refused.body.text();
    for (const stream of streams) stream.end();

    expect(refused.statusCode).toBe(503);
    expect(words).toContain("Too many listeners");
  });

  it("leave room when one address, as given by the proxy, takes many", async () => {
    await listenWith(webServer(database, { settings: { ...webSettings, behindProxy: true } }));
    const events = `${base}/events`;
    const listenFrom = async (address: string) => {
      const { statusCode, body } = await request(events, { headers: { "x-forwarded-for": address } });
      body.on("error", () => {});
      return { statusCode, end: () => body.destroy() };
    };
    const streams = await Promise.all(
      Array.from({ length: maxListenersOfAddress }, () => listenFrom("192.0.2.1")),
    );

    const [same, other] = [await listenFrom("192.0.2.1"), await listenFrom("192.0.2.2")];
    for (const stream of [...streams, same, other]) stream.end();

    expect([same.statusCode, other.statusCode]).toEqual([503, 200]);
    await until(async () => {
      const again = await listenFrom("192.0.2.1");
      again.end();
      return again.statusCode === 200;
    }, 5000);
  });

  it("end when the server closes, without delaying it", async () => {
    const stream = await listen();
    const ended = stream.ended();

    await app.close();

    await expect(ended).resolves.toBeUndefined();
  });
});

describe("a client that hangs up", () => {
  const hangUps = async (text: string) => {
    const { port } = app.server.address() as AddressInfo;
    const sockets = Array.from({ length: maxOpenRequests }, () => connect(port, "127.0.0.1"));
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    for (const socket of sockets) socket.write(text);
    return () => {
      for (const socket of sockets) socket.destroy();
    };
  };
  const statusNow = async () => {
    const { statusCode, body } = await request(`${base}/api/who?q=1.2.3.4`);
    await body.dump();
    return statusCode;
  };

  it("before the answer is ready keeps its place until the work has ended", async () => {
    const gate = makeGate();
    await reopen(gate.opened);
    const hangUp = await hangUps("GET /api/overview HTTP/1.1\r\nhost: here\r\n\r\n");
    await until(async () => (await statusNow()) === 503, 5000);

    hangUp();
    const meanwhile = await statusNow();
    gate.open();

    expect(meanwhile).toBe(503);
    await until(async () => (await statusNow()) === 200, 5000);
  });
});

describe("half-sent forms", () => {
  const sockets: Socket[] = [];
  beforeEach(() => () => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });
  const port = () => (app.server.address() as AddressInfo).port;
  /** Behind a proxy that sends the client's address. */
  const behindProxy = async (settings: { readonly bodyTimeoutMs?: number } = {}) =>
    await listenWith(webServer(database, { settings: { ...webSettings, behindProxy: true, ...settings } }));
  const formType = "content-type: application/x-www-form-urlencoded";
  const halfSent = async (address: string, path = "/about-crawler/report"): Promise<Socket> => {
    const socket = connect(port(), "127.0.0.1");
    socket.on("error", () => {});
    sockets.push(socket);
    await once(socket, "connect");
    socket.write(`POST ${path} HTTP/1.1\r\nhost: here\r\nx-forwarded-for: ${address}\r\n${formType}\r\n`);
    socket.write("content-length: 100\r\n\r\nsite=");
    return socket;
  };
  /** Waits until the server has seen them all: later requests are answered after them. */
  const seen = async () => await get("/health", "192.0.2.250");
  const get = async (path: string, from: string, headers: Record<string, string> = {}) => {
    const { statusCode, body } = await request(`${base}${path}`, {
      headers: { "x-forwarded-for": from, ...headers },
    });
    await body.dump();
    return statusCode;
  };
  const send = async (
    path: string,
    fields: Record<string, string>,
    from: string,
    more: Record<string, string> = {},
  ) => {
    const type = "application/x-www-form-urlencoded";
    const { statusCode, body } = await request(`${base}${path}`, {
      method: "POST",
      headers: { "x-forwarded-for": from, "content-type": type, ...more },
      body: new URLSearchParams(fields).toString(),
    });
    await body.dump();
    return statusCode;
  };
  const report = async (from: string) =>
    await send("/about-crawler/report", { site: "www.example.org", reply: "me", words: "too fast" }, from, {
      accept: "application/json",
    });

  it("of two addresses block nobody else: pages, health, readiness and forms are answered", async () => {
    await behindProxy();
    await Promise.all(
      Array.from({ length: 2 * maxOpenRequests }, (_, at) => halfSent(`192.0.2.${1 + (at % 2)}`)),
    );
    await seen();

    const statuses = [
      await get("/who?q=1.2.3.4", "192.0.2.9"),
      await get("/health", "192.0.2.9"),
      await get("/ready", "192.0.2.9"),
      await report("192.0.2.9"),
      await get("/who?q=1.2.3.4", "192.0.2.1"),
    ];

    expect(statuses).toEqual([200, 200, 200, 201, 200]);
  });

  it("of many addresses block neither pages nor an operator's form", async () => {
    await behindProxy();
    const operator = await signIn(database, "operator");
    await Promise.all(
      Array.from({ length: maxReceived }, (_, at) =>
        halfSent(`192.0.2.${Math.floor(at / maxReceivedOfAddress)}`),
      ),
    );
    const optOut = { target: "www.example.org", "form-token": operator.formToken };
    const ending = async (headers: Record<string, string>) =>
      await send("/fleet/opt-outs", optOut, "192.0.2.100", headers);

    await until(async () => (await ending({ cookie: "nearcrawl-session=invented" })) === 503, 5000);
    const statuses = {
      page: await get("/who?q=1.2.3.4", "192.0.2.100"),
      stranger: await report("192.0.2.100"),
      inventedCookie: await ending({ cookie: "nearcrawl-session=invented" }),
      operator: await ending(operator.headers),
    };

    expect(statuses).toEqual({ page: 200, stranger: 503, inventedCookie: 503, operator: 303 });
  });

  it("are cut off when they take too long, which frees their places", async () => {
    await behindProxy({ bodyTimeoutMs: 20 });

    const slow = await halfSent("192.0.2.1");
    const [answer] = (await once(slow, "data")) as [Buffer];
    if (!slow.closed) await once(slow, "close");

    expect(answer.toString()).toMatch(/^HTTP\/1\.1 408 /);
    expect(await report("192.0.2.1")).toBe(201);
  });
});

describe("a coordinator at its limit of requests", () => {
  it("answers health, readiness and people who are signed in, but not strangers", async () => {
    const gate = makeGate();
    await reopen(gate.opened, true);
    const operator = await signIn(database, "operator");
    const of = async (url: string, address: string, headers: Record<string, string> = {}) =>
      (await app.inject({ url, headers: { "x-forwarded-for": address, ...headers } })).statusCode;
    const waiting = Array.from({ length: maxOpenRequests }, (_, at) =>
      of("/api/overview", `192.0.2.${Math.floor(at / maxOpenOfAddress)}`),
    );

    const statuses = {
      stranger: await of("/api/who?q=1.2.3.4", "192.0.2.100"),
      inventedCookie: await of("/api/who?q=1.2.3.4", "192.0.2.100", { cookie: "nearcrawl-session=invented" }),
      operator: await of("/api/who?q=1.2.3.4", "192.0.2.100", operator.headers),
      health: await of("/health", "192.0.2.100"),
      ready: await of("/ready", "192.0.2.100"),
    };
    gate.open();

    expect(statuses).toEqual({ stranger: 503, inventedCookie: 503, operator: 200, health: 200, ready: 200 });
    expect(new Set(await Promise.all(waiting))).toEqual(new Set([200]));
  });

  it("gives one address at most a third of the places", async () => {
    const gate = makeGate();
    await reopen(gate.opened, true);
    const of = async (url: string, address: string) =>
      (await app.inject({ url, headers: { "x-forwarded-for": address } })).statusCode;
    const waiting = Array.from({ length: maxOpenRequests }, () => of("/api/overview", "192.0.2.1"));

    const [same, other] = [
      await of("/api/who?q=1.2.3.4", "192.0.2.1"),
      await of("/api/who?q=1.2.3.4", "192.0.2.2"),
    ];
    gate.open();
    const answered = await Promise.all(waiting);

    expect([same, other]).toEqual([503, 200]);
    expect(answered.filter((status) => status === 200)).toHaveLength(maxOpenOfAddress);
    expect(3 * maxOpenOfAddress).toBeLessThanOrEqual(maxOpenRequests);
  });

  it("does not wait for readers: unread answers hold no place", async () => {
    const large = Buffer.alloc(48 * 1024 * 1024, "x");
    await listenWith(
      webServer(database, { parts: [({ app: routes }) => void routes.get("/large", async () => large)] }),
    );
    const sockets = Array.from({ length: maxOpenRequests }, () =>
      connect((app.server.address() as AddressInfo).port, "127.0.0.1"),
    );
    for (const socket of sockets) {
      socket.on("error", () => {});
      socket.write("GET /large HTTP/1.1\r\nhost: here\r\n\r\n");
      await once(socket, "readable");
    }

    const { statusCode, body } = await request(`${base}/who?q=1.2.3.4`);
    await body.dump();
    for (const socket of sockets) socket.destroy();

    expect(statusCode).toBe(200);
  });
});
