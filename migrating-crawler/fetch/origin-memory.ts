/**
 * Caches what an origin's file says, in limited memory and optionally across restarts. The most recent origins are saved. The
 * saved file is untrusted, so expired and damaged entries are dropped.
 */
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { KeptFile, type KeptSettings } from "../limits/state-file.ts";

interface Known<Value> {
  readonly value: Value;
  /** When the file is to be fetched again (`Date.now()`). */
  readonly untilMs: number;
}

interface MemorySettings<Value, Saved extends object> {
  /** Where the values are saved. If absent, they are not. */
  readonly kept: KeptSettings | undefined;
  readonly file: { readonly name: string; readonly version: number; readonly maxBytes: number };
  /** A saved validity that is longer comes from a clock that was ahead, so the entry is dropped. */
  readonly longestMs: number;
  /** Limit on the estimated characters held in memory. */
  readonly maxCharacters: number;
  /** Limit on the estimated characters saved to disk. */
  readonly maxSavedCharacters: number;
  readonly sizeOf: (value: Value) => number;
  readonly saved: z.ZodType<Saved>;
  /** Returns null for a value that is not saved. */
  readonly save: (value: Value) => { readonly saved: Saved; readonly characters: number } | null;
  readonly load: (saved: Saved) => Value;
}

const maxSavedOrigins = 5000;

/** The format on disk. Entries are validated one by one. */
export const savedOrigins = (version: number) =>
  z.object({ version: z.literal(version), origins: z.array(z.unknown()).max(maxSavedOrigins) });

const savedEntry = z.object({ origin: z.string().max(300), untilMs: z.number() });

export class OriginMemory<Value, Saved extends object> {
  readonly #settings: MemorySettings<Value, Saved>;
  readonly #known: LRUCache<string, Known<Value>>;
  readonly #file: KeptFile | null;

  constructor(settings: MemorySettings<Value, Saved>) {
    this.#settings = settings;
    const { kept, file, maxCharacters, sizeOf } = settings;
    const sizeCalculation = ({ value }: Known<Value>) => 200 + sizeOf(value);
    this.#known = new LRUCache({ maxSize: maxCharacters, sizeCalculation });
    this.#file = kept ? new KeptFile({ ...kept, ...file, everyMs: 30_000 }) : null;
    for (const [origin, known] of this.#file?.read((json) => this.#load(json)) ?? [])
      this.#known.set(origin, known);
  }

  get(origin: string): Value | null {
    const known = this.#known.get(origin);
    return known !== undefined && this.#isValid(known) ? known.value : null;
  }

  set(origin: string, value: Value, forMs: number): void {
    this.#known.set(origin, { value, untilMs: Date.now() + forMs });
    this.#file?.changed(() => this.#save());
  }

  /** Postpones the next fetch of a known file until `atMs` (`Date.now()`). */
  notBefore(origin: string, atMs: number): void {
    const known = this.#known.get(origin);
    if (known && atMs > known.untilMs) this.#known.set(origin, { ...known, untilMs: atMs });
  }

  close(): void {
    this.#file?.close();
  }

  #isValid({ untilMs }: Pick<Known<Value>, "untilMs">): boolean {
    const leftMs = untilMs - Date.now();
    return leftMs > 0 && leftMs <= this.#settings.longestMs;
  }

  /** Puts the most recent origins first, because later ones are left out beyond the limits. */
  #save(): unknown {
    const { file, save, maxSavedCharacters } = this.#settings;
    const origins: object[] = [];
    let characters = 0;
    for (const [origin, { value, untilMs }] of this.#known.entries()) {
      const entry = save(value);
      if (entry === null) continue;
      characters += entry.characters;
      if (origins.length === maxSavedOrigins || characters > maxSavedCharacters) break;
      origins.push({ origin, untilMs, ...entry.saved });
    }
    return { version: file.version, origins };
  }

  /** Returns the most recent origins last, or null if the file is another one or has another version. */
  #load(json: unknown): [string, Known<Value>][] | null {
    const { file, saved, load } = this.#settings;
    const read = savedOrigins(file.version).safeParse(json);
    if (!read.success) return null;
    const known = read.data.origins.flatMap((one): [string, Known<Value>][] => {
      const [entry, value] = [savedEntry.safeParse(one), saved.safeParse(one)];
      if (!entry.success || !value.success || !this.#isValid(entry.data)) return [];
      return [[entry.data.origin, { value: load(value.data), untilMs: entry.data.untilMs }]];
    });
    return known.reverse();
  }
}
