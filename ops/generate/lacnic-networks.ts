/**
 * LACNIC's dialect: IPv4 and IPv6 under `inetnum:`, blocks without their trailing zero octets, the owner's
 * name and id in the object itself, `inetnum-up:` for what it lies in. Latin-1: one character, one byte.
 */
import { ipv6Text, prefixLengthOfSpan, shortBlockText } from "./address-text.ts";
import { anonymousNames, companyName, sharedNames } from "./company-names.ts";
import { compactDayOf, datesOf } from "./dates.ts";
import { organisationHandle } from "./handles.ts";
import type { HolderChoice } from "./holder-choice.ts";
import { draw } from "./path-random.ts";
import { townOf } from "./places.ts";
import type { RegistryPlan } from "./registry-plan.ts";
import { attribute } from "./rpsl-attributes.ts";
import type { Slot } from "./slot.ts";
import { editsOf } from "./slot-life.ts";
import type { SlotView } from "./slot-view.ts";

const towns = ["S\u00e3o Jos\u00e9", "Bogot\u00e1", "Asunci\u00f3n", "Vi\u00f1a Nova", "Bel\u00e9m"];
const areas = ["Opera\u00e7\u00f5es", "Servi\u00e7os", "Telecomunica\u00e7\u00f5es", "Educaci\u00f3n"];

/** With the empty line behind it. */
export function lacnicNetwork(plan: RegistryPlan, slot: Slot, { country, holder }: SlotView): string {
  const { path, kind, life } = slot;
  const { registered, changed } = datesOf(path, editsOf(life));
  const person = personLetters[draw(path, 131) % personLetters.length] as string;
  const isAssigned = kind === "assignment" || kind === "crossing";
  return (
    attribute("inetnum", blockText(slot)) +
    attribute("status", isAssigned ? "reallocated" : "allocated") +
    attribute("aut-num", "N/A") +
    ownerLines(plan, holder, path) +
    attribute("responsible", `${townOf(draw(path, 132))} NOC`) +
    attribute("address", `Rua ${townOf(draw(path, 133))}, ${1 + (draw(path, 134) % 900)}, `) +
    attribute(
      "address",
      `${10_000 + (draw(path, 135) % 80_000)} - ${towns[draw(path, 136) % towns.length]}`,
    ) +
    attribute("country", country) +
    attribute("phone", `+00 555 ${draw(path, 137) % 10_000_000} []`) +
    attribute("owner-c", person) +
    attribute("tech-c", person) +
    attribute("abuse-c", person) +
    (isAssigned ? attribute("inetnum-up", upText(slot)) : "") +
    attribute("created", compactDayOf(registered)) +
    attribute("changed", compactDayOf(changed)) +
    sourceLine
  );
}

const sourceLine = `${attribute("source", "LACNIC")}\n`;
const personLetters = Array.from({ length: 17_576 }, (_, at) =>
  String.fromCharCode(65 + Math.floor(at / 676), 65 + (Math.floor(at / 26) % 26), 65 + (at % 26)),
);

function ownerLines(plan: RegistryPlan, holder: HolderChoice, path: number): string {
  const { type, number } = holder;
  if (type !== "organisation") return attribute("owner", nameWithoutId(holder, path));
  const company = companyName(plan.companies + number, 0);
  const name = number % 3 === 0 ? `${areas[number % areas.length]} ${company}` : company;
  return `${attribute("owner", name)}${attribute("ownerid", organisationHandle("lacnic", number))}`;
}

function nameWithoutId({ type, number }: HolderChoice, path: number): string {
  if (type === "company") return companyName(number, path);
  if (type === "shared-name") return sharedNames[number] as string;
  return anonymousNames[number % anonymousNames.length] as string;
}

function blockText({ block, span, isHost }: Slot): string {
  if (block.family === 4) return shortBlockText(span.first, 32 - span.bits);
  return `${ipv6Text(block, span.first)}/${isHost ? 128 : prefixLengthOfSpan(6, span)}`;
}

/** The /16 or /32 around it: LACNIC names the block that was divided. */
function upText({ block, span }: Slot): string {
  if (block.family === 4) return shortBlockText(span.first - (span.first % 65_536), 16);
  return `${ipv6Text(block, span.first - (span.first % 2 ** 32))}/32`;
}

/** An autonomous system, which LACNIC keeps in the same file; `owner` stands there too. */
export function lacnicAutNum(number: number): string {
  return (
    attribute("aut-num", `AS${260_000 + number}`) +
    attribute("owner", companyName(number, 0)) +
    attribute("country", "BR") +
    attribute("created", "20150304") +
    sourceLine
  );
}
