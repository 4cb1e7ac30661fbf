/**
 * Shared by runs on the emulated Internet and the real web: the run's record, its processes including the coordinator, and an
 * embedded Postgres. The run survives restarts of the server unless they become too frequent.
 */
import { join } from "node:path";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import type { DatabaseError } from "#core/errors";
import { keptAsideWords, restartWords, type ServerEvent } from "#db/connect";
import { type CommandContext, writeCurrentRun } from "../command-context.ts";
import { newCrawlerKey } from "../crawler-key.ts";
import { ownSignInLink } from "../issue-command-link.ts";
import { type RunVoice, type ThroughOutages, throughOutages } from "./follow-run.ts";
import { type OpenedRun, openRun } from "./run-record.ts";
import { type CoordinatorSettings, SystemProcesses } from "./system-processes.ts";

export interface RunOptions {
  readonly context: CommandContext;
  readonly port: number;
  readonly fresh: boolean;
  readonly voice: RunVoice;
  /** Resolves when a person ends the run early. */
  readonly stopRequested: Promise<unknown>;
}

export interface RunFrame {
  readonly run: OpenedRun;
  readonly folder: string;
  readonly processes: SystemProcesses;
  readonly steadily: ThroughOutages;
  /** Starts the coordinator and returns the address of its page. */
  startCoordinator(settings: CoordinatorSettings, resolvers: readonly string[]): Promise<string>;
  /** Registers a crawler and starts it with these settings. */
  startCrawler(
    webUrl: string,
    settings: { readonly name: string; readonly [setting: string]: unknown },
  ): Promise<void>;
  /** Ends every process of the run and closes the database. */
  stop(): Promise<void>;
}

/** Runs within the frame. On failure, ends everything that was started. */
export async function runFramed<Run>(
  { context, fresh, voice, stopRequested }: RunOptions,
  asked: { readonly schema: string; readonly parameters: object; readonly disposable: boolean },
  crawl: (frame: RunFrame) => Promise<Run>,
): Promise<Run> {
  const { databaseUrl, home } = context;
  const { schema, parameters, disposable } = asked;
  const folder = join(home, schema);
  const watch = new ServerWatch(voice);
  const steadily = throughOutages(voice, Promise.race([stopRequested, watch.ended]));
  const opening = openRun({
    database: { databaseUrl, home, schema, onServer: watch.onServer },
    throughOutages: steadily,
    parameters: { ...parameters },
    ...{ folder, fresh, disposable },
    note: (words) => voice.note(words),
  });
  const run = await watch.over(opening);
  const processes = new SystemProcesses({ run: folder }, (words) => voice.note(words));
  const stop = async () => {
    await processes.stop();
    await run.close();
  };
  const { pool, description } = run.database;
  const crawlers = createCrawlerStore(pool);
  const frame: RunFrame = {
    ...{ run, folder, processes, steadily, stop },
    async startCoordinator(settings, resolvers) {
      const { webUrl: url } = await processes.startCoordinator(settings, { home, databaseUrl, schema });
      const webUrl = String(url);
      const signIn = voice.isTerminal ? await steadily(async () => await ownSignInLink(pool)) : null;
      voice.webUrl(webUrl, description, signIn?.url ?? null);
      writeCurrentRun(context, { schema, webUrl, pid: process.pid, resolvers });
      return webUrl;
    },
    async startCrawler(webUrl, settings) {
      const { name } = settings;
      const { key, keyHash } = newCrawlerKey();
      await steadily(async () => await crawlers.register({ name, keyHash }));
      const coordinatorUrl = `${webUrl.replace(/^http/, "ws")}/crawler`;
      processes.startCrawler({ coordinatorUrl, key, home: join(folder, "crawlers", name), ...settings });
    },
  };
  try {
    return await watch.over(crawl(frame));
  } catch (error) {
    await stop();
    throw error;
  }
}

class ServerWatch {
  readonly #voice: Pick<RunVoice, "note">;
  readonly #givenUp: Promise<never>;
  /** Resolves when the server has died too often. */
  readonly ended: Promise<void>;
  #giveUp: (error: DatabaseError) => void = () => {};

  constructor(voice: Pick<RunVoice, "note">) {
    this.#voice = voice;
    this.#givenUp = new Promise((_, reject) => {
      this.#giveUp = reject;
    });
    this.ended = this.#givenUp.catch(() => {});
  }

  readonly onServer = (event: ServerEvent): void => {
    if (event.type === "kept-aside") this.#voice.note(keptAsideWords(event.folder));
    else if (event.type === "restarted") this.#voice.note(restartWords(event.times));
    else this.#giveUp(event.error);
  };

  /** Returns the work's result. Rejects as soon as the server has died too often. */
  async over<T>(work: Promise<T>): Promise<T> {
    return await Promise.race([work, this.#givenUp]);
  }
}
