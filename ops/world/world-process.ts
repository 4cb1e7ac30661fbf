/**
 * Runs the emulated Internet as a separate process: `world-process.ts '{"seed":1,"sites":1000,"crawlers":12}'`. When
 * all servers listen, it reports `{type: "listening", dnsAddress, proxyUrls, originPort, …}` over IPC and as one line
 * on standard output. It ends on SIGTERM or SIGINT, or when the process that forked it is gone.
 */
import { setPriority } from "node:os";
import { z } from "zod";
import { SourceFileError, UsageError } from "#core/errors";
import { generateWorld } from "./generate-world.ts";
import { type RunningWorld, startWorld } from "./main.ts";

const parametersShape = z.object({
  seed: z.number().int().default(1),
  sites: z.number().int().default(1000),
  crawlers: z.number().int().default(12),
  noiseMs: z.number().min(0).max(10_000).default(0),
});

async function run(parameters: unknown): Promise<void> {
  const parsed = parametersShape.safeParse(parameters);
  if (!parsed.success)
    throw new UsageError(
      `world: ${parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; ")}`,
    );
  const { noiseMs, ...settings } = parsed.data;
  const running = await startWorld(generateWorld(settings), { noiseMs });
  endWith(running);
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

function askedFor([text = "{}"]: readonly string[]): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`world: the parameters are not JSON: ${text.slice(0, 200)}`);
  }
}

/** Raises the priority where the system allows it, because a busy machine of crawlers does not slow down a network. */
function goFirst(): void {
  try {
    setPriority(-10);
  } catch {
    // Ordinary users may not raise it. Answers are then as late as the machine is busy.
  }
}

try {
  goFirst();
  await run(askedFor(process.argv.slice(2)));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(error instanceof UsageError || error instanceof SourceFileError ? 2 : 1);
}
