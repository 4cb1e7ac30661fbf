/**
 * The database on the embedded server, for as long as this process uses it. One connection of its own marks
 * the presence: it tells the server's other users that somebody is here, and tells us when the server dies.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import type { Database } from "./connect.ts";
import { serverCrashed, serverIsAlive } from "./embedded-pid-file.ts";
import { startEmbeddedPostgres, stopEmbeddedPostgres } from "./embedded-postgres.ts";
import { openServerDatabase } from "./server-database.ts";

/**
 * Starts or attaches. `close` stops the server when this call started it and nobody else is connected;
 * otherwise it stays for the others.
 */
export async function openEmbeddedDatabase(options: {
  readonly home: string;
  readonly schema: string;
  readonly maxConnections?: number;
}): Promise<Database> {
  const server = await startEmbeddedPostgres(options.home);
  const presence = new Presence(server.home, server.url);
  await presence.begin();
  const opened = await openServerDatabase({ ...options, databaseUrl: server.url });
  return {
    ...opened,
    description: `embedded Postgres in ${server.home}`,
    close: async () => {
      await opened.close();
      const others = await presence.end();
      if ((server.started || presence.restarted) && others === 0) await stopEmbeddedPostgres(server.home);
    },
  };
}

/**
 * One idle connection. When it breaks and the server is found dead without having been stopped, the server
 * is started again: queries fail in between, and the pool finds it at the same socket afterwards.
 */
class Presence {
  readonly #home: string;
  readonly #url: string;
  #client: Client | null = null;
  #ended = false;
  /** True when it was we who brought the server back. */
  restarted = false;

  constructor(home: string, url: string) {
    this.#home = home;
    this.#url = url;
  }

  async begin(): Promise<void> {
    const client = new Client({
      connectionString: this.#url,
      application_name: "nearcrawl presence",
      keepAlive: true,
    });
    client.on("error", () => {});
    await client.connect();
    this.#client = client;
    client.once("end", () => {
      if (!this.#ended) void this.#lost();
    });
  }

  /** Leaves; the number of other clients that the server has, -1 when it cannot be asked. */
  async end(): Promise<number> {
    this.#ended = true;
    try {
      return await this.#countOthers();
    } catch {
      return -1;
    } finally {
      await this.#client?.end().catch(() => {});
    }
  }

  /** Connections that this process closed a moment ago still show for some milliseconds: counted again, a few times. */
  async #countOthers(): Promise<number> {
    let others = -1;
    for (let attempt = 0; attempt < 20 && others !== 0; attempt++) {
      if (attempt > 0) await delay(10);
      const result = await this.#client?.query<{ others: number }>(
        `select count(*)::int as others
         from pg_stat_activity
         where backend_type = 'client backend'
           and pid <> pg_backend_pid()`,
      );
      others = result?.rows[0]?.others ?? -1;
    }
    return others;
  }

  /** A server that was stopped on purpose is not started again, but found when somebody else starts it. */
  async #lost(): Promise<void> {
    this.#client = null;
    while (!this.#ended && this.#client === null) {
      await delay(200, undefined, { ref: false });
      try {
        if (serverCrashed(this.#home)) this.restarted ||= (await startEmbeddedPostgres(this.#home)).started;
        if (serverIsAlive(this.#home)) await this.begin();
      } catch {
        // The next turn looks again; queries meanwhile fail with the server's own words.
      }
    }
  }
}
