/**
 * Objects of RIPE's, APNIC's and AFRINIC's databases as text: `inetnum`, `inet6num` and `organisation`, with
 * the spellings that occur in them. Text is Latin-1: one character, one byte.
 */
import { attribute, ipv4Text, paddedIpv4Text } from "#ops/world/registry-text";
import { type RegionalRegistry, regionalRegistries } from "./address-blocks.ts";
import { ipv6Text, lastIpv6Text, prefixLengthOfSpan } from "./address-text.ts";
import { compactDayOf, datesOf, isoDay } from "./dates.ts";
import { isMissing, maintainerName, organisationHandle, personHandle, rpslSources } from "./handles.ts";
import { anonymousNames, companyName, type HolderChoice, sharedNames } from "./holder-choice.ts";
import { draw } from "./path-random.ts";
import { countryOf, townOf } from "./places.ts";
import type { RegistryPlan } from "./registry-plan.ts";
import type { Slot } from "./slot.ts";
import { editsOf } from "./slot-life.ts";
import type { SlotView } from "./slot-view.ts";

/** With the empty line behind it. */
export function rpslNetwork(plan: RegistryPlan, slot: Slot, { name, country, holder }: SlotView): string {
  const { path, kind, block, organisation } = slot;
  const { registry } = plan;
  const isCommented = (draw(path, 111) & 0x1ff) === 0;
  return (
    commentBefore(path) +
    rangeLine(slot) +
    attribute("netname", name) +
    description(holder, path) +
    attribute("country", isCommented ? `${country} # as registered` : country) +
    organisationLine(plan, holder) +
    contactLines(registry, path) +
    attribute("status", statusOf(registry, kind, block.family)) +
    attribute("mnt-by", maintainerName(registry, organisation)) +
    remarksOf(path) +
    dateLines(slot) +
    sourceLine(registry)
  );
}

/** Null for an organisation that is missing from the database. */
export function rpslOrganisation(plan: RegistryPlan, number: number): string | null {
  if (isMissing(plan, "organisation", number)) return null;
  const { registry } = plan;
  const path = draw(number ^ plan.path, 114);
  const { registered, changed } = datesOf(path, 0);
  const maintainer = maintainerName(registry, number);
  return (
    attribute("organisation", organisationHandle(registry, number)) +
    attribute("org-name", companyName(plan.companies + number, path)) +
    attribute("org-type", number === 0 ? "RIR" : "LIR") +
    attribute("country", countryOf(registry, draw(path, 116))) +
    attribute("address", `${1 + (draw(path, 117) % 300)} ${townOf(draw(path, 118))} Road`) +
    attribute("address", townOf(draw(path, 119))) +
    attribute("phone", `+00 555 ${draw(path, 120) % 10_000_000}`) +
    attribute("e-mail", `noc@${townOf(draw(path, 115)).toLowerCase()}.example`) +
    attribute("admin-c", personHandle(registry, draw(path, 110))) +
    attribute("mnt-ref", maintainer) +
    attribute("mnt-by", maintainer) +
    attribute("created", `${isoDay(registered)}T09:00:00Z`) +
    attribute("last-modified", `${isoDay(changed)}T09:00:00Z`) +
    sourceLine(registry)
  );
}

/** `inetnum:        192.0.2.0 - 192.0.2.255`, and the ways in which some objects spell it. */
function rangeLine(slot: Slot): string {
  return slot.block.family === 4 ? ipv4Line(slot) : ipv6Line(slot);
}

function ipv4Line({ span, path }: Slot): string {
  const first = ipv4Text(span.first);
  const last = ipv4Text(span.last);
  switch (draw(path, 121) & 0x3ff) {
    case 0:
      return `inetnum:\t${first}-${last}\n`;
    case 1:
      return `INETNUM:        ${first}  -  ${last}   # see the contract\n`;
    case 2:
      return attribute("inetnum", `${paddedIpv4Text(span.first)} - ${paddedIpv4Text(span.last)}`);
    case 3:
      return attribute("inetnum", span.bits < 0 ? `${first} - ${last}` : `${first}/${32 - span.bits}`);
    default:
      return attribute("inetnum", span.first === span.last ? oneAddress(first, path) : `${first} - ${last}`);
  }
}

/** One address is mostly a range of one, now and then on its own. */
function oneAddress(address: string, path: number): string {
  return (draw(path, 122) & 7) === 0 ? address : `${address} - ${address}`;
}

function ipv6Line(slot: Slot): string {
  const { block, span, isHost, path } = slot;
  const first = ipv6Text(block, span.first);
  if (isHost) return attribute("inet6num", `${first}/128`);
  const prefix = `${first}/${prefixLengthOfSpan(6, span)}`;
  const spelling = draw(path, 121) & 0xff;
  if (spelling === 0) return attribute("inet6num", `${first}1/${prefixLengthOfSpan(6, span)}`);
  if (spelling === 1) return attribute("inet6num", `${first} - ${lastIpv6Text(block, span.last)}`);
  return attribute("inet6num", spelling < 20 ? prefix.toUpperCase() : prefix);
}

/** The holder's name, or for an organisation what the range is for; continued on the next line now and then. */
function description(holder: HolderChoice, path: number): string {
  const name = nameOf(holder, path);
  if (name === null) return "";
  const isContinued = (draw(path, 123) & 0xff) === 0 && name.includes(" ");
  const shown = isContinued ? name.replace(/ (?=[^ ]*$)/, "\n+               ") : name;
  return `${attribute("descr", shown)}${(draw(path, 124) & 3) === 0 ? addressLines(path) : ""}`;
}

