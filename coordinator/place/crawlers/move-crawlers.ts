/**
 * Leads crawlers' moves to other hosts: asks one end, then the other, forwards parts, and commits in the database. Memory
 * only holds the state of the two sessions. If a coordinator restarts, open moves fail and each crawler continues where it
 * was.
 */
import type { CrawlerId } from "#core/ids";
import type { CoordinatorMessage, Refusal } from "#protocol/coordinator-messages";
import { isSignedBy } from "#protocol/identity";
import { type CoordinatorMove, type CrawlerMove, movePartBytes, moveText, partsOf } from "#protocol/move";
import type { Admitted, Introduction } from "./admit-crawler.ts";
import { type MoveStep, stepSeconds } from "./crawler.ts";
import type { CrawlerMoveRecord, MoveStore } from "./move-store.ts";

interface MoverPorts {
  readonly moves: MoveStore;
  /** Returns false if the crawler is not connected or too old to know moves. */
  readonly send: (crawlerId: CrawlerId, message: CoordinatorMessage) => boolean;
  readonly refuse: (crawlerId: CrawlerId, refusal: Refusal) => boolean;
  /** With several coordinators, the one connected to the crawler begins its move. By default there is only one coordinator. */
  readonly mayBegin?: (crawlerId: CrawlerId) => boolean;
  /** Called when a crawler has a new host. The crawler formerly there hands its subnets over. */
  readonly onMoved: () => Promise<void>;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  readonly now: () => Date;
}

interface LiveMove {
  readonly record: CrawlerMoveRecord;
  step: MoveStep;
  bytes: number;
  /** The part that is being transferred, or null. */
  wanted: number | null;
}

type Said<What extends CrawlerMove["says"]["what"]> = Extract<CrawlerMove["says"], { what: What }>;

