/**
 * Where whoever notices an incident notes it: counted at once, said in the log once, and written to the
 * database a moment later together with others. However many are noted, one row per crawler and kind is
 * written a time, so that whoever floods us with faults cannot make us flood the database with them.
 */
import { type Incident, type IncidentNotes, type IncidentStore, incidentDays } from "./incidents.ts";

export interface IncidentLogPorts {
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
