/**
 * `pause`, `resume` and `drain` ask the running crawler over its control socket. `pause` and `resume` also work while no
 * crawler is running, through a file that the next one reads.
 */

import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { plainWords } from "#protocol/fields";
import { jsonOf } from "../core/json.ts";
import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "../core/partner-context.ts";
import { forgetAsked, keepAsked } from "../limits/state-file.ts";
import { checkCrawlerHome } from "../membership/home-folder.ts";
import { spoolHolder } from "../spool/spool-folder.ts";
import { askCrawler, ControlError } from "../status/control-server.ts";
import { statusText } from "../status/status-text.ts";
import { restingReport } from "../supervisor/resting-report.ts";
import { runningSupervisor } from "../supervisor/supervisor-home.ts";

async function post({ home }: PartnerContext, path: string, reason?: string): Promise<string | null> {
  checkCrawlerHome(home);
  const query = reason === undefined ? "" : `?reason=${encodeURIComponent(reason)}`;
  return await askCrawler(home, { method: "POST", path: path + query });
}

const reasonIn = ({ reason = "by hand" }: { readonly reason?: string }) => reason.slice(0, 300);

function tell({ json, print }: PartnerContext, answer: object, words: string): PartnerExitCode {
  print(json ? JSON.stringify(answer, null, 2) : words);
  return partnerExitCodes.done;
}

export async function pauseCommand(
  context: PartnerContext,
  options: { readonly reason?: string },
): Promise<PartnerExitCode> {
  const { home, program } = context;
  const reason = reasonIn(options);
  const isRunning = (await post(context, "/pause", reason)) !== null;
  if (!isRunning) inFolder(home, () => keepAsked("pause", home, reason));
  const now = isRunning
    ? "it contacts no site any more, and keeps its link to the coordinator"
    : "no crawler runs here just now; one that is started contacts no site";
  return tell(context, { paused: true, isRunning }, `Paused: ${now}, until ${program} resume.`);
}

/** Also ends a drain, unless the crawler has already left. */
export async function resumeCommand(context: PartnerContext): Promise<PartnerExitCode> {
  const { home } = context;
  const isRunning = (await post(context, "/resume")) !== null;
  if (!isRunning) {
    inFolder(home, () => {
      for (const what of ["pause", "drain"] as const) forgetAsked(what, home);
    });
  }
  const now = isRunning ? "the crawler goes on" : "no crawler runs here just now; one that is started crawls";
  return tell(context, { paused: false, isRunning }, `Resumed: ${now}.`);
}

function inFolder(home: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    throw new ControlError(`${home} cannot be written: ${(error as Error).message}`, { cause: error });
  }
}

// The crawler finishes its work and leaves. The command waits and reports progress until the crawler has gone.

const defaultLookMs = 1000;

/** The fields of the report that are used here. Later releases may add more. */
const progress = z.object({ state: z.string().max(40), words: z.string().max(2000) });

export async function drainCommand(
  context: PartnerContext,
  options: {
    readonly reason?: string /** When false, the command does not wait. */;
    readonly wait?: boolean;
  },
  lookMs = defaultLookMs,
): Promise<PartnerExitCode> {
  const { home, program, json, print, complain } = context;
  if ((await post(context, "/drain", reasonIn(options))) === null) {
    complain(`No crawler runs here. To say goodbye and ship what still waits: ${program} leave`);
    return partnerExitCodes.notFound;
  }
  const drained = (drain: "draining" | "left", words: string) => tell(context, { home, drain }, words);
  if (!json) for (const line of whatItDoes(program)) print(line);
  if (options.wait === false)
    return drained("draining", `It goes on by itself; ${program} status shows how far it is.`);
  for (let last = ""; ; await delay(lookMs)) {
    const answer = await askCrawler(home, { method: "GET", path: "/status.json" });
    // If there is no answer, either the crawler has gone or its supervisor is ending.
    const now = answer === null ? null : progress.parse(JSON.parse(answer));
    if (now === null && runningSupervisor(home) === null && spoolHolder(home) === null)
      return drained(
        "left",
        `Left: nothing of it waits any more, and others get its work. To remove it: ${program} uninstall`,
      );
    if (now !== null && now.state !== "draining") {
      complain("It does not drain any more: somebody resumed it.");
      return partnerExitCodes.failed;
    }
    if (now !== null && now.words !== last && !json) print(plainWords(now.words));
    last = now?.words ?? last;
  }
}

const whatItDoes = (program: string) => [
  "Draining: the crawler takes no new sites, finishes those that are open, ships all results, and then leaves for",
  "good, so that others get its work. Its folder stays; started again, it comes back.",
  `Ctrl-C ends this view alone. To take it back: ${program} resume`,
];

// `status` shows how this machine's crawler is doing, from the running crawler if there is one, or else from its files.

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

/** The running crawler formats its own report, because its release may report more than this program knows. */
async function textOf({ home, program, now }: PartnerContext) {
  const answer = await askCrawler(home, { method: "GET", path: "/status.txt" });
  const lines =
    answer === null
      ? statusText(restingReport(home, program, now()))
      : answer.trimEnd().split("\n").map(plainWords);
  return { lines, isRunning: answer !== null };
}
