/**
 * Runs the crawler that belongs to a folder. Starts it again in the same process when the folder gets another crawler or a
 * move fails.
 */
import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "#core/errors";
import { membershipFile, readMembership, writeMembership } from "./core/membership.ts";
import { writePrivateJson } from "./core/private-file.ts";
import { Crawler } from "./crawler.ts";
import type { LimitUsage } from "./limits/limit-usage.ts";
import type { CrawlerStatus } from "./link/crawler-hello.ts";
import type { CrawlerSurroundings } from "./link/supervisor-line.ts";
import { identityFile } from "./membership/identity.ts";
import { signingKeysFolder } from "./membership/signing-keys.ts";
import {
  arrivedFolder,
  forgetMove,
  keptFiles,
  type MoveJournal,
  packFile,
  readJournal,
  writeJournal,
} from "./move/pack.ts";
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

  async start(): Promise<void> {
    const settled = finishMove(this.#config.home);
    if (settled === "gone") throw new ConfigError([`${this.#config.home}: ${goneWords}`]);
    await this.#begin(settled);
  }

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

  usage(): LimitUsage[] {
    return this.#now.view.usage();
  }

  report(): StatusReport {
    return this.#now.view.report();
  }

  stop(): Promise<void> {
    return this.#end("stop");
  }

  leave(): Promise<void> {
    return this.#end("leave");
  }

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

// Changes this folder as the coordinator decided a move: the destination folder becomes that of the crawler that moved, and
// the origin keeps nothing by which it could run. Every step can be repeated, so that a killed process continues from the
// journal.

/** `became`: this folder's crawler has a new name. `gone`: it runs elsewhere. */
type Settled = "nothing" | "became" | "gone";

const movedFile = (home: string): string => join(home, "moved.json");

/** Must be called after the coordinator said `moved`. `nothing` means that this folder takes part in no move and is unchanged. */
export function settleMove(home: string): Settled {
  const journal = readJournal(home);
  if (journal === null) return "nothing";
  writeJournal(home, { ...journal, step: "settling" });
  return finishMove(home);
}

/** Completes a move that an earlier process began. Must be called before anything else in the folder is opened. */
export function finishMove(home: string): Settled {
  const journal = readJournal(home);
  if (journal === null || journal.step !== "settling") return "nothing";
  for (const step of settlingSteps(home, journal)) step();
  return journal.way === "in" ? "became" : "gone";
}

/** The steps must run in order, and each is idempotent. */
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

/** Removes the private key first and the membership last, because the journal is no longer read once the membership has gone. */
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
