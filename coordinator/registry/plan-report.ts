/**
 * What an import would change, as sections of a page: for the page of a plan, and for the file that
 * `nearcrawl rir plan --page` writes. The two differ in what a range or a registry leads to, and nothing else.
 */
import type { Difference, SubnetWords } from "#rir-import/database/differences";
import type { ImportPlan } from "#rir-import/plan";
import type { Shrinkage } from "#rir-import/shrinkage";
import { countText, percentText } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { planFiles } from "./plan-files.ts";

export interface PlanLinks {
  range(range: string): Html;
  registry(name: string): Html;
  country(code: string): Html;
}

/** For a page that leads nowhere. */
export const plainLinks: PlanLinks = {
  range: (range) => html`<span class="mono">${range}</span>`,
  registry: (name) => html`${name}`,
  country: (code) => html`${code}`,
};

const listed = 200;
const countriesShown = 12;

export function planReport(plan: ImportPlan, links: PlanLinks): Html {
  return html`${planTiles(plan)}
${registrySection(plan, links)}
${largestSection(plan, links)}
${delegationSection(plan, links)}
${countrySection(plan, links)}
${holderSection(plan)}
${crossingSection(plan, links)}
${planFiles(plan.files)}`;
}

function planTiles({ changes, holders, delegations, state }: ImportPlan): Html {
  const { added, returned, removed, changed, moved, unchanged } = changes;
  return html`<dl class="tiles">
${tile("Added", added + returned, returned === 0 ? "subnets" : `${countText(returned)} of them were there before`)}
${tile("Removed", removed, "subnets")}
${tile("Changed", changed, "in holder, country, registry or name")}
${tile("Moved", moved, "only to another place in the tree")}
${tile("Unchanged", unchanged, `of ${countText(state.subnets)} subnets afterwards`)}
${tile("Holders", holders.added, `new; ${countText(holders.gone)} gone, ${countText(holders.renamed)} renamed`)}
${tile("Delegations kept", delegations.kept, delegations.returned === 0 ? "as they are" : `and ${countText(delegations.returned)} that return`)}
${tile("Delegations lost", delegations.lost, `${countText(delegations.inherited)} pass to the subnet above`)}
</dl>`;
}

function tile(name: string, count: number, words: string): Html {
  return html`<div class="tile"><dt>${name}</dt><dd><span class="figure">${countText(count)}</span><span class="small">${words}</span></dd></div>`;
}

/** Null: no registry loses suspiciously much. */
export function shrinkageWarning(shrunk: readonly Shrinkage[]): Html | null {
  if (shrunk.length === 0) return null;
  const items = shrunk.map(
    ({ registry, lostSubnetsShare, lostIpv4Share, lostIpv6Share }) =>
      html`<li><strong>${registry}</strong> would lose ${percentText(lostSubnetsShare)} of its subnets, ${percentText(lostIpv4Share)} of its IPv4 and ${percentText(lostIpv6Share)} of its IPv6 addresses.</li>`,
  );
  return html`<div class="warning" role="note"><p><strong>Suspicious shrinkage.</strong> A quarter’s honest changes are smaller; mostly a file is incomplete or missing.</p><ul>${items}</ul></div>`;
}

function registrySection({ registries, generation }: ImportPlan, links: PlanLinks): Html {
  const rows = registries.map(
    ({ registry, before, after, added, removed, changed, moved }) => html`<tr>
<th scope="row">${links.registry(registry)}</th>
<td class="number">${countText(before?.subnets ?? 0)}</td><td class="number">${countText(after?.subnets ?? 0)}</td>
<td class="number">${countText(added)}</td><td class="number">${countText(removed)}</td>
<td class="number">${countText(changed)}</td><td class="number">${countText(moved)}</td>
<td class="number">${change(before?.ipv4Addresses, after?.ipv4Addresses)}</td>
<td class="number">${change(before?.ipv6Slash48s, after?.ipv6Slash48s)}</td></tr>`,
  );
  return html`<section><h2>By registry</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Changes by registry"><table><thead><tr>
<th scope="col">Registry</th><th scope="col" class="number">${generation === null ? "Now" : `In generation ${generation}`}</th><th scope="col" class="number">Afterwards</th>
<th scope="col" class="number">Added</th><th scope="col" class="number">Removed</th><th scope="col" class="number">Changed</th><th scope="col" class="number">Moved</th>
<th scope="col" class="number">IPv4 addresses</th><th scope="col" class="number">IPv6 /48s</th></tr></thead><tbody>${rows}</tbody></table></div></section>`;
}

