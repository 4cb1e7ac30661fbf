/** Lists differences one by one for people, as samples and as the page of all of them. */

import { type RangeColumns, rangeAt } from "#coordinator/place/subnets/range-columns";
import { registries } from "#coordinator/place/subnets/subnet";
import { unpackCountry } from "#coordinator/place/subnets/subnet-rows";
import { formatRange } from "#core/ip/range";
import type { RegistryState } from "../tree/registry-state.ts";
import {
  type ChangeKind,
  changeKinds,
  type FamilyDifference,
  type TreeDifference,
} from "./tree-difference.ts";

export interface SubnetWords {
  readonly holder: string | null;
  readonly country: string | null;
  readonly registry: string;
  readonly name: string;
  /** The next less specific range; null directly under the root. */
  readonly under: string | null;
}

export interface Difference {
  readonly kind: Exclude<ChangeKind, "unchanged"> | "removed";
  readonly range: string;
  readonly before: SubnetWords | null;
  readonly after: SubnetWords | null;
}

export function* differencesOf(
  state: RegistryState,
  difference: TreeDifference,
  kind: Difference["kind"],
): Generator<Difference> {
  for (const family of [difference.ipv4, difference.ipv6]) {
    const words = new FamilyWords(state, difference, family);
    if (kind === "removed") {
      for (const row of family.removed) yield words.removed(row);
      continue;
    }
    const wantedKind = changeKinds.indexOf(kind);
    for (
      let place = family.kinds.indexOf(wantedKind);
      place >= 0;
      place = family.kinds.indexOf(wantedKind, place + 1)
    ) {
      yield words.wanted(place, family.rows[place] as number);
    }
  }
}

export function sampleDifferences(
  state: RegistryState,
  difference: TreeDifference,
  limit: number,
): Readonly<Record<Difference["kind"], readonly Difference[]>> {
  const sample = (kind: Difference["kind"]) => first(differencesOf(state, difference, kind), limit);
  return {
    added: sample("added"),
    returned: sample("returned"),
    changed: sample("changed"),
    moved: sample("moved"),
    removed: sample("removed"),
  };
}

export class FamilyWords {
  readonly #state: RegistryState;
  readonly #difference: TreeDifference;
  readonly #family: FamilyDifference;
  #rowById: Int32Array | null = null;

  constructor(state: RegistryState, difference: TreeDifference, family: FamilyDifference) {
    this.#state = state;
    this.#difference = difference;
    this.#family = family;
  }

  removed(row: number): Difference {
    const range = textOf(this.#family.current.columns, row);
    return { kind: "removed", range, before: this.#before(row), after: null };
  }

  /** Describes a wanted subnet that differs, with its row in the current tree (−1 for none). */
  wanted(place: number, row: number): Difference {
    const kind = changeKinds[this.#family.kinds[place] as number] as Difference["kind"];
    const range = textOf(this.#family.wanted.columns, place);
    return { kind, range, before: row < 0 ? null : this.#before(row), after: this.#after(place) };
  }

  #before(row: number): SubnetWords {
    const { current } = this.#family;
    const { texts } = this.#state;
    const holder = current.holderIds[row] as number;
    const parent = current.parentIds[row] as number;
    return {
      holder: holder === 0 ? null : texts.textAt(this.#difference.holders.current.names[holder] as number),
      country: unpackCountry(current.countries[row] as number),
      registry: registries[current.registries[row] as number] ?? "",
      name: texts.textAt(current.names[row] as number),
      under: parent === 0 ? null : textOf(current.columns, this.#rowOf(parent)),
    };
  }

  #after(place: number): SubnetWords {
    const { wanted } = this.#family;
    const { texts, holders } = this.#state;
    const holder = wanted.holders[place] as number;
    const parent = wanted.parents[place] as number;
    return {
      holder: holder < 0 ? null : texts.textAt(holders.nameId(holder)),
      country: unpackCountry(wanted.countries[place] as number),
      registry: registries[wanted.registries[place] as number] ?? "",
      name: texts.textAt(wanted.names[place] as number),
      under: parent < 0 ? null : textOf(wanted.columns, parent),
    };
  }

  #rowOf(id: number): number {
    this.#rowById ??= rowsById(this.#family.current.ids);
    return this.#rowById[id] as number;
  }
}

function rowsById(ids: Int32Array): Int32Array {
  const largest = ids.reduce((most, id) => Math.max(most, id), 0);
  const rows = new Int32Array(largest + 1);
  ids.forEach((id, row) => {
    rows[id] = row;
  });
  return rows;
}

const textOf = (columns: RangeColumns, index: number) => formatRange(rangeAt(columns, index));

function first<T>(values: Generator<T>, limit: number): readonly T[] {
  const found: T[] = [];
  if (limit === 0) return found;
  for (const value of values) if (found.push(value) === limit) break;
  return found;
}
