/**
 * Listens to a Postgres channel of its schema on one connection. When that breaks, it reconnects until it listens again and
 * then reports a notice, because one may have been missed.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Pool, PoolClient } from "pg";
import { type Channel, channelName } from "#db/schema-channel";

const listenAgainMs = 1_000;

export class ChannelListener {
  readonly #pool: Pool;
  readonly #channel: Channel;
  readonly #changed: (payload: string | null) => void;
  #client: PoolClient | null = null;
  #stopped = false;

  /** `payload` is null when notices may have been missed. */
  constructor(pool: Pool, channel: Channel, changed: (payload: string | null) => void) {
    this.#pool = pool;
    this.#channel = channel;
    this.#changed = changed;
  }

  /** Throws when Postgres is unreachable or the connection breaks before it listens. It then holds no connection. */
  async listen(): Promise<void> {
    const client = await this.#pool.connect();
    client.on("notification", this.#notified);
    client.on("error", (error) => {
      if (this.#client !== client) return;
      this.#client = null;
      client.release(error);
      void this.#listenAgain();
    });
    try {
      const { rows } = await client.query<{ name: string }>(`select ${channelName(this.#channel)} as name`);
      await client.query(`listen ${rows[0]!.name}`);
    } catch (error) {
      client.release(true);
      throw error;
    }
    if (this.#stopped) client.release(true);
    else this.#client = client;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#client?.release(true);
    this.#client = null;
  }

  readonly #notified = ({ payload }: { readonly payload?: string | undefined }): void => {
    if (!this.#stopped) this.#changed(payload ?? "");
  };

  async #listenAgain(): Promise<void> {
    while (!this.#stopped && this.#client === null) {
      await delay(listenAgainMs, undefined, { ref: false });
      if (this.#stopped) return;
      await this.listen().then(
        () => !this.#stopped && this.#changed(null),
        () => {},
      );
    }
  }
}
