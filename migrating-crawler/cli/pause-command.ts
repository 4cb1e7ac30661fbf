/** `pause` and `resume`: at once where a crawler runs, else by the file that the next one looks at. */

import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "../core/partner-context.ts";
import { forgetAsked, keepAsked } from "../limits/pause.ts";
import { checkCrawlerHome } from "../membership/home-folder.ts";
import { askCrawler, ControlError } from "../status/ask-crawler.ts";

interface PauseOptions {
  readonly reason?: string;
}

export async function pauseCommand(context: PartnerContext, options: PauseOptions): Promise<PartnerExitCode> {
  const { home, program } = context;
  checkCrawlerHome(home);
  const reason = (options.reason ?? "by hand").slice(0, 300);
  const path = `/pause?reason=${encodeURIComponent(reason)}`;
  const isRunning = (await askCrawler(home, { method: "POST", path })) !== null;
  if (!isRunning) inFolder(home, () => keepAsked("pause", home, reason));
  const now = isRunning
    ? "it contacts no site any more, and keeps its link to the coordinator"
    : "no crawler runs here just now; one that is started contacts no site";
  return tell(context, { paused: true, isRunning }, `Paused: ${now}, until ${program} resume.`);
}

/** Ends a drain, too, as long as the crawler has not left. */
export async function resumeCommand(context: PartnerContext): Promise<PartnerExitCode> {
  const { home } = context;
  checkCrawlerHome(home);
  const isRunning = (await askCrawler(home, { method: "POST", path: "/resume" })) !== null;
  if (!isRunning) {
    inFolder(home, () => {
      for (const what of ["pause", "drain"] as const) forgetAsked(what, home);
    });
  }
  const now = isRunning ? "the crawler goes on" : "no crawler runs here just now; one that is started crawls";
  return tell(context, { paused: false, isRunning }, `Resumed: ${now}.`);
}

function tell({ json, print }: PartnerContext, answer: object, words: string): PartnerExitCode {
  print(json ? JSON.stringify(answer, null, 2) : words);
  return partnerExitCodes.done;
}

function inFolder(home: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    throw new ControlError(`${home} cannot be written: ${(error as Error).message}`, { cause: error });
  }
}
