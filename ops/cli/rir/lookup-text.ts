/** A look-up for people: the ranges from the least to the most specific, each under the one that holds it. */
import type { FoundSubnet, LookUp } from "#rir-import/lookup";
import { type Column, formatTable } from "../output.ts";
import { printable } from "../printable.ts";

const deepestIndent = 20;

export function lookUpText({ asked, chain, crossing }: LookUp): string {
  if (chain.length === 0) return `nothing in the tree holds ${asked}`;
  const others = crossing.length === 0 ? [] : [`crossing it:\n${subnetTable(crossing, false)}`];
  return [`${asked} lies in`, subnetTable(chain, true), ...others].join("\n");
}

function subnetTable(subnets: readonly FoundSubnet[], indented: boolean): string {
  const isFromDatabase = subnets.some(({ subnetId }) => subnetId !== null);
  const delegated: readonly Column[] = isFromDatabase ? [{ title: "delegated to" }] : [];
  return formatTable(
    [...["range", "registry", "country", "name", "holder"].map((title) => ({ title })), ...delegated],
    subnets.map((subnet, depth) => [
      `${indented ? "  ".repeat(Math.min(depth, deepestIndent)) : ""}${subnet.range}`,
      subnet.registry,
      subnet.country ?? "",
      printable(subnet.name, 40),
      holderText(subnet),
      ...(isFromDatabase ? [printable(subnet.delegatedTo ?? "", 40)] : []),
    ]),
  );
}

function holderText({ holder, handle }: FoundSubnet): string {
  if (holder === null) return "";
  return handle === null || handle === holder
    ? printable(holder, 60)
    : `${printable(holder, 50)} (${printable(handle, 30)})`;
}
