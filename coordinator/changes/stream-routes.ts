/**
 * The change feed as server-sent events. While somebody listens, new changes are read once for all, every half second,
 * into a bounded memory; a reader is served from there, or from the table while it is further back. Nothing is queued
 * for a reader beyond one batch: who reads slowly waits, who takes nothing is cut and comes back where it was, since
 * every event's id is its cursor.
 */
import type { ServerResponse } from "node:http";
import type { ChangeFeed, ChangesRead, CursorFault } from "./change-feed-reads.ts";
import { type ChangeFilter, changeFits, everyChange, type PageChange, toldChange } from "./page-change.ts";
import { cursorWords } from "./read-changes.ts";

export const mostChangeReaders = 100;
const tickMs = 500;
/** Changes kept in memory for all readers: some 5 MB. */
const mostKept = 5000;
const readAtOnce = 1000;
/** Of one batch to a reader, and batches to it in one tick. */
const sentAtOnce = 200;
const batchesAtOnce = 3;
/** Readers that are served from the table in one tick, by turns: the others wait for the next. */
const readersAtTable = 8;
/** Bytes that may wait for a reader before it gets no more, and for how long until it is cut. */
const mostBehindBytes = 256 * 1024;
const patienceMs = 30_000;
/** So that what is in between (proxies, the reader) knows that the stream is alive, and how far it is. */
const heartbeatMs = 15_000;
/** Then the reader comes back, and is asked again who it is: who was signed out hears no more. */
const mostStreamMs = 300_000;

interface Reader {
  readonly response: ServerResponse;
  readonly filter: ChangeFilter;
  at: number;
  spokenMs: number;
  /** Since when it takes nothing; null: it does. */
  stuckMs: number | null;
}

interface Kept {
  readonly changes: readonly PageChange[];
  /** The number of the last change that was read. */
  readonly end: number;
}

interface ChangeStreamPorts {
  readonly feed: ChangeFeed;
  readonly onError: (error: unknown) => void;
  /** A clock that never goes back. */
  readonly nowMs: () => number;
}

export class ChangeStream {
  readonly #ports: ChangeStreamPorts;
  readonly #readers = new Set<Reader>();
  /** The latest changes, without a hole; null: nobody has listened yet, or not for a while. */
  #kept: Kept | null = null;
  #timer: NodeJS.Timeout | null = null;
  #tick: Promise<void> | null = null;

  constructor(ports: ChangeStreamPorts) {
    this.#ports = ports;
  }

  get full(): boolean {
    return this.#readers.size >= mostChangeReaders;
  }

  /** Takes over a response whose head is written; events begin behind the cursor. */
  listen(response: ServerResponse, from: { readonly at: number; readonly filter: ChangeFilter }): void {
    const reader: Reader = { ...from, response, spokenMs: this.#ports.nowMs(), stuckMs: null };
    this.#readers.add(reader);
    const end = setTimeout(() => response.end(), mostStreamMs).unref();
    response.on("close", () => {
      clearTimeout(end);
      this.#forget(reader);
    });
    response.write(`retry: 3000\nid: ${reader.at}\n\n`);
    this.#timer ??= setInterval(() => void this.tick(), tickMs).unref();
    void this.tick();
  }

  /** Reads what is new, and serves every reader; resolves when they are served, also by a tick that is under way. */
  async tick(): Promise<void> {
    if (this.#readers.size === 0) return;
    this.#tick ??= this.#turn().finally(() => {
      this.#tick = null;
    });
    await this.#tick;
  }

