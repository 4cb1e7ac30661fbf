/**
 * The emulated Internet as a process of its own: `world-process.ts '{"seed":1,"sites":1000,"crawlers":12}'`, or
 * the same object as the first IPC message `{type: "start", parameters}`. When everything listens it says
 * `{type: "listening", dnsAddress, proxyUrls, originPort, …}` over IPC and as one line on standard output.
 * It ends on SIGTERM or SIGINT, and when the process that forked it is gone.
 *
 * Over IPC it also takes `{type: "noise"|"spikes"|"daily-wave"|"loss"|"clock"|"route-change"|"outage"|"requests", …}` (see world-control.ts).
 */
import { setPriority } from "node:os";
import { z } from "zod";
import { SourceFileError, UsageError } from "#core/errors";
import { generateWorld } from "./generate-world.ts";
import { type RunningWorld, startWorld } from "./main.ts";
import { obey } from "./world-control.ts";

const share = z.number().min(0).max(1);

/** Off unless given: see network-conditions.ts. */
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
  const { oddities = {}, ...settings } = parsed.data;
  const world = generateWorld({ ...settings, oddities });
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
    throw new UsageError(
      'world: say what to start: world-process.ts \'{"seed":1,"sites":1000,"crawlers":12}\'',
    );
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

try {
  goFirst();
  await run(await askedFor());
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(error instanceof UsageError || error instanceof SourceFileError ? 2 : 1);
}
