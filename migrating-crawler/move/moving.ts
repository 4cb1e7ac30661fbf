/**
 * Handles the running crawler's part in a move (protocol/move.ts). When asked to leave or make room, it finishes its requests,
 * sends its results and waits for the coordinator's decision. After a failure on either side, it is started again from its
 * folder with the identity that the coordinator recognises.
 */
import { within } from "#core/timer-ms";
import { type CoordinatorMove, type CrawlerMove, moveText } from "#protocol/move";
import type { CrawlerLog } from "../core/log.ts";
import type { FetchTools } from "../crawl/slice-tools.ts";
import type { TaskLoop } from "../crawl/task-loop.ts";
import type { Carrier } from "../link/carrier.ts";
import type { CoordinatorLink } from "../link/coordinator-link.ts";
import type { Member } from "../membership/member.ts";
import type { Spool } from "../spool/spool.ts";
import { forgetMove, PackReceiver, readJournal, readPart, writeJournal, writePack } from "./pack.ts";

/** Time limits for requests in progress, for aborted ones, and for sending results. */
const [endRequestsMs, endCutMs, shipMs] = [4000, 2000, 20_000] as const;

export interface MovingSettings {
  readonly home: string;
  /** Null if the crawler has no identity, in which case it does not move. */
  readonly member: Member | null;
  readonly tools: Pick<FetchTools, "connector" | "gates" | "robots">;
  readonly loop: Pick<TaskLoop, "stop" | "openHosts">;
  readonly carrier: Pick<Carrier, "drained">;
  readonly spool: Pick<Spool, "waiting">;
  readonly link: Pick<CoordinatorLink, "send" | "seal">;
  readonly log: CrawlerLog;
  readonly beginAnew: () => void;
}

export class Moving {
  readonly #settings: MovingSettings;
  #moveId: number | null = null;
  #name = "";
  #receiver: PackReceiver | null = null;
  #isOver = false;

  constructor(settings: MovingSettings) {
    this.#settings = settings;
  }

  /** The coordinator recognises the old identity, so a pending move was abandoned. */
  onWelcome(): void {
    try {
      forgetMove(this.#settings.home);
    } catch (error) {
      this.#settings.log.warn({ error }, "what an earlier move left in the folder moving cannot be removed");
    }
  }

  /** While the link is down, the coordinator's decision may have been lost. */
  onDown(): void {
    if (this.#moveId !== null) this.#giveUp("the link to the coordinator was lost");
  }

  isWaiting(): boolean {
    try {
      return readJournal(this.#settings.home) !== null;
    } catch {
      return false;
    }
  }

  onMessage({ moveId, asks }: CoordinatorMove): void {
    if (this.#isOver) return;
    if (asks.what === "failed") {
      if (moveId === this.#moveId) this.#giveUp(asks.reason);
      return;
    }
    void this.#do(moveId, asks).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      this.#say(moveId, { what: "failed", reason: reason.slice(0, 500) });
      this.#giveUp(reason);
    });
  }

  async #do(moveId: number, asks: Exclude<CoordinatorMove["asks"], { what: "failed" }>): Promise<void> {
    switch (asks.what) {
      case "make-ready":
        return await this.#makeReady(moveId, asks.name);
      case "pack":
        return await this.#pack(moveId, asks.publicKey);
      case "take":
        if (moveId !== this.#moveId || this.#name === "") throw new Error("nothing was made ready for it");
        this.#receiver = new PackReceiver(this.#settings.home, asks);
        return this.#askForNext(moveId);
      case "send":
        this.#say(moveId, {
          what: "part",
          index: asks.index,
          part: readPart(this.#settings.home, asks.index),
        });
        return;
      case "part":
        this.#receiver?.add(asks.index, asks.part);
        return this.#askForNext(moveId);
    }
  }

  async #makeReady(moveId: number, name: string): Promise<void> {
    this.#name = name;
    await this.#endWork(moveId, `this host is to run ${name}`);
    const { waiting } = this.#settings.spool;
    if (waiting > 0) throw new Error(`${waiting} results of its own still wait for the coordinator`);
    this.#say(moveId, { what: "ready" });
  }

  async #pack(moveId: number, to: string): Promise<void> {
    const { home, member, spool } = this.#settings;
    if (member === null) throw new Error("it has no identity to sign with");
    await this.#endWork(moveId, "this crawler moves to another host");
    const pack = writePack(home, { withResults: spool.waiting > 0 });
    const { name } = member.membership;
    const { publicKey: from } = member.identity;
    writeJournal(home, { way: "out", moveId, name, step: "waiting" });
    const signature = member.identity.sign(moveText({ moveId, name, from, to, digest: pack.digest }));
    this.#say(moveId, { what: "packed", ...pack, signature });
  }

  #askForNext(moveId: number): void {
    if (this.#receiver === null) return;
    const index = this.#receiver.next;
    if (index !== null) {
      this.#say(moveId, { what: "next", index });
      return;
    }
    this.#receiver.finish();
    this.#receiver = null;
    writeJournal(this.#settings.home, { way: "in", moveId, name: this.#name, step: "waiting" });
    this.#say(moveId, { what: "arrived" });
  }

  async #endWork(moveId: number, why: string): Promise<void> {
    if (this.#moveId !== null) throw new Error("it takes part in another move already");
    this.#moveId = moveId;
    const { tools, loop, link, carrier, log } = this.#settings;
    log.info({ moveId }, `${why}: its work ends`);
    await within(endRequestsMs, loop.stop());
    tools.connector.close();
    await within(endCutMs, loop.stop());
    if (loop.openHosts > 0) throw new Error(`requests to ${loop.openHosts} hosts do not end`);
    link.seal();
    await within(shipMs, carrier.drained());
    tools.gates.close();
    tools.robots.close();
  }

  #say(moveId: number, says: CrawlerMove["says"]): void {
    if (!this.#isOver) this.#settings.link.send({ type: "crawler:move", moveId, says });
  }

  #giveUp(reason: string): void {
    if (this.#isOver || this.#moveId === null) return;
    this.#isOver = true;
    this.#settings.log.warn({ reason }, "a move to another host came to nothing: the crawler starts over");
    this.#settings.beginAnew();
  }
}
