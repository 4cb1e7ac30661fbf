/**
 * Exports the index to a search engine or to a file: first all pages, then what has changed since, from the change feed.
 * Every page is sent as the database has it now, so a batch may be sent again. The target keeps the state of the export
 * after each batch, so an export that is killed resumes there.
 *
 *   no state, another epoch of the database, or a cursor that the feed no longer reaches
 *     ──► full: the feed's number is noted ─► every page, by key ─► the target removes what is older than that number
 *     ──► changes: the pages behind the changes after the cursor, also now and then during a full export
 *
 * Opt-outs make no changes in the feed. The export checks again and again which there are and of which hosts, and has the
 * target remove what is new. Versions at the target are numbers of the feed.
 */
import { z } from "zod";
import { ExportError } from "#core/errors";
import type { HostHash, UrlHash } from "#core/ids";
import { nameOf, type UrlAddress } from "#core/url-key";
import type { CursorFault } from "../../../crawl/changes/change-feed-reads.ts";
import type { FetchedPage, TextsElsewhere } from "../../../crawl/changes/page-text-reads.ts";
import {
  type ExportedDocument,
  hiding,
  keyOfDocument,
  type Operation,
  operationOf,
  type PageNow,
} from "./export-operation.ts";
import type { createExportReads } from "./export-reads.ts";

const hash = z.string().regex(/^-?\d{1,19}$/);
const keySchema = z.object({
  hostHash: hash.transform((text) => text as HostHash),
  urlHash: hash.transform((text) => text as UrlHash),
});

/** The state of an export, kept at its target. */
export const exportStateSchema = z.object({
  format: z.literal(1),
  /** The epoch of its database (table database_epoch). */
  databaseId: z.string().max(60),
  epoch: z.number().int().positive(),
  /** The cursor in the change feed. */
  cursor: z.number().int().nonnegative(),
  /** The full export under way, as of change `from`: the last page sent, and how many were; null if it is complete. */
  full: z
    .object({
      after: keySchema.nullable(),
      pages: z.number().int().nonnegative(),
      from: z.number().int().nonnegative(),
    })
    .nullable(),
  /** Opt-outs whose hosts are removed: by number, a digest of their hosts and the feed's number then. */
  optOuts: z.record(
    z.string().regex(/^\d{1,10}$/),
    z.object({ hosts: z.string().max(60), at: z.number().int().nonnegative() }),
  ),
});

export type ExportState = z.infer<typeof exportStateSchema>;

export interface Written {
  readonly indexed: number;
  readonly deleted: number;
  /** The target already had these versions or later ones. */
  readonly alreadyThere: number;
  /** The target refuses these. */
  readonly rejected: number;
}

export interface ExportTarget {
  /** Returns null if there is no state; a text says why the state can no longer be used. */
  state(): Promise<ExportState | string | null>;
  /** Resolves when the target has stored them durably. A target that keeps texts names the documents that it has stored. */
  write(
    operations: readonly Operation[],
    onIndexed?: (document: Operation & { op: "index" }) => void,
  ): Promise<Written>;
  keep(state: ExportState): Promise<void>;
  beginFull(change: number): Promise<void>;
  /** Removes what was written as of an earlier change. Returns how many, or null if that is unknown. */
  endFull(change: number): Promise<number | null>;
}

/** How an export handles texts that are no longer in the database, or no longer need to be. */
export interface TextPorts {
  /** Texts that a search engine keeps. */
  readonly elsewhere?: TextsElsewhere;
  /** Is called with pages whose texts the target has stored. */
  readonly drop?: (pages: readonly FetchedPage[]) => Promise<void>;
  /** Is called with pages whose text is nowhere. They are left out. */
  readonly onLost?: (pages: readonly UrlAddress[]) => Promise<void>;
}

interface ExportPorts {
  readonly reads: ReturnType<typeof createExportReads>;
  readonly target: ExportTarget;
  readonly texts?: TextPorts;
  /** A monotonic clock. */
  readonly nowMs: () => number;
  readonly onProgress?: (progress: ExportProgress) => void;
  /** Is called with the reason for a full export. */
  readonly onFull?: (why: string) => void;
  /** Is called when all changes up to this time have been sent. */
  readonly onLevel?: (atMs: number) => void;
  /** Ends the export after the current batch. */
  readonly signal?: AbortSignal;
}

