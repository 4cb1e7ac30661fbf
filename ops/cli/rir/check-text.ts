/** What `nearcrawl rir check` says to people: the files, and the tree that they make. */
import type { SourceCheck } from "#rir-import/check";
import { filesText } from "./files-text.ts";
import { secondsText } from "./progress-text.ts";

const crossingsShown = 10;
const count = (value: number) => value.toLocaleString("en");

export function checkText({ files, state, seconds }: SourceCheck): string {
  return [filesText(files), stateText(state), `read in ${secondsText(seconds)}`].join("\n\n");
}

export function stateText(state: SourceCheck["state"]): string {
  const lines = [
    `${count(state.subnets)} subnets (${count(state.ipv4Subnets)} IPv4, ${count(state.ipv6Subnets)} IPv6), at most ${state.deepest} deep; ${count(state.holders)} holders, ${count(state.withoutHolder)} subnets without one; ${count(state.duplicates)} records merged with another of the same range`,
  ];
  if (state.crossings > 0) lines.push(`${count(state.crossings)} pairs of crossing ranges, kept both:`);
  const shown = state.crossingSamples.slice(0, crossingsShown);
  lines.push(...shown.map(({ earlier, later }) => `  ${earlier} × ${later}`));
  if (state.crossings > shown.length) lines.push("  and more: --json lists up to a thousand");
  return lines.join("\n");
}
