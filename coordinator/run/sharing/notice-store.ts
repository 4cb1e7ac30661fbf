/** The channel between the coordinators of one database: Postgres' NOTIFY in the database's schema. */
import type { Pool } from "pg";
import { Gathered } from "#core/coalesce";
import { tell } from "#db/schema-channel";
import { ChannelListener } from "../../database/channel-listener.ts";
import { type Notice, noticeIn } from "./notice.ts";

/** Maximum notices that share a transaction. */
const mostTogether = 100;

/** `Omit` for each member of a union. */
type Unsigned<Of> = Of extends Notice ? Omit<Of, "from"> : never;

export class NoticeLine {
  readonly #own: number;
  readonly #listener: ChannelListener;
  readonly #sending: Gathered<string, null>;

  /** `heard` is called with null if notices may have been missed. */
  constructor(pool: Pool, own: number, heard: (notice: Notice | null) => void) {
    this.#own = own;
    this.#listener = new ChannelListener(pool, "nearcrawl_coordinators", (payload) => {
      const notice = payload === null ? null : noticeIn(payload, own);
      if (payload === null || notice !== null) heard(notice);
    });
    this.#sending = new Gathered(async (payloads) => {
      await tell(pool, "nearcrawl_coordinators", payloads);
      return payloads.map(() => null);
    }, mostTogether);
  }

  async listen(): Promise<void> {
    await this.#listener.listen();
  }

  /** Resolves when Postgres has the notice, whether or not anybody listens. */
  async send(notice: Unsigned<Notice>): Promise<void> {
    await this.#sending.ask(JSON.stringify({ ...notice, from: this.#own }));
  }

  async stop(): Promise<void> {
    await this.#listener.stop();
  }
}
