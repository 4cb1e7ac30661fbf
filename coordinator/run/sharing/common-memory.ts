/**
 * Keeps the memory of several coordinators in step. Each announces its changes in the database (crawlers arrived or
 * left, a subnet was delegated, a crawler measured others), and the others read them. A new leader, or a coordinator
 * that missed notices, reads everything again. The work is sequential, so that older data never replaces newer.
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
  readonly others: () => ReadonlySet<number>;
  readonly line: Pick<NoticeLine, "send">;
  readonly state: CoordinatorState;
  readonly crawlers: Pick<CrawlerStore, "list" | "rtts">;
  readonly delegations: Pick<DelegationStore, "read">;
  readonly denyLists: Pick<DenyLists, "read">;
  readonly denied: DeniedTargets;
  readonly budget: Pick<DayBudget, "hear">;
  readonly refreshCrawlers: (crawlerIds?: readonly CrawlerId[]) => Promise<void>;
  /** Reloads everything that is mirrored in memory from the database. */
  readonly readAnew: () => Promise<void>;
  /** Ends sessions of crawlers that are now connected to other coordinators. */
  readonly endSessions: (crawlerIds: readonly CrawlerId[]) => void;
  readonly log: Log;
  readonly now: () => Date;
  readonly nowMs: () => number;
}

/** Changes within this time share a notice. */
const gatherMs = 150;

/** A new coordinator becomes known only after some time, so it is then sent the changes of this long. */
const rememberMs = 6000;

/** Maximum changes kept for new coordinators. If there are more, every coordinator reads everything. */
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
  /** Changes made here, with their times. Those after `#toldAtMs` have yet to be announced. */
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
      // `null` means a new tree or all delegations, which each coordinator reads by itself.
      if (subnetId !== null && !this.#isApplying) this.note("delegations", subnetId);
    });
  }

  /** The crawlers that are connected to other running coordinators. */
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

  /** When coordinators arrive, sends them what they may have missed. */
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

  /** `null` means that notices may have been missed. */
  hear(notice: Notice | null): void {
    if (notice === null) this.#mustReadAll = true;
    else if (notice.type === "crawlers" && notice.ids === null) this.#mustRefresh = true;
    else if (notice.type === "spent") this.#hearSpent(notice.of);
    else if (notice.type === "crawlers" || notice.type === "delegations" || notice.type === "rtts")
      for (const id of notice.ids ?? []) this.#heard[notice.type].add(id);
    else return;
    void this.#apply();
  }

  /** Resolves when memory reflects the database as it was at the call. */
  async readAll(): Promise<void> {
    this.#mustReadAll = true;
    await this.#apply();
  }

  /** Announces the changes that have yet to be announced. */
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

  /** Also applies what arrives while it runs. */
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
      // For crawlers connected here, the memory of this coordinator counts.
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
