/** `status`: how the crawler of this machine goes; asked of the crawler that runs, else read from its files. */

import { setTimeout as delay } from "node:timers/promises";
import { plainWords } from "#protocol/fields";
import { jsonOf } from "../core/json.ts";
import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "../core/partner-context.ts";
import { checkCrawlerHome } from "../membership/home-folder.ts";
import { askCrawler, ControlError } from "../status/ask-crawler.ts";
import { minuteOf } from "../status/running-report.ts";
import { statusText } from "../status/status-text.ts";
import { restingReport } from "../supervisor/resting-report.ts";
import { readerGone } from "./closed-output.ts";

interface StatusOptions {
  readonly watch?: boolean;
}

interface WatchTimes {
  readonly drawMs: number;
  readonly lineMs: number;
}

const defaultTimes: WatchTimes = { drawMs: 2000, lineMs: 10_000 };

export async function statusCommand(
  context: PartnerContext,
  options: StatusOptions,
): Promise<PartnerExitCode> {
  checkCrawlerHome(context.home);
  if (options.watch) return await watchStatus(context, readerGone());
  if (context.json) return await printJson(context);
  const { lines, isRunning } = await textOf(context);
  for (const line of lines) context.print(line);
  return isRunning ? partnerExitCodes.done : partnerExitCodes.notFound;
}

/** Drawn over on a terminal; elsewhere the first line now and then. Until the signal. */
export async function watchStatus(
  context: PartnerContext,
  signal: AbortSignal,
  times: WatchTimes = defaultTimes,
): Promise<PartnerExitCode> {
  const { screen, print } = context;
  while (!signal.aborted) {
    const { lines } = await textOf(context);
    if (screen) screen.draw([...lines, "", "Ctrl-C ends this view; the crawler goes on."]);
    else print(`${minuteOf(context.now().toISOString())}  ${lines[0]}`);
    await delay(screen ? times.drawMs : times.lineMs, undefined, { signal }).catch(() => {});
  }
  return partnerExitCodes.done;
}

async function printJson({ home, program, now, print }: PartnerContext): Promise<PartnerExitCode> {
  const answer = await askCrawler(home, { method: "GET", path: "/status.json" });
  const report = answer === null ? restingReport(home, program, now()) : jsonOf(answer);
  if (report === null) throw new ControlError("the crawler's answer is no JSON");
  print(JSON.stringify(report, null, 2));
  return answer === null ? partnerExitCodes.notFound : partnerExitCodes.done;
}

/** The crawler puts its own report into words: its release may know more than this program. */
async function textOf({ home, program, now }: PartnerContext) {
  const answer = await askCrawler(home, { method: "GET", path: "/status.txt" });
  const lines =
    answer === null
      ? statusText(restingReport(home, program, now()))
      : answer.trimEnd().split("\n").map(plainWords);
  return { lines, isRunning: answer !== null };
}
