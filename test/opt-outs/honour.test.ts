/** Opt-outs as the fleet honours them, over a real Postgres and real DNS on loopback. */
import { createSocket, type Socket } from "node:dgram";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  confirmationName,
  confirmationText,
  OptOutHonours,
  proofFileOf,
  readProofFile,
} from "#coordinator/run/opt-outs/honour";
import { createOptOutMarks } from "#coordinator/run/opt-outs/mark-writes";
import type { OptOutRequest, OptOutTarget } from "#coordinator/run/opt-outs/opt-out";
import { createOptOutStore } from "#coordinator/run/opt-outs/store";
import { asCrawlerId, type CrawlerId } from "#core/ids";
import { silentLog } from "#core/log";
import { createTextResolver } from "#core/name-resolver";
import { makeCertificate } from "../migrating-crawler/support/secure-origin.ts";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";

const database = await forThisFile(testDatabase());
let files: Awaited<ReturnType<typeof startFiles>>;
const filesAsked: string[] = [];
let dns: { readonly address: string; readonly records: Map<string, string[]>; close(): void };
beforeAll(async () => {
  await seedWorld(database.pool);
  dns = await startTextServer();
  files = await startFiles();
});
beforeEach(async () => {
  await database.pool.query("delete from opt_out");
  await database.pool.query("update frontier_host set opt_out_id = null");
  dns.records.clear();
  filesAsked.length = 0;
});
afterAll(async () => {
  dns?.close();
  files?.close();
});

