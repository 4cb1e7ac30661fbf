/**
 * ARIN's bulk data as XML elements: nets, of one net block or two, organisations, customers, and the points
 * of contact and autonomous systems that lie between them. Zero-padded octets; both spellings of the prefix
 * length; the holder of a simple reassignment is a customer, who names its parent organisation.
 */
import { ipv4Text, ipv6Text, lastIpv6Text, paddedIpv4Text, prefixLengthOfSpan } from "./address-text.ts";
import { companyName } from "./company-names.ts";
import { changedOn, registeredOn } from "./dates.ts";
import { customerHandle, isMissing, organisationHandle } from "./handles.ts";
import { draw } from "./path-random.ts";
import { countryOf, townOf } from "./places.ts";
import type { RegistryPlan } from "./registry-plan.ts";
import type { Slot, SlotKind, Span } from "./slot.ts";
import type { SlotView } from "./slot-view.ts";
import { element, netBlockText } from "./xml-text.ts";

export function arinNet(_plan: RegistryPlan, slot: Slot, { name, holder }: SlotView): string {
  const { path, span, secondSpan, block } = slot;
  const owner =
    holder.type === "customer"
      ? `<customerHandle>${customerHandle(holder.number)}</customerHandle>`
      : `<orgHandle>${organisationHandle("arin", holder.number)}</orgHandle>`;
  const handle = netHandle(slot);
  const blocks = `${blockText(slot, span)}${secondSpan === null ? "" : blockText(slot, secondSpan)}`;
  const dates = `<registrationDate>${registeredOn(path)}T00:00:00-04:00</registrationDate>\n  <startAddress>${startOf(slot, span)}</startAddress>\n  <updateDate>${changedOn(path)}T15:53:35-04:00</updateDate>`;
  return `<net>\n  <endAddress>${endOf(slot, secondSpan ?? span)}</endAddress>\n  <handle>${handle}</handle>\n  <name>${name}</name>\n  <netBlocks>${blocks}</netBlocks>\n  <pocLinks/>\n  ${owner}\n  <parentNetHandle>NET-${handle.split("-", 2)[1]}-0-0-0-0</parentNetHandle>\n${commentOf(path)}  ${dates}\n  <version>${block.family}</version>\n</net>\n`;
}

/** `NET-8-0-144-0-1`, `NET6-2600-12-1`. */
function netHandle({ block, span }: Slot): string {
  if (block.family === 4) return `NET-${ipv4Text(span.first).replaceAll(".", "-")}-1`;
  return `NET6-${ipv6Text(block, span.first).toUpperCase().replace(/:+/g, "-")}1`;
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
  return `<asn>\n  ${element("endAsNumber", String(number))}\n  ${element("handle", `AS${number}`)}\n  ${element("name", `AS-${number}`)}\n  ${element("startAsNumber", String(number))}\n</asn>\n`;
}

export function arinPoc(number: number): string {
  return `<poc>\n  ${element("handle", `NOC${number}-ARIN`)}\n  ${element("isRoleAccount", "Y")}\n  ${element("lastName", "Network Operations & Abuse <NOC>")}\n</poc>\n`;
}

function holderElement(
  plan: RegistryPlan,
  holder: { readonly tag: "org" | "customer"; readonly handle: string; readonly number: number },
): string {
  const { tag, handle, number } = holder;
  const isCustomer = tag === "customer";
  const path = draw(number ^ plan.path, isCustomer ? 140 : 141);
  const country = countryOf("arin", draw(path, 142) % 97 === 0 ? draw(path, 143) : 0);
  const name = companyName(plan.companies + number + (isCustomer ? plan.organisations : 0), path);
  const isWithRemark = number % 50 === 7;
  const title = isWithRemark ? `${name} d/b/a R&D <Holdings>` : name;
  const parent = isCustomer
    ? `  ${element("parentOrgHandle", organisationHandle("arin", draw(path, 144) % plan.organisations))}\n`
    : "";
  return `<${tag}>\n  ${element("city", townOf(draw(path, 145)))}\n  <iso3166-1><code2>${country}</code2><code3>${country}A</code3>${element("name", country)}</iso3166-1>\n  ${element("handle", handle)}\n  ${element("name", title)}\n${parent}  ${element("postalCode", String(10_000 + (draw(path, 146) % 89_999)))}\n  ${element("registrationDate", `${registeredOn(path)}T00:00:00-05:00`)}\n  <streetAddress><line number="1">${1 + (draw(path, 147) % 9000)} ${townOf(draw(path, 148))} Avenue</line></streetAddress>\n  ${element("updateDate", `${changedOn(path)}T00:00:00-05:00`)}\n</${tag}>\n`;
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
