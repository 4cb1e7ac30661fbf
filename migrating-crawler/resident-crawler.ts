/**
 * The crawler that lives in a folder, whoever that is: begun anew in the same process when the folder's crawler has
 * become another one, or when a move has come to nothing.
 */

import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "#core/errors";
import { membershipFile, readMembership, writeMembership } from "./core/membership.ts";
import { writePrivateJson } from "./core/private-file.ts";
import { Crawler } from "./crawler.ts";
import type { LimitUsage } from "./limits/limit-usage.ts";
import type { CrawlerStatus } from "./link/crawler-status.ts";
import type { CrawlerSurroundings } from "./link/supervisor-line.ts";
import { identityFile } from "./membership/identity.ts";
import { signingKeysFolder } from "./membership/signing-keys.ts";
import { forgetMove, keptFiles, type MoveJournal, packFile, readJournal, writeJournal } from "./move/pack.ts";
import { arrivedFolder } from "./move/receive-pack.ts";
import type { CrawlerConfig } from "./settings/config.ts";
import type { StatusReport } from "./status/status-report.ts";

const goneWords =
  "this crawler has moved to another host of its partner, and nothing of it is left here; to crawl from this machine again, join with a new invitation";

export class Resident {
  readonly #surroundings: CrawlerSurroundings;
  #config: CrawlerConfig;
  #crawler: Crawler | null = null;
  #turn: Promise<void> = Promise.resolve();
  #isStopping = false;

  constructor(config: CrawlerConfig, surroundings: CrawlerSurroundings) {
    this.#config = config;
    this.#surroundings = surroundings;
  }

  /** Throws ConfigError or UsageError when it cannot be started. */
  async start(): Promise<void> {
    const settled = finishMove(this.#config.home);
    if (settled === "gone") throw new ConfigError([`${this.#config.home}: ${goneWords}`]);
    await this.#begin(settled);
  }

  /** The host's settings have changed: those that can be are in force at once; the log says which are not. */
  change(config: CrawlerConfig): void {
    this.#config = config;
    this.#crawler?.change(config);
  }

  pause(reason: string): void {
    this.#now.pause(reason);
  }

  resume(): void {
    this.#now.resume();
  }

  drain(reason: string): void {
    this.#now.drain(reason);
  }

  status(): CrawlerStatus {
    return this.#now.status();
  }

  /** Each of the host's limits with what is used of it, and what it holds back. */
  usage(): LimitUsage[] {
    return this.#now.view.usage();
  }

  /** All that its administrator may want to know. */
  report(): StatusReport {
    return this.#now.view.report();
  }

  stop(): Promise<void> {
    return this.#end("stop");
  }

  leave(): Promise<void> {
    return this.#end("leave");
  }

  /** Who lives here now; the last one, when nobody does any more. */
  get #now(): Crawler {
    if (this.#crawler === null) throw new Error("the crawler was not started");
    return this.#crawler;
  }

  async #end(how: "stop" | "leave"): Promise<void> {
    this.#isStopping = true;
    await this.#turn;
    await this.#crawler?.[how]();
  }

  async #begin(settled: Settled): Promise<void> {
    if (settled === "gone") {
      this.#surroundings.onRefused?.({ reason: goneWords, code: null });
      return;
    }
    const name = readMembership(this.#config.home)?.name ?? this.#config.name;
    if (settled === "became") this.#surroundings.log.info({ name }, "this host runs another crawler now");
    this.#config = { ...this.#config, name };
    const crawler: Crawler = new Crawler(this.#config, {
      ...this.#surroundings,
      onMove: (how) => this.#beginAnew(crawler, how),
    });
    this.#crawler = crawler;
    await crawler.start();
  }

  /** Once for each crawler. */
  #beginAnew(before: Crawler, how: "moved" | "failed"): void {
    this.#turn = this.#turn.then(async () => {
      if (this.#isStopping || this.#crawler !== before) return;
      await before.stop({ code: "starts-over", reason: "the crawler starts over" });
      await this.#begin(how === "moved" ? settleMove(this.#config.home) : "nothing");
    });
    this.#turn = this.#turn.catch((error: unknown) => {
      const words = error instanceof Error ? error.message : String(error);
      this.#surroundings.onRefused?.({
        reason: `the crawler could not start over after a move: ${words}`,
        code: null,
      });
    });
  }
}

// The coordinator has decided a move, and this folder is changed accordingly: the other host's folder becomes the
// crawler that has moved, and that crawler's old folder keeps nothing by which it could run. Each step can be done
// again, so that a process that is killed in the middle goes on from the journal when it is started.

/** `became`: this folder's crawler has another name now. `gone`: it runs elsewhere. */
type Settled = "nothing" | "became" | "gone";

/** In a folder whose crawler has gone elsewhere: whose it was. */
const movedFile = (home: string): string => join(home, "moved.json");

/** The coordinator has said `moved`. `nothing`: this folder takes part in no move, and nothing was changed. */
export function settleMove(home: string): Settled {
  const journal = readJournal(home);
  if (journal === null) return "nothing";
  writeJournal(home, { ...journal, step: "settling" });
  return finishMove(home);
}

/** What an earlier process has begun. Before anything else is opened in the folder. */
export function finishMove(home: string): Settled {
  const journal = readJournal(home);
  if (journal === null || journal.step !== "settling") return "nothing";
  for (const step of settlingSteps(home, journal)) step();
  return journal.way === "in" ? "became" : "gone";
}

/** In order; each does nothing where it was done. */
export function settlingSteps(home: string, journal: MoveJournal): (() => void)[] {
  return journal.way === "in" ? becoming(home, journal) : leaving(home, journal);
}

function becoming(home: string, { name }: MoveJournal): (() => void)[] {
  const arrived = (file: string) => join(arrivedFolder(home), file);
  return [
    () => {
      if (existsSync(arrived("spool"))) rmSync(join(home, "spool"), { recursive: true, force: true });
    },
    ...["spool", ...keptFiles].map((file) => () => {
      if (existsSync(arrived(file))) renameSync(arrived(file), join(home, file));
    }),
    () => {
      const membership = readMembership(home);
      if (membership !== null && membership.name !== name) writeMembership(home, { ...membership, name });
    },
    () => forgetMove(home),
  ];
}

/** The private key first; the membership last, since without it nothing would look at the journal again. */
function leaving(home: string, { name, moveId }: MoveJournal): (() => void)[] {
  const kept = ["spool", ...keptFiles].map((file) => join(home, file));
  const ours = [identityFile(home), signingKeysFolder(home), ...kept, packFile(home)];
  return [
    () => writePrivateJson(movedFile(home), { name, moveId }),
    ...[...ours, membershipFile(home)].map((path) => () => {
      for (const one of [path, `${path}.before`]) rmSync(one, { recursive: true, force: true });
    }),
    () => forgetMove(home),
  ];
}
