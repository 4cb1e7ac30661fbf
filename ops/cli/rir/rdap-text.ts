/** The answer of `rir rdap` for people and for programs. */
import { formatRange } from "#core/ip/range";
import type { LookUp } from "#rir-import/lookup";
import type { RdapAnswer } from "#rir-import/rdap/ask-registry";
import { formatTable } from "../output.ts";
import { printable } from "../printable.ts";

type Found = Extract<RdapAnswer, { type: "found" }>;

/** Ranges as text, in place of numbers and bigints. */
export function rdapJson(answer: RdapAnswer): Readonly<Record<string, unknown>> {
  if (answer.type !== "found") return answer;
  const { network, record } = answer;
  const range = formatRange(network.range);
  return { ...answer, network: { ...network, range }, record: { ...record, range } };
}

export function rdapText(asked: string, answer: RdapAnswer, ours: LookUp | null): string {
  const theirs = answer.type === "found" ? foundText(asked, answer) : otherText(asked, answer);
  return ours === null ? theirs : `${theirs}\n\n${comparedText(answer, ours)}`;
}

function otherText(asked: string, answer: Exclude<RdapAnswer, Found>): string {
  if (answer.type === "no server") return `no registry answers for ${asked} (IANA's list of RDAP servers)`;
  if (answer.type === "not registered") return `nothing is registered for ${asked} (${answer.url})`;
  if (answer.type === "failed") return `${answer.url}: ${printable(answer.reason)}`;
  const wait = answer.seconds === null ? "come back later" : `come back in ${answer.seconds} seconds`;
  return `${answer.url}: too many requests; it asks to ${wait}`;
}

function foundText(asked: string, { network, registry, url }: Found): string {
  const { holder, country, name, handle, parentHandle, type, status, lastChanged } = network;
  const lines = {
    range: formatRange(network.range),
    registry: registry ?? "",
    holder: [holder?.name, holder?.handle && `(${holder.handle})`].filter(Boolean).join(" "),
    country: country ?? "",
    name,
    handle: [handle, parentHandle && `in ${parentHandle}`].filter(Boolean).join(" "),
    kind: [type, status.join(", ")].filter(Boolean).join("; "),
    "last changed": lastChanged ?? "",
    from: url,
  };
  const shown = Object.entries(lines).filter(([, value]) => value !== "");
  return [
    `${asked} is registered as`,
    ...shown.map(([key, value]) => `  ${key.padEnd(13)}${printable(value)}`),
  ].join("\n");
}

function comparedText(answer: RdapAnswer, ours: LookUp): string {
  const subnet = ours.chain.at(-1);
  if (subnet === undefined) return `our tree has nothing for ${ours.asked}`;
  if (answer.type !== "found") return `our tree: ${subnet.range}, ${subnet.holder ?? "no holder"}`;
  const { network, registry } = answer;
  const rows = [
    ["range", formatRange(network.range), subnet.range],
    ["registry", registry ?? "", subnet.registry],
    ["holder", network.holder?.name ?? "", subnet.holder ?? ""],
    ["handle", network.holder?.handle ?? "", subnet.handle ?? ""],
    ["country", network.country ?? "", subnet.country ?? ""],
    ["name", network.name, subnet.name],
  ].map((cells) => cells.map((cell) => printable(cell, 60)));
  return formatTable(
    [{ title: "" }, { title: "the registry" }, { title: "our tree" }, { title: "" }],
    rows.map(([key, theirs, own]) => [key!, theirs!, own!, theirs === own ? "" : "differs"]),
  );
}