export class Mover {
  readonly #ports: MoverPorts;
  readonly #live = new Map<number, LiveMove>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(ports: MoverPorts) {
    this.#ports = ports;
  }

  /** Must be called before any crawler is admitted. */
  async start(): Promise<void> {
    const { moves, now, log } = this.#ports;
    const failed = await moves.failOpen("the coordinator was restarted meanwhile", now());
    if (failed > 0) log.warn({ failed }, "moves that were under way have failed; their crawlers go on");
  }

  /** Starts requested moves and ends stalled ones. */
  async review(): Promise<void> {
    await this.#inTurn(async () => {
      for (const record of await this.#ports.moves.open()) {
        const mayBegin = this.#ports.mayBegin?.(record.crawlerId) ?? true;
        if (record.step === "asked" && mayBegin && !this.#live.has(record.moveId)) await this.#begin(record);
        const limit = stepSeconds[record.step];
        const idleMs = this.#ports.now().getTime() - record.changedAt.getTime();
        if (limit !== null && idleMs > limit * 1000)
          await this.#fail(record, `nothing happened for ${limit} seconds while it was ${record.step}`);
      }
    });
  }

  async onMessage(crawlerId: CrawlerId, { moveId, says }: CrawlerMove): Promise<void> {
    await this.#inTurn(async () => {
      const move = this.#live.get(moveId);
      if (move === undefined) return;
      const { record } = move;
      const isOther = crawlerId === record.otherCrawlerId;
      if (!isOther && crawlerId !== record.crawlerId) return;
      if (says.what === "failed")
        await this.#fail(record, `${isOther ? record.otherName : record.name}: ${says.reason}`);
      else if (isOther) await this.#onOther(move, says);
      else await this.#onCrawler(move, says);
    });
  }

  /** A session that ends before the move is committed ends the move. */
  async onLeave(crawlerId: CrawlerId, reason: string): Promise<void> {
    await this.#inTurn(async () => {
      for (const { record } of [...this.#live.values()]) {
        if (crawlerId === record.crawlerId || crawlerId === record.otherCrawlerId)
          await this.#fail(record, `${nameIn(record, crawlerId)} was lost: ${reason}`);
      }
    });
  }

  /** Returns a refusal for an arriving crawler whose identity no longer belongs to its name. */
  async onArrival(arrival: {
    readonly crawlerId: CrawlerId;
    readonly name: string;
    readonly publicKey: string | null;
  }): Promise<Refusal | null> {
    const { moves, now } = this.#ports;
    const { isOutdated, failed } = await moves.arrives(arrival, now());
    for (const record of failed) this.#drop(record, record.words);
    if (!isOutdated) return null;
    return (await this.refusalOf(arrival.publicKey, arrival.name)) ?? staleIdentity;
  }

  /** Tells whoever proved this identity where its crawler moved or what it has become. Null if nothing is known. */
  async refusalOf(publicKey: string | null, name: string): Promise<Refusal | null> {
    const made = publicKey === null ? null : await this.#ports.moves.madeBy({ publicKey, name });
    return made === null ? null : movedRefusal(made, name);
  }

  async #begin(record: CrawlerMoveRecord): Promise<void> {
    const move: LiveMove = { record, step: "asked", bytes: 0, wanted: null };
    if (!(await this.#step(move, "asked", "emptying"))) return;
    this.#live.set(record.moveId, move);
    this.#ports.log.info(
      { moveId: record.moveId, crawler: record.name, to: record.otherName },
      "a crawler moves",
    );
    await this.#tell(move, record.otherCrawlerId, { what: "make-ready", name: record.name });
  }

  async #onOther(move: LiveMove, says: CrawlerMove["says"]): Promise<void> {
    const { record } = move;
    if (says.what === "ready" && (await this.#step(move, "emptying", "packing"))) {
      await this.#tell(move, record.crawlerId, { what: "pack", publicKey: record.toPublicKey });
    } else if (says.what === "next" && move.step === "sending") {
      await this.#onNext(move, says.index);
    } else if (says.what === "arrived" && move.step === "sending") {
      await this.#commit(move);
    }
  }

  async #onCrawler(move: LiveMove, says: CrawlerMove["says"]): Promise<void> {
    if (says.what === "packed" && move.step === "packing") await this.#onPacked(move, says);
    else if (says.what === "part" && says.index === move.wanted) {
      move.wanted = null;
      await this.#tell(move, move.record.otherCrawlerId, says);
    }
  }

  async #onPacked(move: LiveMove, packed: Said<"packed">): Promise<void> {
    const { record } = move;
    const { moveId, name, fromPublicKey: from, toPublicKey: to } = record;
    const { bytes, digest, signature } = packed;
    if (!isSignedBy(from, moveText({ moveId, name, from, to, digest }), signature))
      return await this.#fail(record, `${name} did not sign its name over with its own key`);
    if (!(await this.#step(move, "packing", "sending", packed))) return;
    move.bytes = bytes;
    await this.#tell(move, record.otherCrawlerId, { what: "take", bytes, digest });
  }

  async #onNext(move: LiveMove, index: number): Promise<void> {
    if (index >= partsOf(move.bytes)) return;
    move.wanted = index;
    await this.#ports.moves.progressed(move.record.moveId, index * movePartBytes, this.#ports.now());
    await this.#tell(move, move.record.crawlerId, { what: "send", index });
  }

  async #commit(move: LiveMove): Promise<void> {
    const { moves, refuse, onMoved, log, now } = this.#ports;
    const { record } = move;
    if (!(await moves.commit(record.moveId, now())))
      return await this.#fail(record, "one of the two was given another identity meanwhile");
    this.#live.delete(record.moveId);
    refuse(record.crawlerId, movedRefusal(record, record.name));
    refuse(record.otherCrawlerId, movedRefusal(record, record.otherName));
    log.info({ moveId: record.moveId, crawler: record.name, to: record.otherName }, "a crawler has moved");
    await onMoved();
  }

  /** Returns false if the move is at another step. */
  async #step(move: LiveMove, from: MoveStep, to: MoveStep, packed?: Said<"packed">): Promise<boolean> {
    const { moves, now } = this.#ports;
    const next = { from, to, ...(packed && { packed }) };
    if (!(await moves.advance(move.record.moveId, next, now()))) return false;
    move.step = to;
    return true;
  }

  async #tell(move: LiveMove, crawlerId: CrawlerId, asks: CoordinatorMove["asks"]): Promise<void> {
    const { record } = move;
    if (this.#ports.send(crawlerId, { type: "coordinator:move", moveId: record.moveId, asks })) return;
    const name = nameIn(record, crawlerId);
    await this.#fail(
      record,
      `${name} is not connected to this coordinator, or its release is too old to know of moves`,
    );
  }

  async #fail(record: CrawlerMoveRecord, words: string): Promise<void> {
    const { moves, now, log } = this.#ports;
    if (!(await moves.fail(record.moveId, words, now()))) return;
    log.warn({ moveId: record.moveId, crawler: record.name, reason: words }, "a move has failed");
    this.#drop(record, words);
  }

  #drop({ moveId, crawlerId, otherCrawlerId }: CrawlerMoveRecord, words: string): void {
    if (!this.#live.delete(moveId)) return;
    const asks = { what: "failed", reason: words.slice(0, 500) } as const;
    for (const end of [crawlerId, otherCrawlerId])
      this.#ports.send(end, { type: "coordinator:move", moveId, asks });
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }
}

const nameIn = ({ crawlerId: id, name, otherName }: CrawlerMoveRecord, crawlerId: CrawlerId) =>
  crawlerId === id ? name : otherName;

/** Addressed to the person who looks after the receiving host. */
function movedRefusal({ name, otherName }: CrawlerMoveRecord, to: string): Refusal {
  const reason =
    to === name
      ? `${name} has moved to the host of ${otherName}, and nothing runs it here any more`
      : `this host runs ${name} from now on, in place of ${otherName}`;
  return { code: "moved", reason, retry: false };
}

const staleIdentity: Refusal = {
  code: "internal-error",
  reason: "what belongs to this name has just changed",
  retry: true,
};

export interface MoveDuties extends Pick<Mover, "start" | "review" | "onMessage" | "onLeave" | "onArrival"> {
  /** Explains to a refused crawler that it has moved, if it has. */
  refusalOf(introduction: Introduction, otherwise: Refusal): Promise<Refusal>;
}

/** Admits the crawler as `admit` decides, or refuses it because it has moved. */
export async function admitUnlessMoved(
  introduction: Introduction,
  admit: () => Promise<Admitted | { readonly refuse: Refusal }>,
  moves: Pick<MoveDuties, "refusalOf"> | undefined,
): Promise<Admitted | { readonly refuse: Refusal }> {
  const admitted = await admit();
  if (!("refuse" in admitted) || moves === undefined) return admitted;
  return { refuse: await moves.refusalOf(introduction, admitted.refuse) };
}
