/** `drain`: the crawler finishes what it has, its subnets go to others, and it leaves; followed until it is gone. */

import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { plainWords } from "#protocol/fields";
import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "../core/partner-context.ts";
import { checkCrawlerHome } from "../membership/home-folder.ts";
import { spoolHolder } from "../spool/spool-folder.ts";
import { askCrawler } from "../status/ask-crawler.ts";
import { runningDock } from "../supervisor/supervisor-home.ts";

interface DrainOptions {
  readonly reason?: string;
  /** Ask for it, and do not wait. */
  readonly wait?: boolean;
}

const defaultLookMs = 1000;

/** Of the report, what matters here; releases may have more. */
const progress = z.object({ state: z.string().max(40), words: z.string().max(2000) });

export async function drainCommand(
  context: PartnerContext,
  options: DrainOptions,
  lookMs = defaultLookMs,
): Promise<PartnerExitCode> {
  const { home, program, json, print, complain } = context;
  checkCrawlerHome(home);
  const path = `/drain?reason=${encodeURIComponent((options.reason ?? "by hand").slice(0, 300))}`;
  if ((await askCrawler(home, { method: "POST", path })) === null) {
    complain(`No crawler runs here. To say goodbye and ship what still waits: ${program} leave`);
    return partnerExitCodes.notFound;
  }
  if (!json) for (const line of whatItDoes(program)) print(line);
  if (options.wait === false) return told(context, "draining");
  return await follow(context, lookMs);
}

function whatItDoes(program: string): string[] {
  return [
    "Draining: the crawler takes no new sites, finishes those that are open, ships all results, and then leaves for",
    "good, so that others get its work. Its folder stays; started again, it comes back.",
    `Ctrl-C ends this view alone. To take it back: ${program} resume`,
  ];
}

async function follow(context: PartnerContext, lookMs: number): Promise<PartnerExitCode> {
  const { home, json, print, complain } = context;
  let last = "";
  for (;;) {
    const now = await look(home);
    if (now === null && !isThere(home)) return told(context, "left");
    if (now !== null && now.state !== "draining") {
      complain("It does not drain any more: somebody resumed it.");
      return partnerExitCodes.failed;
    }
    if (now !== null && now.words !== last && !json) print(plainWords(now.words));
    last = now?.words ?? last;
    await delay(lookMs);
  }
}

/** Null while nobody answers: it is gone, or its dock ends. */
async function look(home: string): Promise<z.infer<typeof progress> | null> {
  const answer = await askCrawler(home, { method: "GET", path: "/status.json" });
  return answer === null ? null : progress.parse(JSON.parse(answer));
}

const isThere = (home: string) => runningDock(home) !== null || spoolHolder(home) !== null;

function told({ json, print, home, program }: PartnerContext, what: "draining" | "left"): PartnerExitCode {
  const words =
    what === "left"
      ? `Left: nothing of it waits any more, and others get its work. To remove it: ${program} uninstall`
      : `It goes on by itself; ${program} status shows how far it is.`;
  print(json ? JSON.stringify({ home, drain: what }, null, 2) : words);
  return partnerExitCodes.done;
}
