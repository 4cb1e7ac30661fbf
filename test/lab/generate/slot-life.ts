/**
 * What happens to an object from quarter to quarter. In each generation a share of the objects has an event:
 * it gets another name, holder or country, it goes (and comes back at its next event), or a more specific
 * range appears within it. Each event follows from the object's path and the generation alone.
 */
import { draw, fraction } from "./path-random.ts";

export interface Life {
  readonly isLive: boolean;
  /** In the generation before; in generation 0 the same as `isLive`. */
  readonly wasLive: boolean;
  /** Edits so far; each counts up one draw, so that values differ from those before. */
  readonly names: number;
  readonly holders: number;
  readonly countries: number;
  /** What this very generation edited. */
  readonly edit: Edit | null;
  /** The generation in which a more specific range appeared within; 0 for none. */
  readonly innerSince: number;
}

type Edit = "name" | "holder" | "country";

interface LifeRules {
  readonly generation: number;
  readonly changedShare: number;
}

/** What may happen to an object; every object may be edited. */
interface Mortality {
  readonly mayGo: boolean;
  readonly mayGrow: boolean;
}

const untouched: Life = {
  isLive: true,
  wasLive: true,
  names: 0,
  holders: 0,
  countries: 0,
  edit: null,
  innerSince: 0,
};

export function lifeOf(path: number, rules: LifeRules, mortality: Mortality): Life {
  let life = untouched;
  for (let generation = 1; generation <= rules.generation; generation++) {
    if (life.edit !== null || life.wasLive !== life.isLive) {
      life = { ...life, edit: null, wasLive: life.isLive };
    }
    const happens = fraction(path, eventPurpose + 2 * generation) < rules.changedShare;
    if (happens) life = afterEvent(life, { path, generation, mortality });
  }
  return life;
}

/** How often anything was edited. */
export function editsOf({ names, holders, countries }: Life): number {
  return names + holders + countries;
}

/** A range that appeared in generation `since` and has been there from then on. */
export function innerLife(since: number, generation: number): Life {
  return { ...untouched, wasLive: since < generation };
}

/** Purposes of draws from here on belong to the generations. */
const eventPurpose = 1000;

function afterEvent(
  life: Life,
  event: { readonly path: number; readonly generation: number; readonly mortality: Mortality },
): Life {
  if (!life.isLive) return { ...life, isLive: true };
  const { path, generation, mortality } = event;
  const kind = draw(path, eventPurpose + 2 * generation + 1) % 10;
  if (kind < 2 && mortality.mayGo) return { ...life, isLive: false };
  if (kind < 4 && mortality.mayGrow && life.innerSince === 0) return { ...life, innerSince: generation };
  if (kind < 7) return { ...life, names: life.names + 1, edit: "name" };
  if (kind < 9) return { ...life, holders: life.holders + 1, edit: "holder" };
  return { ...life, countries: life.countries + 1, edit: "country" };
}
