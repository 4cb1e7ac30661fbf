/**
 * Which hosts a crawler or coordinator may have. Each layer is the domain sets that one party states (the operator for a
 * crawler, its partner, the coordinator's own settings), and a host must be in one set of every layer. So parties can only
 * narrow each other's choice. A layer without sets holds everything.
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

/** Maximum sets per party. */
export const mostSets = 16;

/** Sets in order without duplicates, or a message that names the invalid value. */
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

/** Ignores unreadable sets, since stored ones were validated. */
export function partitionOf(...parties: readonly (readonly string[])[]): Partition {
  return parties.map(keptLayer).filter((layer) => layer.length > 0);
}

export function partitionHolds(partition: Partition, host: HostToHold): boolean {
  return partition.every((layer) => someDomainSetHolds(layer, host));
}

export function layerTexts(layer: Layer): string[] {
  return layer.map(domainSetText);
}

/** Why no host can be in both layers, or null. */
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
  /** SQL that is true if the partition holds the host. Never null. */
  readonly condition: string;
  /** Values in parameter order. */
  readonly values: readonly unknown[];
}

/** `host` is an alias with columns host and language. `first` is the first parameter's number. */
export function heldSql(partition: Partition, host: string, first: number): HeldSql {
  const values: unknown[] = [];
  const parameter = (value: unknown) => `$${first + values.push(value) - 1}`;
  const layers = partition.map((layer) => layerCondition(layer, host, parameter));
  return { condition: layers.length === 0 ? "true" : layers.join(" and "), values };
}

/** Maximum names per condition. A statement has at most 65,535 parameters, and each is tried with every host. */
const mostTerms = 1000;

/**
 * True if at least one partition holds the host. False if there are none. If there are too many to be efficient, it is true
 * everywhere, so callers must check the result.
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

/** The longest name decides. Names with the same number of labels exclude each other, so one expression tries them all. */
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

/** Names consist of letters, digits, `-`, `_` and dots. */
function endsWithOneOf(names: readonly string[]): string {
  return `(^|\\.)(${names.map((name) => name.replaceAll(".", "\\.")).join("|")})$`;
}

function isHeldByDefault(terms: ReadonlyMap<string, boolean>): boolean {
  return ![...terms.values()].includes(true);
}

/** Marks where a statement requires an alias's hosts to be held (`withHeldHosts`). */
export const isHeld = (host: string): string => `held_by_domain_sets(${host})`;

/** Replaces `isHeld` in the statement by the partition's condition and parameters. `also` is another condition on an alias. */
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
