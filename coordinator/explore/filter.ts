/** Which subnets are meant: what a page's address, a form or a command's options say, checked. */
import { parseRange } from "#core/ip/range";
import { type Registry, registries } from "../subnets/subnet.ts";

/**
 * delegated: by a decision of its own. inherited: by that of a less specific subnet. waiting: it has no delegation of
 * its own, and hosts with pages that are due. none: nobody crawls it. anycast: it answers from many places. finer:
 * hosts or parts of it are delegated apart.
 */
export const subnetStates = ["delegated", "inherited", "waiting", "none", "anycast", "finer"] as const;
export type SubnetState = (typeof subnetStates)[number];

export interface SubnetFilter {
  readonly crawler: string | null;
  readonly registry: Registry | null;
  readonly country: string | null;
  /** A handle, or a name in full. */
  readonly holder: string | null;
  readonly state: SubnetState | null;
  readonly minRttMs: number | null;
  readonly maxRttMs: number | null;
  readonly minPagesPerDay: number | null;
  readonly olderThanDays: number | null;
  /** Sizes as prefix lengths; a range that is no CIDR block counts with the next smaller one. */
  readonly minPrefix: number | null;
  readonly maxPrefix: number | null;
}

/** By the names that addresses, forms and options use; every one but `family` and `at`. */
export const filterNames = [
  "crawler",
  "registry",
  "country",
  "holder",
  "state",
  "minRttMs",
  "maxRttMs",
  "minLoad",
  "olderThanDays",
  "minPrefix",
  "maxPrefix",
] as const;
export type FilterName = (typeof filterNames)[number];

const longestText = 200;

/** A string: why this is no filter, in words. */
export function readFilter(given: (name: FilterName) => string): SubnetFilter | string {
  const faults: string[] = [];
  const text = (name: FilterName) => {
    const value = given(name).trim();
    if (value.length > longestText) faults.push(`${name} is longer than ${longestText} characters`);
    return value === "" ? null : value;
  };
  const number = (name: FilterName, most: number, whole = false) => {
    const value = text(name);
    if (value === null) return null;
    const parsed = /^\d{1,9}(\.\d{1,6})?$/.test(value) ? Number(value) : Number.NaN;
    if (parsed <= most && (!whole || Number.isInteger(parsed))) return parsed;
    faults.push(`${name}: ${value} is not a ${whole ? "whole " : ""}number from 0 to ${most}`);
    return null;
  };
  const oneOf = <Value extends string>(name: FilterName, values: readonly Value[]): Value | null => {
    const value = text(name);
    if (value === null) return null;
    if (!values.includes(value as Value)) faults.push(`${name}: ${value} is not one of ${values.join(", ")}`);
    return value as Value;
  };
  const filter: SubnetFilter = {
    crawler: text("crawler"),
    registry: oneOf("registry", registries),
    country: text("country")?.toUpperCase() ?? null,
    holder: text("holder"),
    state: oneOf("state", subnetStates),
    minRttMs: number("minRttMs", 100_000),
    maxRttMs: number("maxRttMs", 100_000),
    minPagesPerDay: number("minLoad", 999_999_999),
    olderThanDays: number("olderThanDays", 36_500),
    minPrefix: number("minPrefix", 128, true),
    maxPrefix: number("maxPrefix", 128, true),
  };
  if (filter.country !== null && !/^[A-Z]{2}$/.test(filter.country))
    faults.push(`country: ${filter.country} is not a country code of two letters`);
  return faults.length === 0 ? filter : `${faults.join("; ")}.`;
}

export const noFilter: SubnetFilter = {
  crawler: null,
  registry: null,
  country: null,
  holder: null,
  state: null,
  minRttMs: null,
  maxRttMs: null,
  minPagesPerDay: null,
  olderThanDays: null,
  minPrefix: null,
  maxPrefix: null,
};

export const isEmptyFilter = (filter: SubnetFilter): boolean =>
  Object.values(filter).every((value) => value === null);

/** As it stands in an address; null where nothing is asked. */
export function filterQuery(filter: SubnetFilter): Readonly<Record<FilterName, string | number | null>> {
  const { minPagesPerDay, ...rest } = filter;
  return { ...rest, minLoad: minPagesPerDay };
}

/** The same filter always has the same text. */
export const filterKey = (filter: SubnetFilter): string => JSON.stringify(Object.values(filter));

/** A range as people give it: `IPv4` and `IPv6` whole by their names. */
export function readPlace(text: string): ReturnType<typeof parseRange> {
  const asked = text.trim().toLowerCase();
  if (asked.length > 100) return null;
  if (asked === "" || asked === "ipv4") return parseRange("0.0.0.0/0");
  return asked === "ipv6" ? parseRange("::/0") : parseRange(asked);
}