  /** Ends every stream; the server may close. */
  close(): void {
    for (const { response } of this.#readers) response.end();
    this.#readers.clear();
    this.#stop();
  }

  async #turn(): Promise<void> {
    try {
      this.#kept = await follow(this.#ports.feed, this.#kept);
      await this.#serveAll();
    } catch (error) {
      this.#ports.onError(error);
    } finally {
      if (this.#readers.size === 0) this.#stop();
    }
  }

  /** First those for whom memory is enough, then some of those behind, who are last in the next turn. */
  async #serveAll(): Promise<void> {
    const kept = this.#kept;
    const isBehind = ({ at }: Reader) => kept !== null && at < startOf(kept);
    const readers = [...this.#readers];
    const behind = readers.filter(isBehind).slice(0, readersAtTable);
    for (const reader of [...readers.filter((one) => !isBehind(one)), ...behind]) {
      await this.#serve(reader).catch((error) => {
        this.#ports.onError(error);
        reader.response.end();
      });
    }
    for (const reader of behind) if (this.#readers.delete(reader)) this.#readers.add(reader);
  }

  async #serve(reader: Reader): Promise<void> {
    for (let batch = 0; batch < batchesAtOnce && this.#hasRoom(reader); batch += 1) {
      const { at, filter } = reader;
      const found =
        (this.#kept && fromMemory({ at, filter }, this.#kept)) ??
        (await this.#ports.feed.after(at, { filter, limit: sentAtOnce }));
      if (found.type !== "read") return this.#turnAway(reader, found);
      this.#send(reader, found.changes.map(eventOf).join(""));
      reader.at = found.next;
      if (!found.more) break;
    }
    if (this.#ports.nowMs() - reader.spokenMs >= heartbeatMs)
      this.#send(reader, `: alive\nid: ${reader.at}\n\n`);
  }

  #hasRoom(reader: Reader): boolean {
    const { response } = reader;
    if (response.destroyed || response.writableEnded) return false;
    const now = this.#ports.nowMs();
    reader.stuckMs = response.writableLength <= mostBehindBytes ? null : (reader.stuckMs ?? now);
    if (reader.stuckMs === null) return true;
    if (now - reader.stuckMs >= patienceMs) response.destroy();
    return false;
  }

  #send(reader: Reader, text: string): void {
    if (text === "" || reader.response.writableEnded) return;
    reader.response.write(text);
    reader.spokenMs = this.#ports.nowMs();
  }

  /** A stream cannot answer with a status any more: the last event says what to do. */
  #turnAway({ response, at }: Reader, fault: CursorFault): void {
    const { status, words: message } = cursorWords(at, fault);
    response.end(`event: refused\ndata: ${JSON.stringify({ error: { status, message } })}\n\n`);
  }

  #forget(reader: Reader): void {
    this.#readers.delete(reader);
    if (this.#readers.size === 0) this.#stop();
  }

  #stop(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
    // Kept while nobody listens, it would fall behind what the table still has.
    this.#kept = null;
  }
}

async function follow(feed: ChangeFeed, kept: Kept | null): Promise<Kept> {
  let { changes, end } = kept ?? { changes: [], end: (await feed.state()).last };
  for (;;) {
    const answer = await feed.after(end, { filter: everyChange, limit: readAtOnce });
    // The table was set back, or let go more than was read here: begin anew.
    if (answer.type !== "read") return { changes: [], end: (await feed.state()).last };
    changes = [...changes, ...answer.changes].slice(-mostKept);
    end = answer.next;
    if (!answer.more) return { changes, end };
  }
}

/** Who is there has everything that is not kept in memory. */
const startOf = ({ changes, end }: Kept) => end - changes.length;

/** Null: the reader is further back than the memory. */
function fromMemory(
  { at, filter }: { readonly at: number; readonly filter: ChangeFilter },
  kept: Kept,
): ChangesRead | null {
  const { changes, end } = kept;
  const start = startOf(kept);
  if (at < start) return null;
  const fitting: PageChange[] = [];
  for (const change of changes.slice(at - start)) {
    if (!changeFits(filter, change)) continue;
    fitting.push(change);
    if (fitting.length === sentAtOnce)
      return { type: "read", changes: fitting, next: change.number, more: change.number < end };
  }
  return { type: "read", changes: fitting, next: Math.max(at, end), more: false };
}

function eventOf(change: PageChange): string {
  return `event: change\nid: ${change.number}\ndata: ${JSON.stringify(toldChange(change))}\n\n`;
}