/** Answers TXT questions (RFC 1035 section 4) from its records; other names have none. */
async function startTextServer() {
  const records = new Map<string, string[]>();
  const socket: Socket = createSocket("udp4");
  socket.on("message", (question, from) => {
    const labels: string[] = [];
    let at = 12;
    for (let length = question[at]!; length > 0; length = question[at]!) {
      labels.push(question.toString("latin1", at + 1, at + 1 + length));
      at += 1 + length;
    }
    const texts = records.get(labels.join(".")) ?? [];
    const header = Buffer.from(question.subarray(0, 12));
    header.writeUInt16BE(texts.length === 0 ? 0x8183 : 0x8180, 2);
    header.writeUInt16BE(texts.length, 6);
    header.fill(0, 8, 12);
    const answers = texts.map((text) =>
      Buffer.concat([
        Buffer.from([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60, 0, text.length + 1, text.length]),
        Buffer.from(text, "latin1"),
      ]),
    );
    socket.send(Buffer.concat([header, question.subarray(12, at + 5), ...answers]), from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return { address: `127.0.0.1:${socket.address().port}`, records, close: () => socket.close() };
}

/** By https, for one host and all below it: the words of each, or a redirect to them. */
async function startFiles() {
  const { key, certificate, remove } = makeCertificate("example.org");
  const texts = new Map<string, string>();
  const server = createServer({ key, cert: certificate }, (request, reply) => {
    const text =
      request.url === "/.well-known/nearcrawl-opt-out.txt"
        ? texts.get(request.headers.host ?? "")
        : undefined;
    if (text?.startsWith("https:")) reply.writeHead(302, { location: text }).end();
    else reply.writeHead(text === undefined ? 404 : 200).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const put = (host: string, text: string) => void texts.set(`${host}:${port}`, text);
  const close = () => {
    server.close();
    remove();
  };
  return { port, certificate, put, close, mayLoopback: true };
}

const amber = asCrawlerId(1);
const birch = asCrawlerId(2);

/** One coordinator's opt-out flow, with its connected crawlers and what they were told. */
function coordinatorOf(online: readonly CrawlerId[]) {
  const told: [CrawlerId, readonly unknown[]][] = [];
  const optOuts = createOptOutStore(database.pool);
  let nowMs = worldNow.getTime();
  const honours = new OptOutHonours({
    optOuts,
    marks: createOptOutMarks(database.pool),
    online: () => online,
    send: (crawlerId, message) => {
      if (message.type === "coordinator:stop-hosts") told.push([crawlerId, message.domains]);
      if (message.type === "coordinator:stop-parts") told.push([crawlerId, message.parts]);
      return true;
    },
    texts: createTextResolver({ servers: [dns.address], timeoutMs: 500 }),
    proofFile: async (host) => {
      filesAsked.push(host);
      const fileUrl = proofFileOf(host).replace(host, `${host}:${files.port}`);
      const resolver = { resolve: async () => ({ addresses: ["127.0.0.1"], ttlSeconds: 60 }) };
      const rules = { ...{ resolver, userAgent: "Nearcrawl/test" }, allowSpecialPurpose: files.mayLoopback };
      return await readProofFile(fileUrl, { ...rules, authorities: files.certificate });
    },
    departureMs: 120_000,
    log: silentLog,
    now: () => new Date(nowMs),
  });
  const request = async (target: OptOutTarget, confirmed = false, changed: Partial<OptOutRequest> = {}) =>
    await optOuts.request(
      { target, source: "form", words: "", replyTo: null, requester: null, confirmed, ...changed },
      new Date(nowMs),
    );
  const wait = (minutes: number) => {
    nowMs += minutes * 60_000;
  };
  return { honours, optOuts, told, request, wait };
}

const site = (name: string): OptOutTarget => ({ site: name, network: null });

describe("the crawlers", () => {
  it("are each notified once, by the coordinator that they are connected to; later arrivals on arrival", async () => {
    const here = coordinatorOf([amber]);
    const there = coordinatorOf([birch]);
    await here.request(site("www.example.org"));

    for (const { honours } of [here, there, here]) await honours.pass();
    await there.honours.tell(amber);

    expect(here.told).toEqual([[amber, ["www.example.org"]]]);
    expect(there.told).toEqual([
      [birch, ["www.example.org"]],
      [amber, ["www.example.org"]],
    ]);
  });

  it("are notified of parts of sites, and of an erased page even after weeks offline", async () => {
    const { honours, optOuts, told, request, wait } = coordinatorOf([amber]);
    const page = { scope: "url", of: "//www.example.org/a" } as const;
    const part = { scope: "prefix", of: "//www.example.org/b" } as const;
    await request({ ...site("www.example.org"), part } as OptOutTarget);
    const sure = { source: "operator", words: "", replyTo: null, requester: null, confirmed: true } as const;
    const target = { ...site("www.example.org"), part: page } as OptOutTarget;
    await optOuts.request({ ...sure, target, erases: true }, worldNow);

    await honours.pass();
    wait(20 * 24 * 60);
    await honours.pass();
    await honours.tell(birch);
    wait(11 * 24 * 60);
    await honours.tell(birch);

    expect(told).toEqual([
      [
        amber,
        [
          { ...part, erases: false },
          { ...page, erases: true },
        ],
      ],
      [birch, [{ ...page, erases: true }]],
    ]);
  });

  it("are notified of a network by its hosts", async () => {
    const { honours, told, request } = coordinatorOf([amber]);
    await request({ site: null, network: { first: "1.2.3.0", last: "1.2.3.255" } }, true);

    await honours.pass();

    expect(told).toEqual([[amber, ["www.example.org"]]]);
  });

  it("are not notified of old opt-outs or lifted ones", async () => {
    const { honours, optOuts, told, request, wait } = coordinatorOf([amber]);
    await request(site("www.example.org"));
    const { optOutId } = await request(site("old.example.org"));
    await optOuts.lift(optOutId, "", worldNow);

    await honours.tell(birch);
    wait(18);
    await honours.tell(birch);

    expect(told).toEqual([[birch, ["www.example.org"]]]);
  });
});

describe("a site confirms", () => {
  const host: OptOutTarget = {
    ...{ site: "example.org", network: null },
    part: { scope: "host", of: "example.org" },
  };

  it("by its own record in its own DNS; other tokens and no record confirm nothing", async () => {
    const { honours, optOuts, request, wait } = coordinatorOf([]);
    const mine = await request(site("www.example.org"));
    const other = await request(site("old.example.org"));
    await request(site("silent.example.org"));
    dns.records.set(confirmationName("www.example.org"), ["v=spf1 -all", confirmationText(mine.token)]);
    dns.records.set(confirmationName("old.example.org"), [confirmationText(mine.token)]);

    const found = await honours.confirm();
    dns.records.set(confirmationName("old.example.org"), [confirmationText(other.token)]);
    const tooSoon = await honours.confirm();
    wait(10);
    const later = await honours.confirm();

    expect([found, tooSoon, later]).toEqual([1, 0, 1]);
    const states = (await optOuts.list({ open: true, most: 10 })).map(({ target, state, confirmedBy }) => [
      target,
      state,
      confirmedBy,
    ]);
    expect(states).toEqual([
      ["silent.example.org", "unconfirmed", null],
      ["old.example.org", "confirmed", "site"],
      ["www.example.org", "confirmed", "site"],
    ]);
  });

  it("by a file on its host, requested once the form announces it; not by a redirect, nor for other hosts below it", async () => {
    const { honours, request, wait } = coordinatorOf([]);
    const { token } = await request(host);
    await honours.confirm();
    wait(11);
    await honours.confirm();
    const unasked = [...filesAsked];
    files.put("example.org", `https://elsewhere.example/${confirmationText(token)}`);
    wait(2);
    await request(host, false, { hasFile: true });
    const redirected = await honours.confirm();
    files.put("example.org", `other ${confirmationText(token)}\n`);
    wait(2);
    await request(host, false, { hasFile: true });
    const tooSoon = await honours.confirm();
    wait(10);
    await request(host, false, { hasFile: true });
    const found = await honours.confirm();

    expect(unasked).toEqual([]);
    expect([redirected, tooSoon, found]).toEqual([0, 0, 1]);
    expect(filesAsked).toEqual(["example.org", "example.org"]);
    expect((await request(host)).state).toBe("confirmed");

    const whole = await request(site("example.org"));
    files.put("example.org", confirmationText(whole.token));
    await honours.confirm();
    wait(10);
    await request(site("example.org"), false, { hasFile: true });
    expect([await honours.confirm(), filesAsked.length]).toEqual([0, 3]);
  });

  it("by no file at a special-purpose address", async () => {
    const { honours, request, wait } = coordinatorOf([]);
    const { token } = await request(host);
    files.put("example.org", confirmationText(token));
    await honours.confirm();
    wait(2);
    await request(host, false, { hasFile: true });
    files.mayLoopback = false;

    expect([await honours.confirm(), filesAsked]).toEqual([0, ["example.org"]]);
    files.mayLoopback = true;
  });

  it("in its turn, however many requests another network sends", async () => {
    const { optOuts, request, wait } = coordinatorOf([]);
    for (let n = 0; n < 60; n += 1)
      await request(site(`f${n}.example`), false, { requester: `192.0.2.${n}` });
    const honest = await request(site("honest.example"), false, { requester: "203.0.113.1" });
    wait(1);

    const first = await optOuts.toConfirm(2, worldNow);

    expect(first.map(({ optOutId }) => optOutId)).toContain(honest.optOutId);
  });
});
