/**
 * Incidents: what a crawler (or a stranger) did that it should not have done, or that an operator should hear
 * of. Whoever notices one notes it; floods of the same become one row that counts.
 */
import type { CrawlerId } from "./ids.ts";

export interface Incident {
  /** Null: nobody knows who it was. */
  readonly crawlerId: CrawlerId | null;
  /** Kebab-case, such as copied-folder, wrong-result, flood. One word of the code, never of a message. */
  readonly kind: string;
  /** A plain sentence for the operator; what a crawler said in it is cut to 500 characters. */
  readonly words: string;
  /** Null: not of a connection. */
  readonly remoteAddress: string | null;
  readonly at: Date;
  /** How often it happened; 1 when it is left out. */
  readonly count?: number;
  /** A document that it is about, such as a robots.txt, or its beginning. */
  readonly file?: string;
}

/** The same kind by the same crawler within one hour. */
export interface IncidentEntry {
  readonly crawlerId: CrawlerId | null;
  readonly crawler: string | null;
  readonly kind: string;
  readonly count: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
  /** Of the last one. */
  readonly words: string;
  readonly remoteAddress: string | null;
  /** A document that the last one is about. */
  readonly file: string | null;
}

export interface IncidentQuery {
  readonly since: Date;
  /** Of this crawler only. */
  readonly name?: string;
  readonly kind?: string;
  /** So many rows, the latest; 200 when it is left out. */
  readonly most?: number;
}

export interface IncidentStore {
  /** The same kind by the same crawler within one hour is one row that counts. */
  record(incident: Incident): Promise<void>;
  recordAll(incidents: readonly Incident[]): Promise<void>;
  /** The latest first. */
  list(query: IncidentQuery): Promise<IncidentEntry[]>;
  /** Removes rows whose last incident was before then; returns how many. */
  forget(before: Date): Promise<number>;
}

/** Where incidents are noted, without waiting: never fails, and a flood of notes is no flood of writes. */
export interface IncidentNotes {
  note(incident: Incident): void;
}

/** How long incidents are kept. */
export const incidentDays = 90;

// Where whoever notices an incident notes it: counted at once, said in the log once, and written to the
// database a moment later together with others. However many are noted, one row per crawler and kind is
// written a time, so that whoever floods us with faults cannot make us flood the database with them.

interface IncidentLogPorts {
  readonly store: Pick<IncidentStore, "recordAll" | "forget">;
  readonly log: { warn(fields: object, message: string): void };
  readonly onNoted: (kind: string) => void;
}

/** Incidents noted within so long are written together. */
const gatherMs = 250;

/** Rows that wait to be written at most: a thousand crawlers with four kinds each, then only counting goes on. */
const maxWaiting = 4000;

const dayMs = 86_400_000;

export class IncidentLog implements IncidentNotes {
  readonly #ports: IncidentLogPorts;
  #waiting = new Map<string, Incident>();
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> = Promise.resolve();

  constructor(ports: IncidentLogPorts) {
    this.#ports = ports;
  }

  note(incident: Incident): void {
    this.#ports.onNoted(incident.kind);
    const key = `${incident.crawlerId ?? ""}/${incident.kind}`;
    const before = this.#waiting.get(key);
    if (before === undefined) {
      if (this.#waiting.size >= maxWaiting) return;
      const { crawlerId, kind, words, remoteAddress } = incident;
      this.#ports.log.warn({ crawlerId, kind, words, remoteAddress }, "an incident");
    }
    const count = (before?.count ?? 0) + (incident.count ?? 1);
    this.#waiting.set(key, { ...incident, count });
    this.#timer ??= setTimeout(() => void this.flush(), gatherMs).unref();
  }

  /** Writes what waits. What the database does not take is in the log alone. */
  async flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const incidents = [...this.#waiting.values()];
    this.#waiting = new Map();
    this.#writing = this.#writing.then(async () => await this.#write(incidents));
    await this.#writing;
  }

  /** Removes what is older than `incidentDays`. */
  async forgetOld(now: Date): Promise<void> {
    await this.#ports.store.forget(new Date(now.getTime() - incidentDays * dayMs));
  }

  async #write(incidents: readonly Incident[]): Promise<void> {
    if (incidents.length === 0) return;
    try {
      await this.#ports.store.recordAll(incidents);
    } catch (error) {
      this.#ports.log.warn({ error, incidents: incidents.length }, "incidents could not be recorded");
    }
  }
}
