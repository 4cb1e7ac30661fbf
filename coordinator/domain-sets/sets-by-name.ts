/**
 * Domain sets found by the names that they hold, so that of a thousand sets only those are looked at that a host, or
 * another set, can be in. A set that only takes out (`not .com`) holds whatever it does not mention: it is always looked at.
 */
import { type DomainSet, holdsUnmentioned } from "./domain-set.ts";

export interface SetsByName {
  /** In the order of the sets: each that may hold the host. */
  around(host: string): readonly DomainSet[];
  /** Each that may hold a name that the set holds, too. */
  near(set: DomainSet): readonly DomainSet[];
}

export function setsByName(sets: readonly DomainSet[]): SetsByName {
  const always = new Set(sets.filter(holdsUnmentioned));
  const holding = new Map<string, DomainSet[]>();
  const below = new Map<string, DomainSet[]>();
  for (const set of sets) {
    if (always.has(set)) continue;
    for (const name of heldNames(set)) {
      noted(holding, name, set);
      for (const outer of namesAround(name).slice(1)) noted(below, outer, set);
    }
  }
  const place = new Map(sets.map((set, at) => [set, at]));
  const inOrder = (found: Iterable<DomainSet>) =>
    [...new Set([...always, ...found])].sort((a, b) => place.get(a)! - place.get(b)!);
  const around = (host: string) => namesAround(host).flatMap((name) => holding.get(name) ?? []);
  return {
    around: (host) => inOrder(around(host)),
    near: (set) =>
      holdsUnmentioned(set)
        ? sets
        : inOrder(heldNames(set).flatMap((name) => [...around(name), ...(below.get(name) ?? [])])),
  };
}

function noted(index: Map<string, DomainSet[]>, name: string, set: DomainSet): void {
  const sets = index.get(name);
  if (sets === undefined) index.set(name, [set]);
  else if (sets.at(-1) !== set) sets.push(set);
}

const heldNames = ({ names }: DomainSet) => [...names].flatMap(([name, held]) => (held ? [name] : []));

/** `www.uoa.gr`, `uoa.gr`, `gr`. */
function namesAround(host: string): string[] {
  const labels = host.split(".");
  return labels.map((_, at) => labels.slice(at).join("."));
}
