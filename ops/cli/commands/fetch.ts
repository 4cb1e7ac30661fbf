/** `nearcrawl fetch`: fetches one page under all the crawler's rules and shows every decision, the timing and the result. */
import { deflateRawSync } from "node:zlib";
import { Command } from "commander";
import { FrameWriter, joinFrame, packResult } from "#protocol/packed/message-frames";
import type { FetchResult } from "#protocol/result";
import { exitCodes } from "../exit-codes.ts";
import { printAnswer } from "../output.ts";
import {
  type FetchAnswer,
  fetchText,
  type ShippedSize,
  type SingleFetchOptions,
  singleFetch,
  withFetchOptions,
} from "../page/single-fetch.ts";

interface FetchOptions extends SingleFetchOptions {
  readonly json?: boolean;
}

export function fetchCommand(): Command {
  const command = new Command("fetch")
    .description("fetch one page as the crawler does: robots, address guard, limits, extraction")
    .argument("<url>", "an http(s) URL")
    .option("--json", "print for programs: all that would be shipped");
  return withFetchOptions(command)
    .addHelpText(
      "after",
      `
Redirects are followed up to five times, each under the rules of its own host.
Exit code 0 when there is an answer that counts (a page, unchanged, or an error status), 1 when it failed or was refused.

Examples:
  nearcrawl fetch https://www.example.org/
  nearcrawl fetch https://www.example.org/ --config crawler.json --json`,
    )
    .action((url: string, options: FetchOptions) => fetchOne(url, options));
}

async function fetchOne(url: string, options: FetchOptions): Promise<void> {
  const { hops, ending } = await singleFetch(url, options);
  const last = hops.at(-1)?.result ?? null;
  const answer: FetchAnswer = { hops, ending, shipped: last === null ? null : shippedSize(last) };
  printAnswer(options, answer, fetchText(answer));
  if (last === null || ending !== null || isRefused(last.outcome.type)) process.exitCode = exitCodes.failed;
}

const isRefused = (outcome: string) => ["failed", "refused-by-robots", "refused-address"].includes(outcome);

function shippedSize(result: FetchResult): ShippedSize {
  const { numbers, text } = new FrameWriter().result(1, packResult("1", result));
  const shippedBytes = joinFrame(numbers, deflateRawSync(text)).length;
  return { shippedBytes, times: result.bodyBytes === 0 ? null : result.bodyBytes / shippedBytes };
}
