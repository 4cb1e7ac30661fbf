/**
 * Incidents: misbehaviour of a crawler or stranger, and other events that an operator should know about. Each is noted where
 * it is found. Repetitions become one row with a count.
 */
import type { CrawlerId } from "./ids.ts";

export interface Incident {
  /** Null when the peer is unknown. */
  readonly crawlerId: CrawlerId | null;
  /** Such as `copied-folder`, `wrong-result` or `flood`: a constant of the code, never text from a message. */
  readonly kind: string;
  /** A plain sentence for the operator; text from a crawler is cut to 500 characters. */
  readonly words: string;
  readonly remoteAddress: string | null;
  readonly at: Date;
  readonly count?: number;
  /** The document concerned, such as a robots.txt, or its beginning. */
  readonly file?: string;
}

/** Incidents of one kind by one crawler within one hour. */
export interface IncidentEntry {
  readonly crawlerId: CrawlerId | null;
  readonly crawler: string | null;
  readonly kind: string;
  readonly count: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
  readonly words: string;
  readonly remoteAddress: string | null;
  readonly file: string | null;
}

export interface IncidentQuery {
  readonly since: Date;
  readonly name?: string;
  readonly kind?: string;
  readonly most?: number;
}

export interface IncidentStore {
  record(incident: Incident): Promise<void>;
  recordAll(incidents: readonly Incident[]): Promise<void>;
  list(query: IncidentQuery): Promise<IncidentEntry[]>;
  forget(before: Date): Promise<number>;
}

/** Notes incidents without waiting. Noting never fails, and a flood of notes causes few writes. */
export interface IncidentNotes {
  note(incident: Incident): void;
}

export const incidentDays = 90;

// Counts an incident at once, logs it once and writes it a moment later together with others. At most one row per crawler and
// kind is written each time, so that a peer that floods us with faults cannot flood the database.

interface IncidentLogPorts {
  readonly store: Pick<IncidentStore, "recordAll" | "forget">;
  readonly log: { warn(fields: object, message: string): void };
  readonly onNoted: (kind: string) => void;
}

const gatherMs = 250;

/** Maximum number of waiting rows (a thousand crawlers with four kinds each). Further incidents are only counted. */
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

  /** Writes the waiting rows. Rows that the database refuses remain only in the log. */
  async flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const incidents = [...this.#waiting.values()];
    this.#waiting = new Map();
    this.#writing = this.#writing.then(async () => await this.#write(incidents));
    await this.#writing;
  }

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