/** "+1,024", "−256", "±0": how many more or fewer there are. */
function change(before = 0, after = 0): string {
  const difference = after - before;
  if (difference === 0) return "±0";
  return `${difference > 0 ? "+" : "−"}${countText(Math.abs(difference))}`;
}

function largestSection({ largest }: ImportPlan, links: PlanLinks): Html {
  if (largest.length === 0) return nothing;
  return html`<section><h2>The largest changes</h2>${differenceTable(largest, links, "The largest changes")}</section>`;
}

export function differenceTable(differences: readonly Difference[], links: PlanLinks, label: string): Html {
  const rows = differences.map(
    ({ kind, range, before, after }) => html`<tr><th scope="row">${links.range(range)}</th><td>${kind}</td>
<td class="break">${kind === "moved" ? under(before) : words(before)}</td><td class="break">${kind === "moved" ? under(after) : words(after)}</td></tr>`,
  );
  return html`<div class="scroll differences" tabindex="0" role="region" aria-label="${label}"><table><thead><tr><th scope="col">Range</th><th scope="col">Change</th><th scope="col">Was</th><th scope="col">Is then</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

const words = (subnet: SubnetWords | null) =>
  subnet === null
    ? "–"
    : [subnet.holder, subnet.country, subnet.registry, subnet.name].filter(Boolean).join(" · ");
const under = (subnet: SubnetWords | null) => (subnet?.under ? `under ${subnet.under}` : "under nothing");

function delegationSection({ delegations }: ImportPlan, links: PlanLinks): Html {
  const { lostSamples, lost, inheritedSamples, inherited } = delegations;
  const lostItems = lostSamples.map(({ range, from }) => html`<li>${links.range(range)}, now ${from}</li>`);
  const inheritedItems = inheritedSamples.map(
    ({ range, from, to, through }) =>
      html`<li>${links.range(range)}: ${from} → ${to}, through ${links.range(through ?? "")}</li>`,
  );
  return html`${itemList("Delegations lost: probed anew with the next URL", lostItems, lost)}${itemList("Delegations that pass to the subnet above", inheritedItems, inherited)}`;
}

function countrySection({ countries }: ImportPlan, links: PlanLinks): Html {
  if (countries.length === 0) return nothing;
  const rows = countries.slice(0, countriesShown).map(
    ({
      country,
      added,
      removed,
      changed,
    }) => html`<tr><th scope="row">${country === null ? "none stated" : links.country(country)}</th>
<td class="number">${countText(added)}</td><td class="number">${countText(removed)}</td><td class="number">${countText(changed)}</td></tr>`,
  );
  return html`<section><h2>${countries.length > countriesShown ? `By country: the ${countriesShown} with the most changes` : "By country"}</h2>
<div class="scroll by-country" tabindex="0" role="region" aria-label="Changes by country"><table><thead><tr><th scope="col">Country</th><th scope="col" class="number">Added</th><th scope="col" class="number">Removed</th><th scope="col" class="number">Changed</th></tr></thead><tbody>${rows}</tbody></table></div></section>`;
}

function holderSection({ holders }: ImportPlan): Html {
  const items = (samples: typeof holders.mergedSamples) =>
    samples.map(({ from, to }) => html`<li>${from} → ${to.join(" + ")}</li>`);
  return html`${itemList("Holders merged into another", items(holders.mergedSamples), holders.merged)}${itemList("Holders split", items(holders.splitSamples), holders.split)}`;
}

function crossingSection({ state }: ImportPlan, links: PlanLinks): Html {
  const items = state.crossingSamples
    .slice(0, listed)
    .map(({ earlier, later }) => html`<li>${links.range(earlier)} × ${links.range(later)}</li>`);
  return itemList("Ranges that cross each other, both kept", items, state.crossings);
}

function itemList(title: string, items: readonly Html[], total: number): Html {
  if (items.length === 0) return nothing;
  const more = total - items.length;
  return html`<details class="listed"><summary>${title}: ${countText(total)}</summary><ul class="break">${items}</ul>${more > 0 ? html`<p class="small">and ${countText(more)} more</p>` : nothing}</details>`;
}
