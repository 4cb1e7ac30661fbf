/**
 * Keeps the memory of several coordinators alike: what one has changed in the database (its crawlers came or left, a subnet
 * was delegated, a crawler has measured others), the others hear of and read. Whoever takes the lead, or has missed
 * notices, reads all of it anew. One thing is done after the other, so that nothing older replaces what is newer.
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import type { Log } from "#core/log";
import type { DayBudget } from "../../place/crawlers/crawler.ts";
import type { CrawlerStore } from "../../place/crawlers/crawler-store.ts";
import type { DeniedTargets } from "../../place/delegation/denied-targets.ts";
import type { CoordinatorState } from "../../place/delegation/state.ts";
import type { DelegationStore } from "../../place/delegation/store.ts";
import { inPieces, mostNumbers, type Notice } from "./notice.ts";
import type { NoticeLine } from "./notice-store.ts";
import type { DenyLists } from "./request-store.ts";

interface CommonMemoryPorts {
  readonly number: number;
  /** Numbers of the others that run. */
  readonly others: () => ReadonlySet<number>;
  readonly line: Pick<NoticeLine, "send">;
  readonly state: CoordinatorState;
  readonly crawlers: Pick<CrawlerStore, "list" | "rtts">;
  readonly delegations: Pick<DelegationStore, "read">;
  readonly denyLists: Pick<DenyLists, "read">;
  readonly denied: DeniedTargets;
  readonly budget: Pick<DayBudget, "hear">;
  readonly refreshCrawlers: (crawlerIds?: readonly CrawlerId[]) => Promise<void>;
  /** All that the database knows and memory follows. */
  readonly readAnew: () => Promise<void>;
  /** Ends the sessions of crawlers that are connected elsewhere by now. */
  readonly endSessions: (crawlerIds: readonly CrawlerId[]) => void;
  readonly log: Log;
  readonly now: () => Date;
  readonly nowMs: () => number;
}

/** What happens within this goes in one notice. */
const gatherMs = 150;

/** Of somebody who has just begun to listen it is not known yet: it is told what happened since. */
const rememberMs = 6000;

/** What is remembered of that, at most; of more, everybody reads all. */
const mostRemembered = 100_000;

const kinds = ["crawlers", "delegations", "rtts"] as const;
type Kind = (typeof kinds)[number];

const ofEachKind = <One>(make: () => One): Readonly<Record<Kind, One>> => ({
  crawlers: make(),
  delegations: make(),
  rtts: make(),
});

