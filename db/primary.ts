/**
 * Finds the primary among several servers, and the state of the others, by asking all at once. When two accept writes,
 * one was promoted while the other could not be stopped. The one on the later timeline is then the primary.
 */
import { Client } from "pg";
import { DatabaseError } from "#core/errors";
import type { ServerPlace, ServerUrl } from "./server-url.ts";

const usualTimeoutMs = 3000;

/** How long to wait, after a primary is found, for slower servers that may show a later timeline. */
const lateAnswerMs = 500;

export type ServerAnswer = {
  readonly server: ServerPlace;
} & (
  | {
      readonly state: "primary" | "standby" | "read-only";
      /** The position in the write-ahead log: what was written, or on a standby what was replayed. */
      readonly position: bigint;
      /** Zero on a standby. */
      readonly timeline: number;
      readonly systemIdentifier: string;
      /** The age of the last transaction that a standby replayed. Null on a primary, or if nothing was replayed. */
      readonly replayedSecondsAgo: number | null;
    }
  | { readonly state: "silent"; readonly error: Error }
);

type Answering = Exclude<ServerAnswer, { readonly state: "silent" }>;

export async function askServers(url: ServerUrl): Promise<readonly ServerAnswer[]> {
  return await Promise.all(url.servers.map(async (server) => await askServer(url, server)));
}

/** Caches the primary and searches again when it is lost. Concurrent callers share one search. */
export class PrimaryFinder {
  readonly #url: ServerUrl;
  #known: ServerPlace | null = null;
  #looking: Promise<ServerPlace> | null = null;

  constructor(url: ServerUrl) {
    this.#url = url;
  }

  get hasChoice(): boolean {
    return this.#url.servers.length > 1;
  }

  /** Throws a DatabaseError that names each server with the reason why it cannot be used. */
  async find(): Promise<ServerPlace> {
    if (!this.hasChoice) return this.#url.servers[0]!;
    return this.#known ?? (await this.look());
  }

  async look(): Promise<ServerPlace> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    return await this.#looking;
  }

  /** Call when the server is gone or no longer accepts writes. */
  forget(server: ServerPlace): void {
    if (this.#known === server) this.#known = null;
  }

  async #look(): Promise<ServerPlace> {
    const answers: ServerAnswer[] = [];
    await new Promise<void>((resolve) => {
      for (const server of this.#url.servers) {
        void askServer(this.#url, server).then((answer) => {
          answers.push(answer);
          if (answers.length === this.#url.servers.length) resolve();
          else if (answer.state === "primary") setTimeout(resolve, lateAnswerMs);
        });
      }
    });
    this.#known = choosePrimary(answers, this.#url.servers);
    return this.#known;
  }
}

/** Prefers the later timeline, then the URL's order. Throws a DatabaseError when no server accepts writes. */
function choosePrimary(answers: readonly ServerAnswer[], servers: readonly ServerPlace[]): ServerPlace {
  const ordered = servers.flatMap((server) => answers.filter((answer) => answer.server === server));
  const primaries = ordered.filter((answer): answer is Answering => answer.state === "primary");
  const [first, ...others] = primaries.sort((one, other) => other.timeline - one.timeline);
  if (first === undefined) throw noPrimary(ordered);
  const stranger = others.find(({ systemIdentifier }) => systemIdentifier !== first.systemIdentifier);
  if (stranger !== undefined)
    throw new DatabaseError(
      `${first.server.name} and ${stranger.server.name} both take writes, and are not of one cluster: one of them does not belong into the database URL`,
    );
  return first.server;
}

function noPrimary(answers: readonly ServerAnswer[]): DatabaseError {
  const reasons = answers.map((answer) => {
    if (answer.state === "silent") return named(answer.server, answer.error);
    return named(answer.server, Object.assign(new Error(stateWords[answer.state]), { code: "25006" }));
  });
  return new DatabaseError(`no server takes writes: ${reasons.map(({ message }) => message).join("; ")}`, {
    cause: new AggregateError(reasons),
  });
}

export const stateWords = {
  primary: "is the primary",
  standby: "is in recovery (a standby)",
  "read-only": "refuses to write (default_transaction_read_only)",
} as const;

/** Adds the server's name to the error and keeps its code, by which callers recognise a temporary failure. */
function named(server: ServerPlace, error: Error): Error {
  const bundled = error instanceof AggregateError ? (error.errors as Error[]) : [error];
  const words = bundled.map(({ message }) => message).join("; ");
  const { code } = error as { readonly code?: unknown };
  return Object.assign(new Error(`${server.name}: ${words}`, { cause: error }), { code });
}

async function askServer(url: ServerUrl, server: ServerPlace): Promise<ServerAnswer> {
  const timeoutMs = url.timeoutMs ?? usualTimeoutMs;
  const client = new Client({
    connectionString: url.connectionString(server),
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
    application_name: "nearcrawl looks",
  });
  client.on("error", () => {});
  try {
    await client.connect();
    const { rows } = await client.query<AnswerRow>(question);
    return { server, ...answerOf(rows[0]!) };
  } catch (error) {
    return { server, state: "silent", error: error as Error };
  } finally {
    // A server that does not answer does not confirm the end either.
    client.end().catch(() => {});
  }
}

interface AnswerRow {
  readonly isStandby: boolean;
  readonly isReadOnly: boolean;
  readonly position: string;
  readonly timeline: number;
  readonly systemIdentifier: string;
  readonly replayedSecondsAgo: number | null;
}

/**
 * SQL for a primary's timeline, from the name of the log file that it writes. The control file is only updated at the
 * next checkpoint.
 */
export const writtenTimelineSql = "('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer";

const question = `
  select pg_is_in_recovery() as "isStandby",
    current_setting('transaction_read_only') = 'on' as "isReadOnly",
    (case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end - '0/0')::text as position,
    case
      when pg_is_in_recovery() then 0
      else ${writtenTimelineSql}
    end as timeline,
    (select system_identifier::text from pg_control_system()) as "systemIdentifier",
    extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())::float8 as "replayedSecondsAgo"`;

function answerOf(row: AnswerRow): Omit<Answering, "server"> {
  const { timeline, systemIdentifier } = row;
  return {
    state: row.isStandby ? "standby" : row.isReadOnly ? "read-only" : "primary",
    position: BigInt(row.position),
    timeline,
    systemIdentifier,
    replayedSecondsAgo: row.isStandby ? row.replayedSecondsAgo : null,
  };
}
