/**
 * The emulated Internet as a process of its own: `process.ts '{"seed":1,"sites":1000,"crawlers":12}'`, or
 * the same object as the first IPC message `{type: "start", parameters}`. When everything listens it says
 * `{type: "listening", dnsAddress, proxyUrls, originPort, …}` over IPC and as one line on standard output.
 * It ends on SIGTERM or SIGINT, and when the process that forked it is gone.
 *
 * Over IPC it also takes `{type: "noise"|"spikes"|"daily-wave"|"loss"|"clock"|"route-change"|"outage"|"requests", …}` (see world-control.ts).
 */
import { setPriority } from "node:os";
import { z } from "zod";
import { SourceFileError, UsageError } from "#core/errors";
import { parseRange } from "#core/ip/range";
import { readFixture } from "../simulate/read-fixture.ts";
import type { WorldOddities } from "./finish-world.ts";
import { worldFromFixture } from "./fixture-world.ts";
import { generateWorld } from "./generate-world.ts";
import { type RunningWorld, startWorld } from "./main.ts";
import type { World } from "./model.ts";

const share = z.number().min(0).max(1);

/** Off unless given: see oddities.ts, noise.ts, network-conditions.ts. */
const oddities = z.strictObject({
  anycast: share.default(0),
  geoDns: share.default(0),
  splitLeaves: share.default(0),
  headFromEdge: share.default(0),
  headRefused: share.default(0),
  headSilent: share.default(0),
  blocking: share.default(0),
});

const parametersShape = z.object({
  seed: z.number().int().default(1),
  sites: z.number().int().default(1000),
  crawlers: z.number().int().default(12),
  fixture: z.string().nullish(),
  noiseMs: z.number().min(0).max(10_000).default(0),
  timeoutMs: z.number().min(1).max(600_000).default(10_000),
  oddities: oddities.optional(),
  spikes: z.object({ share, spikeMs: z.number().min(0).max(10_000) }).default({ share: 0, spikeMs: 0 }),
  dailyWave: z
    .object({ waveMs: z.number().min(0).max(10_000), peakHour: z.number().min(0).max(24).default(20) })
    .default({ waveMs: 0, peakHour: 20 }),
  loss: z.object({ share, neverShare: share }).default({ share: 0, neverShare: 0 }),
});

async function run(parameters: unknown): Promise<void> {
  const parsed = parametersShape.safeParse(parameters);
  if (!parsed.success)
    throw new UsageError(
      `world: ${parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; ")}`,
    );
  const { noiseMs, timeoutMs, spikes, dailyWave, loss } = parsed.data;
  const world = await loadWorld(parsed.data);
  const running = await startWorld(world, {
    noiseMs,
    timeoutMs,
    spikes,
    dailyWave,
    loss,
    log: (line) => process.stderr.write(`world: ${line}\n`),
  });
  endWith(running);
  process.on("message", (message) => {
    const reply = obey(running, message);
    if (reply !== null) process.send?.(reply);
  });
  announce(running);
}

function announce(running: RunningWorld): void {
  const { world, dnsAddress, originPort } = running;
  const listening = {
    type: "listening",
    world: world.name,
    dnsAddress,
    dnsAddresses: world.crawlers.map((_, index) => running.dnsAddressOf(index)),
    originPort,
    proxyUrls: world.crawlers.map((_, index) => running.proxyUrlOf(index)),
  };
  process.stdout.write(`${JSON.stringify(listening)}\n`);
  process.send?.(listening);
}

function endWith(running: RunningWorld): void {
  let isEnding = false;
  const end = () => {
    if (isEnding) return;
    isEnding = true;
    void running.close().finally(() => process.exit(0));
  };
  process.on("SIGTERM", end);
  process.on("SIGINT", end);
  process.on("disconnect", end);
  if (process.send && !process.connected) end();
}

/** From the command line, else from the first IPC message. */
async function askedFor(): Promise<unknown> {
  const [text] = process.argv.slice(2);
  if (text !== undefined) {
    try {
      return JSON.parse(text);
    } catch {
      throw new UsageError(`world: the parameters are not JSON: ${text.slice(0, 200)}`);
    }
  }
  if (!process.send)
    throw new UsageError('world: say what to start: process.ts \'{"seed":1,"sites":1000,"crawlers":12}\'');
  return await new Promise((resolve) => {
    process.once("disconnect", () => process.exit(0));
    process.once("message", (message) => resolve((message as { parameters?: unknown }).parameters));
  });
}