export class CommonMemory {
  readonly #ports: CommonMemoryPorts;
  /** Changed here, and when; those after `#toldAtMs` are to be told. */
  readonly #changed = ofEachKind(() => new Map<number, number>());
  readonly #untold = ofEachKind(() => new Set<number>());
  readonly #heard = ofEachKind(() => new Set<number>());
  #spent = new Map<CrawlerId, { pages: number; bytes: number }>();
  #known: ReadonlySet<number> = new Set();
  #isApplying = false;
  #mustReadAll = false;
  #mustRefresh = false;
  #isDue = false;
  #turn: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  readonly #unwatch: () => void;
  #elsewhere: {
    readonly crawlers: CoordinatorState["crawlers"];
    readonly others: ReadonlySet<number>;
    readonly ids: readonly CrawlerId[];
  } | null = null;

  constructor(ports: CommonMemoryPorts) {
    this.#ports = ports;
    this.#unwatch = ports.state.watch((subnetId) => {
      // Null: a new tree or all delegations, which each reads by itself.
      if (subnetId !== null && !this.#isApplying) this.note("delegations", subnetId);
    });
  }

  /** Crawlers that are connected to others that run. */
  elsewhere(): readonly CrawlerId[] {
    const { state, others: running, number } = this.#ports;
    const { crawlers } = state;
    const others = running();
    if (others.size === 0) return [];
    if (this.#elsewhere?.crawlers !== crawlers || this.#elsewhere.others !== others) {
      const connected = crawlers.filter(
        (one) =>
          one.state !== "offline" &&
          one.coordinatorNumber !== undefined &&
          one.coordinatorNumber !== number &&
          others.has(one.coordinatorNumber),
      );
      this.#elsewhere = { crawlers, others, ids: connected.map(({ crawlerId }) => crawlerId) };
    }
    return this.#elsewhere.ids;
  }

  /** It has changed in the database. */
  note(kind: Kind, id: number): void {
    const changed = this.#changed[kind];
    changed.delete(id);
    changed.set(id, this.#ports.nowMs());
    this.#forget(changed);
    if (this.#ports.others().size === 0) return;
    this.#untold[kind].add(id);
    this.#tellSoon();
  }

  noteSpent(crawlerId: CrawlerId, spent: { readonly pages: number; readonly bytes: number }): void {
    if (this.#ports.others().size === 0) return;
    const before = this.#spent.get(crawlerId) ?? { pages: 0, bytes: 0 };
    this.#spent.set(crawlerId, { pages: before.pages + spent.pages, bytes: before.bytes + spent.bytes });
    this.#tellSoon();
  }

  /** Others have come or gone: those that came are told what they may have missed. */
  onOthers(): void {
    const others = this.#ports.others();
    const isNew = [...others].some((number) => !this.#known.has(number));
    this.#known = others;
    if (!isNew) return;
    for (const kind of kinds) {
      this.#forget(this.#changed[kind]);
      for (const id of this.#changed[kind].keys()) this.#untold[kind].add(id);
    }
    this.#tellSoon();
  }

  /** Null: notices may have been missed. */
  hear(notice: Notice | null): void {
    if (notice === null) this.#mustReadAll = true;
    else if (notice.type === "crawlers" && notice.ids === null) this.#mustRefresh = true;
    else if (notice.type === "spent") this.#hearSpent(notice.of);
    else if (notice.type === "crawlers" || notice.type === "delegations" || notice.type === "rtts")
      for (const id of notice.ids ?? []) this.#heard[notice.type].add(id);
    else return;
    void this.#apply();
  }

  /** Resolves when memory is as the database was when this was asked. */
  async readAll(): Promise<void> {
    this.#mustReadAll = true;
    await this.#apply();
  }

  /** What others have not heard yet, they are told. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#unwatch();
    await this.#turn;
    await this.#tell().catch(() => {});
  }

  #hearSpent(of: Extract<Notice, { type: "spent" }>["of"]): void {
    for (const [crawlerId, pages, bytes] of of)
      this.#ports.budget.hear(crawlerId as CrawlerId, { pages, bytes }, this.#ports.now());
  }

  /** Together with what comes while the one before is at work. */
  #apply(): Promise<void> {
    if (this.#isDue) return this.#turn;
    this.#isDue = true;
    const done = this.#turn.then(async () => {
      this.#isDue = false;
      await this.#read();
    });
    this.#turn = done.catch((error: unknown) => {
      this.#mustReadAll = true;
      this.#ports.log.error({ error }, "what other coordinators have changed could not be read");
    });
    return done;
  }

  async #read(): Promise<void> {
    const { state, crawlers, delegations, now } = this.#ports;
    if (this.#mustReadAll) {
      this.#mustReadAll = false;
      await this.#ports.readAnew();
      await this.#readDenials(null);
    } else if (this.#mustRefresh) await this.#ports.refreshCrawlers();
    this.#mustRefresh = false;
    const came = taken(this.#heard.crawlers) as CrawlerId[];
    if (came.length > 0) {
      await this.#ports.refreshCrawlers(came);
      const gone = came.filter(
        (id) => (state.crawler(id)?.coordinatorNumber ?? this.#ports.number) !== this.#ports.number,
      );
      this.#ports.endSessions(gone);
      await this.#readDenials(gone);
    }
    const moved = taken(this.#heard.delegations) as SubnetId[];
    if (moved.length > 0) {
      const read = await delegations.read(moved);
      this.#isApplying = true;
      for (const delegation of read) state.setDelegation(delegation);
      this.#isApplying = false;
    }
    const measured = taken(this.#heard.rtts) as CrawlerId[];
    if (measured.length > 0) state.learnRtts(await crawlers.rtts(measured), now());
  }

  async #readDenials(crawlerIds: readonly CrawlerId[] | null): Promise<void> {
    const { denyLists, denied, number, state } = this.#ports;
    if (crawlerIds?.length === 0) return;
    const lists = await denyLists.read(crawlerIds);
    for (const crawlerId of crawlerIds ?? lists.keys()) {
      // What a crawler of this coordinator has said is known from itself.
      if (state.crawler(crawlerId)?.coordinatorNumber === number) continue;
      denied.setList(crawlerId, lists.get(crawlerId));
    }
  }

  #tellSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#tell().catch((error: unknown) => {
        this.#ports.log.error({ error }, "other coordinators could not be told what has changed");
      });
    }, gatherMs);
  }

  async #tell(): Promise<void> {
    const { line } = this.#ports;
    const spent = [...this.#spent];
    this.#spent = new Map();
    const sending = inPieces(spent, mostNumbers / 4).map((piece) =>
      line.send({ type: "spent", of: piece.map(([id, { pages, bytes }]) => [id, pages, bytes]) }),
    );
    for (const type of kinds)
      for (const ids of inPieces(taken(this.#untold[type]), mostNumbers))
        sending.push(line.send({ type, ids }));
    await Promise.all(sending);
  }

  #forget(changed: Map<number, number>): void {
    const beforeMs = this.#ports.nowMs() - rememberMs;
    for (const [id, atMs] of changed) {
      if (atMs >= beforeMs && changed.size <= mostRemembered) return;
      changed.delete(id);
    }
  }
}

function taken(ids: Set<number>): number[] {
  const all = [...ids];
  ids.clear();
  return all;
}
