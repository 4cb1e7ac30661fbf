/** Two sessions of one identity: a ping decides whether the first is alive. */
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeGate } from "../support/gate.ts";
import { until } from "../support/until.ts";
import { comeFrom, folderOf } from "./crawler-folder.ts";
import { admitted, keyOf, type LoopbackGateway, startGateway } from "./gateway-on-loopback.ts";
import { knownBy, testIdentity } from "./sealing-crawler.ts";

const identity = testIdentity();
const folder = () => folderOf("amber", keyOf("amber"), identity);

let running: LoopbackGateway;
beforeEach(async () => {
  running = await startGateway({
    zlibSync: null,
    settings: { rivalMs: 200 },
    handlers: knownBy("amber", identity.publicKey),
  });
});
afterEach(async () => await running.close());

test("another process is refused while the first one answers", async () => {
  const first = await comeFrom(folder(), running.url);

  const second = await comeFrom(folder(), running.url);

  expect(second.refuse).toMatchObject({ code: "copied-folder", retry: false });
  expect(running.gateway.online()).toEqual([1]);
  expect(first.crawler.received).toEqual([]);
});

test("a machine without power answers no ping, and the next process takes its place", async () => {
  await comeFrom(folder(), running.url, { options: { autoPong: false } });

  const second = await comeFrom(folder(), running.url);

  expect(second.welcome).not.toBeNull();
  expect(running.seen.leaves).toMatchObject([{ crawlerId: 1 }]);
});

test("of twenty processes that come at once from one folder and its copies, one gets in", async () => {
  await running.close();
  const gate = makeGate();
  let hellos = 0;
  running = await startGateway({
    zlibSync: null,
    handlers: {
      admit: async () => {
        hellos += 1;
        if (hellos === 20) gate.open();
        return admitted(1, identity.publicKey);
      },
      // The first is still being admitted when the others come.
      onArrive: async () => {
        await gate.opened;
        return { acknowledgedSequence: 0 };
      },
    },
  });

  const came = await Promise.all(
    Array.from({ length: 20 }, async () => await comeFrom(folder(), running.url)),
  );

  expect(came.filter(({ welcome }) => welcome !== null)).toHaveLength(1);
  expect(came.filter(({ refuse }) => refuse?.code === "copied-folder")).toHaveLength(19);
});

test("a process that connects twenty times at once ends with one session, each taking the place of the one before", async () => {
  const instanceId = randomUUID();

  await Promise.all(
    Array.from({ length: 20 }, async () => await comeFrom(folder(), running.url, { instanceId })),
  );
  await until(() => running.seen.leaves.length === 19, 5000);

  expect(running.gateway.online()).toEqual([1]);
  expect(running.seen.leaves.every(({ code }) => code === "replaced")).toBe(true);
});
