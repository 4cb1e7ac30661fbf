/** What the supervisor's downloads may use, against a real server that sends as fast as possible. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { limitsSchema } from "#crawler/settings/limits-config";
import { DownloadAllowance } from "#crawler/supervisor/download-allowance";
import { ReleaseSource } from "#crawler/supervisor/release-source";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/until.ts";
import { onLoopback } from "../support/loopback.ts";

const bundle = Buffer.alloc(400 * 1024, "x");
let server: Awaited<ReturnType<typeof onLoopback>>;
let home: string;
let asked: (string | undefined)[];
let sentBytes: number;
beforeEach(async () => {
  home = temporaryFolder("nearcrawl-allowance-");
  asked = [];
  sentBytes = 0;
  const serving = createServer((request, answer) => {
    asked.push(request.headers.range);
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
    const body = first === undefined ? bundle : bundle.subarray(Number(first), Number(last) + 1);
    sentBytes += body.length;
    answer.writeHead(first === undefined ? 200 : 206, { "content-length": body.length }).end(body);
  });
  server = await onLoopback(serving);
});
afterEach(() => server.close());

function source(limits: object) {
  const allowance = new DownloadAllowance({ home, limits: () => limitsSchema.parse(limits) });
  const from = new ReleaseSource({
    coordinatorUrl: `ws://127.0.0.1:${server.port}/crawler`,
    route: () => ({ proxy: null, certificatePin: null, timeoutMs: 5000 }),
    allowance,
  });
  return { from, allowance };
}

const countedBytes = () =>
  (JSON.parse(readFileSync(join(home, "day-count.json"), "utf8")) as { bytes: number }).bytes;

it("a bundle comes no faster than the partner's rate, in pieces that keep no place at the coordinator", async () => {
  const { from } = source({ kilobytesPerSecond: 100 });
  const beganMs = performance.now();
  const fetched = from.download("/releases/x", { bytes: bundle.length, file: join(home, "x.draft") });
  const rates: number[] = [];
  const watch = setInterval(() => rates.push(sentBytes / ((performance.now() - beganMs) / 1000)), 500);

  expect(await fetched).toBe(true);
  clearInterval(watch);

  // 400 KiB at 100 KiB a second, of which a tenth of a second arrives at once.
  expect(performance.now() - beganMs).toBeGreaterThan(3500);
  expect(readFileSync(join(home, "x.draft")).equals(bundle)).toBe(true);
});

it("a supervisor that is stopped does not wait for the rate", { timeout: 20_000 }, async () => {
  const { from } = source({ kilobytesPerSecond: 1 });
  const file = join(home, "x.draft");
  const fetched = from.download("/releases/x", { bytes: bundle.length, file }).catch((error: Error) => error);
  await until(() => sentBytes > 0, 5000);

  from.close();

  expect(await fetched).toBeInstanceOf(Error);
});

it("a slow line gets it in several requests", async () => {
  const { from, allowance } = source({ kilobytesPerSecond: 1 });
  Object.assign(allowance, { take: () => null, tell: () => true });

  await from.download("/releases/x", { bytes: bundle.length, file: join(home, "x.draft") });

  expect(asked).toEqual(
    [0, 1, 2, 3, 4, 5, 6].map(
      (at) => `bytes=${at * 65_536}-${Math.min((at + 1) * 65_536, bundle.length) - 1}`,
    ),
  );
  expect(readFileSync(join(home, "x.draft")).equals(bundle)).toBe(true);
});

it("what was carried counts in the day's ledger, and with the day used up nothing is asked for", async () => {
  const { from } = source({ bytesPerDay: 440 * 1024 });
  const file = join(home, "x.draft");
  await from.download("/releases/x", { bytes: bundle.length, file });
  await until(() => countedBytes() >= bundle.length, 5000);
  const before = asked.length;

  const again = from.download("/releases/y", { bytes: bundle.length, file: join(home, "y.draft") });
  const bundleWords = await again.catch((error: Error) => error.message);
  const list = await from.text("/releases/keys.json", 1024 * 1024).catch((error: Error) => error.message);

  expect(bundleWords).toBe("/releases/y: the bytes that this machine's settings allow are used up");
  expect(list).toBe("/releases/keys.json: the bytes that this machine's settings allow are used up");
  expect(asked.length).toBe(before);
});

it("while a crawler runs it is told, and its own ledger is left alone", async () => {
  const { from, allowance } = source({});
  let told = 0;
  allowance.tell = (bytes) => {
    told += bytes;
    return true;
  };

  await from.text("/releases/keys.json", 1024 * 1024);

  await until(() => told > bundle.length, 5000);
  expect(() => countedBytes()).toThrow(/ENOENT/);
});

// Issue 41: AbortSignal.timeout only accepts whole milliseconds, and most rates give fractions.
it.each([1, 3, 7, 100, 1000.3, 9_999_999.5])(
  "at %d KB a second lists and bundles come",
  async (kilobytesPerSecond) => {
    const { from, allowance } = source({ kilobytesPerSecond });
    Object.assign(allowance, { take: () => null, tell: () => true });
    const file = join(home, "x.draft");

    expect(await from.text("/releases/keys.json", 1024 * 1024)).toHaveLength(bundle.length);
    expect(await from.download("/releases/x", { bytes: bundle.length, file })).toBe(true);
  },
);
