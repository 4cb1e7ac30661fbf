/** Live events over real sockets: fastify's inject cannot hold a stream open. */
import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import type { FastifyInstance } from "fastify";
import { request } from "undici";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { maxListeners } from "#coordinator/net/live-events";
import { maxListenersOfAddress } from "#coordinator/net/live-overview";
import { maxOpenRequests } from "#coordinator/net/open-requests";
import { createReports } from "#coordinator/postgres/reports/reports";
import type { Database } from "#db/connect";
import { testDatabase } from "../support/database.ts";
import { seedWorld } from "../support/seed-world.ts";
import { until } from "../support/until.ts";
import { webServer, webSettings } from "../support/web-server.ts";

let database: Database;
let app: FastifyInstance;
let base: string;
beforeAll(async () => {
  database = await testDatabase();
  await seedWorld(database.pool);
});
afterAll(async () => await database?.close());
beforeEach(async () => {
  app = webServer(database);
  await app.listen({ host: "127.0.0.1", port: 0 });
  base = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
});
afterEach(async () => await app.close());

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
  it("start with every region of the overview, and later bring what has changed", async () => {
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
      "history-1h",
      "history-24h",
      "history-7d",
      "map",
      "queue",
      "recent",
    ]);
    expect(later.fleet).toContain("moved &lt;away&gt;");
    expect(later.map).toBeUndefined();
  });

  it("have a bound on listeners, who get the reason", async () => {
    const streams = await Promise.all(Array.from({ length: maxListeners }, listen));

    const refused = await request(`${base}/events`);
    const words = await refused.body.text();
    for (const stream of streams) stream.end();

    expect(refused.statusCode).toBe(503);
    expect(words).toContain("Too many listeners");
  });

  it("leave room when one address takes many, which is told by the proxy", async () => {
    await app.close();
    app = webServer(database, { settings: { ...webSettings, behindProxy: true } });
    await app.listen({ host: "127.0.0.1", port: 0 });
    const events = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/events`;
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

  it("end when the server closes, and keep it from nothing", async () => {
    const stream = await listen();
    const ended = stream.ended();

    await app.close();

    await expect(ended).resolves.toBeUndefined();
  });
});

describe("a page over a real socket", () => {
  it("answers, and tells how it came out to the metrics", async () => {
    const page = await request(`${base}/who?q=1.2.3.4`);
    await page.body.dump();
    const metrics = await (await request(`${base}/metrics`)).body.text();

    expect(page.statusCode).toBe(200);
    expect(metrics).toContain('nearcrawl_http_request_seconds_count{route="/who",status="200"} 1');
  });
});

describe("whoever hangs up", () => {
  const form = "content-type: application/x-www-form-urlencoded\r\ncontent-length: 100\r\n\r\nsite=";
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

  it("before a form has arrived takes no place from others", async () => {
    const hangUp = await hangUps(`POST /about-crawler/report HTTP/1.1\r\nhost: here\r\n${form}`);
    await until(async () => (await statusNow()) === 503, 5000);

    hangUp();

    await until(async () => (await statusNow()) === 200, 5000);
  });

  it("before the answer is there keeps its place until nothing works on it any more", async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const reads = createReports(database.pool, () => performance.now());
    await app.close();
    app = webServer(database, {
      reads: { ...reads, crawlTotals: () => held.then(() => reads.crawlTotals()) },
    });
    await app.listen({ host: "127.0.0.1", port: 0 });
    base = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
    const hangUp = await hangUps("GET /api/overview HTTP/1.1\r\nhost: here\r\n\r\n");
    await until(async () => (await statusNow()) === 503, 5000);

    hangUp();
    const meanwhile = await statusNow();
    release();

    expect(meanwhile).toBe(503);
    await until(async () => (await statusNow()) === 200, 5000);
  });
});
