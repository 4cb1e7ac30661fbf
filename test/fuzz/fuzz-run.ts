/** Runs a target on many inputs and on growing inputs; returns failures with what reproduces them. */
import { seededRandom } from "#core/random";
import { hostileText } from "./mutate.ts";
import type { Target } from "./targets.ts";

interface FuzzFailure {
  readonly target: string;
  /** `checkSeed` with it reproduces the failure. */
  readonly seed: number;
  readonly input: string;
  readonly why: string;
}

/** Longer than this for one input of at most 64 K characters is a hang, in ms of CPU time. */
const mostCpuMs = 3000;

/** Null when the seed's input is handled correctly. */
export async function checkSeed(target: Target, seed: number): Promise<FuzzFailure | null> {
  const random = seededRandom(seed);
  const input = hostileText(random, target);
  const failure = (why: string) => ({ target: target.name, seed, input, why });
  try {
    const cpuMs = await cpuOf(async () => await target.check(input, random));
    return cpuMs > mostCpuMs ? failure(`${Math.round(cpuMs)} ms for ${input.length} characters`) : null;
  } catch (error) {
    return failure(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
}

const growth = 16;
const smallCharacters = 8 * 1024;
/** Linear time grows with the length of the text; fast cases are not measured. */
const mostTimes = 5 * growth;
const quickMs = 250;

interface Growth {
  readonly token: string;
  readonly smallMs: number;
  readonly largeMs: number;
}

/** The tokens that take far more than sixteen times as long in a text sixteen times as long. */
export async function superlinearTokens(target: Target): Promise<Growth[]> {
  const slow: Growth[] = [];
  for (const token of [...target.tokens, ...target.seeds]) {
    const largeMs = await cpuOfRepeats(target, token, growth * smallCharacters);
    if (largeMs < quickMs) continue;
    const smallMs = await cpuOfRepeats(target, token, smallCharacters);
    if (largeMs > mostTimes * Math.max(1, smallMs)) slow.push({ token, smallMs, largeMs });
  }
  return slow;
}

async function cpuOfRepeats(target: Target, token: string, characters: number): Promise<number> {
  const input = token.repeat(Math.ceil(characters / token.length)).slice(0, characters);
  const once = () => cpuOf(async () => await target.check(input, seededRandom(1)));
  return Math.min(await once(), await once());
}

async function cpuOf(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
