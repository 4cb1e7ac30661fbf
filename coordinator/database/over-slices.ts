/**
 * Reads over all slices: asked side by side. A slice whose server does not answer is left out, and whoever shows the answer
 * says that it is partial. Slice 0 lies beside the shared tables: without it nothing is told at all.
 */
import type { HostHash } from "#core/ids";
import { isConnectionLost } from "#db/server-database";
import { bySlice, type OpenSlice, ofAll, type Slices } from "./slices.ts";

export interface FromSlices<T> {
  /** In the order of the slices; never empty. */
  readonly answers: readonly T[];
  /** Numbers of the slices that gave none. */
  readonly partial: readonly number[];
}

/** The same store of each slice, made when it is first asked. */
export class OverSlices<Store> {
  readonly slices: Slices;
  readonly #make: (slice: OpenSlice) => Store;
  readonly #made = new WeakMap<OpenSlice["pool"], Store>();
  /** Slices that did not answer when they were last asked. */
  readonly #silent = new Set<number>();

  constructor(slices: Slices, make: (slice: OpenSlice) => Store) {
    this.slices = slices;
    this.#make = make;
  }

  /** There is no other: its answers need no merging. */
  get isOne(): boolean {
    return this.slices.open.length === 1 && this.slices.down.length === 0;
  }

  /** Of slice 0, which has the shared tables, too. */
  get shared(): Store {
    return this.of(this.slices.open[0]!);
  }

  of(slice: OpenSlice): Store {
    const known = this.#made.get(slice.pool);
    if (known !== undefined) return known;
    const made = this.#make(slice);
    this.#made.set(slice.pool, made);
    return made;
  }

  /** Numbers of the slices that do not answer, as far as is known now. */
  partial(): readonly number[] {
    const { open, down } = this.slices;
    const silent = open.flatMap(({ number }) => (this.#silent.has(number) ? [number] : []));
    return [...new Set([...down, ...silent])].sort((a, b) => a - b);
  }

  async ask<T>(ask: (store: Store, slice: OpenSlice) => Promise<T>): Promise<FromSlices<T>> {
    const { slices } = this;
    if (this.isOne) return { answers: [await ask(this.shared, slices.open[0]!)], partial: [] };
    const partial = new Set(slices.down);
    const answers = await ofAll(slices, async (slice) => {
      const answer = await this.#from(slice, ask);
      if (answer === null) partial.add(slice.number);
      return answer;
    });
    return {
      answers: answers.flatMap((answer) => (answer === null ? [] : [answer.value])),
      partial: [...partial].sort((a, b) => a - b),
    };
  }

  /** Of the slice that has the host; `absent` where it does not answer. */
  async ofHost<T>(hostHash: HostHash, ask: (store: Store) => Promise<T>, absent: T): Promise<T> {
    const answer = await this.#from(this.slices.ofHost(hostHash), ask);
    return answer === null ? absent : answer.value;
  }

  /** Each value asked of the slice that has its host; the answers stand beside the values, `absent` for silent slices. */
  async eachOfHost<V, T>(
    values: readonly V[],
    hostOf: (value: V) => HostHash,
    {
      ask,
      absent,
    }: { readonly ask: (store: Store, values: V[]) => Promise<readonly T[]>; readonly absent: T },
  ): Promise<T[]> {
    const places = values.map((value, place) => ({ value, place }));
    const groups = bySlice(places, ({ value }) => this.slices.ofHost(hostOf(value)));
    const found = values.map(() => absent);
    await Promise.all(
      groups.map(async ({ slice, values: own }) => {
        const answer = await this.#from(slice, async (store) =>
          ask(
            store,
            own.map(({ value }) => value),
          ),
        );
        for (const [index, { place }] of own.entries()) found[place] = answer?.value[index] ?? absent;
      }),
    );
    return found;
  }

  /** Null: its server does not answer. */
  async #from<T>(
    slice: OpenSlice,
    ask: (store: Store, slice: OpenSlice) => Promise<T>,
  ): Promise<{ readonly value: T } | null> {
    if (this.slices.down.includes(slice.number)) return null;
    try {
      const value = await ask(this.of(slice), slice);
      this.#silent.delete(slice.number);
      return { value };
    } catch (error) {
      if (slice.number === 0 || !isConnectionLost(error)) throw error;
      this.#silent.add(slice.number);
      return null;
    }
  }
}

// How answers of several slices become one.

/** The sums of those fields. */
export function summed<Field extends string>(
  answers: readonly Readonly<Record<Field, number>>[],
  fields: readonly Field[],
): Record<Field, number> {
  const sums = fields.map((field) => [field, answers.reduce((sum, answer) => sum + answer[field], 0)]);
  return Object.fromEntries(sums) as Record<Field, number>;
}

/** Of lists in one order, the first of all of them. */
export function firstOf<T>(
  lists: readonly (readonly T[])[],
  order: (a: T, b: T) => number,
  most = Number.POSITIVE_INFINITY,
): T[] {
  return lists.flat().sort(order).slice(0, most);
}

/** Those of one key together, each as `join` makes it of two. */
export function joinedBy<T>(values: Iterable<T>, keyOf: (value: T) => string, join: (a: T, b: T) => T): T[] {
  const known = new Map<string, T>();
  for (const value of values) {
    const key = keyOf(value);
    const other = known.get(key);
    known.set(key, other === undefined ? value : join(other, value));
  }
  return [...known.values()];
}

/** Texts as Postgres orders them under collation "C". */
export const byText = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** Hashes as Postgres orders them, which are numbers. */
export const byHash = (a: string, b: string): number => {
  const [one, other] = [BigInt(a), BigInt(b)];
  return one < other ? -1 : one > other ? 1 : 0;
};

/** The largest; null where all are. */
export const largestOf = (values: readonly (number | null)[]): number | null =>
  values.reduce((most, value) => (most === null || (value !== null && value > most) ? value : most), null);
