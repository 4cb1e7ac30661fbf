/** Requests of one address per minute, over a real server. */
import type { FastifyInstance } from "fastify";
import { afterEach, beforeEach, expect, it } from "vitest";
import { changesPerMinute, readsPerMinute } from "#coordinator/web/rate-limits";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { webServer, webSettings } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
beforeEach(() => {
  app = webServer(database, { settings: { ...webSettings, behindProxy: true } });
});
afterEach(async () => await app.close());

const read = async (address: string | null, url = "/assets-that-are-not/") =>
  await app.inject({ url, headers: address === null ? {} : { "x-forwarded-for": address } });

/** In batches, because only a limited number is answered at once. */
async function readOften(address: string, times: number): Promise<number> {
  let answered = 0;
  for (let asked = 0; asked < times; asked += 20) {
    const answers = await Promise.all(Array.from({ length: 20 }, () => read(address)));
    answered += answers.filter(({ statusCode }) => statusCode !== 429).length;
  }
  return answered;
}

it("limits the requests a minute of one address, or one IPv6 /64, as the proxy saw it", async () => {
  const answered = await readOften("10.0.0.1, 2001:db8:0:7::1", readsPerMinute + 20);
  const sameNetwork = await read("2001:db8:0:7:ffff::2", "/api/nothing");
  const page = await read("2001:db8:0:7::1");

  expect(answered).toBe(readsPerMinute);
  expect(sameNetwork.statusCode).toBe(429);
  expect(Number(sameNetwork.headers["retry-after"])).toBeGreaterThan(0);
  expect(sameNetwork.json().error.message).toMatch(/^More came from your address in a minute/);
  expect(page.body).toContain("<h1>Too many requests</h1>");
  expect((await read("2001:db8:0:8::1")).statusCode).toBe(404);
  expect((await read("2001:db8:0:7::1", "/assets/nearcrawl.css")).statusCode).toBe(200);
  expect((await read("2001:db8:0:7::1", "/health")).statusCode).toBe(200);
  expect((await read(null)).statusCode).toBe(404);
});

it("allows fewer changes, whether or not the token is right", async () => {
  const change = async (address: string) =>
    (
      await app.inject({
        method: "POST",
        url: "/about-crawler/report",
        headers: {
          "x-forwarded-for": address,
          "content-type": "application/x-www-form-urlencoded",
          accept: "application/json",
        },
        payload: "website=filled-in",
      })
    ).statusCode;

  const statuses: number[] = [];
  for (let sent = 0; sent <= changesPerMinute; sent += 1) statuses.push(await change("192.0.2.7"));

  expect(statuses.filter((status) => status === 400)).toHaveLength(changesPerMinute);
  expect(statuses.at(-1)).toBe(429);
  expect(await change("192.0.2.8")).toBe(400);
});
