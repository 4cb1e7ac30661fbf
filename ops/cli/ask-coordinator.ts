/**
 * Lets commands use the coordinator's API: through the Unix socket of the coordinator that runs in this home, otherwise through
 * the same router in-process, over the database. In either case the audit log names the command.
 */
import { Client } from "undici";
import type { HttpMethod } from "#coordinator/web/api-operation";
import { ConfigError, UsageError } from "#core/errors";
import { isRunning } from "#core/running-process";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";
import { withoutPassword } from "#db/server-url";
import { commandActor, recordCommand } from "./audit-command-change.ts";
import {
  type CommandContext,
  openSearchAuthorization,
  searchFolderOf,
  socketPathOf,
  withDatabase,
} from "./command-context.ts";
import { readFrom, refuseNothing } from "./read-database.ts";

export interface Question {
  readonly method: HttpMethod;
  readonly path: string;
  readonly accept: string;
  /** The operation's room. Only this room is loaded when no coordinator is running. */
  readonly room: string;
  readonly body?: unknown;
  /** True if an empty database is to be set up. */
  readonly setsUp?: boolean;
}

export interface Answer {
  readonly status: number;
  readonly type: string;
  /** True when the question was valid but nothing was found. */
  readonly isEmpty: boolean;
  readonly body: string;
}

type Headers = Readonly<Record<string, string | string[] | number | undefined>>;

/** More than an explorer's first count of ten million subnets takes. */
const patienceMs = 300_000;

export async function askCoordinator(context: CommandContext, question: Question): Promise<Answer> {
  const running = await askRunning(context, question);
  if (running !== null) return running;
  if (!question.setsUp) refuseNothing(context);
  return await withDatabase(context, async (database) => {
    if (question.setsUp) await migrate(database);
    return await readFrom(database, context, async () => await askInProcess(database, context, question));
  });
}

const headersOf = ({ accept, body }: Question): Record<string, string> => ({
  ...{ accept, "nearcrawl-actor": commandActor() },
  ...(body === undefined ? {} : { "content-type": "application/json" }),
});

const answerOf = (status: number, headers: Headers, body: string): Answer => ({
  ...{ status, body, type: String(headers["content-type"] ?? "") },
  isEmpty: headers["nearcrawl-empty"] !== undefined,
});

/** Returns null when no coordinator is running in this home, or when it uses another database. */
export async function askRunning(
  context: CommandContext,
  question: Question,
  withinMs = patienceMs,
): Promise<Answer | null> {
  const { currentRun, databaseUrl, schema, home } = context;
  if (currentRun === null || !isRunning(currentRun.pid) || currentRun.schema !== schema) return null;
  if ((databaseUrl === null ? null : withoutPassword(databaseUrl)) !== currentRun.database) return null;
  const client = new Client("http://localhost", {
    ...{ socketPath: socketPathOf(home), headersTimeout: withinMs, bodyTimeout: withinMs },
  });
  try {
    const { method, path, body } = question;
    const asked = { method: method === "get" ? "GET" : "POST", path, headers: headersOf(question) } as const;
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const { statusCode, headers, body: answer } = await client.request({ ...asked, ...sent });
    return answerOf(statusCode, headers, await answer.text());
  } catch (error) {
    // There is no socket: the coordinator is of an earlier release, or the path is too long for one.
    const { code = "" } = error as { readonly code?: string };
    if (["ENOENT", "ECONNREFUSED", "EACCES", "ENAMETOOLONG", "EINVAL"].includes(code)) return null;
    throw error;
  } finally {
    await client.close();
  }
}

async function askInProcess(
  database: Database,
  context: CommandContext,
  question: Question,
): Promise<Answer> {
  const { openInProcess } = await import("#coordinator/in-process");
  const { currentRun, home, settingsFile } = context;
  const isInUse = currentRun !== null && isRunning(currentRun.pid);
  let fault: unknown = null;
  const app = await openInProcess({
    ...{ database, resolvers: currentRun?.resolvers ?? [] },
    config: await configOf(settingsFile, question),
    room: question.room,
    searchAuthorization: openSearchAuthorization,
    searchFolder: isInUse ? null : searchFolderOf(home),
    onFault: (error) => {
      fault = error;
    },
    audit: (pool) => ({ record: async (entry) => await recordCommand(pool, entry) }),
  });
  try {
    const { method, path: url, body } = question;
    const asked = { method: method === "get" ? "GET" : "POST", url, headers: headersOf(question) } as const;
    const sent = body === undefined ? {} : { payload: JSON.stringify(body) };
    const { statusCode, headers, body: answer } = await app.inject({ ...asked, ...sent });
    if (statusCode === 500 && fault !== null) throw fault;
    return answerOf(statusCode, headers as Headers, answer);
  } finally {
    await app.close();
  }
}

/** `null` means that there is no file. An unreadable file makes only the commands fail that need it. */
async function configOf(file: string | null, { room }: Question) {
  const { readCoordinatorSettings, withPlaces } = await import("./setup/coordinator-settings.ts");
  const { readCoordinatorConfig } = await import("#coordinator/config");
  try {
    return withPlaces(file, () => readCoordinatorConfig(readCoordinatorSettings(file)));
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof UsageError) || room === "alerts") throw error;
    return null;
  }
}
