/**
 * Which hosts somebody may have: each layer is the domain sets that one party states (the operator for a crawler, its
 * partner, the coordinator's own settings), and a host must be in one set of every layer. So parties narrow each other
 * and nobody widens. A layer without sets holds everything.
 */
import {
  type DomainSet,
  domainSetsOverlap,
  domainSetText,
  type HostToHold,
  parseDomainSet,
  someDomainSetHolds,
} from "./domain-set.ts";

export type Layer = readonly DomainSet[];
export type Partition = readonly Layer[];

/** Sets of one party, at most. */
export const mostSets = 16;

/** The sets in the order given, each once; or what is wrong, in words that name the value. */
export function readLayer(texts: readonly string[]): Layer | string {
  if (texts.length > mostSets) return `${texts.length} domain sets are given: at most ${mostSets}`;
  const sets = new Map<string, DomainSet>();
  for (const text of texts) {
    const set = parseDomainSet(text);
    if (typeof set === "string") return set;
    sets.set(domainSetText(set), set);
  }
  return [...sets.values()];
}

/** What is kept: stored sets were read before, so that what cannot be read counts for nothing. */
export function partitionOf(...parties: readonly (readonly string[])[]): Partition {
  return parties.map(keptLayer).filter((layer) => layer.length > 0);
}

export function partitionHolds(partition: Partition, host: HostToHold): boolean {
  return partition.every((layer) => someDomainSetHolds(layer, host));
}

export function layerTexts(layer: Layer): string[] {
  return layer.map(domainSetText);
}

/** Why nothing at all can be in both layers; null: something can. */
export function nothingInBoth(
  given: Layer,
  other: { readonly layer: Layer; readonly whose: string },
): string | null {
  if (given.length === 0 || other.layer.length === 0) return null;
  const meets = given.some((set) => other.layer.some((one) => domainSetsOverlap(set, one).length > 0));
  if (meets) return null;
  return `${layerTexts(given).join(" or ")} has nothing in common with ${other.whose}: ${layerTexts(other.layer).join(" or ")}`;
}

function keptLayer(texts: readonly string[]): Layer {
  const layer = readLayer(texts.slice(0, mostSets));
  return typeof layer === "string" ? [] : layer;
}

interface HeldSql {
  /** True where the partition holds the host; never null. */
  readonly condition: string;
  /** In the order of their numbers. */
  readonly values: readonly unknown[];
}

/** `host`: the table's alias, with columns host and language; `first`: the number of the first parameter. */
export function heldSql(partition: Partition, host: string, first: number): HeldSql {
  const values: unknown[] = [];
  const parameter = (value: unknown) => `$${first + values.push(value) - 1}`;
  const layers = partition.map((layer) => layerCondition(layer, host, parameter));
  return { condition: layers.length === 0 ? "true" : layers.join(" and "), values };
}

/** Names, or groups of them, in one condition: a statement has 65,535 parameters, and each is tried with every host. */
const mostTerms = 1000;

/**
 * Where one of the partitions at least holds the host; without partitions, nowhere. Of so many that it would cost more
 * than it spares, some may: everywhere. Whoever asks looks at what is found once more.
 */
export function heldByOneSql(partitions: readonly Partition[], host: string, first: number): HeldSql {
  const values: unknown[] = [];
  const conditions: string[] = [];
  for (const partition of partitions) {
    const held = heldSql(partition, host, first + values.length);
    if (values.length + held.values.length > mostTerms)
      return { condition: `${host}.host is not null`, values: [] };
    values.push(...held.values);
    conditions.push(`(${held.condition})`);
  }
  return { condition: conditions.length === 0 ? "false" : `(${conditions.join(" or ")})`, values };
}

type Parameter = (value: unknown) => string;

function layerCondition(layer: Layer, host: string, parameter: Parameter): string {
  const sets = layer.map((set) => `(${setCondition(set, host, parameter)})`);
  return sets.length === 0 ? "true" : `(${sets.join(" or ")})`;
}

function setCondition({ names, languages }: DomainSet, host: string, parameter: Parameter): string {
  return `${nameCondition(names, `${host}.host`, parameter)} and ${languageCondition(languages, `${host}.language`, parameter)}`;
}

/** The longest name decides; names with as many labels shut each other out, so that one expression tries them all. */
function nameCondition(names: DomainSet["names"], column: string, parameter: Parameter): string {
  if (names.size === 0) return "true";
  const byLength = new Map<string, { readonly labels: number; readonly held: boolean; names: string[] }>();
  for (const [name, held] of names) {
    const labels = name.split(".").length;
    const group = byLength.get(`${labels}/${held}`) ?? { labels, held, names: [] };
    group.names.push(name);
    byLength.set(`${labels}/${held}`, group);
  }
  const longestFirst = [...byLength.values()].sort((a, b) => b.labels - a.labels);
  const cases = longestFirst.map(
    (group) => `when ${column} ~ ${parameter(endsWithOneOf(group.names))} then ${group.held}`,
  );
  return `case ${cases.join(" ")} else ${isHeldByDefault(names)} end`;
}

function languageCondition(languages: DomainSet["languages"], column: string, parameter: Parameter): string {
  if (languages.size === 0) return "true";
  const compared = isHeldByDefault(languages) ? "<> all" : "= any";
  return `(${column} is null or ${column} ${compared}(${parameter([...languages.keys()])}::text[]))`;
}

/** Names have letters, digits, `-`, `_` and dots. */
function endsWithOneOf(names: readonly string[]): string {
  return `(^|\\.)(${names.map((name) => name.replaceAll(".", "\\.")).join("|")})$`;
}

function isHeldByDefault(terms: ReadonlyMap<string, boolean>): boolean {
  return ![...terms.values()].includes(true);
}

/** In a statement's text: where the hosts of that alias must be held (`withHeldHosts`). */
export const isHeld = (host: string): string => `held_by_domain_sets(${host})`;

/**
 * The statement with the partition where it says `isHeld`, and the values of its further parameters. `also`: what hosts
 * must be besides, of an alias.
 */
export function withHeldHosts(
  text: string,
  partition: Partition,
  first: number,
  also: (host: string) => string = () => "true",
): { readonly text: string; readonly values: readonly unknown[] } {
  const conditionOf = (_: string, host: string) =>
    `${heldSql(partition, host, first).condition} and ${also(host)}`;
  return {
    text: text.replaceAll(/held_by_domain_sets\((\w+)\)/g, conditionOf),
    values: heldSql(partition, "h", first).values,
  };
}