/** A network does not slow down because the crawlers' machine is busy. Only where the system allows it. */
function goFirst(): void {
  try {
    setPriority(-10);
  } catch {
    // Not permitted to ordinary users; then answers are late by as much as the machine is.
  }
}

// The orders that a running world's process takes over IPC; anything else is answered with the reason.

const crawlerIndex = z.number().int().min(0);
const hour = z.number().min(0).max(24);

const orderShape = z.discriminatedUnion("type", [
  z.object({ type: z.literal("noise"), noiseMs: z.number().min(0).max(10_000) }),
  z.object({ type: z.literal("spikes"), share, spikeMs: z.number().min(0).max(10_000) }),
  z.object({
    type: z.literal("daily-wave"),
    waveMs: z.number().min(0).max(10_000),
    peakHour: hour.optional(),
  }),
  z.object({ type: z.literal("loss"), share, neverShare: share }),
  /** Milliseconds since the epoch. */
  z.object({ type: z.literal("clock"), nowMs: z.number() }),
  z.object({
    type: z.literal("route-change"),
    crawlerIndex,
    /** A host name, or a range as `a - b`, `a/prefix` or one address. */
    to: z.string().max(300),
    factor: z.number().positive().max(1000),
  }),
  z.object({ type: z.literal("outage"), crawlerIndex, isCutOff: z.boolean() }),
  z.object({ type: z.literal("requests") }),
]);

try {
  goFirst();
  await run(await askedFor());
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(error instanceof UsageError || error instanceof SourceFileError ? 2 : 1);
}

/** Does what is asked; returns what to reply, or null for messages that are no orders of ours. */
export function obey(running: RunningWorld, message: unknown): object | null {
  if (typeof message !== "object" || message === null || (message as { type?: unknown }).type === "start")
    return null;
  const parsed = orderShape.safeParse(message);
  if (!parsed.success) return { type: "refused", reason: parsed.error.issues[0]?.message ?? "not an order" };
  const order = parsed.data;
  switch (order.type) {
    case "noise":
      running.setNoise(order.noiseMs);
      return { type: "done", order: order.type };
    case "spikes":
      running.setSpikes(order);
      return { type: "done", order: order.type };
    case "daily-wave": {
      const { waveMs, peakHour } = order;
      running.setDailyWave(peakHour === undefined ? { waveMs } : { waveMs, peakHour });
      return { type: "done", order: order.type };
    }
    case "loss":
      running.setLoss(order);
      return { type: "done", order: order.type };
    case "clock":
      running.setClock(order.nowMs);
      return { type: "done", order: order.type };
    case "route-change": {
      const range = parseRange(order.to);
      const to = range ? { range } : { host: order.to };
      const addresses = running.changeRoute({ crawlerIndex: order.crawlerIndex, to, factor: order.factor });
      return { type: "done", order: order.type, addresses };
    }
    case "outage":
      running.setOutage(order.crawlerIndex, order.isCutOff);
      return { type: "done", order: order.type };
    case "requests":
      return { type: "requests", total: running.requestLog.total, entries: running.requestLog.entries() };
  }
}

// The world that a run's parameters mean: generated, or from a fixture file. The same parameters, the same world.

interface LoadParameters {
  readonly seed: number;
  readonly sites: number;
  /** Ignored with a fixture, which brings its own crawlers. */
  readonly crawlers: number;
  /** A file in the format of instance.ts; its first `sites` targets are used. */
  readonly fixture?: string | null | undefined;
  /** Only of a generated world. */
  readonly oddities?: Partial<WorldOddities> | undefined;
}

export async function loadWorld(parameters: LoadParameters): Promise<World> {
  const { seed, sites, crawlers, fixture, oddities = {} } = parameters;
  if (fixture === undefined || fixture === null) return generateWorld({ seed, sites, crawlers, oddities });
  const json = await readFixture(fixture);
  return worldFromFixture({ json, seed, sites });
}
