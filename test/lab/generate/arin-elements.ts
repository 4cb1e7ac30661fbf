/**
 * ARIN's bulk data as XML elements: nets, of one net block or two, organisations, customers, and the points
 * of contact and autonomous systems that lie between them. Zero-padded octets; both spellings of the prefix
 * length; the holder of a simple reassignment is a customer, who names its parent organisation.
 */
import { element, netBlockText, paddedIpv4Text } from "#ops/world/registry-text";
import { dashedIpv4Text, ipv6Text, lastIpv6Text, prefixLengthOfSpan } from "./address-text.ts";
import { datesOf, isoDay } from "./dates.ts";
import { customerHandle, isMissing, organisationHandle } from "./handles.ts";
import { companyName, type HolderChoice } from "./holder-choice.ts";
import { draw } from "./path-random.ts";
import { countryOf, townOf } from "./places.ts";
import type { RegistryPlan } from "./registry-plan.ts";
import type { Slot, SlotKind, Span } from "./slot.ts";
import { editsOf } from "./slot-life.ts";
import type { SlotView } from "./slot-view.ts";

export function arinNet(_plan: RegistryPlan, slot: Slot, { name, holder }: SlotView): string {
  const { path, life, span, secondSpan, block } = slot;
  const { registered, changed } = datesOf(path, editsOf(life));
  return `<net>
  <endAddress>${endOf(slot, secondSpan ?? span)}</endAddress>
  <handle>${netHandle(slot)}</handle>
  <name>${name}</name>
  <netBlocks>${blockText(slot, span)}${secondSpan === null ? "" : blockText(slot, secondSpan)}</netBlocks>
  <pocLinks/>
  ${holderReference(holder)}
  <parentNetHandle>${blockHandle(slot)}</parentNetHandle>
${commentOf(path)}  <registrationDate>${isoDay(registered)}T00:00:00-04:00</registrationDate>
  <startAddress>${startOf(slot, span)}</startAddress>
  <updateDate>${isoDay(changed)}T15:53:35-04:00</updateDate>
  <version>${block.family}</version>
</net>
`;
}

/** Null for one that is missing. */
export function arinOrganisation(plan: RegistryPlan, number: number): string | null {
  if (isMissing(plan, "organisation", number)) return null;
  return holderElement(plan, { tag: "org", handle: organisationHandle("arin", number), number });
}

/** Null for one that is missing. */
export function arinCustomer(plan: RegistryPlan, number: number): string | null {
  if (isMissing(plan, "customer", number)) return null;
  return holderElement(plan, { tag: "customer", handle: customerHandle(number), number });
}

export function arinAsn(number: number): string {
  return `<asn>
  <endAsNumber>${number}</endAsNumber>
  <handle>AS${number}</handle>
  <name>AS-${number}</name>
  <startAsNumber>${number}</startAsNumber>
</asn>
`;
}

export function arinPoc(number: number): string {
  return `<poc>
  <handle>NOC${number}-ARIN</handle>
  <isRoleAccount>Y</isRoleAccount>
  ${element("lastName", "Network Operations & Abuse <NOC>")}
</poc>
`;
}

interface HolderToWrite {
  readonly tag: "org" | "customer";
  readonly handle: string;
  readonly number: number;
}

function holderElement(plan: RegistryPlan, { tag, handle, number }: HolderToWrite): string {
  const isCustomer = tag === "customer";
  const path = draw(number ^ plan.path, isCustomer ? 140 : 141);
  const { registered, changed } = datesOf(path, 0);
  const country = countryOf("arin", draw(path, 142) % 97 === 0 ? draw(path, 143) : 0);
  const parent = organisationHandle("arin", draw(path, 144) % plan.organisations);
  return `<${tag}>
  <city>${townOf(draw(path, 145))}</city>
  <iso3166-1><code2>${country}</code2><code3>${country}A</code3><name>${country}</name></iso3166-1>
  <handle>${handle}</handle>
  ${element("name", holderName(plan, { tag, handle, number }, path))}
${isCustomer ? `  <parentOrgHandle>${parent}</parentOrgHandle>\n` : ""}  <postalCode>${10_000 + (draw(path, 146) % 89_999)}</postalCode>
  <registrationDate>${isoDay(registered)}T00:00:00-05:00</registrationDate>
  <streetAddress><line number="1">${1 + (draw(path, 147) % 9000)} ${townOf(draw(path, 148))} Avenue</line></streetAddress>
  <updateDate>${isoDay(changed)}T00:00:00-05:00</updateDate>
</${tag}>
`;
}

/** One in fifty has something to escape. */
function holderName(plan: RegistryPlan, { tag, number }: HolderToWrite, path: number): string {
  const first = plan.companies + (tag === "customer" ? plan.organisations : 0);
  const name = companyName(first + number, path);
  return number % 50 === 7 ? `${name} d/b/a R&D <Holdings>` : name;
}

function holderReference({ type, number }: HolderChoice): string {
  if (type === "customer") return `<customerHandle>${customerHandle(number)}</customerHandle>`;
  return `<orgHandle>${organisationHandle("arin", number)}</orgHandle>`;
}

/** `NET-8-0-144-0-1`, `NET6-2600-12-1`. */
function netHandle({ block, span }: Slot): string {
  if (block.family === 4) return `NET-${dashedIpv4Text(span.first)}-1`;
  return `NET6-${ipv6Text(block, span.first).toUpperCase().replace(/:+/g, "-")}1`;
}

/** Of the block that ARIN has from IANA. */
function blockHandle({ block }: Slot): string {
  return block.family === 4
    ? `NET-${dashedIpv4Text(block.top)}-1`
    : `NET6-${(block.top >>> 16).toString(16)}-1`;
}

const netTypes: Readonly<Record<SlotKind, readonly string[]>> = {
  block: ["DA"],
  allocation: ["DA", "DS", "A"],
  assignment: ["S", "S", "A", "AV"],
  crossing: ["S"],
};

function blockText(slot: Slot, span: Span): string {
  const { path, kind, block, isHost } = slot;
  const types = netTypes[kind];
  return netBlockText({
    startAddress: startOf(slot, span),
    endAddress: endOf(slot, span),
    prefixLength: isHost ? 128 : prefixLengthOfSpan(block.family, span),
    lengthName: (draw(path, 149) & 1) === 0 ? "cidrLength" : "cidrLenth",
    type: types[draw(path, 150) % types.length] as string,
  });
}

function startOf({ block }: Slot, span: Span): string {
  return block.family === 4 ? paddedIpv4Text(span.first) : ipv6Text(block, span.first).toUpperCase();
}

function endOf({ block, isHost }: Slot, span: Span): string {
  if (block.family === 4) return paddedIpv4Text(span.last);
  return (isHost ? ipv6Text(block, span.first) : lastIpv6Text(block, span.last)).toUpperCase();
}

/** Now and then with markup inside that ends no element. */
function commentOf(path: number): string {
  const chance = draw(path, 151) & 0x7ff;
  if (chance === 0)
    return '  <comment><line number="0"><![CDATA[see </net> & <net> in the manual]]></line></comment>\n';
  if (chance === 1) return "  <!-- </net> was here -->\n";
  return chance < 60
    ? `  <comment><line number="0">Addresses in use by ${townOf(draw(path, 152))} &amp; around</line></comment>\n`
    : "";
}
