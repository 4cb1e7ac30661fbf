/** The answers of `nearcrawl rir` for people. */
import type { SourceCheck } from "#rir-import/check";
import type { LookUp } from "#rir-import/lookup";
import { type Column, formatTable } from "../output.ts";
import { filesText } from "./files-text.ts";
import { secondsText } from "./progress-text.ts";

const count = (value: number) => value.toLocaleString("en");
const left = (title: string): Column => ({ title });

export function checkText({ files, state, seconds }: SourceCheck): string {
  return [filesText(files), stateText(state), `read in ${secondsText(seconds)}`].join("\n\n");
}

export function lookUpText({ asked, chain, crossing }: LookUp): string {
  if (chain.length === 0) return `nothing in the tree holds ${asked}`;
  const table = (subnets: LookUp["chain"]) =>
    formatTable(
      [left("range"), left("registry"), left("country"), left("name"), left("holder"), left("delegated to")],
      subnets.map((subnet, depth) => [
        `${"  ".repeat(Math.min(depth, 20))}${subnet.range}`,
        subnet.registry,
        subnet.country ?? "",
        shortened(subnet.name, 40),
        shortened([subnet.holder, subnet.handle && `(${subnet.handle})`].filter(Boolean).join(" "), 50),
        subnet.delegatedTo ?? "",
      ]),
    );
  const others = crossing.length === 0 ? [] : [`crossing it:\n${table(crossing)}`];
  return [`${asked} lies in`, table(chain), ...others].join("\n");
}

export function stateText(state: SourceCheck["state"]): string {
  const lines = [
    `${count(state.subnets)} subnets (${count(state.ipv4Subnets)} IPv4, ${count(state.ipv6Subnets)} IPv6), at most ${state.deepest} deep; ${count(state.holders)} holders, ${count(state.withoutHolder)} subnets without one; ${count(state.duplicates)} records merged with another of the same range`,
  ];
  if (state.crossings > 0) lines.push(`${count(state.crossings)} crossing ranges, kept both:`);
  lines.push(...state.crossingSamples.slice(0, 10).map(({ earlier, later }) => `  ${earlier} × ${later}`));
  return lines.join("\n");
}

export function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
