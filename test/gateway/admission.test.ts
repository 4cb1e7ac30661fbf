/** Mass arrivals: admitted in order, nothing started for those that left, and the rest told when to return. */
import { get } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { AdmissionLine } from "#coordinator/run/gateway/gateway-settings";
import { makeGate } from "../support/gate.ts";
import { until } from "../support/until.ts";
import { admitted, helloOf, knownNames, type LoopbackGateway, startGateway } from "./gateway-on-loopback.ts";
import { RawCrawler } from "./raw-crawler.ts";

let running: LoopbackGateway | null = null;
afterEach(async () => await running?.close());

type Settings = NonNullable<Parameters<typeof startGateway>[0]["settings"]>;

/** One at a time, and nobody before the gate is open. */
async function slowGateway(settings: Settings) {
  const gate = makeGate();
  const begun: string[] = [];
  running = await startGateway({
    zlibSync: null,
    settings,
    handlers: {
      admit: async ({ hello: { name } }) => {
        begun.push(name);
        await gate.opened;
        return admitted(1 + (knownNames as readonly string[]).indexOf(name), null);
      },
    },
  });
  const { url, gateway } = running;
  /** Until its hello is taken. */
  const come = async (name: string) => {
    const crawler = await RawCrawler.connect(url);
    const inside = gateway.waitingCrawlers;
    await crawler.send(helloOf(name));
    await until(() => gateway.waitingCrawlers > inside || begun.includes(name), 5000);
    return crawler;
  };
  return { ...running, gate, begun, come };
}

test("crawlers are admitted in order of arrival, up to a limit at once", async () => {
  const { gate, begun, come } = await slowGateway({ admission: { atOnce: 2, mostWaitMs: 10_000 } });

  const crawlers = [];
  for (const name of ["cedar", "amber", "elder", "birch", "daisy"]) crawlers.push(await come(name));
  const atFirst = [...begun];
  gate.open();
  for (const crawler of crawlers) await crawler.next("coordinator:welcome");

  expect(atFirst).toEqual(["cedar", "amber"]);
  expect(begun).toEqual(["cedar", "amber", "elder", "birch", "daisy"]);
});

test("a crawler that leaves while it waits is not admitted and is not reported", async () => {
  const { gate, begun, come, gateway } = await slowGateway({
    admission: { atOnce: 1, mostWaitMs: 10_000 },
    limits: { connections: 10, connectionsPerAddress: 10, failuresPerAddressAndMinute: 1 },
  });

  await come("amber");
  const impatient = await come("birch");
  const patient = await come("cedar");
  impatient.disconnect();
  await until(() => gateway.counts().connections === 2, 5000);
  gate.open();
  await patient.next("coordinator:welcome");
  const late = await come("daisy");
  await late.next("coordinator:welcome");

  expect(begun).toEqual(["amber", "cedar", "daisy"]);
});

test("a crawler that would wait too long learns when to come back, before or after its hello", async () => {
  const { gate, begun, come, url, port } = await slowGateway({ admission: { atOnce: 1, mostWaitMs: 400 } });
  const connected = await RawCrawler.connect(url);
  await come("amber");
  const second = await come("birch");
  // Amber is checked for as long as nobody behind it may wait.
  await delay(450);

  await connected.send(helloOf("cedar"));
  const refusal = await connected.next("coordinator:refuse");
  const answer = await upgradeAnswer(port);
  gate.open();
  await second.next("coordinator:welcome");

  expect(refusal).toMatchObject({ code: "busy", retry: true, retryAfterMs: expect.any(Number) });
  expect(refusal.reason).toContain("1 crawlers wait to be let in");
  expect(answer).toMatchObject({ status: 503, after: expect.stringMatching(/^\d+$/) });
  expect(begun).toEqual(["amber", "birch"]);
});

test("a connection that has sent nothing yet counts as waiting", async () => {
  const { url, port, gateway } = await slowGateway({ admission: { atOnce: 1, mostWaitMs: 10 } });
  for (let times = 0; times < 3; times += 1) await RawCrawler.connect(url);

  expect(gateway.isCrowded).toBe(false);
  expect(await upgradeAnswer(port)).toMatchObject({ status: 503 });
});

test("a connection that leaves without a hello counts as a failure, however many others arrive at that moment", async () => {
  running = await startGateway({
    zlibSync: null,
    settings: { limits: { connections: 1000, connectionsPerAddress: 500, failuresPerAddressAndMinute: 30 } },
  });
  const { url, gateway, port } = running;
  const strangers = await Promise.all(Array.from({ length: 60 }, () => RawCrawler.connect(url)));
  for (const { socket } of strangers) socket.terminate();
  await until(() => gateway.counts().connections === 0, 5000);

  expect(await upgradeAnswer(port)).toMatchObject({ status: 429 });
});

async function upgradeAnswer(port: number) {
  const upgrade = { Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Version": "13" };
  const headers = { ...upgrade, "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==" };
  return await new Promise<{ status: number | undefined; after: string | undefined }>((resolve) => {
    const asked = get({ host: "127.0.0.1", port, path: "/crawler", headers }, (response) => {
      response.resume();
      resolve({ status: response.statusCode, after: response.headers["retry-after"] });
    });
    asked.on("upgrade", (response, socket) => {
      socket.destroy();
      resolve({ status: response.statusCode, after: undefined });
    });
  });
}

test("a recognised crawler that leaves before its welcome is not a failure either", async () => {
  const gate = makeGate();
  let arriving = 0;
  running = await startGateway({
    zlibSync: null,
    settings: { limits: { connections: 10, connectionsPerAddress: 10, failuresPerAddressAndMinute: 1 } },
    handlers: {
      onArrive: async () => {
        arriving += 1;
        await gate.opened;
        return { acknowledgedSequence: 0 };
      },
    },
  });
  const { url, gateway } = running;

  for (const name of ["amber", "birch"]) {
    const before = arriving;
    const crawler = await RawCrawler.connect(url);
    await crawler.send(helloOf(name));
    await until(() => arriving > before, 5000);
    crawler.socket.terminate();
    await until(() => gateway.counts().connections === 0, 5000);
  }
  gate.open();
  const cedar = await RawCrawler.connect(url);
  await cedar.send(helloOf("cedar"));

  expect(await cedar.next("coordinator:welcome")).toMatchObject({ type: "coordinator:welcome" });
});

test("crawlers that are sent away come back one after another, as fast as others are admitted", () => {
  let nowMs = 0;
  const line = new AdmissionLine({ atOnce: 2, mostWaitMs: 1000 }, () => nowMs);
  const never = () =>
    line.take(
      () => false,
      () => new Promise<void>(() => {}),
    );
  void never();
  void never();
  // Each is worked on twice, so one of two is admitted after 200 ms.
  nowMs = 200;
  for (let waiting = 0; waiting < 6; waiting += 1) void never();

  const times = Array.from({ length: 600 }, () => line.comeBackMs() ?? 0);

  expect(times.slice(0, 3)).toEqual([500, 700, 900]);
  // The longest absence is a minute, after which it begins again.
  expect(Math.max(...times)).toBe(59_900);
  expect(times.filter((time) => time === 500)).toHaveLength(3);
});