export interface ExportProgress {
  readonly phase: "all pages" | "changes";
  readonly done: number;
  /** 0: unknown. */
  readonly expected: number;
}

export interface ExportSummary extends Written {
  /** The reason for a full export; null if only changes were exported. */
  readonly full: string | null;
  /**
   * How many pages were removed at the end of a full export, because they are no longer in the index; null if there was no
   * full export, or the number is unknown.
   */
  readonly removed: number | null;
  readonly cursor: ExportState["cursor"];
  /** Whether it was stopped before its end. The next export resumes there. */
  readonly isCutShort: boolean;
}

const pagesAtOnce = 200;
const changesAtOnce = 1000;
const urlsAtOnce = 5000;
/** Maximum size of a batch, in bytes and operations. */
const mostBatchBytes = 5_000_000;
const mostBatchOperations = 5000;
/** How often an export of all pages sends what has changed meanwhile. */
const changesMs = 2000;
/** How often a long export checks for new opt-outs. */
const optOutsMs = 10_000;

/** Exports everything up to the feed's end. `full`: all pages, even where the target has them. */
export async function exportIndex(ports: ExportPorts, { full = false } = {}): Promise<ExportSummary> {
  return await new Export(ports).run(full);
}

class Export {
  readonly #ports: ExportPorts;
  #state!: ExportState;
  #written: Written = { indexed: 0, deleted: 0, alreadyThere: 0, rejected: 0 };
  #operations: Operation[] = [];
  #bytes = 0;
  #optOutsMs = Number.NEGATIVE_INFINITY;

  constructor(ports: ExportPorts) {
    this.#ports = ports;
  }

  async run(wantsFull: boolean): Promise<ExportSummary> {
    const begun = await this.#begin(wantsFull);
    let [why, removed] = [begun, null as number | null];
    if (this.#state.full !== null) {
      why ??= "an export of all pages was broken off, and goes on";
      removed = await this.#allPages();
    }
    const fault = await this.#changes();
    if (fault !== null) {
      // The feed dropped changes while it was read.
      why = fault;
      await this.#beginFull(why, this.#state);
      removed = await this.#allPages();
      await this.#changes();
    }
    const isCutShort = this.#isAsked;
    return { ...this.#written, full: why, removed, cursor: this.#state.cursor, isCutShort };
  }

  get #isAsked(): boolean {
    return this.#ports.signal?.aborted ?? false;
  }

