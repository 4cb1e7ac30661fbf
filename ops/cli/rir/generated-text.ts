/** What `nearcrawl rir generate` says on the way and at its end, for people. */
import type { GenerateProgress, RegistryAccount } from "../../generate/generate-registry.ts";
import { type Column, formatTable } from "../output.ts";
import { secondsText } from "./progress-text.ts";

const count = (value: number) => value.toLocaleString("en");
const left = (title: string): Column => ({ title });
const right = (title: string): Column => ({ title, align: "right" });

export function generatingText(
  { file, records, recordsTotal }: GenerateProgress,
  elapsedSeconds: number,
): string {
  const share = Math.min(1, records / recordsTotal);
  const parts = [`writing ${Math.floor(share * 100)} %`, `${count(records)} records`];
  if (elapsedSeconds > 0.5) {
    parts.push(`${count(Math.round(records / elapsedSeconds))}/s`);
    if (share > 0.02) parts.push(`${secondsText((elapsedSeconds * (1 - share)) / share)} left`);
  }
  return [...parts, file].join(" · ");
}

export function generatedText(account: RegistryAccount, folder: string, elapsedSeconds: number): string {
  return [
    filesText(account),
    stateText(account),
    ...(account.changes === null ? [] : [changesText(account)]),
    `${count(account.objects)} network objects in ${folder}, written in ${secondsText(elapsedSeconds)}`,
  ].join("\n\n");
}

/** The columns of `rir check`, so that the two can be held side by side. */
function filesText({ files }: RegistryAccount): string {
  const table = formatTable(
    [
      left("file"),
      left("format"),
      left("registry"),
      ...["MB", "read", "kept", "ignored", "malformed"].map(right),
    ],
    files.map((file) => [
      file.file,
      file.format,
      file.registry,
      (file.textBytes / 1e6).toFixed(1),
      count(file.read),
      count(file.kept),
      count(file.read - file.kept - file.malformed),
      count(file.malformed),
    ]),
  );
  const ignored = files.flatMap(({ file, ignored: reasons }) => {
    const words = Object.entries(reasons).map(([reason, number]) => `${count(number)} ${reason}`);
    return words.length === 0 ? [] : [`  ${file}: ignored ${words.join(", ")}`];
  });
  return ["an import must find:", table, ...ignored].join("\n");
}

function stateText({ state, makeUp }: RegistryAccount): string {
  const { depths, ipv4NotCidr, unary } = makeUp;
  const shares = depths.map((number, at) => `${at + 1}: ${count(number)}`).join(", ");
  return [
    `${count(state.subnets)} subnets (${count(state.ipv4Subnets)} IPv4, ${count(state.ipv6Subnets)} IPv6), at most ${state.deepest} deep; ${count(state.holders)} holders, ${count(state.withoutHolder)} subnets without one; ${count(state.duplicates)} records merged with another of the same range; ${count(state.crossings)} pairs of crossing ranges`,
    `${count(ipv4NotCidr)} IPv4 ranges are no CIDR block, ${count(unary)} ranges are one address; subnets by depth: ${shares}`,
  ].join("\n");
}

function changesText({ generation, changes }: RegistryAccount): string {
  if (changes === null) return "";
  const { added, removed, changed } = changes;
  return `against generation ${generation - 1}: ${count(added)} added, ${count(removed)} removed, ${count(changed)} changed`;
}
