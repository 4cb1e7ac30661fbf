/** `status` shows how this machine's crawler is doing, as reported by the running crawler or else by its files. */

import { plainWords } from "#protocol/fields";
import { jsonOf } from "../core/json.ts";
import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "../core/partner-context.ts";
import { checkCrawlerHome } from "../membership/home-folder.ts";
import { askCrawler, ControlError } from "../status/ask-crawler.ts";
import { statusText } from "../status/status-text.ts";
import { restingReport } from "../supervisor/resting-report.ts";

export async function statusCommand(context: PartnerContext): Promise<PartnerExitCode> {
  checkCrawlerHome(context.home);
  if (context.json) return await printJson(context);
  const { lines, isRunning } = await textOf(context);
  for (const line of lines) context.print(line);
  return isRunning ? partnerExitCodes.done : partnerExitCodes.notFound;
}

async function printJson({ home, program, now, print }: PartnerContext): Promise<PartnerExitCode> {
  const answer = await askCrawler(home, { method: "GET", path: "/status.json" });
  const report = answer === null ? restingReport(home, program, now()) : jsonOf(answer);
  if (report === null) throw new ControlError("the crawler's answer is no JSON");
  print(JSON.stringify(report, null, 2));
  return answer === null ? partnerExitCodes.notFound : partnerExitCodes.done;
}

/** The running crawler formats its own report, because its release may know more than this program. */
async function textOf({ home, program, now }: PartnerContext) {
  const answer = await askCrawler(home, { method: "GET", path: "/status.txt" });
  const lines =
    answer === null
      ? statusText(restingReport(home, program, now()))
      : answer.trimEnd().split("\n").map(plainWords);
  return { lines, isRunning: answer !== null };
}