  /** Returns the reason for a full export, or null if the state decides. */
  async #begin(wantsFull: boolean): Promise<string | null> {
    const kept = await this.#ports.target.state();
    const why = wantsFull ? "asked for" : await this.#whyFull(kept);
    if (why !== null) {
      await this.#refuseOlder(kept);
      await this.#beginFull(why, typeof kept === "string" ? null : kept);
    } else this.#state = kept as ExportState;
    return why;
  }

  async #whyFull(kept: ExportState | string | null): Promise<string | null> {
    if (kept === null) return "the first export to this target";
    if (typeof kept === "string") return kept;
    const { databaseId, epoch } = await this.#ports.reads.database();
    if (kept.databaseId !== databaseId) return "the target has the pages of another database";
    if (kept.epoch !== epoch)
      return `the database went back: it is in epoch ${epoch}, and was in ${kept.epoch}`;
    const read = await this.#ports.reads.changed(kept.cursor, 1);
    if (read.type !== "read" && read.type !== "unknown") return faultWords(read);
    return null;
  }

  /** A database that went back without a new epoch would write versions that the target takes for old ones. */
  async #refuseOlder(kept: ExportState | string | null): Promise<void> {
    if (kept === null || typeof kept === "string") return;
    const { databaseId } = await this.#ports.reads.database();
    const { last } = await this.#ports.reads.feed();
    if (kept.databaseId === databaseId) {
      if (kept.cursor > last) throw new ExportError(faultWords({ type: "unknown", last }));
      return;
    }
    if (kept.cursor >= last)
      throw new ExportError(
        `the target has pages of another database, as of change ${kept.cursor}, and this one's latest is ${last}: ` +
          "their versions would win; name another index, or a new file",
      );
  }

  async #beginFull(why: string, before: ExportState | null): Promise<void> {
    const { reads, target, onFull } = this.#ports;
    onFull?.(why);
    const database = await reads.database();
    // The cursor is taken before the first page is read, so what changes meanwhile has a higher number.
    const { last: cursor } = await reads.feed();
    const isSame = before?.databaseId === database.databaseId;
    // New opt-outs are removed with the first batch, not after all pages.
    const optOuts = isSame
      ? before.optOuts
      : Object.fromEntries([...(await reads.optOuts())].map(([id, hosts]) => [id, { hosts, at: cursor }]));
    this.#state = { format: 1, ...database, cursor, full: { after: null, pages: 0, from: cursor }, optOuts };
    await target.beginFull(cursor);
    await target.keep(this.#state);
  }

  /** Returns how many pages the target had that are no longer in the index. */
  async #allPages(): Promise<number | null> {
    const { reads, target, nowMs } = this.#ports;
    const expected = await reads.expectedPages();
    const { from } = this.#state.full!;
    let { after, pages } = this.#state.full!;
    let next = this.#ahead(after);
    let changesAtMs = nowMs() + changesMs;
    for (let isLast = false; !isLast; ) {
      const found = await next;
      isLast = found.length < pagesAtOnce;
      const { hostHash, urlHash } = found.at(-1) ?? {};
      if (hostHash !== undefined && urlHash !== undefined) after = { hostHash, urlHash };
      // A page that was read before its change is sent must not be sent after it.
      const isTime = nowMs() >= changesAtMs;
      if (!isLast && !isTime) next = this.#ahead(after);
      pages += found.length;
      for (const page of await this.#withTexts(found)) this.#add(operationOf(page, from));
      this.#tell({ phase: "all pages", done: pages, expected });
      if (!this.#isBatch && !isLast && !isTime) continue;
      await this.#send({ ...this.#state, full: { after, pages, from } });
      if (this.#isAsked) return null;
      if (isLast) break;
      if (!isTime) await this.#lookAtOptOuts();
      else {
        // If the feed no longer has them, the changes after all pages find out as well.
        await this.#changes();
        next = this.#ahead(after);
        changesAtMs = nowMs() + changesMs;
      }
    }
    const removed = await target.endFull(from);
    this.#state = { ...this.#state, full: null };
    await target.keep(this.#state);
    return removed;
  }

  /** Reads the next pages while a batch is sent. */
  #ahead(after: UrlAddress | null): Promise<PageNow[]> {
    const read = this.#ports.reads.walk(after, pagesAtOnce);
    // If the batch before fails, nothing waits for this one.
    read.catch(() => {});
    return read;
  }

  /** Exports up to the feed's end. Returns why the feed cannot be read from the cursor. */
  async #changes(): Promise<string | null> {
    const { reads, nowMs, onLevel } = this.#ports;
    this.#optOutsMs = Number.NEGATIVE_INFINITY;
    const from = this.#state.cursor;
    const expected = (await reads.feed()).last - from;
    for (;;) {
      if (this.#isAsked) return null;
      await this.#lookAtOptOuts();
      const [since, readMs] = [this.#state.cursor, nowMs()];
      const read = await reads.changed(since, changesAtOnce);
      if (read.type === "unknown") throw new ExportError(faultWords(read));
      if (read.type !== "read") return faultWords(read);
      // Each page once, as of its latest change.
      const latest = new Map(read.pages.map((page) => [`${page.hostHash}/${page.urlHash}`, page]));
      const changed = [...latest.values()];
      for (let at = 0; at < changed.length; at += pagesAtOnce) {
        const some = changed.slice(at, at + pagesAtOnce);
        for (const [index, page] of (await this.#withTexts(await reads.pages(some))).entries())
          this.#add(operationOf(page, some[index]!.number));
        // The cursor stays: after a kill, these are sent again.
        if (this.#isBatch) await this.#send(this.#state);
      }
      if (read.next > since) await this.#send({ ...this.#state, cursor: read.next });
      if (this.#state.full === null) this.#tell({ phase: "changes", done: read.next - from, expected });
      if (read.more) continue;
      onLevel?.(readMs);
      return null;
    }
  }

  /** New opt-outs are removed at the target; pages whose opt-out ended come back. */
  async #lookAtOptOuts(): Promise<void> {
    const { reads, nowMs } = this.#ports;
    if (nowMs() - this.#optOutsMs < optOutsMs) return;
    this.#optOutsMs = nowMs();
    const [now, kept] = [await reads.optOuts(), this.#state.optOuts];
    for (const [id, hosts] of now) if (kept[id]?.hosts !== hosts) await this.#hide(id, hosts);
    for (const id of Object.keys(kept).map(Number)) if (!now.has(id)) await this.#showAgain(id);
  }

  async #hide(optOutId: number, hosts: string): Promise<void> {
    const { reads } = this.#ports;
    // Everything sent so far has at most this number.
    const { last: at } = await reads.feed();
    for (let after: UrlAddress | null = null; ; ) {
      const keys: UrlAddress[] = await reads.urlsOfOptOut(optOutId, after, urlsAtOnce);
      for (const key of keys) this.#add(hiding(key, at));
      if (keys.length < urlsAtOnce) break;
      after = keys.at(-1)!;
      await this.#send(this.#state);
    }
    await this.#send({ ...this.#state, optOuts: { ...this.#state.optOuts, [optOutId]: { hosts, at } } });
  }

  /** Only once the feed has advanced: before that no version is above the one that hid the pages. */
  async #showAgain(optOutId: number): Promise<void> {
    const { reads } = this.#ports;
    const { last } = await reads.feed();
    if (last <= this.#state.optOuts[optOutId]!.at) return;
    for await (const keys of reads.pagesOnceCovered(optOutId)) {
      for (const page of await this.#withTexts(await reads.pages(keys))) this.#add(operationOf(page, last));
      if (this.#isBatch) await this.#send(this.#state);
    }
    const { [optOutId]: _, ...optOuts } = this.#state.optOuts;
    await this.#send({ ...this.#state, optOuts });
  }

  async #withTexts(pages: readonly PageNow[]): Promise<readonly PageNow[]> {
    const { elsewhere, onLost } = this.#ports.texts ?? {};
    const without = pages.flatMap(({ page, text, ...key }) =>
      page === null || text !== null ? [] : [{ ...key, fetchedAt: new Date(page.fetched_at) }],
    );
    if (without.length === 0) return pages;
    const found = (await elsewhere?.(without)) ?? [];
    const texts = new Map(without.map((key, at) => [nameOf(key), found[at] ?? null]));
    const lost = without.filter((key) => texts.get(nameOf(key)) === null);
    if (lost.length > 0) await onLost?.(lost);
    return pages.map((page) => ({ ...page, text: page.text ?? texts.get(nameOf(page)) ?? null }));
  }

  #add(operation: Operation): void {
    this.#operations.push(operation);
    this.#bytes += operation.op === "index" ? lengthOf(operation.document) : 100;
  }

  get #isBatch(): boolean {
    return this.#bytes >= mostBatchBytes || this.#operations.length >= mostBatchOperations;
  }

  async #send(state: ExportState): Promise<void> {
    const { target, texts } = this.#ports;
    const stored: FetchedPage[] = [];
    if (this.#operations.length > 0) {
      const written = await target.write(this.#operations, ({ id, document }) =>
        stored.push({ ...keyOfDocument(id), fetchedAt: new Date(document.fetched_at) }),
      );
      this.#written = {
        indexed: this.#written.indexed + written.indexed,
        deleted: this.#written.deleted + written.deleted,
        alreadyThere: this.#written.alreadyThere + written.alreadyThere,
        rejected: this.#written.rejected + written.rejected,
      };
    }
    [this.#operations, this.#bytes] = [[], 0];
    if (state !== this.#state) await target.keep(state);
    this.#state = state;
    if (stored.length > 0) await texts?.drop?.(stored);
  }

  #tell(progress: ExportProgress): void {
    this.#ports.onProgress?.(progress);
  }
}

/** Roughly, in characters: the facts beside the texts take about a thousand. */
const lengthOf = ({ text, unquoted, description }: ExportedDocument) =>
  1000 + text.length + (unquoted?.length ?? 0) + description.length;

function faultWords(fault: CursorFault): string {
  switch (fault.type) {
    case "too-old":
      return `changes through number ${fault.removedThrough} are no longer kept (policy changes.keepDays)`;
    case "lost":
      return `the database went back on ${fault.wentBackAt.toISOString()}, behind what was exported`;
    case "unknown":
      return `the target has changes that the database does not know: its latest is ${fault.last}. ${wentBackWords}`;
  }
}

const wentBackWords =
  "It went back to an earlier state, which no coordinator has noticed yet: start one, or run nearcrawl database restored, " +
  "then export again";
