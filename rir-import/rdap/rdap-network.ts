/**
 * The "ip network" object of an RDAP answer (RFC 9083 section 5.4), as far as we use it. Strict in what makes it
 * a network (class and range), lenient in the rest: a member of a wrong type counts as absent.
 */
import { z } from "zod";
import { holderOf } from "#coordinator/subnets/holder-name";
import { parseAddress } from "#core/ip/address";
import { type IpRange, rangeBetween } from "#core/ip/range";

export interface RdapHolder {
  readonly handle: string | null;
  readonly name: string | null;
}

export interface RdapNetwork {
  readonly range: IpRange;
  readonly handle: string | null;
  readonly parentHandle: string | null;
  /** The registry's name for the range; may be empty. */
  readonly name: string;
  /** The kind of registration, in the registry's own words: `ALLOCATED PA`, `DIRECT ALLOCATION` … */
  readonly type: string | null;
  /** Upper-case alpha-2, or null. */
  readonly country: string | null;
  readonly status: readonly string[];
  /** Who it is registered to, or null where no registrant is an organisation. */
  readonly holder: RdapHolder | null;
  /** Every registrant, in the order of the answer: maintainers too. */
  readonly registrants: readonly RdapHolder[];
  /** RFC 3339, as stated; null where it is not. */
  readonly lastChanged: string | null;
  /** The WHOIS server of the same registry, or null. */
  readonly port43: string | null;
}

const text = z.string().max(1000).nullable().catch(null).default(null);

const list = <Item extends z.ZodType>(item: Item) =>
  z
    .array(z.unknown())
    .max(1000)
    .catch([])
    .default([])
    .transform((items) => items.flatMap((one) => item.safeParse(one).data ?? []));

const entitySchema = z.object({ handle: text, roles: list(z.string().max(100)), vcardArray: z.unknown() });
const eventSchema = z.object({ eventAction: z.string(), eventDate: z.string().max(40) });

const networkSchema = z.object({
  objectClassName: z.literal("ip network"),
  startAddress: z.string().max(60),
  endAddress: z.string().max(60),
  handle: text,
  parentHandle: text,
  name: text,
  type: text,
  country: text,
  status: list(z.string().max(100)),
  entities: list(entitySchema),
  events: list(eventSchema),
  port43: text,
});

/** The network in an answer, or in words why there is none. */
export function readNetwork(value: unknown): RdapNetwork | string {
  const checked = networkSchema.safeParse(value);
  if (!checked.success) {
    const issue = checked.error.issues[0]!;
    return `the answer is no "ip network": ${issue.path.join(".") || "it"}: ${issue.message}`;
  }
  const { startAddress, endAddress, name, country, entities, events, ...rest } = checked.data;
  const range = rangeOf(startAddress, endAddress);
  if (range === null) return `the answer's range is none: ${startAddress} - ${endAddress}`;
  const { objectClassName: _class, ...plain } = rest;
  return {
    ...plain,
    range,
    name: name ?? "",
    country: /^[A-Za-z]{2}$/.test(country ?? "") ? country!.toUpperCase() : null,
    ...holdersAmong(entities),
    lastChanged: events.find(({ eventAction }) => eventAction === "last changed")?.eventDate ?? null,
  };
}

function rangeOf(start: string, end: string): IpRange | null {
  // Some servers append a prefix length.
  const [first, last] = [start, end].map((address) => parseAddress(address.replace(/\/\d{1,3}$/, "").trim()));
  return first && last ? rangeBetween(first, last) : null;
}

/**
 * RIPE lists the maintainers of a range as registrants besides its organisation: of several, an entity whose card
 * says "org" goes first, and one that identifies no company (subnets/holder-name) is no holder.
 */
function holdersAmong(entities: readonly z.infer<typeof entitySchema>[]) {
  const found = entities
    .filter(({ roles }) => roles.some((role) => role.toLowerCase() === "registrant"))
    .map(({ handle, vcardArray }) => {
      const { kind, name, organisation } = namesInCard(vcardArray);
      return { isOrganisation: kind === "org", holder: { handle, name: organisation ?? name } };
    });
  const companies = found.filter(({ holder }) => isCompany(holder));
  const best = companies.find(({ isOrganisation }) => isOrganisation) ?? companies[0];
  return { holder: best?.holder ?? null, registrants: found.map(({ holder }) => holder) };
}

/** Whether a handle or name identifies anybody does not depend on the registry: any will do. */
function isCompany(holder: RdapHolder): boolean {
  if (holder.handle !== null) return holderOf({ registry: "iana", handle: holder.handle }) !== null;
  return holderOf({ registry: "iana", name: holder.name }) !== null;
}

/**
 * Names out of a jCard (RFC 7095), the address card of RDAP's entities: `["vcard", [[name, parameters, type,
 * value…]…]]`. Lenient: whatever is not of this shape is passed over.
 */
interface CardNames {
  /** `individual`, `org`, `group` …; null where the card does not say. */
  readonly kind: string | null;
  /** The formatted name (`fn`), or null. */
  readonly name: string | null;
  /** The organisation (`org`), its units after it; or null. */
  readonly organisation: string | null;
}

const maxProperties = 1000;
const maxTextLength = 500;

function namesInCard(card: unknown): CardNames {
  const properties = Array.isArray(card) && Array.isArray(card[1]) ? card[1].slice(0, maxProperties) : [];
  return {
    kind: textOf(properties, "kind")?.toLowerCase() ?? null,
    name: textOf(properties, "fn"),
    organisation: textOf(properties, "org"),
  };
}

/** The first value of that name that is not empty; a structured value's parts are joined by commas. */
function textOf(properties: readonly unknown[], name: string): string | null {
  for (const property of properties) {
    if (!Array.isArray(property) || String(property[0]).toLowerCase() !== name) continue;
    const parts = [property[3]].flat().filter((part) => typeof part === "string");
    const text = parts.join(", ").replace(/\s+/g, " ").trim().slice(0, maxTextLength);
    if (text !== "") return text;
  }
  return null;
}