const uses = [
  "Infrastructure",
  "Customer links",
  "Hosting",
  "Dial-up pool",
  "Stra\u00dfenbahn-WLAN",
  "DSL pool",
];

function nameOf({ type, number }: HolderChoice, path: number): string | null {
  if (type === "company") return companyName(number, path);
  if (type === "shared-name") return sharedNames[number] as string;
  if (type === "anonymous") return anonymousNames[number] as string;
  return type === "none" ? null : (uses[draw(path, 125) % uses.length] as string);
}

function organisationLine({ registry }: RegistryPlan, { type, number }: HolderChoice): string {
  return type === "organisation" ? attribute("org", organisationHandle(registry, number)) : "";
}

function statusOf(registry: RegionalRegistry, kind: Slot["kind"], family: 4 | 6): string {
  if (kind === "block") return registry === "apnic" ? "ALLOCATED PORTABLE" : "ALLOCATED UNSPECIFIED";
  if (kind === "allocation") {
    if (registry === "apnic") return "ALLOCATED PORTABLE";
    return family === 4 ? "ALLOCATED PA" : "ALLOCATED-BY-RIR";
  }
  if (registry === "apnic") return "ASSIGNED NON-PORTABLE";
  return family === 4 ? "ASSIGNED PA" : "ASSIGNED";
}

function contactLines(registry: RegionalRegistry, path: number): string {
  const person = personHandle(registry, draw(path, 110));
  const isBoth = (draw(path, 112) & 1) === 0;
  const other = isBoth ? person : personHandle(registry, draw(path, 113));
  return attribute("admin-c", person) + attribute("tech-c", other);
}

/** AFRINIC's older objects have `changed:` in place of the dates. */
function dateLines({ path, life, block }: Slot): string {
  const { registered, changed } = datesOf(path, editsOf(life));
  if (block.registry === "afrinic") {
    return attribute("changed", `hostmaster@registry.example ${compactDayOf(changed)}`);
  }
  const seconds = 10 + (path % 50);
  return (
    attribute("created", `${isoDay(registered)}T08:15:${seconds}Z`) +
    attribute("last-modified", `${isoDay(changed)}T10:20:${seconds}Z`)
  );
}

/** The last one, and the empty line that ends the object. */
function sourceLine(registry: RegionalRegistry): string {
  return sourceLines[registry];
}

const sourceLines = Object.fromEntries(
  regionalRegistries.map((registry) => [registry, `${attribute("source", rpslSources[registry])}\n`]),
) as Readonly<Record<RegionalRegistry, string>>;

// What stands in objects beside the facts, and what a reader stumbles over: remarks, long ones with a
// certificate in them (PEM, RFC 7468, as in APNIC's and RIPE's databases), continued lines, comment lines.

/** Comment lines in front of an object, now and then; an object never ends by them. */
function commentBefore(path: number): string {
  const chance = draw(path, 90) & 0x3ff;
  if (chance === 0) return "# inetnum: 10.0.0.0 - 10.255.255.255 is not an object, this is a comment\n";
  return chance === 1 ? `% Tags relating to this object: ${draw(path, 91) % 100}\n` : "";
}

/** None for most objects; a certificate for about one in two thousand. */
function remarksOf(path: number): string {
  const chance = draw(path, 92) & 0x7ff;
  if (chance === 0) return certificateRemarks(path);
  if (chance < 30) return continuedRemark(path);
  if (chance < 450) return abuseRemarks(path);
  return "";
}

/** The address of whoever uses the range, as further description. */
function addressLines(path: number): string {
  const number = 1 + (draw(path, 93) % 400);
  const town = townOf(draw(path, 94));
  const street = attribute("descr", `${number} ${townOf(draw(path, 95))} Street`);
  return `${street}${attribute("descr", `${10_000 + (draw(path, 96) % 89_999)} ${town}`)}`;
}

const ruler = attribute("remarks", "-".repeat(46));

function abuseRemarks(path: number): string {
  const domain = `${townOf(draw(path, 97)).toLowerCase()}.example`;
  return `${ruler}${attribute("remarks", `Send abuse reports to abuse@${domain}`)}${ruler}`;
}

/** Continued by spaces, a tab and a plus sign (RFC 2622 section 2). */
function continuedRemark(path: number): string {
  const ticket = draw(path, 98) % 1_000_000;
  return `${attribute("remarks", `peering: see ticket ${ticket}`)}                inetnum: quoted within a remark\n\tcountry: ZZ\n+\n+               end of the quotation\n`;
}

const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

function certificateRemarks(path: number): string {
  const lines = Array.from({ length: 18 }, (_, line) => base64Line(draw(path, 100 + line)));
  const body = ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----"];
  const isContinued = (draw(path, 99) & 1) === 0;
  if (!isContinued) return body.map((line) => attribute("remarks", line)).join("");
  return `${attribute("remarks", body[0] as string)}${body
    .slice(1)
    .map((line) => `                ${line}\n`)
    .join("")}`;
}

function base64Line(path: number): string {
  return Array.from({ length: 64 }, (_, at) => base64[draw(path, at) & 63]).join("");
}
