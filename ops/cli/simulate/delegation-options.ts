/** What `simulate delegation` is asked for: its options, and what they mean together. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { type PolicyName, policyNames } from "#coordinator/delegation/policies/policies";
import { defaultParameters } from "#coordinator/delegation/policies/round";
import type { PolicyVariant } from "#coordinator/delegation/simulation/run";
import { defaultSeed } from "#coordinator/delegation/simulation/simulation";
import { UsageError } from "#core/errors";
import { isQuiet, noNoise, type ProbeNoise } from "../../simulate/probe-noise.ts";
import { seedsFrom } from "../../simulate/repeat-policies.ts";
import { worldLimits } from "../../world/generate-world.ts";
import { boundedInteger } from "../bounded-integer.ts";
import { milliseconds, share } from "../bounded-number.ts";

export interface DelegationOptions {
  readonly fixture?: readonly string[];
  readonly world?: boolean;
  readonly crawlers: number;
  readonly sites: number;
  readonly policy: readonly PolicyName[];
  readonly thresholdMs: number;
  readonly lambdaMs: number;
  readonly getFirst?: boolean;
  readonly seed: number;
  readonly seeds: number;
  readonly noiseMs: number;
  readonly spikeShare: number;
  readonly spikeMs: number;
  readonly loss: number;
  readonly tries: number;
  readonly yardstick: boolean;
  readonly json?: boolean;
}

/** Most runs of one call. */
const maxSeeds = 1000;

export function addDelegationOptions(command: Command): Command {
  return command
    .option("--fixture <file...>", "JSON files with crawlers, targets and the RTTs between them")
    .option("--world", "a generated world in place of a file")
    .addOption(
      whole("--crawlers <n>", "with --world: crawlers", { default: 12, from: 1, to: worldLimits.crawlers }),
    )
    .addOption(whole("--sites <n>", "with --world: sites", { default: 1000, from: 1, to: worldLimits.sites }))
    .requiredOption(
      "--policy <names>",
      `${policyNames.join(", ")}, or several separated by commas`,
      parsePolicies,
    )
    .addOption(
      new Option("--threshold-ms <ms>", "ipmicra: an answer below this is good enough")
        .default(defaultParameters.thresholdMs)
        .argParser(milliseconds),
    )
    .addOption(
      new Option("--lambda-ms <ms>", "nearest: what a probe has to be expected to save")
        .default(defaultParameters.lambdaMs)
        .argParser(milliseconds),
    )
    .option("--get-first", "the first observation is the crawl's own GET and costs no probe")
    .addOption(
      whole("--seed <number>", "orders the targets; with --world, which world", {
        default: defaultSeed,
        from: 0,
        to: 0xffff_ffff,
      }),
    )
    .addOption(
      whole("--seeds <n>", "so many runs from --seed on: mean and spread over worlds, or over orders", {
        default: 1,
        from: 1,
        to: maxSeeds,
      }),
    )
    .addOption(
      new Option("--noise-ms <mean>", "exponential delay on each try of a probe")
        .default(noNoise.noiseMs)
        .argParser(milliseconds),
    )
    .addOption(
      new Option("--spike-share <p>", "share of tries with a spike")
        .default(noNoise.spikeShare)
        .argParser(share),
    )
    .addOption(
      new Option("--spike-ms <mean>", "exponential height of a spike")
        .default(noNoise.spikeMs)
        .argParser(milliseconds),
    )
    .addOption(
      new Option("--loss <p>", "share of tries without an answer")
        .default(noNoise.lossShare)
        .argParser(share),
    )
    .addOption(
      whole("--tries <n>", "most tries of a probe; the smallest counts, and two that agree end it", {
        default: noNoise.tries,
        from: 1,
        to: 20,
      }),
    )
    .option(
      "--no-yardstick",
      "with noise: leave out what probing with every crawler comes to (slow with hundreds)",
    )
    .option("--json", "print JSON: an object, or a list of them for several policies or files");
}

export function noiseOf(options: DelegationOptions): ProbeNoise {
  const { noiseMs, spikeShare, spikeMs, loss, tries } = options;
  return { noiseMs, spikeShare, spikeMs, lossShare: loss, tries };
}

export function seedsOf({ seed, seeds }: DelegationOptions): number[] {
  return seedsFrom(seed, seeds);
}

/** The policies asked for; under noise also `exhaustive`, which all are held against. */
export function variantsOf(options: DelegationOptions): PolicyVariant[] {
  const { policy, thresholdMs, lambdaMs, getFirst = false } = options;
  const needsYardstick = hasYardstick(options) && !policy.includes("exhaustive");
  const names: readonly PolicyName[] = needsYardstick ? [...policy, "exhaustive"] : policy;
  return names.map((name) => ({ policy: name, parameters: { thresholdMs, lambdaMs, getFirst } }));
}

export function hasYardstick(options: DelegationOptions): boolean {
  return options.yardstick && !isQuiet(noiseOf(options));
}

export function refuseContradictions(options: DelegationOptions): void {
  if (options.fixture && options.world) throw new UsageError("--fixture and --world exclude each other");
  if (!options.fixture && !options.world) throw new UsageError("--fixture <file> or --world is needed");
}

function whole(
  flags: string,
  words: string,
  bounds: { readonly default: number; readonly from: number; readonly to: number },
): Option {
  return new Option(flags, words).default(bounds.default).argParser(boundedInteger(bounds.from, bounds.to));
}

function parsePolicies(text: string): PolicyName[] {
  const names = text.split(",").map((name) => name.trim());
  return names.map((name) => {
    const known = policyNames.find((policy) => policy === name);
    if (known === undefined) {
      throw new InvalidArgumentError(
        `"${name.slice(0, 40)}" is not a policy: ${policyNames.join(", ")} are.`,
      );
    }
    return known;
  });
}
